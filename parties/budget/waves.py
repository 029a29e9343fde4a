"""Nobody is in two waves of a table, as a custodian's own ledger can tell (`docs/design/federated.md` 5).

A run over bundles is on record with the digests by which studies of its table know one another: `waves`, its
own study's first, which does not name the session's CA, then those of the waves before it. Two runs are of
one table if they have a digest in common. Whose rows are charged for one of them, or may be, is in no other,
named as earlier or not. Names of data sets do not count, as a file that is moved has another one: other
people's rows need a ledger of their own.

Nor is a data set in one wave twice, under two names of contributors or beside a party's own table: its rows
would move each count by two, which costs four times as much, and the ledger would add up two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mpc_protocols.errors import BudgetRefused
from parties.budget.spending import Charge, Entry


def check_waves(path: Path, dataset: str, run: str, waves: Sequence[str], entries: Iterable[Entry]) -> None:
    """Raise `BudgetRefused` if one of these entries of any data set is charged for another wave of the table,
    or one of this data set for this wave under another name.

    path: the ledger's, for the sentence. dataset, run: whose rows are to be in a wave, by which run. waves:
    its study's, as `Reservation` has them; of a study over no bundles none, and nothing is refused.
    """
    for entry in entries:
        known = (entry.reservation.digest, *entry.reservation.waves)
        if entry.spent == Charge() or not waves or set(known).isdisjoint(waves):
            continue
        if waves[0] in known[:2]:
            if entry.reservation.dataset == dataset and entry.reservation.run != run:
                raise BudgetRefused(
                    f"The ledger {path} has charged data set {dataset} for this very study already, under another name: its rows "
                    "would be in the table twice; leave one bundle of them, or give other people's rows a data set of their own."
                )
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
