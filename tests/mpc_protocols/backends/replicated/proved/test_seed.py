"""The seed of the check of contributors' counts, where products are proved: no two honest parties use
different ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mpc_protocols.backends.replicated.proved.oracle import contribute
from mpc_protocols.engine.inputs.check import protocol
from mpc_protocols.functionality import InputRule, MarginalOracle
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from tests.mpc_protocols.backends.replicated.proof.cheating import flipped, outcomes
from tests.mpc_protocols.backends.replicated.proved.test_engine import party
from tests.worlds.tables import CONTRIBUTORS, SMALL, counter, facts

CHEAT, HONEST = 1, (0, 2)
COUNTS = 4 * 3
"""Bytes of the counts that a party shares, of a column of 3 values."""
COPIES = [32] * 2
"""What it sends then: hashes of both components of the contributor's."""
SEED_BYTES = [32] * 4
"""What a party sends for the seed, right after that: "ready" to both others, a component, a hash."""


def measured(oracle: MarginalOracle) -> list[int]:
    found: list[int] = oracle.measure(oracle.prepare([("a",)]), SMALL)[0].tolist()
    return found


def run(
    changed: int | None, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], list[tuple[int, bytes]], list[int]]:
    """The parties' outcomes with one contributor, the seeds with which each went on, and the sizes of the
    cheat's messages.

    changed: the message of the cheat of which a bit is flipped.
    """
    of = replace(facts(), inputs=InputRule(1000), leader=2)
    network = MemoryNetwork(4, 3, session_id=of.session)
    used: list[tuple[int, bytes]] = []
    sizes: list[int] = []
    original = protocol._Values

    def values(marginals: Any, before: Any, conditions: Any, seed: bytes) -> Any:
        used.append((marginals._trio.me, seed))
        return original(marginals, before, conditions, seed)

    monkeypatch.setattr(protocol, "_Values", values)

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        sizes.append(len(payload))
        return flipped(payload) if number == changed else None

    def body(wire: Any) -> Any:
        if wire.me < 3:
            return party(wire, measured, of, ahead=False)
        return contribute(wire, of, counter(CONTRIBUTORS[0]))

    found = outcomes(body, CHEAT, alter, network=network)
    monkeypatch.setattr(protocol, "_Values", original)
    return found, used, sizes


def test_no_honest_party_goes_on_with_a_seed_that_the_other_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cheat tells one of the others something else: whoever hears it stops before anything depends on the
    seed."""
    found, used, sizes = run(None, monkeypatch)
    assert found[2] == [336, 355, 369]
    assert sorted(me for me, _ in used) == [0, 1, 2] and len({seed for _, seed in used}) == 1
    first = sizes.index(COUNTS) + 1 + len(COPIES)
    assert sizes[first : first + len(SEED_BYTES)] == SEED_BYTES
    for message in range(len(SEED_BYTES)):
        found, used, _ = run(first + 1 + message, monkeypatch)
        assert any(isinstance(found[me], str) for me in HONEST), (message, found)
        by = {me: seed for me, seed in used if me in HONEST}
        assert len(by) < 2, (message, found)
