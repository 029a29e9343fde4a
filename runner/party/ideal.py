"""A run on a backend of one process (`ideal`): all custodians' tables in the clear. IT PROTECTS NOTHING.

The same plan, the same ledgers, the same events and files as a run of parties, for tests, simulations and baselines.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS, ClearBackend
from runner.party.custodian import Custodian, override
from runner.party.options import PartyOptions
from runner.party.record.events import EventLog, Meter
from runner.party.record.logs import recording
from runner.party.record.run_json import describe
from runner.party.resume.earlier_attempt import EarlierAttempt, state_digest
from runner.results.outdir import PARTY_FOLDERS
from runner.study import Study, VerticalStudy, digest, load, private_file
from runner.study.owners import ownership
from runner.version import VERSION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Event, LocalCounts


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
    from runner.party.synthesis import counted, facts_of, plan_of, row_limit, sample, synthesize
    from runner.results.outputs import write_outputs
    from synth.budget.accounting import Accountant

    backend = BACKENDS[study.backend]
    assert isinstance(backend, ClearBackend)
    meter = Meter()
    observe.clock = meter.clock
    earlier = None
    if options.resume:
        earlier = EarlierAttempt.find(options.out / PARTY_FOLDERS, study, study.leader.name, journalled=False)
    study_digest = digest(study, "")
    session = secrets.token_bytes(32) if earlier is None else earlier.state.run
    plan = plan_of(study)
    custodians = {}
    for party in study.parties:
        settings = options.settings(party.name)
        data = (
            override(options.data[party.name])
            if party.name in options.data
            else private_file.location(study, party.name, settings)
        )
        if data is not None:
            custodians[party.name] = Custodian(study, party.name, settings, data, one_machine=True)
    owned = None
    if isinstance(study, VerticalStudy):
        owned = ownership(study, {name: custodian.columns for name, custodian in custodians.items()})
        plan = plan.knowing(owned.columns)
    for custodian in custodians.values():
        custodian.ready(counted(plan))
        accounts.callback(custodian.close)
        custodian.reserve(plan, session, study_digest, computes=True)
    meter.mark("input")
    observe("input", "counted", custodians=len(custodians))
    facts = facts_of(study, len(custodians), session)
    if owned is None or not isinstance(study, VerticalStudy):
        counts = _added(list(custodians.values()))
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

    meter.start("input" if owned is None else "align")
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
        for custodian in custodians.values():
            custodian.begin(event, number)

    def watch(phase: str, event: str, **fields: Any) -> None:
        meter.mark(phase)
        observe(phase, event, **fields)

    accountant = Accountant(plan.budget, record=record)
    synthesis = synthesize(study, plan, backend.oracle(facts, counts, accountant, history), watch)
    release = sample(synthesis, plan, watch, row_limit(study, len(custodians)), accountant.events)
    for custodian in custodians.values():
        custodian.settle()
    shared = {
        "started": meter.started.isoformat(timespec="seconds"),
        "wall_s": round(meter.clock(), 3),
        "phases": meter.phases(),
        "timeline": observe.timeline(),
        "parties": [{"bytes_sent": 0, "bytes_received": 0, "rounds": 0} for _ in study.parties],
    }
    write_outputs(
        options.out,
        release,
        study.domain,
        describe(study, plan, release, shared, session, study_digest, "one-machine", owned),
    )
    history.finish(VERSION)
    discard_others(options.out / PARTY_FOLDERS, session)
    meter.mark("report")
    observe("report", "written", rows=int(release.codes.shape[0]))


def _added(custodians: Sequence[Custodian]) -> LocalCounts:
    """The sums of all custodians' counts."""

    def everybody(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        parts = [counts(cliques) for custodian in custodians if (counts := custodian.counts()) is not None]
        return [sum(cells[1:], cells[0].copy()) for cells in zip(*parts, strict=True)]

    return everybody
