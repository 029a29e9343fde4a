"""What a dry run repeats is what the protocol would have sent: the same messages, in the same rounds, at the
same turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.shamir.circuits.gates import ShamirGates
from mpc_protocols.backends.shamir.sharing.mesh import Mesh
from mpc_protocols.backends.shamir.sharing.numbers import Addends
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.by_shape import Messages, by_shape
from mpc_protocols.engine.interleave import interleave
from mpc_protocols.in_memory.blank_network import BlankNetwork

CELLS = 300


def traffic(sizes: list[int], *, repeats: bool | None, beside: bool = False) -> list[tuple[int, int, int]]:
    """Rounds, bytes and messages of each party that adds up vectors of these sizes. repeats: as of
    `Messages`; None: none."""

    def party(wire: Any) -> None:
        gates: Any = ShamirGates(Mesh(wire))
        other: Any = ShamirGates(gates.mesh.fork("beside"))
        if repeats is not None:
            gates.messages, other.messages = Messages(repeats), Messages(repeats)

        def add_up(of: Any) -> None:
            for cells in sizes:
                term = tuple(blank(cells, np.uint32) for _ in range(gates.mesh.scheme.planes))
                total = of.planes_of(Addends(np.uint32, (cells,), (term,) * 3, (0b111,) * 3))
                assert total.shape == (32, words_for(cells))

        if beside:
            interleave(gates, lambda: add_up(gates), other, lambda: add_up(other))
        else:
            add_up(gates)

    network = BlankNetwork(3, session_id=bytes(32))
    network.run([party] * 3)
    counted = [network.traffic(number) for number in range(3)]
    return [(of.rounds, of.bytes_sent, of.messages_sent) for of in counted]


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("sizes", [[CELLS], [CELLS] * 3, [CELLS, 64, CELLS, 10_000, 64]])
def test_repeated_messages_count_as_the_protocols_own(sizes: list[int], beside: bool) -> None:
    own = traffic(sizes, repeats=None, beside=beside)
    assert own[0][1] > 0
    assert traffic(sizes, repeats=False, beside=beside) == own
    assert traffic(sizes, repeats=True, beside=beside) == own


class _Gates:
    latency_bytes = 1
    messages: Messages | None = None

    def turn(self) -> None: ...


def test_a_protocol_is_carried_out_once_for_each_key() -> None:
    carried_out = []

    @by_shape(lambda gates, bits: bits.shape)
    def protocol(gates: Any, bits: Bits) -> int:
        carried_out.append(bits.shape)
        return len(bits)

    gates, wide, narrow = _Gates(), *(Bits(blank((rows, 2), np.uint64)) for rows in (5, 3))
    assert [protocol(gates, wide), protocol(gates, wide)] == [5, 5]
    assert len(carried_out) == 2  # nothing is remembered in a run
    carried_out.clear()
    gates.messages = Messages()
    assert [protocol(gates, of) for of in (wide, narrow, wide, narrow)] == [5, 3, 5, 3]
    assert carried_out == [(5, 2), (3, 2)]
    gates.latency_bytes = 2  # which decides how words are added up
    assert protocol(gates, wide) == 5
    assert len(carried_out) == 3
