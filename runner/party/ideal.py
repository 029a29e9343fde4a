"""A run on a backend of one process (`ideal`): all custodians' tables in the clear. IT PROTECTS NOTHING.

The same plan, the same ledgers, the same events and files as a run of parties, for tests, simulations and
baselines.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS, ClearBackend
from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import LocalCounts
from mpc_protocols.vertical.partition import ideal_counts
from parties.budget.run_state import RunState, discard_others
from runner.contributors.closing import Closing, check_custodians, in_the_clear
from runner.contributors.result import result_of
from runner.party.alignment import ideal_join
from runner.party.course import server_training
from runner.party.course.arriving import added, clear_oracles
from runner.party.custodian import Custodian, override
from runner.party.options import PartyOptions
from runner.party.record.events import EventLog, Meter
from runner.party.record.logs import recording
from runner.party.record.run_json import describe
from runner.party.record.software import software
from runner.party.resume.earlier_attempt import EarlierAttempt, cannot_resume, state_digest
from runner.party.synthesis import counted, exchange_of, facts_of, plan_of, row_limit, sample, synthesize
from runner.results.outdir import ONE_MACHINE, PARTY_FOLDERS, state
from runner.results.outputs import write_outputs
from runner.results.release import clients_of
from runner.study import Study, VerticalStudy, digest, load, private_file
from runner.study.cohorts import cohorts_of
from runner.study.owners import ownership
from runner.study.trained import trained
from runner.version import VERSION
from synth.budget.accounting import Accountant

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event, MarginalOracle, Observe, Reports, StudyFacts
    from mpc_protocols.public.history import History
    from mpc_protocols.vertical.partition import OwnRows, Partition
    from parties.data.records import Records
    from runner.results.release import Release
    from runner.study.owners import Ownership
    from synth.algorithm import CohortRounds
    from synth.plan import Plan
    from synth.synthesis import Synthesis

    Joined = tuple[Partition, dict[int, OwnRows]]


def run_ideal(options: PartyOptions) -> None:
    """Run the whole study in this process, in the clear: it protects nothing. Raises `CosynthError`."""
    study = load(options.study)
    private = options.out / PARTY_FOLDERS
    private.mkdir(exist_ok=True)
    with recording(options, study, private) as observe, ExitStack() as accounts:
        _run(options, study, observe, accounts)


def _run(options: PartyOptions, study: Study, observe: EventLog, accounts: ExitStack) -> None:
    """All custodians' tables in one process, in the clear. accounts: closes ledgers, for this process may
    live on."""
    meter = Meter()
    observe.clock = meter.clock
    private = options.out / PARTY_FOLDERS
    earlier = _earlier(options, study)
    session = secrets.token_bytes(32) if earlier is None else earlier.state.run
    plan, custodians, owned = plan_of(study), _custodians(options, study), None
    if isinstance(study, VerticalStudy):
        owned = ownership(study, {name: custodian.columns for name, custodian in custodians.items()})
        plan = plan.knowing(owned.columns)
    closings, collected = _closed(options, study, plan, session, tuple(custodians))
    tables = len(custodians)
    if closings:
        tables += len(closings[0].agreed.entries)
        observe("agree", "closed", bundles=len(closings[0].agreed.entries))
    for custodian in custodians.values():
        custodian.ready(counted(plan))
        accounts.callback(custodian.close)
        custodian.reserve(plan, session, digest(study, ""), computes=True)
    meter.mark("input")
    observe("input", "counted", custodians=tables)
    facts = facts_of(study, tables, session, plan)
    run = _Clear(study, plan, custodians, owned, closings, collected, session, facts)
    counts, joined = run.counted()
    if owned is not None and joined is not None:
        meter.mark("align")
        observe("align", "aligned", owners=len(owned.owners), via=study.backend)

    meter.start("input" if joined is None else "align")
    history = (
        RunState.create(private, state_digest(study), session, study.leader.name, VERSION)
        if earlier is None
        else earlier.state
    )
    accounts.callback(history.close)
    history.attempt(secrets.token_bytes(32), finish_held=True)

    def watch(phase: str, event: str, **fields: Any) -> None:
        meter.mark(phase)
        observe(phase, event, **fields)

    synthesis, events = run.synthesis(counts, joined, history, watch)
    if closings:  # with those that have arrived meanwhile
        tables = len(custodians) + len(closings[0].agreed.entries)
    release = sample(synthesis, plan, watch, row_limit(study, tables), events)
    for custodian in custodians.values():
        custodian.settle()
    run.write(options.out, release, meter, observe, owned if joined is not None else None)
    for closing in closings:
        if left := closing.inbox.finish():
            observe("report", "not_deleted", files=[path.name for path in left])
    history.finish(VERSION)
    discard_others(private, session)
    meter.mark("report")
    observe("report", "written", rows=int(release.codes.shape[0]))


def _earlier(options: PartyOptions, study: Study) -> EarlierAttempt | None:
    """The attempt that is to go on; None for a new run. Raises `UsageError`."""
    if options.resume and not study.resumes and state(options.out) == "interrupted":
        raise UsageError(cannot_resume(study))
    if not options.resume or not study.resumes:
        return None
    return EarlierAttempt.find(options.out / PARTY_FOLDERS, study, study.leader.name, journalled=False)


def _custodians(options: PartyOptions, study: Study) -> dict[str, Custodian]:
    """Everybody who has data, by name."""
    custodians = {}
    for party in study.parties:
        settings = options.settings(party.name)
        data = private_file.location(study, party.name, settings, override(options.data.get(party.name)))
        if data is not None:
            custodians[party.name] = Custodian(study, party.name, settings, data, one_machine=True)
    check_custodians(study, tuple(custodians))
    return custodians


def _closed(
    options: PartyOptions, study: Study, plan: Plan, session: bytes, custodians: tuple[str, ...]
) -> tuple[list[Closing], list[LocalCounts]]:
    """Of a study with bundles: the three parties' closings, whose list is agreed, and what the bundles add up
    to."""
    if study.contributors is None:
        return [], []
    closings = [
        Closing.of(study, party.name, options.settings(party.name), plan) for party in study.computing
    ]
    for closing in closings:
        closing.inbox.tidy()
        closing.check(session)
    closings[0].custodians = custodians
    return closings, [closings[0].collection.layout.marginals(in_the_clear(closings))]


@dataclass
class _Clear:
    """What one process knows of everybody before anything is released.

    owned: of a vertical study. closings: of the three parties, where there are bundles, in the round of
    arrivals that is under way. collected: what bundles add up to.
    """

    study: Study
    plan: Plan
    custodians: Mapping[str, Custodian]
    owned: Ownership | None
    closings: list[Closing]
    collected: Sequence[LocalCounts]
    session: bytes
    facts: StudyFacts
    releases: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def counted(self) -> tuple[LocalCounts | None, Joined | None]:
        """The marginals of all tables, and the common table of split columns; neither where owners train on
        their own ones."""
        if trained(self.study) is not None:
            return None, None
        if self.owned is None or not isinstance(self.study, VerticalStudy):
            return added([*self._own_counts(), *self.collected]), None
        joined = ideal_join(self.study, self.owned, self._records())
        return ideal_counts(*joined, self.facts.sizes), joined

    def synthesis(
        self, counts: LocalCounts | None, joined: Joined | None, history: History, observe: Observe
    ) -> tuple[Synthesis, list[Event]]:
        """What the study's algorithm makes, and what was charged for it. counts, joined: see `counted`."""
        study, plan = self.study, self.plan
        backend = BACKENDS[study.backend]
        assert isinstance(backend, ClearBackend)
        if (rounds := cohorts_of(study)) is not None:
            return _cohorts(study, plan, rounds, self.custodians, self.session, observe, self.releases)
        accountant = Accountant(plan.budget, record=self._record)
        asked: MarginalOracle | Iterator[MarginalOracle] | Reports
        if (algorithm := trained(study)) is not None and self.owned is not None:
            server_training.authorise(plan, accountant, digest(study, ""))
            found = server_training.ideal(algorithm, plan, self.owned, self._records(), observe)
            return found, accountant.events
        if study.contributors is not None and study.contributors.arriving:
            asked = clear_oracles(
                study, plan, self.closings, self._own_counts(), self.session, accountant, history, observe
            )
        elif (exchange := exchange_of(study, plan)) is not None:
            assert joined is not None
            asked = exchange.clear(self.facts, *joined, accountant)
        else:
            assert counts is not None
            asked = backend.oracle(self.facts, counts, accountant, history)
        return synthesize(study, plan, asked, observe), accountant.events

    def write(
        self, out: Path, release: Release, meter: Meter, events: EventLog, owned: Ownership | None
    ) -> None:
        """The files of the run. owned: if columns were joined."""
        nothing = {"bytes_sent": 0, "bytes_received": 0, "rounds": 0, "proofs": 0, "software": software()}
        shared = {
            "started": meter.started.isoformat(timespec="seconds"),
            "wall_s": round(meter.clock(), 3),
            "phases": meter.phases(),
            "timeline": events.timeline(),
            "parties": [nothing for _ in self.study.parties],
            "ca": "",
        }
        told = describe(
            self.study,
            self.plan,
            release,
            shared,
            self.session,
            digest(self.study, ""),
            ONE_MACHINE,
            owned,
            *self.closings[:1],
        )
        signed = _signed(self.closings, self.session, release, self.study) if self.closings else None
        write_outputs(out, release, self.study.domain, told, signed)

    def _record(self, releases: Sequence[tuple[Event, bytes]]) -> None:
        """Put events on record wherever somebody keeps an account."""
        numbered = [(event, next(self.releases)) for event, _ in releases]
        for closing in self.closings:
            closing.begin(self.session)
        for custodian in self.custodians.values():
            custodian.begin_all(numbered)

    def _own_counts(self) -> list[LocalCounts]:
        return [found for custodian in self.custodians.values() if (found := custodian.counts()) is not None]

    def _records(self) -> dict[str, Records]:
        return {name: records for name, of in self.custodians.items() if (records := of.records) is not None}


def _cohorts(
    study: Study,
    plan: Any,
    rounds: CohortRounds[Any],
    custodians: Mapping[str, Custodian],
    session: bytes,
    observe: Observe,
    releases: Iterator[int],
) -> tuple[Synthesis, list[Event]]:
    """All clients in the clear, and what was charged; each custodian's ledger has what is about its own
    records."""
    backend, names = BACKENDS[study.backend], [party.name for party in study.numbered]
    assert isinstance(backend, ClearBackend)
    plan = rounds.fitted(plan, len(custodians), study.privacy.max_rows)
    clients = {
        number: rounds.client(plan, counts, session)
        for number, name in enumerate(names)
        if name in custodians and (counts := custodians[name].counts()) is not None
    }

    def record(event: Event, inputs: bytes) -> None:
        number = next(releases)
        for client in clients_of(event):
            custodians[names[client]].begin(event, number)

    guard = rounds.accounts(plan, list(clients), record)
    synthesis = rounds.conduct(backend.clear_cohorts(clients, guard, session), plan, session, observe)
    return synthesis, guard.events


def _signed(closings: Sequence[Closing], run: bytes, release: Release, study: Study) -> bytes:
    """The result for contributors, signed by the three parties, all of them here."""
    result = result_of(closings[0], run, release, study)
    return result.to_bytes(
        {closing.party: closing.inbox.signer().sign(result.signed) for closing in closings}
    )
