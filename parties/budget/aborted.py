"""Alignments that were begun and came to nothing: how many in a row with one counterparty, and when that is
too many.

An owner that deviates in an alignment between two owners is noticed, but it may have learned whether somebody
is in the other's data, and it can begin anew: what one attempt tells is bounded, what any number of attempts
tell is not (`mpc_protocols.psu.dh2`). Attempts that were aborted spend nothing of a budget and would be free,
so a custodian counts them, and from the MAX_ABORTED-th in a row with one counterparty on refuses another one
until a person has looked why they were aborted.

An attempt begins with the event "alignment.started" on record. It came to something if a release of the run
follows, before the next attempt; all else counts as aborted, also where the process died and could not say.
One that is under way counts, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mpc_protocols.errors import BudgetRefused
from parties.budget.spending import ALIGNMENT, STARTED, Entry

ABORTED = "alignment.aborted"
"""The event that an alignment that came to nothing puts on record, beside `STARTED`."""
MAX_ABORTED = 3
"""So many aborted alignments in a row with one counterparty, and the next is refused."""


def aborted_in_a_row(entries: Sequence[Entry], counterparty: str) -> int:
    """How many of the latest alignments with this owner came to nothing, one after the other."""
    count = 0
    for finished in _attempts(entries, counterparty):
        count = 0 if finished else count + 1
    return count


def check_retries(dataset: str, entries: Sequence[Entry], counterparties: Iterable[str]) -> None:
    """Raise `BudgetRefused` if the latest MAX_ABORTED alignments with one of these owners were aborted."""
    for name in counterparties:
        count = aborted_in_a_row(entries, name)
        if count >= MAX_ABORTED:
            raise BudgetRefused(refusal(dataset, name, count))


def refusal(dataset: str, counterparty: str, count: int) -> str:
    """The sentence for an alignment that is not begun once more."""
    return (
        f"The last {count} alignments of dataset {dataset} with {counterparty} were aborted, and each may have told it whether "
        "somebody is in the data; find out why (`ledger show`), and run with --allow-retry if you accept another."
    )


def _attempts(entries: Sequence[Entry], counterparty: str) -> Iterator[bool]:
    """Each attempt with this owner, oldest first: whether it came to something."""
    for entry in entries:
        finished: bool | None = None
        for begun in entry.events:
            if begun.event.what == STARTED:
                if finished is not None:
                    yield finished
                owners = begun.event.detail.get("owners")
                finished = False if isinstance(owners, list) and counterparty in owners else None
            elif finished is False and not begun.event.what.startswith(ALIGNMENT):
                finished = True
        if finished is not None:
            yield finished
