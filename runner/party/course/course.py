"""The course of a run from assembly to its files: what differs between ways of making a result, and what they
all have at hand.

    answers           an oracle answers the algorithm's questions, or the owners report once
    cohorts           custodians choose by themselves what they answer (`synth.algorithm.CohortRounds`)
    server_training   owners of columns train with a server (`synth.algorithm.TrainedAlgorithm`)
    split_training    two owners train a model over their session (`synth.training.Training`); no table is made

`runner.party.process` connects, agrees, reserves and assembles alike for all of them, then hands over a
`Run`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mpc_protocols.errors import ProtocolAborted
from runner.party.alignment import Account
from runner.party.custodian import PRIVATE
from runner.party.record.software import software
from runner.party.session import ca_fingerprint
from runner.report import prepare
from runner.results.outdir import DISTRIBUTED, ONE_MACHINE
from runner.results.release import parse, size_limit
from runner.study import Study, VerticalStudy
from runner.study.owners import Ownership, method_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.backend import DistributedBackend
    from mpc_protocols.functionality import Event, Observe, StudyFacts
    from parties.budget.journal import Journal
    from parties.session import SessionWire
    from runner.contributors.closing import Closing
    from runner.party.collective import Collective
    from runner.party.custodian import Custodian
    from runner.party.options import PartyOptions
    from runner.party.record.events import EventLog, Meter
    from runner.party.resume.attempt import Attempt
    from runner.results.release import Release
    from synth.budget.accounting import Accountant
    from synth.plan import Plan

Joined = TypeVar("Joined")


class Course(ABC):
    """One way of making a result, at one party.

    joins: whether the owners' records are joined in a vertical study. withheld, untimed: phases of a vertical
    study whose traffic and times follow the data, beside those that always do (`runner.party.record.events`).
    """

    joins: bool = True
    withheld: frozenset[str] = frozenset()
    untimed: frozenset[str] = frozenset()

    def prepare(self) -> None:
        """Load what takes its time, while parties connect."""
        return

    def check(self, study: VerticalStudy, owned: Ownership) -> None:
        """Raise `StudyInvalid` if it has no use for these owners."""
        return

    def closed(self, run: Run) -> Run:
        """The run as it was when it released what the leader holds."""
        return run

    @abstractmethod
    def take_part(self, run: Run) -> None:
        """This party's part, whatever its role, to the written files. Raises `CosynthError`."""


@dataclass(frozen=True)
class Run:
    """What a party holds once all have assembled.

    id: 32 bytes, the same for all attempts at a run. digest: of the study. custodians: the parties that have
    data. owned: in a vertical study. limit: the most rows of a table. journal: of a party that has releases
    to make. observe: marks the phase of what it is told.
    """

    options: PartyOptions
    study: Study
    name: str
    backend: DistributedBackend
    custodian: Custodian
    attempt: Attempt
    closing: Closing | None
    events: EventLog
    observe: Observe
    meter: Meter
    digest: bytes
    id: bytes
    wire: SessionWire
    collective: Collective
    plan: Plan
    custodians: tuple[str, ...]
    owned: Ownership | None
    facts: StudyFacts
    limit: int
    journal: Journal | None

    @property
    def computes(self) -> bool:
        """Whether this party does."""
        return self.wire.me < self.wire.computing

    @property
    def mode(self) -> str:
        """What the results say of where it ran."""
        return ONE_MACHINE if self.options.one_machine else DISTRIBUTED

    def join(self, owned: Ownership, join: Callable[..., Joined]) -> Joined:
        """Phase "align": this party's part in joining the owners' records. What it begins stays on record
        however it ends.

        join: `runner.party.alignment.join` or `take_part`, after what of it is wanted.
        """
        assert isinstance(self.study, VerticalStudy)

        def record(event: Event, inputs: bytes) -> None:
            self.wire.check_valid()
            if self.journal is not None:
                self.journal.alignment(event, inputs)
            self.custodian.begin(event)

        self.meter.mark("input")
        self.observe("align", "started", owners=len(owned.owners), via=method_of(self.study).name)
        with Account(record, self.wire.session_id, owned) as account:
            data = join(
                self.study, owned, self.wire.fork("align"), self.digest, self.custodian.records, account
            )
        # list sizes and the size of the union are for the parties alone: events go into the report
        self.observe("align", "aligned", owners=len(owned.owners), via=method_of(self.study).name)
        return data

    def receive(self) -> Release:
        """What the leader hands out, checked for its form."""
        return parse(self.receive_payload(), self.study.domain, self.limit, self.study.leader.name)

    def receive_payload(self) -> memoryview:
        """The same as it comes."""
        prepare()  # here there is time: the leader samples its model
        return self.collective.receive_release(size_limit(self.study.domain, self.limit))

    def receive_told(self, opened: Sequence[NDArray[np.int64]], accountant: Accountant, here: str) -> Release:
        """The same at a party that keeps an account of its own: see `check_told`."""
        release = self.receive()
        self.check_told(release, opened, accountant, here)
        return release

    def check_told(
        self, release: Release, opened: Sequence[NDArray[np.int64]], accountant: Accountant, here: str
    ) -> None:
        """Raise `ProtocolAborted` if the leader tells of other releases than this party has on its own
        account. here: what it has done with each, for the sentence."""
        if not release.tells(opened, accountant.events):
            raise ProtocolAborted(
                f"Party {self.study.leader.name} reports other releases than this party has {here}; do not use its result."
            )

    def counters(self) -> Mapping[str, Any]:
        """Everybody's counters, exchanged by way of the leader; this party's own go to its private log."""
        whole = self.meter.whole()
        logging.getLogger(PRIVATE).info("own traffic: %s; by phase: %s", vars(self.wire.traffic()), whole)
        own = {"phases": self.meter.sent(), **self.meter.totals(), "software": software()}
        return self.collective.counters(own, self._shared)

    def _shared(self, parties: list[dict[str, Any]]) -> Mapping[str, Any]:
        """What the leader makes of everybody's counters, with its own timeline."""
        return self.attempt.counters(self.digest, lambda: self._counted(parties))

    def _counted(self, parties: list[dict[str, Any]]) -> dict[str, Any]:
        sent: dict[str, int] = {}
        for party in parties:
            for phase in party["phases"]:
                sent[phase["name"]] = sent.get(phase["name"], 0) + phase["bytes_sent"]
        return {
            "started": self.meter.started.isoformat(timespec="seconds"),
            "wall_s": round(self.meter.clock(), 3),
            "phases": [{**phase, "bytes_sent": sent[phase["name"]]} for phase in self.meter.phases()],
            "parties": [
                {key: party[key] for key in ("bytes_sent", "bytes_received", "rounds", "proofs", "software")}
                for party in parties
            ],
            "ca": ca_fingerprint(self.options.certs),
            "timeline": self.events.timeline(),
        }
