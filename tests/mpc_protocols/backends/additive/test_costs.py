"""What a dry run counts is what a run sends, to the byte, the message and the round, whatever a round is
worth."""

from __future__ import annotations

import numpy as np
import pytest

from mpc_protocols.backends.additive.adapter.crypten_operations import CrypTenOperations
from mpc_protocols.backends.additive.backend import BACKEND
from mpc_protocols.backends.additive.blank import BlankOperations
from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.backends.additive.oracle import ROLES, contribute
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.noise import sampling
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll, PresumedRun
from mpc_protocols.mechanisms import gaussian
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.additive.dealt_run import run_three
from tests.mpc_protocols.backends.replicated.trio_run import small_groups
from tests.worlds import serving
from tests.worlds.questions import total_and_work
from tests.worlds.tables import CONTRIBUTORS, PARTS, SMALL, counter, facts

pytestmark = pytest.mark.usefixtures("crypten")

SAMPLERS = [(gaussian.sampler(SMALL), 70), (gaussian.sampler(SMALL * 10**9), 3)]


def protocols(gates: AdditiveGates) -> None:
    x = np.arange(250, dtype=np.uint32)
    gates.absolute(x[:100], 12)
    gates.widened(x[:70])
    gates.less(x[:130].astype(np.uint64), x[:130].astype(np.uint64))
    gates.zero_rows((2, 40), [(slice(0, 40), Bits(np.zeros((2, 40, 70), np.uint8)))])
    gates.weighted_sum(Bits(np.zeros((5, 2), np.uint64)), [1, 2, 3, 4, 5], 100, np.uint64)
    source = gates.release_bits(b"release")
    sampling.gumbel_noise(gates, source, 70, 4, np.uint64)  # type: ignore[type-var]
    sampling.gaussian_noise(gates, source, SAMPLERS[1][0], 9000, np.uint32)  # type: ignore[type-var]
    sampling.gaussian_noises(gates, source, SAMPLERS, np.uint32)  # type: ignore[type-var]


@pytest.mark.parametrize("latency_bytes", [1, 1 << 30])
def test_blank_protocols_send_what_protocols_send(
    latency_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What CrypTen opens is said a second time, by `BlankOperations`."""
    monkeypatch.setattr("mpc_protocols.engine.parts.gates.TESTED_AT_ONCE", 30)
    monkeypatch.setattr("mpc_protocols.backends.additive.dealing.operations.BITS_AT_ONCE", 250)
    ran, without = (
        run_three(protocols, latency_bytes, operations=made) for made in (CrypTenOperations, BlankOperations)
    )
    assert without.traffic == ran.traffic


@pytest.mark.parametrize("latency_bytes", [1, 1 << 30])
def test_a_dry_run_counts_what_the_run_sends(latency_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At tiny noise both give the same answers, so the same messages; candidates are compared in several
    groups and chunks."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: latency_bytes)
    monkeypatch.setattr("mpc_protocols.engine.parts.engine.CHUNK", 16)
    of, tables = facts(), [*PARTS[:3], *CONTRIBUTORS[:2]]
    network = MemoryNetwork(5, 3, session_id=of.session)

    def party(wire: Wire) -> object:
        mine = counter(tables[wire.me])
        if wire.me == of.leader:
            with ROLES.lead(wire, of, mine, AllowAll()) as oracle:
                return total_and_work(oracle)
        return ROLES.follow(wire, of, mine, AllowAll()) if wire.me < 3 else contribute(wire, of, mine)  # type: ignore[func-returns-value]

    with small_groups(8, 20, 40):
        found = network.run([party] * 5)[1]
        dry = BACKEND.dry_run(PresumedRun(of, counter(np.concatenate(tables)), 3, 2))
        assert total_and_work(dry) == found
        dry.close()
    serving.check_traffic(network, dry)
    assert dry.shared_cells > 60 and dry.seconds > 0 and len(dry.marks) == 4
