"""One party's own side of a run: its table, counted or read beside the connecting, and its ledger entry.

Nothing here is sent. What only the custodian may know (its row count, clamped and missing values) goes to its private log, as
does all that this file logs.
"""

from __future__ import annotations

import logging
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.functionality import Event, LocalCounts
from runner.party.alignment import check_size, identifier_policy, own_columns
from runner.study import DataLocation, Study, VerticalStudy
from runner.study.private_file import Private

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpc_protocols.functionality import Clique
    from parties.budget.ledger import OpenRun
    from parties.data.local_marginals import LocalTable
    from parties.data.records import Records
    from synth.plan import Plan

PRIVATE = "cosynth.custodian"
"""The logger whose lines are private."""

log = logging.getLogger(PRIVATE)


class Custodian:
    """A party's data and its account. A party without data has neither."""

    def __init__(self, study: Study, name: str, private: Private, data: DataLocation | None) -> None:
        self._study, self._name, self._private, self._data = study, name, private, data
        self._table: LocalTable | None = None
        self._records: Records | None = None
        self._run: OpenRun | None = None

    @property
    def has_data(self) -> bool:
        """Whether this party is a custodian."""
        return self._data is not None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the domain that this party owns in a vertical study; none without data.

        Raises `DataRefused`; `StudyInvalid` if the study declares columns of a party without data.
        """
        declared = self._study.party(self._name).columns
        if self._data is not None:
            return own_columns(self._study, self._name, self._data)
        if declared is not None:
            raise StudyInvalid(
                f"{self._study.path}: [[party]] {self._name} owns columns and has no data; give it data in the "
                "study or in its private file."
            )
        return ()

    def ready(self, cliques: Sequence[Clique]) -> None:
        """Read the table; takes its time. Raises `DataRefused` before anything has been sent.

        cliques: what a custodian with all the columns counts. An owner of a vertical study keeps its rows instead.
        """
        if self._data is None:
            return
        if isinstance(self._study, VerticalStudy):
            self._read(self._study, self._data)
        else:
            self._count(self._data, cliques)

    def _read(self, study: VerticalStudy, data: DataLocation) -> None:
        from parties.data.records import read
        from parties.data.source import open_source

        with open_source(data.locate()) as source:
            records = read(
                source,
                study.domain.subset(self.columns),
                identifier_policy(study),
                max_rows=study.privacy.max_rows,
                allow_empty=self._private.allow_empty,
            )
        log.info(
            "own data: %d records; clamped %s; missing %s; columns left out %s",
            records.rows,
            dict(records.clamped),
            dict(records.absent),
            list(records.ignored),
        )
        check_size(study, self._name, records.rows)
        self._records = records

    def _count(self, data: DataLocation, cliques: Sequence[Clique]) -> None:
        from parties.data.local_marginals import count
        from parties.data.source import open_source

        unit = self._study.privacy.unit
        with open_source(data.locate()) as source:
            self._table = count(
                source,
                self._study.domain,
                cliques,
                max_rows=self._study.privacy.max_rows,
                unit=None if unit.id is None else (unit.id, unit.max_rows),
                allow_empty=self._private.allow_empty,
            )
        log.info(
            "own data: %d rows; clamped %s; missing %s; columns left out %s",
            self._table.rows,
            dict(self._table.clamped),
            dict(self._table.absent),
            list(self._table.ignored),
        )

    def counts(self) -> LocalCounts | None:
        """The counted marginals; None if this party only computes."""
        return None if self._table is None else self._table.counts

    @property
    def records(self) -> Records | None:
        """An owner's records, once they are read; None if this party only computes."""
        return self._records

    def reserve(
        self, plan: Plan, session: bytes, digest: bytes, computes: bool, sizes: Sequence[Event] = ()
    ) -> None:
        """Charge the study's whole budget to the ledger, before the first share leaves. Raises `BudgetRefused`.

        sizes: what this party's lists reveal to the others in a vertical run, on top of it.
        """
        if self._data is None:
            return
        from parties.budget.ledger import Ledger
        from parties.budget.spending import Cap, Reservation

        own, privacy = self._private.ledger, self._study.privacy
        self._run = Ledger(own.file).reserve(
            Reservation(
                own.dataset or self._data.locate().dataset,
                session.hex(),
                self._study.name,
                digest.hex(),
                float(privacy.epsilon),
                float(privacy.delta),
                privacy.adjacency,
                privacy.unit.words,
                plan.budget.rho_cap,
                plan.budget.beta_cap,
                tuple(party.name for party in self._study.parties if party.name != self._name),
                computes,
                isinstance(self._study, VerticalStudy),
                sum((event.rho for event in sizes), Fraction(0)),
                sum((event.beta for event in sizes), Fraction(0)),
            ),
            Cap(own.cap_epsilon, own.cap_delta, own.max_alignments),
        )

    def begin(self, event: Event) -> None:
        """Record an event in the ledger, before anything of its release is opened."""
        if self._run is not None:
            self._run.begin(event)
        elif self._data is not None:
            raise BudgetRefused(
                "A release was asked for before the ledger had reserved the run's budget; nothing is released."
            )

    def settle(self) -> None:
        """The run ended normally: charge what was begun instead of the reservation."""
        if self._run is not None:
            self._run.settle()
            self._run = None

    def close(self) -> None:
        """The run is over, however it ended: one that was not settled is as dead to the ledger as its process would be."""
        if self._run is not None:
            self._run.close()
            self._run = None


def override(path: Path) -> DataLocation:
    """A file that replaces the study's `data` of one party (the Python API writes it)."""
    return DataLocation(path=path.resolve())
