"""One party of a run, from the study file to the finished files (`docs/architecture.md` 3).

    connect   session with the others; this party's own table is counted beside it
    agree     study, roles, session id; the budget is reserved in this custodian's ledger
    input     when all have counted (vertical: read) and reserved ("assembled"), shares of the counts leave, masked. Until then
              the others learn of a refusal only that there is one, and the run's clock stands at 0 (`docs/design/accounts.md`)
    align     vertical only: the owners' records are joined (`runner.party.alignment`); what their sizes say is on record first
    select, measure, fit     the leader runs the synthesizer against the oracle; the others obey its steps
    sample    the leader samples the table and hands the release to everybody
    report    counters are exchanged, every party writes its own files

Who learns what: computing parties see the opened index and noisy counts of each step, contributors the release; all of it is
what the study's (epsilon, delta) covers. A run that was interrupted goes on from the last opened release
(`docs/design/resume.md`). Each computing party keeps its own accountant and journal, and refuses a step that
the budget does not allow. The release comes from the leader and is believed by nobody: see `runner.results.release`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.bundles.collected import CollectedCounts
from mpc_protocols.errors import BudgetRefused, CosynthError, ProtocolAborted, StudyInvalid, UsageError
from runner.contributors.closing import Closing
from runner.contributors.result import Result, exchange
from runner.party.collective import Collective
from runner.party.custodian import PRIVATE, REFUSALS, Custodian, override
from runner.party.options import PartyOptions
from runner.party.record.events import OF_OWNERS, PHASES, UNTIMED, WITHHELD, EventLog, Meter
from runner.party.record.logs import recording
from runner.party.record.run_json import describe
from runner.party.resume.attempt import Attempt
from runner.party.resume.earlier_attempt import EarlierAttempt, cannot_resume
from runner.party.session import session_config, study_digest
from runner.party.split_training import PHASE, check_owners, training_of
from runner.results.outdir import RESULT, state
from runner.study import Study, VerticalStudy, load, private_file
from runner.study.owners import Ownership, method_of, ownership
from runner.study.trained import trained

if TYPE_CHECKING:
    from mpc_protocols.backend import OracleData
    from mpc_protocols.functionality import Event, LocalCounts, StudyFacts
    from mpc_protocols.partition import VerticalData
    from parties.budget.journal import Journal
    from parties.session import SessionConfig, SessionWire
    from runner.results.release import Release
    from synth.algorithm import TrainedAlgorithm
    from synth.plan import Plan

Joined = TypeVar("Joined")


def run_party(options: PartyOptions) -> None:
    """Take part in a run as `options.party`; the files are in `options.out` afterwards. Raises `CosynthError`.

    With `options.resume`, where the run is finished: give the others what they lack.
    """
    study = load(options.study)
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
    data = (
        override(options.data[name]) if name in options.data else private_file.location(study, name, settings)
    )
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
        self._training = trained(study)
        halves = frozenset((PHASE,)) if training_of(study) is not None else frozenset[str]()
        untimed = UNTIMED | halves if self._training is None else UNTIMED | OF_OWNERS
        self._meter = Meter(WITHHELD | halves, untimed) if isinstance(study, VerticalStudy) else Meter()
        self._events.clock = self._meter.clock
        self._assembled = False
        self._closing: Closing | None = None
        self._digest = study_digest(study, options.certs)
        self._plan: Plan | None = None

    def run(self) -> None:
        """Connect, compute, write. Raises `CosynthError`."""
        from parties.session import run_session

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
        )

    def _facts(self) -> dict[str, object]:
        """What this party announces: whether it has data, what it holds of an interrupted run and, in a vertical study that does
        not say it, which columns."""
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
        from runner.party.synthesis import counted, plan_of

        self._plan = plan_of(self._study)
        if self._training is not None:
            self._training.prepare()
        self._custodian.ready(counted(self._plan))
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

    def _body(self, wire: SessionWire) -> None:
        """Everything after the parties have agreed, in the session's worker thread."""
        from runner.party.alignment import own_events
        from runner.party.synthesis import facts_of, row_limit

        self._meter.traffic = wire.traffic
        custodians = [name for name, facts in wire.announcements.items() if facts.get("data") is True]
        if not custodians and self._closing is None:
            raise StudyInvalid(
                f"{self._study.path}: no party has data; give a custodian a data file, in the study or in its "
                "private file."
            )
        owned: Ownership | None = None
        sizes: tuple[Event, ...] = ()
        if isinstance(self._study, VerticalStudy):
            owned = ownership(
                self._study,
                {name: _columns_of(wire.announcements[name], self._study, name) for name in custodians},
            )
            if self._name in owned.owners and self._training is None:
                sizes = own_events(self._study, owned, self._name)
            if training_of(self._study) is not None:
                check_owners(self._study, owned)
        plan, collective = self._plan, Collective(wire, self._study)
        assert plan is not None
        plan = plan if owned is None else plan.knowing(owned.columns)
        computes = wire.me < wire.computing
        attempt, run = self._attempt, self._attempt.agree(wire, self._observe)
        tables = len(custodians)
        if self._closing is not None:
            self._closing.agree(wire.fork("inboxes"), run)
            self._closing.custodians = tuple(custodians)
            tables += len(self._closing.agreed.entries)
            self._observe("agree", "closed", bundles=len(self._closing.agreed.entries))
        study_facts = facts_of(self._study, tables, run)
        if not attempt.serves:
            asked = self._training is None and not (self._options.allow_retry or attempt.released)
            if owned is not None and self._name in owned.owners and asked:
                self._custodian.check_retries([owner for owner in owned.owners if owner != self._name])
            self._custodian.reserve(
                plan, run, self._digest, computes, sizes, attempt.released, attempt.recorded
            )
        self._observe("input", "counted", custodians=tables)
        try:
            collective.assemble(lambda: self._begin(wire, collective))
        except CosynthError:
            if not attempt.goes_on or computes:
                # nothing has left this party: a contributor, too, knows that nothing was released, unless it was before
                with suppress(
                    BudgetRefused
                ):  # then the reservation stands; the cause is what there is to tell
                    self._custodian.settle()
            raise
        journal = attempt.open(wire, run, self._digest, computes)
        if (
            owned is not None
            and isinstance(self._study, VerticalStudy)
            and training_of(self._study) is not None
        ):
            assert journal is not None  # all parties of a split training compute
            self._train_halves(self._study, run, wire, collective, study_facts, plan, owned, journal)
            return
        limit = row_limit(self._study, tables)
        if attempt.released:
            release = self._released(collective, limit, computes)
            if journal is not None:
                for number in range(1, len(release.events) + 1):
                    journal.opened(number)
                journal.end(0)
        elif self._training is not None and owned is not None:
            release = self._train(self._training, wire, collective, plan, owned, limit, journal)
            owned = None  # nothing was joined
        else:
            data: OracleData | None = self._custodian.counts()
            if self._closing is not None:
                data = self._closing.collected(self._custodian.counts())
            if owned is not None and isinstance(self._study, VerticalStudy):
                data = self._align(self._study, wire, owned, journal)
            if journal is not None:
                release = self._compute(wire, collective, study_facts, data, plan, limit, journal)
            else:
                release = self._contribute(wire, collective, study_facts, data, plan, limit)
        self._finish(run, wire, collective, plan, release, owned)

    def _released(self, collective: Collective, limit: int, computes: bool) -> Release:
        """Everything was opened before the run was interrupted: the leader hands out what it holds, the others check it."""
        from runner.results.release import parse

        if collective.leads:
            assert self._attempt.kept_release is not None
            release = parse(memoryview(self._attempt.kept_release), self._study.domain, limit, self._name)
        else:
            release = self._receive(collective, limit)
        self._attempt.check(release, computes)
        if not self._attempt.serves:
            for number, event in enumerate(release.events, start=1):
                self._custodian.begin(event, number)
        return release

    def _begin(self, wire: SessionWire, collective: Collective) -> None:
        """All have assembled: clocks start, and what a peer does from now on is told as it is."""
        self._assembled = True
        wire.all_assembled()
        self._meter.start("input")
        if collective.leads:
            self._observe("input", "assembled", parties=len(self._study.parties))

    def _align(
        self, study: VerticalStudy, wire: SessionWire, owned: Ownership, journal: Journal | None
    ) -> VerticalData:
        """Phase "align": this party's part in joining the owners' records. What it begins stays on record however it ends."""
        from runner.party.alignment import join

        return self._joined(study, wire, owned, journal, join)

    def _joined(
        self,
        study: VerticalStudy,
        wire: SessionWire,
        owned: Ownership,
        journal: Journal | None,
        join: Callable[..., Joined],
    ) -> Joined:
        """Phase "align", with what of it is wanted. join: `runner.party.alignment.join` or `take_part`."""
        from runner.party.alignment import Account

        def record(event: Event, inputs: bytes) -> None:
            if journal is not None:
                journal.alignment(event, inputs)
            self._custodian.begin(event)

        self._meter.mark("input")
        self._observe("align", "started", owners=len(owned.owners), via=method_of(study).name)
        with Account(record, wire.session_id, owned) as account:
            data = join(study, owned, wire.fork("align"), self._digest, self._custodian.records, account)
        # list sizes and the size of the union are for the parties alone: events go into the report
        self._observe("align", "aligned", owners=len(owned.owners), via=method_of(study).name)
        return data

    def _train_halves(
        self,
        study: VerticalStudy,
        run: bytes,
        wire: SessionWire,
        collective: Collective,
        study_facts: StudyFacts,
        plan: Plan,
        owned: Ownership,
        journal: Journal,
    ) -> None:
        """A run that trains a model, from the alignment to the files."""
        from runner.party.alignment import take_part
        from runner.party.split_training import Record, Trainer
        from runner.results.training import describe_training, write_training
        from synth.budget.accounting import Accountant

        recorder = self._attempt.recorder(journal, self._custodian.begin)
        accountant = Accountant(plan.budget, record=recorder.record)

        def beside(event: Event) -> None:
            journal.alignment(event, self._digest)
            self._custodian.begin(event)

        aligned = self._joined(study, wire, owned, journal, take_part)
        trainer = Trainer(study, plan, owned, self._name, wire, self._digest, self._observe)
        half = trainer.train(aligned, self._custodian.records, Record(accountant, beside))
        self._meter.mark(PHASE)
        figures = trainer.evaluate(self._backend, study_facts, aligned, half, accountant)
        recorder.opened()
        journal.end(0)
        self._meter.mark("measure")
        logging.getLogger(PRIVATE).info(
            "own traffic: %s; by phase: %s", vars(wire.traffic()), self._meter.whole()
        )
        shared = collective.counters({"phases": self._meter.sent(), **self._meter.totals()}, self._shared)
        self._custodian.settle()
        facts = describe_training(
            study,
            plan,
            accountant.events,
            figures,
            shared,
            run,
            self._digest,
            "one-machine" if self._options.one_machine else "distributed",
            owned,
        )
        write_training(self._options.out, facts, {} if half is None else half.files)
        self._meter.mark("report")
        self._events("report", "written", rows=0)

    def _compute(
        self,
        wire: SessionWire,
        collective: Collective,
        study_facts: StudyFacts,
        data: OracleData | None,
        plan: Plan,
        limit: int,
        journal: Journal,
    ) -> Release:
        """A computing party's part: the leader runs the synthesizer, the others obey; returns the release."""
        from runner.party.synthesis import exchange_of, sample, synthesize
        from synth.budget.accounting import Accountant

        # a study with [contributors] has a backend that takes these
        data = cast("LocalCounts | VerticalData | None", data)
        begin: Callable[[Event, int], None] = self._custodian.begin
        if self._closing is not None:
            begin = self._only_run(study_facts.session, self._closing)
        recorder = self._attempt.recorder(journal, begin)
        accountant = Accountant(plan.budget, record=recorder.record)
        history = self._attempt.history
        exchange = exchange_of(self._study, plan)
        if collective.leads:
            with (
                self._backend.lead(wire, study_facts, data, accountant, self._observe, history)
                if exchange is None
                else exchange.lead(wire, study_facts, data, accountant)
            ) as answers:
                synthesis = synthesize(self._study, plan, answers, self._observe)
            release = sample(synthesis, plan, self._observe, limit, accountant.events)
            self._attempt.keep_release(release)
        else:
            opened = (
                self._backend.follow(wire, study_facts, data, accountant, self._observe, history)
                if exchange is None
                else exchange.follow(wire, study_facts, data, accountant)
            )
            release = self._receive(collective, limit)
            if not release.tells(opened, accountant.events):
                raise ProtocolAborted(
                    f"Party {self._study.leader.name} reports other releases than this party has authorised "
                    "and opened; do not use its result."
                )
        recorder.opened()
        journal.end(0)
        return release

    def _only_run(self, run: bytes, closing: Closing) -> Callable[[Event, int], None]:
        """The custodian's `begin`, once this run is on record as the only one on the bundles."""

        def begin(event: Event, number: int) -> None:
            closing.record.begin(run)
            self._custodian.begin(event, number)

        return begin

    def _train(
        self,
        algorithm: TrainedAlgorithm[Any, Any],
        wire: SessionWire,
        collective: Collective,
        plan: Plan,
        owned: Ownership,
        limit: int,
        journal: Journal | None,
    ) -> Release:
        """This party's part in a training, whatever its role; returns the release."""
        from runner.party import training
        from runner.party.synthesis import sample
        from synth.budget.accounting import Accountant

        recorder = None if journal is None else self._attempt.recorder(journal, self._custodian.begin)
        record = (lambda event, _: self._custodian.begin(event)) if recorder is None else recorder.record
        accountant = Accountant(plan.budget, record=record)
        training.authorise(plan, accountant, self._digest)
        records, stream = self._custodian.records, wire.fork("train")
        own = None if records is None else training.own_side(algorithm, plan, self._name, records)
        if collective.leads:
            number = {party.name: i for i, party in enumerate(self._study.numbered)}
            numbers = {name: number[name] for name in owned.owners}
            synthesis = training.lead(algorithm, plan, stream, numbers, own, self._observe)
            release = sample(synthesis, plan, self._observe, limit, accountant.events)
        else:
            if own is not None:
                training.follow(algorithm, plan, stream, self._study.leader_number, self._name, own)
                self._meter.mark("fit")
            release = self._receive(collective, limit)
            if not release.tells([], accountant.events):
                raise ProtocolAborted(
                    f"Party {self._study.leader.name} reports other releases than this party has authorised; do not use "
                    "its result."
                )
        if recorder is not None and journal is not None:
            recorder.opened()
            journal.end(0)
        return release

    def _contribute(
        self,
        wire: SessionWire,
        collective: Collective,
        study_facts: StudyFacts,
        data: OracleData | None,
        plan: Plan,
        limit: int,
    ) -> Release:
        """A contributor's part: its data goes out masked, the release comes in."""
        if data is None or isinstance(data, CollectedCounts):
            raise StudyInvalid(f"{self._study.path}: party {self._name} neither computes nor has data.")
        from runner.party.synthesis import exchange_of

        (exchange_of(self._study, plan) or self._backend).contribute(wire, study_facts, data)
        self._meter.mark("input")
        release = self._receive(collective, limit)
        for number, event in enumerate(release.events, start=1):
            self._custodian.begin(event, number)
        return release

    def _receive(self, collective: Collective, limit: int) -> Release:
        from runner.report import prepare
        from runner.results.release import parse, size_limit

        prepare()  # here there is time: the leader samples its model
        payload = collective.receive_release(size_limit(self._study.domain, limit))
        return parse(payload, self._study.domain, limit, self._study.leader.name)

    def _finish(
        self,
        run: bytes,
        wire: SessionWire,
        collective: Collective,
        plan: Plan,
        release: Release,
        owned: Ownership | None,
    ) -> None:
        """Hand out the release (leader), exchange counters, write the files, settle the ledger."""
        from runner.results.outputs import write_outputs
        from runner.results.release import parse

        if collective.leads:
            payload = self._attempt.kept_release or release.to_bytes(self._study.domain)
            release = parse(
                memoryview(payload), self._study.domain, len(release.codes), self._name
            )  # as the others see it
            collective.hand_out(payload)
        result = None
        if self._closing is not None:
            told = Result.of(self._closing, run, release)
            signatures = exchange(wire.fork("result"), self._closing, told, self._options.out / RESULT)
            result = told.to_bytes(signatures)
        self._meter.mark("sample")
        logging.getLogger(PRIVATE).info(
            "own traffic: %s; by phase: %s", vars(wire.traffic()), self._meter.whole()
        )
        shared = collective.counters({"phases": self._meter.sent(), **self._meter.totals()}, self._shared)
        if self._attempt.serves:
            return
        self._custodian.settle()
        facts = describe(
            self._study,
            plan,
            release,
            shared,
            run,
            self._attempt.digest(shared, self._digest),
            "one-machine" if self._options.one_machine else "distributed",
            owned,
            self._closing,
        )
        try:
            write_outputs(self._options.out, release, self._study.domain, facts, result)
        except (
            UsageError
        ):  # the report reads the files strictly: whoever made their content is to blame, not the user
            raise ProtocolAborted(
                f"Party {self._study.leader.name} sent results of which no report can be made; nothing was "
                "written."
            ) from None
        self._attempt.finish(run)
        if self._closing is not None and (left := self._closing.inbox.finish()):
            self._observe("report", "not_deleted", files=[str(path) for path in left])
        self._meter.mark("report")
        self._events("report", "written", rows=int(release.codes.shape[0]))

    def _shared(self, parties: list[dict[str, Any]]) -> Mapping[str, Any]:
        """What the leader makes of everybody's counters, with its own timeline."""
        return self._attempt.counters(self._digest, lambda: self._counted(parties))

    def _counted(self, parties: list[dict[str, Any]]) -> dict[str, Any]:
        sent: dict[str, int] = {}
        for party in parties:
            for phase in party["phases"]:
                sent[phase["name"]] = sent.get(phase["name"], 0) + phase["bytes_sent"]
        return {
            "started": self._meter.started.isoformat(timespec="seconds"),
            "wall_s": round(self._meter.clock(), 3),
            "phases": [{**phase, "bytes_sent": sent[phase["name"]]} for phase in self._meter.phases()],
            "parties": [
                {key: party[key] for key in ("bytes_sent", "bytes_received", "rounds")} for party in parties
            ],
            "timeline": self._events.timeline(),
        }


def _columns_of(facts: Mapping[str, object], study: Study, name: str) -> Sequence[str]:
    """The columns that a party with data owns: as the study says, else as it announces. Raises `ProtocolAborted`."""
    declared = study.party(name).columns
    columns = facts.get("columns") if declared is None else declared
    if not isinstance(columns, list | tuple) or not all(column in study.domain for column in columns):
        raise ProtocolAborted(
            f"Party {name} announced columns that the study does not have; use the same version at all "
            "parties."
        )
    return columns
