"""A run on the ideal backend: all custodians' tables in one process, in the clear. IT PROTECTS NOTHING (`mpc_protocols.ideal`).

The same plan, the same ledgers, the same events and files as a run of parties, for tests, simulations and baselines.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from runner import private as private_file
from runner.custodian import Custodian, override
from runner.events import EventLog, Meter
from runner.logs import recording
from runner.options import PartyOptions
from runner.outdir import PARTIES
from runner.study import Study, digest, load
from runner.summary import describe

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event


def run_ideal(options: PartyOptions) -> None:
    """Run the whole study in this process, in the clear: it protects nothing. Raises `CosynthError`."""
    study = load(options.study)
    private = options.out / PARTIES
    private.mkdir(exist_ok=True)
    with recording(options, study, private) as observe, ExitStack() as accounts:
        _run(options, study, observe, accounts)


def _run(options: PartyOptions, study: Study, observe: EventLog, accounts: ExitStack) -> None:
    """All custodians' tables in one process, added in the clear. accounts: closes ledgers, for this process may live on."""
    import secrets

    from mpc_protocols.ideal import IdealOracle
    from runner.outputs import write_outputs
    from runner.synthesis import counted, plan_of, row_limit, setting_of, synthesize
    from synth.accounting import Accountant

    started, clock, meter = datetime.now(UTC), time.monotonic(), Meter()
    session, study_digest = secrets.token_bytes(32), digest(study, "")
    plan = plan_of(study)
    custodians = []
    for party in study.parties:
        data = override(options.data[party.name]) if party.name in options.data else party.data
        if data is not None:
            custodians.append(Custodian(study, party.name, private_file.Private(), data))
    for custodian in custodians:
        custodian.count(counted(plan))
        accounts.callback(custodian.close)
        custodian.reserve(plan, session, study_digest, computes=True)
    meter.mark("input")
    observe("input", "counted", custodians=len(custodians))

    def everybody(cliques: Any) -> Any:
        parts = [counts(cliques) for custodian in custodians if (counts := custodian.counts()) is not None]
        return [sum(cells[1:], cells[0].copy()) for cells in zip(*parts, strict=True)]

    def record(event: Event, inputs: bytes) -> None:
        for custodian in custodians:
            custodian.begin(event)

    def watch(phase: str, event: str, **fields: Any) -> None:
        meter.mark(phase)
        observe(phase, event, **fields)

    accountant = Accountant(plan.budget, record=record)
    oracle = IdealOracle(setting_of(study, len(custodians), session), everybody, accountant)
    release = synthesize(oracle, plan, watch, row_limit(study, len(custodians)), accountant.events)
    for custodian in custodians:
        custodian.settle()
    shared = {"started": started.isoformat(timespec="seconds"), "wall_s": round(time.monotonic() - clock, 3),
              "phases": meter.phases(),
              "parties": [{"bytes_sent": 0, "bytes_received": 0, "rounds": 0} for _ in study.parties]}
    write_outputs(options.out, release, study.domain,
                  describe(study, plan, release, shared, session, study_digest, "one-machine"), observe.so_far())
    observe("report", "written", rows=int(release.codes.shape[0]))
