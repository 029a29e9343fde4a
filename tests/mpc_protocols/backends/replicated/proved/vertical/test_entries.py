"""That an entry of an owner is 0 or 1: the statements hold for these two alone, and owners that bring others
are stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof.transcript import Statements
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.vertical.conditions import Conditions, compare
from mpc_protocols.backends.replicated.proved.vertical.entries import prove_entries, upper_bits
from mpc_protocols.backends.replicated.proved.vertical.lift import lift
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical.matrices import input_rows
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from tests.mpc_protocols.backends.replicated.proof.cheating import outcomes
from tests.mpc_protocols.backends.replicated.proved.test_cheats import accused
from tests.mpc_protocols.backends.replicated.trio_run import deal_ring, run_trio, total

RNG = np.random.default_rng(17)


def shared(trio: Trio, owner: int, values: Any) -> Any:
    """The entries as their owner inputs them."""
    column = np.array(values, np.uint16).reshape(-1, 1)
    [matrix] = input_rows(trio, [(owner, column.shape, column if trio.me == owner else None)], np.uint16)
    return matrix


def words(statements: Statements) -> tuple[Any, Any, Any]:
    [(x, y, w)] = statements.noted[1]
    return x[0], y[0], w


@pytest.mark.parametrize("owner", range(3))
def test_the_statements_hold_for_0_and_1_alone(owner: int) -> None:
    """Every value there is, each as a sum of a random mask and the rest."""

    def body(trio: Trio) -> ProvedGates:
        gates = ProvedGates(trio)
        prove_entries(gates, owner, shared(trio, owner, np.arange(1 << 16)))
        return gates

    parties, _ = run_trio(body)
    x, y, _ = words(parties[owner].transcript.proving)
    left, right = parties[owner - 1].transcript.left, parties[(owner + 1) % 3].transcript.right
    of_left, of_right = words(left), words(right)
    np.testing.assert_array_equal(of_left[0] ^ of_right[0], x)
    np.testing.assert_array_equal(of_left[1] ^ of_right[1], y)
    assert not of_left[1].any() and not of_right[0].any()  # each holds one factor, nothing of the other's
    wrong = (x & y ^ of_left[2] ^ of_right[2]).reshape(15, -1)
    failing = np.bitwise_or.reduce(wrong, axis=0)
    bits = np.unpackbits(failing.view(np.uint8), bitorder="little").reshape(-1, 32).T.reshape(-1)
    assert np.flatnonzero(bits == 0).tolist() == [0, 1]
    assert {gates.transcript.gates for gates in parties} == {15 << 16}


@pytest.mark.parametrize("owner", range(3))
@pytest.mark.parametrize("value", [1000, 2, (1 << 16) - 1, 1 << 15])
def test_an_owner_that_inputs_another_entry_is_stopped(owner: int, value: int) -> None:
    def body(wire: Any) -> str:
        gates = ProvedGates(Trio(wire))
        entries = [0, 1, 0, value if wire.me == owner else 0, 1]
        prove_entries(gates, owner, shared(gates.trio, owner, entries))
        gates.verify()
        return "proved"

    assert accused(outcomes(body), owner)


@pytest.mark.parametrize(("value", "ends"), [(0, True), (1, True), (2, False), (1000, False), (65535, False)])
def test_a_contributors_entries(value: int, ends: bool) -> None:
    """Whatever components it deals; who is right hears nothing but hashes of what it holds."""
    shares = deal_ring(np.array([1, 0, value, 1], np.uint16), RNG)

    def body(wire: Any) -> str:
        gates = ProvedGates(Trio(wire))
        conditions = Conditions(gates.trio, 3, [("a",)], {"a": 1})
        conditions.add_zero_bits(*upper_bits(gates, shares[wire.me]))
        gates.verify()
        compare(gates.trio, [conditions])
        return "compared"

    found = outcomes(body, network=MemoryNetwork(4, 3), parties=3)
    if ends:
        assert found == ["compared"] * 3
    else:
        assert all(
            "says that party 3 shared columns of which a row names no value or several" in said
            for said in found
        )


@pytest.mark.parametrize("cheat", [None, 0, 1, 2])
def test_counts_are_lifted_to_the_wider_ring(cheat: int | None) -> None:
    """A party that opens something else of the masked value is found by the one that needs it."""
    values = np.array([0, 1, 65535, 300, 40000], np.uint16)
    shares, sent = deal_ring(values, RNG), list[tuple[int, int, int]]()

    def body(wire: Any) -> Any:
        return lift(ProvedGates(Trio(wire)), shares[wire.me])

    def note(number: int, peer: int, payload: bytes) -> bytes | None:
        sent.append((number, peer, len(payload)))
        return None

    if cheat is None:
        found = outcomes(body)
        opened = total(found)
        assert opened.dtype == np.uint32 and opened.tolist() == values.tolist()
        return
    outcomes(body, cheat, note)
    last = sent[-1][0]

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        return bytes([payload[0] ^ 1]) + payload[1:] if number == last else None

    found = outcomes(body, cheat, alter)
    assert any("different parts of a masked value" in str(said) for said in found)


def test_parties_stay_in_step_where_there_is_nothing_to_lift() -> None:
    nothing = np.zeros(0, np.uint16)

    def body(wire: Any) -> tuple[int, int | None]:
        trio = Trio(wire)
        return len(lift(ProvedGates(trio), RingShare(nothing, nothing))), trio.differing(bytes(16))

    assert outcomes(body) == [(0, None)] * 3
