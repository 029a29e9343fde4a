"""One party of a run, from the study file to the finished files (`docs/architecture.md` 3).

    connect   session with the others; this party's own table is counted beside it
    agree     study, roles, session id; the budget is reserved in this custodian's ledger
    input     when all have counted (vertical: read) and reserved ("assembled"), shares of the counts leave, masked. Until then
              the others learn of a refusal only that there is one, and the run's clock stands at 0 (`docs/design/accounts.md`)
    align     vertical only: the owners' records are joined (`runner.party.alignment`); what their sizes say is on record first
    select, measure, fit     as the algorithm has it, one of four courses (`runner.party.course`)
    sample    the leader samples the table and hands the release to everybody
    report    counters are exchanged, every party writes its own files

Who learns what: see each course; all of it is what the study's (epsilon, delta) covers. A run that was
interrupted goes on from the last opened release (`docs/design/resume.md`). Each computing party keeps its own
accountant and journal, and refuses a step that the budget does not allow. The release comes from the leader
and is believed by nobody: see `runner.results.release`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.errors import BudgetRefused, CosynthError, ProtocolAborted, StudyInvalid, UsageError
from parties.session import run_session
from runner.contributors.closing import Closing, check_custodians
from runner.party.alignment import check_tables, own_events
from runner.party.collective import Collective
from runner.party.course.answers import Answers
from runner.party.course.arriving import InRoundsOfArrivals
from runner.party.course.cohorts import InCohorts
from runner.party.course.course import Course, Run
from runner.party.course.server_training import ServerTraining
from runner.party.course.split_training import SplitTraining
from runner.party.course.table import finish
from runner.party.custodian import REFUSALS, Custodian, override
from runner.party.options import PartyOptions
from runner.party.record.events import PHASES, UNTIMED, WITHHELD, EventLog, Meter
from runner.party.record.logs import recording
from runner.party.resume.attempt import Attempt
from runner.party.resume.earlier_attempt import EarlierAttempt, cannot_resume
from runner.party.session import MAX_DEADLINE_S, is_bounded, run_deadline, session_config, study_digest
from runner.party.synthesis import counted, facts_of, plan_of, row_limit
from runner.results.outdir import state
from runner.results.release import parse
from runner.study import Study, VerticalStudy, load, private_file
from runner.study.cohorts import cohorts_of
from runner.study.owners import Ownership, ownership
from runner.study.trained import trained, training_of

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event
    from parties.session import SessionConfig, SessionWire
    from runner.results.release import Release
    from synth.plan import Plan


def run_party(options: PartyOptions) -> None:
    """Take part in a run as `options.party`; the files are in `options.out` afterwards. Raises
    `CosynthError`.

    With `options.resume`, where the run is finished: give the others what they lack.
    """
    study = load(options.study)
    if study.prior is not None:
        study.prior.check_out(options.out)
    name = options.party
    if name is None or name not in {party.name for party in study.parties}:
        raise UsageError(
            f"--party {name}: the study's parties are {', '.join(party.name for party in study.parties)}."
        )
    backend = study.descriptor
    if not isinstance(backend, DistributedBackend):
        raise UsageError(
            f"The {study.backend} backend protects nothing and runs in one process: it takes no --party."
        )
    settings = options.settings(name)
    data = private_file.location(study, name, settings, override(options.data.get(name)))
    custodian = Custodian(study, name, settings, data, options.one_machine)
    earlier = None
    if options.resume:
        if not study.resumes and state(options.out) == "interrupted":
            raise UsageError(cannot_resume(study))
        earlier = EarlierAttempt.find(options.out, study, name) if study.resumes else None
        if state(options.out) == "finished" and (earlier is None or not earlier.finished):
            return  # there is nothing here that others could lack
    try:
        with recording(options, study, options.out) as observe:
            _Party(options, study, backend, settings, custodian, observe, earlier).run()
    finally:
        if earlier is not None:
            earlier.state.close()


class _Party:
    """A run of one party: what the session's threads need to know of each other."""

    def __init__(
        self,
        options: PartyOptions,
        study: Study,
        backend: DistributedBackend,
        settings: private_file.Private,
        custodian: Custodian,
        observe: EventLog,
        earlier: EarlierAttempt | None = None,
    ) -> None:
        """earlier: what an interrupted run has left here, if it is to be gone on with."""
        self._attempt = Attempt(options, study, options.party or "", earlier)
        self._options, self._study, self._settings, self._custodian = options, study, settings, custodian
        self._name, self._backend = options.party or "", backend
        self._events = observe
        self._course = course = _course_of(study)
        vertical = isinstance(study, VerticalStudy)
        self._meter = Meter(WITHHELD | course.withheld, UNTIMED | course.untimed) if vertical else Meter()
        self._events.clock = self._meter.clock
        self._assembled = False
        self._closing: Closing | None = None
        self._digest = study_digest(study, options.certs)
        self._plan: Plan | None = None
        self._deadline: float | None = None

    def run(self) -> None:
        """Connect, compute, write. Raises `CosynthError`."""
        try:
            run_session(self._config(), self._body, self._observe, local_work=self._count)
        except CosynthError as error:
            if (
                not self._assembled and error.exit_code in REFUSALS
            ):  # its own: of a peer's, this party hears 40
                self._custodian.refuse(self._digest, error.exit_code)
            raise

    def _config(self) -> SessionConfig:
        return session_config(
            self._study,
            self._name,
            self._options.certs,
            self._digest,
            self._settings.listen,
            self._facts(),
            self._options.way_in,
            (lambda: self._deadline or MAX_DEADLINE_S) if is_bounded(self._study, self._name) else None,
        )

    def _facts(self) -> dict[str, object]:
        """What this party announces: whether it has data, what it holds of an interrupted run and, in a
        vertical study that does not say it, which columns."""
        facts: dict[str, object] = {"data": self._custodian.has_data, **self._attempt.facts()}
        if (
            isinstance(self._study, VerticalStudy)
            and self._custodian.columns
            and self._study.party(self._name).columns is None
        ):
            facts["columns"] = list(self._custodian.columns)
        return facts

    def _count(self) -> None:
        """Beside the connecting: derive the plan, read this party's own table."""
        self._plan = plan_of(self._study)
        self._course.prepare()
        self._custodian.ready(counted(self._plan))
        self._deadline = run_deadline(self._study, self._name)
        if self._study.contributors is not None:
            self._closing = Closing.of(self._study, self._name, self._settings, self._plan)
            self._closing.inbox.tidy()

    def _observe(self, phase: str, event: str, **fields: Any) -> None:
        """An event of this run; what led to it belongs to its phase."""
        if phase in PHASES:
            self._meter.mark(phase)
        if sent := self._meter.totals()["bytes_sent"]:
            fields["bytes_sent"] = sent
        self._events(phase, event, **fields)

    def _knowing(self, plan: Plan, owned: Ownership) -> Plan:
        """The plan once the owners are known. Raises `StudyInvalid`."""
        assert isinstance(self._study, VerticalStudy)
        check_tables(self._study, plan, owned)
        return plan.knowing(owned.columns)

    def _body(self, wire: SessionWire) -> None:
        """Everything after the parties have agreed, in the session's worker thread."""
        self._meter.traffic = wire.traffic
        custodians = [name for name, facts in wire.announcements.items() if facts.get("data") is True]
        if not custodians and self._closing is None:
            raise StudyInvalid(
                f"{self._study.path}: no party has data; give a custodian a data file, in the study or in its "
                "private file."
            )
        check_custodians(self._study, custodians)
        owned = self._owned(wire, custodians)
        plan, collective = self._plan, Collective(wire, self._study)
        assert plan is not None
        if owned is not None:
            plan = self._knowing(plan, owned)
        run = self._attempt.agree(wire, self._observe)
        tables = len(custodians)
        if self._closing is not None:
            self._closing.agree(wire.fork("inboxes"), run)
            self._closing.custodians = tuple(custodians)
            tables += len(self._closing.agreed.entries)
            self._observe("agree", "closed", bundles=len(self._closing.agreed.entries))
        computes = wire.me < wire.computing
        if not self._attempt.serves:
            self._reserve(plan, run, owned, computes)
        self._observe("input", "counted", custodians=tables)
        self._assemble(wire, collective, computes)
        entered = Run(
            options=self._options,
            study=self._study,
            name=self._name,
            backend=self._backend,
            custodian=self._custodian,
            attempt=self._attempt,
            closing=self._closing,
            events=self._events,
            observe=self._observe,
            meter=self._meter,
            digest=self._digest,
            id=run,
            wire=wire,
            collective=collective,
            plan=plan,
            custodians=tuple(custodians),
            owned=owned,
            facts=facts_of(self._study, tables, run, plan),
            limit=row_limit(self._study, len(custodians) + self._most_bundles()),
            journal=self._attempt.open(wire, run, self._digest, computes),
        )
        if self._attempt.released:
            entered = self._course.closed(entered)
            finish(entered, self._released(entered), owned)
        else:
            self._course.take_part(entered)

    def _most_bundles(self) -> int:
        """How many can be in the run."""
        if self._closing is None:
            return 0
        last = self._closing.round == self._closing.collection.rounds
        return len(self._closing.agreed.entries if last else self._closing.collection.contributors)

    def _owned(self, wire: SessionWire, custodians: Sequence[str]) -> Ownership | None:
        """Who owns which column of a vertical study. Raises `StudyInvalid`, `ProtocolAborted`."""
        if not isinstance(self._study, VerticalStudy):
            return None
        announced = {name: _columns_of(wire.announcements[name], self._study, name) for name in custodians}
        owned = ownership(self._study, announced)
        self._course.check(self._study, owned)
        return owned

    def _reserve(self, plan: Plan, run: bytes, owned: Ownership | None, computes: bool) -> None:
        """The budget of this attempt, and of what its joining tells, in this custodian's ledger. Raises
        `BudgetRefused`."""
        attempt = self._attempt
        sizes: tuple[Event, ...] = ()
        joins = self._course.joins and owned is not None and self._name in owned.owners
        if joins and owned is not None and isinstance(self._study, VerticalStudy):
            sizes = own_events(self._study, owned, self._name)
            if not (self._options.allow_retry or attempt.released):
                self._custodian.check_retries([owner for owner in owned.owners if owner != self._name])
        self._custodian.reserve(plan, run, self._digest, computes, sizes, attempt.released, attempt.recorded)

    def _assemble(self, wire: SessionWire, collective: Collective, computes: bool) -> None:
        """Wait for all, with the clock at 0. Raises `PeerLost`, `ProtocolAborted`: then nothing has left this
        party."""
        try:
            collective.assemble(lambda: self._begin(wire, collective))
        except CosynthError:
            if not self._attempt.goes_on or computes:
                # a contributor, too, knows that nothing was released, unless it was before
                with suppress(
                    BudgetRefused
                ):  # then the reservation stands; the cause is what there is to tell
                    self._custodian.settle()
            raise

    def _released(self, run: Run) -> Release:
        """Everything was opened before the run was interrupted: the leader hands out what it holds, the
        others check it."""
        if run.collective.leads:
            assert self._attempt.kept_release is not None
            kept = memoryview(self._attempt.kept_release)
            release = parse(kept, self._study.domain, run.limit, self._name)
        else:
            release = run.receive()
        self._attempt.check(release, run.computes)
        if not self._attempt.serves:
            numbered = [(event, number) for number, event in enumerate(release.events, start=1)]
            self._custodian.begin_all(numbered)
        if run.journal is not None:
            for number in range(1, len(release.events) + 1):
                run.journal.opened(number)
            run.journal.end(0)
        return release

    def _begin(self, wire: SessionWire, collective: Collective) -> None:
        """All have assembled: clocks start, and what a peer does from now on is told as it is."""
        self._assembled = True
        wire.all_assembled()
        self._meter.start("input")
        if collective.leads:
            self._observe("input", "assembled", parties=len(self._study.parties))


def _course_of(study: Study) -> Course:
    """What kind of run it will be, from the kind of its algorithm."""
    if (algorithm := trained(study)) is not None:
        return ServerTraining(algorithm)
    if (training := training_of(study)) is not None:
        return SplitTraining(training)
    if (rounds := cohorts_of(study)) is not None:
        return InCohorts(rounds)
    if study.contributors is not None and study.contributors.arriving:
        return InRoundsOfArrivals()
    return Answers()


def _columns_of(facts: Mapping[str, object], study: Study, name: str) -> Sequence[str]:
    """The columns that a party with data owns: as the study says, else as it announces. Raises
    `ProtocolAborted`."""
    declared = study.party(name).columns
    columns = facts.get("columns") if declared is None else declared
    if not isinstance(columns, list | tuple) or not all(column in study.domain for column in columns):
        raise ProtocolAborted(
            f"Party {name} announced columns that the study does not have; use the same version at all "
            "parties."
        )
    return columns
