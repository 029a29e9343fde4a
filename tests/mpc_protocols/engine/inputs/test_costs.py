"""What a dry run says of checked inputs is what a run sends, on every backend that checks them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.engine.inputs.check import protocol
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.functionality import InputRule, MarginalOracle
from mpc_protocols.in_memory.presumed import DryRun, PresumedRun
from tests.extras import skip_unless_installed
from tests.mpc_protocols.engine.inputs.lying_run import ROWS, run
from tests.mpc_protocols.engine.inputs.test_protocol import HONEST, TRIED, questions
from tests.worlds.tables import PARTS, SMALL, counter, facts, table


@pytest.mark.parametrize("total_first", [False, True])
@pytest.mark.parametrize(("backend", "computing"), TRIED, ids=[f"{b.name}-{n}" for b, n in TRIED])
def test_a_dry_run_counts_what_checks_send(
    backend: DistributedBackend, computing: int, total_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_unless_installed(backend)
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: LATENCY_BYTES)
    monkeypatch.setattr(protocol, "TESTED", 512)
    rule, tables = InputRule(ROWS), [*PARTS, table(50, 11)][:computing] + HONEST

    def asked(oracle: MarginalOracle) -> list[Any]:
        return [oracle.total(SMALL) if total_first else 0, *questions(oracle)]

    network = run(backend, computing, tables, asked, {}, rule).network
    assert network is not None
    dry = backend.dry_run(
        PresumedRun(of(backend, computing, rule), counter(np.concatenate(tables)), computing, 2)
    )
    assert isinstance(dry, DryRun)
    asked(dry)
    dry.close()
    assert [network.traffic(i).bytes_sent for i in range(len(tables))] == list(dry.sent)
    assert max(network.traffic(i).rounds for i in range(len(tables))) == dry.rounds
    rounds, sent = dry.input_checks
    assert 0 < rounds < dry.rounds and 0 < sent < sum(dry.sent)


def of(backend: DistributedBackend, computing: int, rule: InputRule) -> Any:
    """The facts of a run."""
    from dataclasses import replace

    return replace(facts(), leader=backend.leader(computing), inputs=rule)
