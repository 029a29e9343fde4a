"""A run on a backend of one process (`ideal`): all custodians' tables in the clear. IT PROTECTS NOTHING.

The same plan, the same ledgers, the same events and files as a run of parties, for tests, simulations and baselines.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS, ClearBackend
from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import LocalCounts
from runner.contributors.closing import Closing, check_custodians, in_the_clear
from runner.contributors.result import Result
from runner.party.custodian import Custodian, override
from runner.party.options import PartyOptions
from runner.party.record.events import EventLog, Meter
from runner.party.record.logs import recording
from runner.party.record.run_json import describe
from runner.party.record.software import software
from runner.party.resume.earlier_attempt import EarlierAttempt, cannot_resume, state_digest
from runner.results.outdir import PARTY_FOLDERS, state
from runner.results.release import clients_of
from runner.study import Study, VerticalStudy, digest, load, private_file
from runner.study.cohorts import cohorts_of
from runner.study.owners import ownership
from runner.study.trained import trained
from runner.version import VERSION

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event, Observe
    from runner.results.release import Release
    from synth.algorithm import CohortRounds
    from synth.run import Synthesis


def run_ideal(options: PartyOptions) -> None:
    """Run the whole study in this process, in the clear: it protects nothing. Raises `CosynthError`."""
    study = load(options.study)
    private = options.out / PARTY_FOLDERS
    private.mkdir(exist_ok=True)
    with recording(options, study, private) as observe, ExitStack() as accounts:
        _run(options, study, observe, accounts)


def _run(options: PartyOptions, study: Study, observe: EventLog, accounts: ExitStack) -> None:
    """All custodians' tables in one process, in the clear. accounts: closes ledgers, for this process may live on."""
    import secrets

    from mpc_protocols.partition import ideal_counts
    from parties.budget.run_state import RunState, discard_others
    from runner.party.alignment import ideal_join
    from runner.party.course import server_training
    from runner.party.course.arriving import added, clear_oracles
    from runner.party.synthesis import counted, exchange_of, facts_of, plan_of, row_limit, sample, synthesize
    from runner.results.outputs import write_outputs
    from synth.budget.accounting import Accountant

    backend = BACKENDS[study.backend]
    assert isinstance(backend, ClearBackend)
    meter = Meter()
    observe.clock = meter.clock
    earlier = None
    if options.resume and not study.resumes and state(options.out) == "interrupted":
        raise UsageError(cannot_resume(study))
    if options.resume and study.resumes:
        earlier = EarlierAttempt.find(options.out / PARTY_FOLDERS, study, study.leader.name, journalled=False)
    study_digest = digest(study, "")
    session = secrets.token_bytes(32) if earlier is None else earlier.state.run
    plan = plan_of(study)
    custodians = {}
    for party in study.parties:
        settings = options.settings(party.name)
        data = private_file.location(study, party.name, settings, override(options.data.get(party.name)))
        if data is not None:
            custodians[party.name] = Custodian(study, party.name, settings, data, one_machine=True)
    check_custodians(study, tuple(custodians))
    owned = None
    if isinstance(study, VerticalStudy):
        owned = ownership(study, {name: custodian.columns for name, custodian in custodians.items()})
        plan = plan.knowing(owned.columns)
    closings, custodial, collected = list[Closing](), len(custodians), list[LocalCounts]()
    if study.contributors is not None:
        closings = [
            Closing.of(study, party.name, options.settings(party.name), plan) for party in study.computing
        ]
        for closing in closings:
            closing.inbox.tidy()
            closing.check(session)
        closings[0].custodians = tuple(custodians)
        collected.append(closings[0].collection.layout.marginals(in_the_clear(closings)))
        custodial += len(closings[0].agreed.entries)
        observe("agree", "closed", bundles=len(closings[0].agreed.entries))
    for custodian in custodians.values():
        custodian.ready(counted(plan))
        accounts.callback(custodian.close)
        custodian.reserve(plan, session, study_digest, computes=True)
    meter.mark("input")
    observe("input", "counted", custodians=custodial)
    facts = facts_of(study, custodial, session, plan)
    algorithm = trained(study)
    if algorithm is not None:
        counts = None
    elif owned is None or not isinstance(study, VerticalStudy):
        own = [counts for custodian in custodians.values() if (counts := custodian.counts()) is not None]
        counts = added([*own, *collected])
    else:
        joined, tables = ideal_join(
            study,
            owned,
            {
                name: records
                for name, custodian in custodians.items()
                if (records := custodian.records) is not None
            },
        )
        counts = ideal_counts(joined, tables, facts.sizes)
        meter.mark("align")
        observe("align", "aligned", owners=len(owned.owners), via=study.backend)

    meter.start("input" if owned is None or algorithm is not None else "align")
    history = (
        RunState.create(options.out / PARTY_FOLDERS, state_digest(study), session, study.leader.name, VERSION)
        if earlier is None
        else earlier.state
    )
    accounts.callback(history.close)
    history.attempt(secrets.token_bytes(32), finish_held=True)
    releases = itertools.count(1)

    def record(event: Event, inputs: bytes) -> None:
        number = next(releases)
        for closing in closings:
            closing.begin(session)
        for custodian in custodians.values():
            custodian.begin(event, number)

    def watch(phase: str, event: str, **fields: Any) -> None:
        meter.mark(phase)
        observe(phase, event, **fields)

    accountant = Accountant(plan.budget, record=record)
    exchange, rounds = exchange_of(study, plan), cohorts_of(study)
    events = accountant.events
    if rounds is not None:
        synthesis, events = _cohorts(study, plan, rounds, custodians, session, watch, itertools.count(1))
    elif algorithm is not None and owned is not None:
        server_training.authorise(plan, accountant, study_digest)
        records_of = {name: records for name, of in custodians.items() if (records := of.records) is not None}
        synthesis = server_training.ideal(algorithm, plan, owned, records_of, watch)
        owned = None  # nothing was joined
    else:
        if study.contributors is not None and study.contributors.arriving:
            own = [found for custodian in custodians.values() if (found := custodian.counts()) is not None]
            oracles = clear_oracles(study, plan, closings, own, session, accountant, history, watch)
            synthesis = synthesize(study, plan, oracles, watch)
            custodial = len(custodians) + len(closings[0].agreed.entries)
        elif exchange is None:
            assert counts is not None
            oracle = backend.oracle(facts, counts, accountant, history)
            synthesis = synthesize(study, plan, oracle, watch)
        else:
            reports = exchange.clear(facts, joined, tables, accountant)
            synthesis = synthesize(study, plan, reports, watch)
    release = sample(synthesis, plan, watch, row_limit(study, custodial), events)
    for custodian in custodians.values():
        custodian.settle()
    shared = {
        "started": meter.started.isoformat(timespec="seconds"),
        "wall_s": round(meter.clock(), 3),
        "phases": meter.phases(),
        "timeline": observe.timeline(),
        "parties": [
            {"bytes_sent": 0, "bytes_received": 0, "rounds": 0, "software": software()} for _ in study.parties
        ],
        "ca": "",
    }
    write_outputs(
        options.out,
        release,
        study.domain,
        describe(study, plan, release, shared, session, study_digest, "one-machine", owned, *closings[:1]),
        _signed(closings, session, release, study) if closings else None,
    )
    for closing in closings:
        if left := closing.inbox.finish():
            observe("report", "not_deleted", files=[path.name for path in left])
    history.finish(VERSION)
    discard_others(options.out / PARTY_FOLDERS, session)
    meter.mark("report")
    observe("report", "written", rows=int(release.codes.shape[0]))


def _cohorts(
    study: Study,
    plan: Any,
    rounds: CohortRounds[Any],
    custodians: Mapping[str, Custodian],
    session: bytes,
    observe: Observe,
    releases: Iterator[int],
) -> tuple[Synthesis, list[Event]]:
    """All clients in the clear, and what was charged; each custodian's ledger has what is about its own records."""
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
    result = Result.of(closings[0], run, release, study)
    return result.to_bytes(
        {closing.party: closing.inbox.signer().sign(result.signed) for closing in closings}
    )
