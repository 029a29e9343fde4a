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

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.errors import BudgetRefused, CosynthError, ProtocolAborted, StudyInvalid, UsageError
from mpc_protocols.public.history import NO_HISTORY
from runner.party.collective import Collective
from runner.party.custodian import PRIVATE, REFUSALS, Custodian, override
from runner.party.earlier_attempt import (
    EarlierAttempt,
    Recorder,
    cannot_resume,
    journal_path,
    state_digest,
)
from runner.party.events import PHASES, UNTIMED, WITHHELD, EventLog, Meter
from runner.party.logs import recording
from runner.party.options import PartyOptions
from runner.party.resumption import FACT, Continuation, Offer, continuation, offers_of
from runner.party.run_json import describe
from runner.party.session import session_config, study_digest
from runner.party.training import PHASE, check_owners, training_of
from runner.results.outdir import state
from runner.study import Study, VerticalStudy, load, private_file
from runner.study.owners import Ownership, method_of, ownership
from runner.version import VERSION

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event, LocalCounts, StudyFacts
    from mpc_protocols.partition import VerticalData
    from mpc_protocols.public.history import History
    from parties.budget.journal import Journal
    from parties.budget.run_state import RunState
    from parties.session import SessionConfig, SessionWire
    from runner.results.release import Release
    from synth.plan import Plan

Joined = TypeVar("Joined")
RESULT_LIMIT = 1 << 30
"""Bytes of one step's result."""


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
        if not (can := resumes(study, backend)) and state(options.out) == "interrupted":
            raise UsageError(cannot_resume(backend.name if not backend.resumes else study.algorithm))
        earlier = EarlierAttempt.find(options.out, study, name) if can else None
        if state(options.out) == "finished" and (earlier is None or not earlier.finished):
            return  # there is nothing here that others could lack
    try:
        with recording(options, study, options.out) as observe:
            _Party(options, study, backend, settings, custodian, observe, earlier).run()
    finally:
        if earlier is not None:
            earlier.state.close()


def resumes(study: Study, backend: DistributedBackend) -> bool:
    """Whether a run can go on after a crash: the backend keeps a history, and no step depends on what only a process has held."""
    return backend.resumes and training_of(study) is None


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
        self._earlier = earlier
        self._state: RunState | None = None
        self._going_on: Continuation | None = None
        self._options, self._study, self._settings, self._custodian = options, study, settings, custodian
        self._name, self._backend = options.party or "", backend
        self._resumes = resumes(study, backend)
        self._events = observe
        trained = frozenset((PHASE,)) if training_of(study) is not None else frozenset()
        self._meter = (
            Meter(WITHHELD | trained, UNTIMED | trained) if isinstance(study, VerticalStudy) else Meter()
        )
        self._events.clock = self._meter.clock
        self._assembled = False
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
        facts: dict[str, object] = {"data": self._custodian.has_data}
        if self._earlier is not None:
            facts[FACT] = Offer.of(self._earlier.state, self._earlier.ended).to_facts()
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
        self._custodian.ready(counted(self._plan))

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
        if not custodians:
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
            if self._name in owned.owners:
                sizes = own_events(self._study, owned, self._name)
            if training_of(self._study) is not None:
                check_owners(self._study, owned)
        plan, collective = self._plan, Collective(wire, self._study)
        assert plan is not None
        plan = plan if owned is None else plan.knowing(owned.columns)
        computes = wire.me < wire.computing
        run, going_on = self._agree_to_go_on(wire)
        study_facts = facts_of(self._study, len(custodians), run)
        if not self._serves:
            released = going_on is not None and going_on.released
            if (
                owned is not None
                and self._name in owned.owners
                and not (self._options.allow_retry or released)
            ):
                self._custodian.check_retries([owner for owner in owned.owners if owner != self._name])
            self._custodian.reserve(plan, run, self._digest, computes, sizes, released, self._recorded)
        self._observe("input", "counted", custodians=len(custodians))
        try:
            collective.assemble(lambda: self._begin(wire, collective))
        except CosynthError:
            if going_on is None or computes:
                # nothing has left this party: a contributor, too, knows that nothing was released, unless it was before
                with suppress(
                    BudgetRefused
                ):  # then the reservation stands; the cause is what there is to tell
                    self._custodian.settle()
            raise
        journal = self._open_files(wire, run, computes)
        if (
            owned is not None
            and isinstance(self._study, VerticalStudy)
            and training_of(self._study) is not None
        ):
            assert journal is not None  # all parties of a training compute
            self._train(self._study, run, wire, collective, study_facts, plan, owned, journal)
            return
        limit = row_limit(self._study, len(custodians))
        if going_on is not None and going_on.released:
            release = self._released(collective, limit, computes)
            if journal is not None:
                for number in range(1, len(release.events) + 1):
                    journal.opened(number)
                journal.end(0)
        else:
            data: LocalCounts | VerticalData | None = self._custodian.counts()
            if owned is not None and isinstance(self._study, VerticalStudy):
                data = self._align(self._study, wire, owned, journal)
            if journal is not None:
                release = self._compute(wire, collective, study_facts, data, plan, limit, journal)
            else:
                release = self._contribute(wire, collective, study_facts, data, limit)
        self._finish(run, wire, collective, plan, release, owned)

    @property
    def _recorded(self) -> int:
        """How many releases this party's journal knows."""
        return (
            0
            if self._earlier is None or self._earlier.journal is None
            else len(self._earlier.journal.releases)
        )

    @property
    def _serves(self) -> bool:
        """Whether this party has its results already, and is here for the others."""
        return self._earlier is not None and self._earlier.finished

    def _agree_to_go_on(self, wire: SessionWire) -> tuple[bytes, Continuation | None]:
        """The run's id and how it goes on, if it is one that was interrupted. Raises `ProtocolAborted`, `UsageError`."""
        names = [party.name for party in self._study.numbered]
        going_on = continuation(
            offers_of(wire.announcements), names[: wire.computing], self._study.leader.name
        )
        self._going_on = going_on
        if going_on is not None and not self._options.resume:
            raise UsageError(
                "The other parties go on with an interrupted run: start this one with --resume, too, if it took part in it, "
                "or have them start anew with --replace."
            )
        if self._earlier is not None and (going_on is None or going_on.run != self._earlier.state.run):
            raise UsageError(
                f"{self._options.out} holds a run that the computing parties do not resume; name the directory of the same run "
                "at all parties, or start anew with --replace."
            )
        if going_on is None:
            return wire.session_id, None
        if not self._backend.resumes:
            raise UsageError(cannot_resume(self._study.backend))
        self._observe("agree", "resumed", run=going_on.run.hex(), opened=going_on.opened)
        return going_on.run, going_on

    def _open_files(self, wire: SessionWire, run: bytes, computes: bool) -> Journal | None:
        """This attempt's entries in the state and in the journal; what the last one lacks is given by who has it."""
        from parties.budget.journal import Header, Journal
        from parties.budget.run_state import RunState

        if not self._resumes:
            return (
                Journal(journal_path(self._options.out, run), Header(self._digest, run, self._name, VERSION))
                if computes
                else None
            )
        if self._earlier is None:
            self._state = RunState.create(
                self._options.out, state_digest(self._study), run, self._name, VERSION
            )
        else:
            self._state = self._earlier.state
        if not self._serves:
            self._state.attempt(wire.session_id, self._going_on is not None and self._going_on.finish_held)
        self._complete(wire, self._state)
        if not computes:
            return None
        path, known = journal_path(self._options.out, run), self._earlier.journal if self._earlier else None
        if known is None:
            journal = Journal(path, Header(self._digest, run, self._name, VERSION))
        elif known.code == 0:  # nothing follows: the leader holds what it hands out
            return None
        else:
            journal = Journal.reopen(path, known)
        self._state.note = journal.held
        return journal

    def _complete(self, wire: SessionWire, state: RunState) -> None:
        """Give the last result to those that lack it, or receive it."""
        going_on = self._going_on
        if going_on is None or going_on.giver is None:
            return
        number = {party.name: i for i, party in enumerate(self._study.numbered)}
        if self._name == going_on.giver:
            last = state.results[-1]
            for name in going_on.lacking:
                wire.fork(f"resume {name}").send(
                    number[name], last.inputs + last.values.astype("<i8").tobytes()
                )
        elif self._name in going_on.lacking:
            import numpy as np

            from parties.budget.run_state import Opened

            stream = wire.fork(f"resume {self._name}")
            payload = bytes(stream.receive_up_to(number[going_on.giver], RESULT_LIMIT))
            if len(payload) % 8 or len(payload) < 32:
                raise ProtocolAborted(
                    f"Party {going_on.giver} gave a result that cannot be read; nothing more is released."
                )
            given = Opened(payload[:32], np.frombuffer(payload[32:], "<i8").astype(np.int64))
            if given.digest(state.digests[-1]) != offers_of(wire.announcements)[going_on.giver].digest:
                raise ProtocolAborted(
                    f"Party {going_on.giver} gave another result than it announced; nothing more is released."
                )
            state.learn(len(state.results), given.inputs, given.values)

    def _released(self, collective: Collective, limit: int, computes: bool) -> Release:
        """Everything was opened before the run was interrupted: the leader hands out what it holds, the others check it."""
        from runner.results.release import parse

        state = self._state
        assert state is not None
        if collective.leads:
            assert state.release is not None
            release = parse(memoryview(state.release), self._study.domain, limit, self._name)
        else:
            release = self._receive(collective, limit)
        known = None if self._earlier is None else self._earlier.journal
        checks = known is not None or (computes and not self._serves)
        if checks and not release.tells_recorded(
            [result.values for result in state.results],
            [] if known is None else [each.event for each in known.releases],
        ):
            raise ProtocolAborted(
                f"Party {self._study.leader.name} reports other releases than this party has on record; do not use its result."
            )
        if not self._serves:
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

    def _train(
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
        from runner.party.training import Record, Trainer
        from runner.results.training import describe_training, write_training
        from synth.accounting import Accountant

        recorder = Recorder(journal, None, self._custodian.begin)
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
        data: LocalCounts | VerticalData | None,
        plan: Plan,
        limit: int,
        journal: Journal,
    ) -> Release:
        """A computing party's part: the leader runs the synthesizer, the others obey; returns the release."""
        from runner.party.synthesis import sample, synthesize
        from synth.accounting import Accountant

        recorder = Recorder(journal, self._earlier.journal if self._earlier else None, self._custodian.begin)
        accountant = Accountant(plan.budget, record=recorder.record)
        history: History = self._state or NO_HISTORY
        if collective.leads:
            with self._backend.lead(wire, study_facts, data, accountant, self._observe, history) as oracle:
                synthesis = synthesize(self._study, plan, oracle, self._observe)
            release = sample(synthesis, plan, self._observe, limit, accountant.events)
            if self._state is not None:
                self._state.keep_release(release.to_bytes(self._study.domain))
        else:
            opened = self._backend.follow(wire, study_facts, data, accountant, self._observe, history)
            release = self._receive(collective, limit)
            if not release.tells(opened, accountant.events):
                raise ProtocolAborted(
                    f"Party {self._study.leader.name} reports other releases than this party has authorised "
                    "and opened; do not use its result."
                )
        recorder.opened()
        journal.end(0)
        return release

    def _contribute(
        self,
        wire: SessionWire,
        collective: Collective,
        study_facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        limit: int,
    ) -> Release:
        """A contributor's part: its data goes out masked, the release comes in."""
        if data is None:
            raise StudyInvalid(f"{self._study.path}: party {self._name} neither computes nor has data.")
        self._backend.contribute(wire, study_facts, data)
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
        from parties.budget.run_state import discard_others
        from runner.results.outputs import write_outputs
        from runner.results.release import parse

        if collective.leads:
            kept = self._state and self._state.release
            payload = kept or release.to_bytes(self._study.domain)
            release = parse(
                memoryview(payload), self._study.domain, len(release.codes), self._name
            )  # as the others see it
            collective.hand_out(payload)
        self._meter.mark("sample")
        logging.getLogger(PRIVATE).info(
            "own traffic: %s; by phase: %s", vars(wire.traffic()), self._meter.whole()
        )
        shared = collective.counters({"phases": self._meter.sent(), **self._meter.totals()}, self._shared)
        if self._serves:
            return
        self._custodian.settle()
        facts = describe(
            self._study,
            plan,
            release,
            shared,
            run,
            self._digest if self._going_on is None else _digest_of(shared, self._digest, self._study),
            "one-machine" if self._options.one_machine else "distributed",
            owned,
        )
        try:
            write_outputs(self._options.out, release, self._study.domain, facts)
        except (
            UsageError
        ):  # the report reads the files strictly: whoever made their content is to blame, not the user
            raise ProtocolAborted(
                f"Party {self._study.leader.name} sent results of which no report can be made; nothing was "
                "written."
            ) from None
        if self._state is not None:
            with suppress(OSError, BudgetRefused):  # the results are in place
                self._state.finish(VERSION)
                discard_others(self._options.out, run)
        self._meter.mark("report")
        self._events("report", "written", rows=int(release.codes.shape[0]))

    def _shared(self, parties: list[dict[str, Any]]) -> Mapping[str, Any]:
        """What the leader makes of everybody's counters, with its own timeline: the same in all reports, also in those that are
        written after a crash."""
        if self._state is not None and self._state.counters is not None:
            earlier: Mapping[str, Any] = json.loads(self._state.counters)
            return earlier
        sent: dict[str, int] = {}
        for party in parties:
            for phase in party["phases"]:
                sent[phase["name"]] = sent.get(phase["name"], 0) + phase["bytes_sent"]
        shared = {
            "started": self._meter.started.isoformat(timespec="seconds"),
            "wall_s": round(self._meter.clock(), 3),
            "phases": [{**phase, "bytes_sent": sent[phase["name"]]} for phase in self._meter.phases()],
            "parties": [
                {key: party[key] for key in ("bytes_sent", "bytes_received", "rounds")} for party in parties
            ],
            "timeline": self._events.timeline(),
        }
        if self._state is not None:
            kept = {**shared, "digest": self._digest.hex()}
            self._state.keep_counters(json.dumps(kept).encode())
        return shared


def _digest_of(shared: Mapping[str, Any], own: bytes, study: Study) -> bytes:
    """The study's digest in run.json of a run that was resumed: of the attempt in which the counters were made, whose session may
    have had another CA. Raises `ProtocolAborted`."""
    told = shared.get("digest", own.hex())
    try:
        if not isinstance(told, str) or len(bytes.fromhex(told)) != len(own):
            raise ValueError
    except ValueError:
        raise ProtocolAborted(
            f"Party {study.leader.name} sent a digest of the study that cannot be read; nothing was written."
        ) from None
    return bytes.fromhex(told)


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
