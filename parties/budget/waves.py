"""Nobody is in two waves of a table, as a custodian's own ledger can tell (`docs/design/federated.md` 5).

A run over bundles is on record with the digests by which studies of its table know one another: `waves`, its own study's
first, which does not name the session's CA, then those of the waves before it. Two runs are of one table if they have a digest
in common. Whose rows are charged for one of them, or may be, is in no other, named as earlier or not. Names of data sets do not
count, as a file that is moved has another one: other people's rows need a ledger of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mpc_protocols.errors import BudgetRefused
from parties.budget.spending import Charge, Entry


def check_waves(path: Path, dataset: str, waves: Sequence[str], entries: Iterable[Entry]) -> None:
    """Raise `BudgetRefused` if one of these entries of any data set is charged for another wave of the table.

    path: the ledger's, for the sentence. dataset: whose rows are to be in a wave. waves: its study's, as `Reservation` has them;
    of a study over no bundles none, and nothing is refused.
    """
    for entry in entries:
        known = (entry.reservation.digest, *entry.reservation.waves)
        if entry.spent == Charge() or not waves or waves[0] in known[:2] or set(known).isdisjoint(waves):
            continue
        earlier = not set(known[:2]).isdisjoint(waves[1:])
        which = "an earlier wave" if earlier else "another wave, which this study does not name,"
        what = f"{which} of this table, study {entry.reservation.study}"
        named = entry.reservation.dataset
        other = "" if named == dataset else "; rows of other people belong in a ledger of their own"
        if entry.state == "open":
            raise BudgetRefused(
                f"The ledger {path} has a bundle of data set {named} for {what}, that it has not settled yet; settle it first "
                f"with `contribute --settle` and that study's result.json{other}."
            )
        raise BudgetRefused(
            f"The ledger {path} has charged data set {named} for {what}: its rows are in the table and have spent their "
            f"budget{other}."
        )
