"""One party's own side of a run: its table, counted or read beside the connecting, and its ledger entry.

Nothing here is sent. What only the custodian may know (its row count, clamped and missing values) goes to its
private log, as does all that this file logs. What a refusal tells the others, and what the account adds up:
`docs/design/accounts.md`.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import BudgetRefused, DataRefused, OutOfResources, StudyInvalid
from mpc_protocols.functionality import Event, LocalCounts
from mpc_protocols.process.canonical_json import canonical
from parties.budget.aborted import check_retries
from parties.budget.ledger import Ledger
from parties.budget.spending import Proposal, Reservation
from parties.data.linked.opening import open_source
from runner.contributors.collection import waves_of
from runner.party.alignment import check_size, identifier_policy, own_columns
from runner.party.own_counts import own_counts
from runner.study import DataLocation, Study, VerticalStudy
from runner.study.private_file import Private
from runner.study.trained import trained
from synth.algorithm import ALGORITHMS
from synth.training import Training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpc_protocols.functionality import Clique
    from parties.budget.ledger import OpenRun
    from parties.data.counting.local_marginals import LocalTable
    from parties.data.records import Records
    from synth.plan import Plan

PRIVATE = "cosynth.custodian"
"""The logger whose lines are private."""
REFUSALS = frozenset({StudyInvalid.exit_code, DataRefused.exit_code, BudgetRefused.exit_code})
"""Exit codes of a custodian that does not take part; which of them it was, its own ledger says and no peer."""

log = logging.getLogger(PRIVATE)


class Custodian:
    """A party's data and its account. A party without data has neither.

    one_machine: the run has all parties on this machine, so that its tables may lie anywhere.
    """

    def __init__(
        self, study: Study, name: str, private: Private, data: DataLocation | None, one_machine: bool = False
    ) -> None:
        self._study, self._name, self._private, self._data = study, name, private, data
        self._one_machine = one_machine
        self._table: LocalTable | None = None
        self._records: Records | None = None
        self._run: OpenRun | None = None
        self._charged = False

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

    @property
    def dataset(self) -> str:
        """The account's name: as the private file says, else "study/party" on one machine, else the place of
        the data.

        Raises `StudyInvalid` or `DataRefused` for data whose place cannot be told.
        """
        if self._private.ledger.dataset:
            return self._private.ledger.dataset
        if self._one_machine or self._data is None:
            return f"{self._study.name}/{self._name}"
        return self._data.dataset

    @property
    def ledger_file(self) -> Path | None:
        """Where it keeps account; None: at the default place."""
        return self._private.ledger.file

    def proposal(self, digest: bytes) -> Proposal:
        """What the study asks of this custodian's data. digest: the study's."""
        fits: list[object] = [self._study.domain.to_spec()]
        if isinstance(self._study, VerticalStudy):
            fits.append(self._study.alignment.agreed(self._study.privacy.adjacency))
        return Proposal(
            self.dataset,
            self._study.name,
            digest.hex(),
            tuple(party.name for party in self._study.parties if party.name != self._name),
            self._study.privacy.notion,
            "+".join(hashlib.sha256(canonical(each)).hexdigest() for each in fits),
            self._study.privacy.max_rows,
        )

    def ready(self, cliques: Sequence[Clique], asked: bool = True) -> None:
        """Read the table; takes its time. Raises `DataRefused` before anything has been sent.

        cliques: what a custodian with all the columns counts. An owner of a vertical study keeps its rows
        instead. asked: whether other parties will ask for marginals, and see how long an answer takes: then
        that does not depend on the rows.
        """
        if self._data is None:
            return
        if isinstance(self._study, VerticalStudy):
            self._read(self._study, self._data)
        else:
            self._count(self._data, cliques, asked)

    def _read(self, study: VerticalStudy, data: DataLocation) -> None:
        from parties.data.records import read

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

    def _count(self, data: DataLocation, cliques: Sequence[Clique], asked: bool) -> None:
        self._table = own_counts(
            self._study,
            data,
            cliques,
            allow_empty=self._private.allow_empty,
            workers=self._private.workers,
            custodians=max(1, sum(party.data is not None for party in self._study.parties))
            if self._one_machine
            else 1,
        )
        if asked:
            self._table.counters.even_out()
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

    def reservation(
        self, plan: Plan, session: bytes, digest: bytes, computes: bool, sizes: Sequence[Event] = ()
    ) -> Reservation:
        """The study's whole budget, as it is charged before the first share leaves.

        sizes: what this party's lists reveal to the others in a vertical run, on top of it.
        """
        asked, privacy = self.proposal(digest), self._study.privacy
        rho, beta = plan.beside(self.columns) if isinstance(self._study, VerticalStudy) else (0, 0)
        return Reservation(
            asked.dataset,
            session.hex(),
            asked.study,
            asked.digest,
            float(privacy.epsilon),
            float(privacy.delta),
            asked.notion,
            plan.budget.rho_cap + rho,
            plan.budget.beta_cap + beta,
            asked.counterparties,
            computes,
            isinstance(self._study, VerticalStudy) and trained(self._study) is None,
            sum((event.rho for event in sizes), Fraction(0)),
            sum((event.beta for event in sizes), Fraction(0)),
            asked.domain,
            asked.max_rows,
            plan.budget.curve,
            waves_of(self._study),
            () if self._study.prior is None else self._study.prior.apart,
        )

    def reserve(
        self,
        plan: Plan,
        session: bytes,
        digest: bytes,
        computes: bool,
        sizes: Sequence[Event] = (),
        released: bool = False,
        recorded: int | None = None,
    ) -> None:
        """Charge the reservation to the ledger. Raises `BudgetRefused`.

        recorded: how many releases of the run this party has in its journal, if it can tell:
        `Ledger.reserve`. A contributor has none; its ledger knows of releases only when the leader has handed
        out what it holds, after which nothing is computed.

        released: nothing more of the run is computed, so that a run that is settled already may stay so.
        """
        if self._data is None:
            return
        own = self._private.ledger
        cap = own.cap
        if cap.epsilon is not None and self._claimless(plan):
            raise BudgetRefused(
                f"The study {self._study.name} has no privacy claim and cannot be counted against the cap of {self.dataset}; "
                "use another algorithm, or a private file without a cap."
            )
        if released:
            if Ledger(own.file).has_ended(self.dataset, session.hex()):
                self._charged = True
                return
            cap, sizes = replace(cap, max_alignments=None), ()  # nothing is aligned any more
        self._run = Ledger(own.file).reserve(
            self.reservation(plan, session, digest, computes, sizes), cap, None if released else recorded
        )

    def _claimless(self, plan: Plan) -> bool:
        """Whether the run shows of this party's data what no epsilon bounds."""
        algorithm, config = ALGORITHMS[self._study.algorithm], self._study.config
        if isinstance(algorithm, Training):
            own = algorithm.own_events(plan, algorithm.predicted(config) in self.columns)
            return any(event.detail.get("claim") == "none" for event in own)
        return not algorithm.sound(config)

    def check_retries(self, owners: Sequence[str]) -> None:
        """Raise `BudgetRefused` if alignments with one of these other owners were aborted too often in a row."""
        if self._data is None:
            return
        check_retries(self.dataset, Ledger(self._private.ledger.file).entries(self.dataset), owners)

    def refuse(self, digest: bytes, code: int) -> None:
        """Put on record that this custodian does not take part in the study; what it was told is in its
        private log.

        A ledger that cannot be written changes nothing about the refusal.
        """
        if self._data is None:
            return
        with suppress(BudgetRefused, OutOfResources, StudyInvalid, DataRefused):
            Ledger(self._private.ledger.file).refuse(self.proposal(digest), code)

    def begin(self, event: Event, release: int | None = None) -> None:
        """Record an event in the ledger, before anything of its release is opened. release: its number, as in
        `OpenRun.begin`."""
        self.begin_all([(event, release)])

    def begin_all(self, releases: Sequence[tuple[Event, int | None]]) -> None:
        """The same of several events and the numbers of their releases, with one wait for the disk."""
        if self._run is not None:
            self._run.begin_all(releases)
        elif self._data is not None and not self._charged:
            raise BudgetRefused(
                "A release was asked for before the ledger had reserved the run's budget; nothing is released."
            )

    def settle(self) -> None:
        """The run ended normally: charge what was begun instead of the reservation."""
        if self._run is not None:
            self._run.settle()
            self._run = None

    def close(self) -> None:
        """The run is over, however it ended: one that was not settled is as dead to the ledger as its process
        would be."""
        if self._run is not None:
            self._run.close()
            self._run = None


def override(path: Path | None) -> DataLocation | None:
    """A file that replaces the study's `data` of one party (the Python API writes it); None if there is none."""
    return None if path is None else DataLocation(path=path.resolve())
