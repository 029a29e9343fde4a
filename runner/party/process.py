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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.errors import BudgetRefused, CosynthError, ProtocolAborted, StudyInvalid, UsageError
from runner.party.collective import Collective
from runner.party.custodian import PRIVATE, REFUSALS, Custodian, override
from runner.party.options import PartyOptions
from runner.party.record.events import PHASES, UNTIMED, WITHHELD, EventLog, Meter
from runner.party.record.logs import recording
from runner.party.record.run_json import describe
from runner.party.resume.attempt import Attempt
from runner.party.resume.earlier_attempt import EarlierAttempt, cannot_resume
from runner.party.session import session_config, study_digest
from runner.results.outdir import state
from runner.study import Study, VerticalStudy, load, private_file
from runner.study.owners import Ownership, method_of, ownership

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event, LocalCounts, StudyFacts
    from mpc_protocols.partition import VerticalData
    from parties.budget.journal import Journal
    from parties.session import SessionConfig, SessionWire
    from runner.results.release import Release
    from synth.plan import Plan


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
        if not backend.resumes and state(options.out) == "interrupted":
            raise UsageError(cannot_resume(backend.name))
        earlier = EarlierAttempt.find(options.out, study, name) if backend.resumes else None
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
        self._attempt = Attempt(options, study, options.party or "", backend, earlier)
        self._options, self._study, self._settings, self._custodian = options, study, settings, custodian
        self._name, self._backend = options.party or "", backend
        self._events = observe
        self._meter = Meter(WITHHELD, UNTIMED) if isinstance(study, VerticalStudy) else Meter()
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
        plan, collective = self._plan, Collective(wire, self._study)
        assert plan is not None
        plan = plan if owned is None else plan.knowing(owned.columns)
        computes = wire.me < wire.computing
        attempt, run = self._attempt, self._attempt.agree(wire, self._observe)
        study_facts = facts_of(self._study, len(custodians), run)
        if not attempt.serves:
            asked = not (self._options.allow_retry or attempt.released)
            if owned is not None and self._name in owned.owners and asked:
                self._custodian.check_retries([owner for owner in owned.owners if owner != self._name])
            self._custodian.reserve(
                plan, run, self._digest, computes, sizes, attempt.released, attempt.recorded
            )
        self._observe("input", "counted", custodians=len(custodians))
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
        limit = row_limit(self._study, len(custodians))
        if attempt.released:
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
        from runner.party.alignment import Account, join

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
        from synth.budget.accounting import Accountant

        recorder = self._attempt.recorder(journal, self._custodian.begin)
        accountant = Accountant(plan.budget, record=recorder.record)
        history = self._attempt.history
        if collective.leads:
            with self._backend.lead(wire, study_facts, data, accountant, self._observe, history) as oracle:
                synthesis = synthesize(self._study, plan, oracle, self._observe)
            release = sample(synthesis, plan, self._observe, limit, accountant.events)
            self._attempt.keep_release(release)
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
        from runner.results.outputs import write_outputs
        from runner.results.release import parse

        if collective.leads:
            payload = self._attempt.kept_release or release.to_bytes(self._study.domain)
            release = parse(
                memoryview(payload), self._study.domain, len(release.codes), self._name
            )  # as the others see it
            collective.hand_out(payload)
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
        self._attempt.finish(run)
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
