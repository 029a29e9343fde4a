"""Which list of bundles a study runs on, once and for all: a computing party's own record, in its ledger's
file.

A contributor's data are charged for one run on one list (`docs/design/federated.md` 3). Two runs on lists
that differ by one bundle, each charged to the same reservations, would double everybody's charge and open
what is nearly one contributor's data. So the first list is on record before a sum is formed, and the first
run that releases anything before it does. Another list, or another run once something may have been released,
is refused by every computing party for itself, whatever the others say.

A party that has released nothing can also say that it never will: then the study is void here, and every run
of it is refused.
"""

from __future__ import annotations

import time
from pathlib import Path

from mpc_protocols.errors import BudgetRefused
from parties.budget.ledger import Ledger

VOID = "void"
"""In place of the list's hash: no run of the study releases anything."""


class CollectedList:
    """The record of one study at one computing party. study: its digest. Every change is durable on return.

    A study that selects while contributors arrive has a list for each round; which run it is, and whether the
    study is void, stands in the first one's record only.

    Methods raise `BudgetRefused` also when the ledger cannot be used.
    """

    def __init__(self, ledger: Ledger, study: bytes, party: str, round: int = 1) -> None:
        """round: whose list it is."""
        name = study.hex() if round == 1 else f"{study.hex()}/{round}"
        self._ledger, self.party, self._key = ledger, party, (name, party)

    @property
    def fixed(self) -> bytes | None:
        """Hash of the list; None as long as there is none."""
        row = self._row()
        return None if row is None or row[0] == VOID else bytes.fromhex(row[0])

    @property
    def begun(self) -> bool:
        """Whether a run has begun to release."""
        row = self._row()
        return row is not None and row[1] is not None

    @property
    def file(self) -> Path:
        """The ledger's file."""
        return self._ledger.path

    @property
    def void(self) -> bool:
        """Whether this party has said that no run of the study releases anything."""
        row = self._row()
        return row is not None and row[0] == VOID

    def declare_void(self) -> None:
        """Say so, for good. Raises `BudgetRefused` if a run has begun to release."""
        with self._ledger.transaction() as database:
            database.execute(
                "INSERT OR IGNORE INTO collections (study, party, list, time) VALUES (?, ?, ?, ?)",
                (*self._key, VOID, time.time()),
            )
            database.execute(
                "UPDATE collections SET list = ? WHERE study = ? AND party = ? AND run IS NULL",
                (VOID, *self._key),
            )
        if not self.void:
            raise BudgetRefused(
                f"A run on the bundles of this study has begun to release at party {self.party}, so something of them may have "
                "been opened and contributors stay charged; go on with that run with --resume."
            )

    def fix(self, agreed: bytes) -> None:
        """Put the list on record, or find it there. Raises `BudgetRefused` for another one."""
        with self._ledger.transaction() as database:
            database.execute(
                "INSERT OR IGNORE INTO collections (study, party, list, time) VALUES (?, ?, ?, ?)",
                (*self._key, agreed.hex(), time.time()),
            )
        self._refuse_void()
        if self.fixed != agreed:
            raise BudgetRefused(
                f"Party {self.party} has fixed another list of bundles for this study, and contributors are charged for one "
                "list only; resume the run on that list, or collect for a new study."
            )

    def check(self, run: bytes) -> None:
        """Raise `BudgetRefused` if another run of the study may have released something, or none ever may."""
        self._refuse_void()
        row = self._row()
        if row is not None and row[1] is not None and row[1] != run.hex():
            raise BudgetRefused(
                "The bundles of this study are for one run, and one has begun to release; go on with it with --resume, or "
                "collect for a new study."
            )

    def begin(self, run: bytes) -> None:
        """Put on record that this run releases something. Raises `BudgetRefused` if another one may have, or
        none ever may."""
        with self._ledger.transaction() as database:
            database.execute(
                "UPDATE collections SET run = ? WHERE study = ? AND party = ? AND run IS NULL AND list <> ?",
                (run.hex(), *self._key, VOID),
            )
        self.check(run)

    def _refuse_void(self) -> None:
        if self.void:
            raise BudgetRefused(
                f"Party {self.party} has declared this study void: contributors may have their budget back, so nothing of "
                "their bundles is opened; collect for a new study."
            )

    def _row(self) -> tuple[str, str | None] | None:
        with self._ledger.transaction() as database:
            row = database.execute(
                "SELECT list, run FROM collections WHERE study = ? AND party = ?", self._key
            ).fetchone()
        return None if row is None else (str(row[0]), None if row[1] is None else str(row[1]))
