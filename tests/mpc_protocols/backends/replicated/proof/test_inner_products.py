"""Proofs of inner products over GF(2^64), and of the shuffles that rest on them: honest ones pass, any other
is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof import inner_products
from mpc_protocols.backends.replicated.proof.word_field import inner, product, times
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.sorting.proved_shuffle import ProvedShuffle
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from tests.mpc_protocols.backends.replicated.proof.cheating import (
    flipped,
    found_by_verifiers,
    message_bit,
    outcomes,
)
from tests.mpc_protocols.backends.replicated.trio_run import deal_bits, parity, without_a_key

RNG = np.random.default_rng(23)
ROWS, COLUMNS = 70, 2


def words(count: int) -> Any:
    return RNG.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True)


def slow(a: int, b: int) -> int:
    """The product by long multiplication and division by x^64 + x^4 + x^3 + x + 1."""
    total = 0
    for j in range(64):
        total ^= (a << j) * (b >> j & 1)
    for j in range(63, -1, -1):
        total ^= ((1 << 64 | 0b11011) << j) * (total >> 64 + j & 1)
    return total


def test_arithmetic() -> None:
    """Against long division; laws of a field; every element but 0 has an inverse, a to the power 2^64 - 2."""
    a, b, c = (int(x) for x in words(3))
    assert product(a, b) == slow(a, b) == product(b, a) and product(a, 1) == a and product(a, 0) == 0
    assert product(product(a, b), c) == product(a, product(b, c))
    assert product(a, b ^ c) == product(a, b) ^ product(a, c)
    inverse, square = 1, product(a, a)
    for _ in range(63):
        inverse, square = product(inverse, square), product(square, square)
    assert product(a, inverse) == 1
    x, y = words(200), words(200)
    due = 0
    for left, right in zip(x.tolist(), y.tolist(), strict=True):
        due ^= slow(left, right)
    assert inner(x, y) == due and inner(x[:0], y[:0]) == 0
    assert times(a, x).tolist() == [slow(a, value) for value in x.tolist()]


def test_every_message_of_a_shuffle_has_a_mask_of_its_own() -> None:
    """Of shares that are 0 the first ones are masks and nothing else: who gets two that are alike sees how
    rows move."""
    frames: list[Frame] = []

    def body(wire: Any) -> None:
        nothing = np.zeros(ROWS, np.uint64)
        ProvedShuffle(Trio(wire)).shuffle([BitShare(nothing, nothing)] * COLUMNS)

    outcomes(body, tap=frames.append)
    sent = np.concatenate([np.frombuffer(frame.payload, np.uint64) for frame in frames])
    assert len(np.unique(sent)) == len(sent) == 6 * COLUMNS * ROWS


def shuffled(columns: list[list[BitShare]], cheat: int | None = None, spoil: Any = None) -> Any:
    """A body that shuffles twice, first all columns, then one, and proves it: the shares, or a sentence."""

    def body(wire: Any) -> Any:
        trio = Trio(wire)
        proved = ProvedShuffle(trio)
        mixed = proved.shuffle([column[trio.me] for column in columns])
        again = proved.shuffle([columns[0][trio.me]], 1)
        if spoil is not None and trio.me == cheat:
            spoil(proved)
        proved.prove(b"agreed")
        return mixed, again

    return body


def dealt() -> tuple[list[Any], list[list[BitShare]]]:
    values = [words(ROWS) for _ in range(COLUMNS)]
    return values, [deal_bits(value, RNG) for value in values]


def test_a_proved_shuffle_keeps_rows_together_and_costs_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 bytes a row and column from each party, as much in the proof. Every message of it after the first is
    a round more."""
    monkeypatch.setattr(inner_products, "PIECE", 32)
    values, columns = dealt()
    network = MemoryNetwork(3)
    found = outcomes(shuffled(columns), network=network)
    mixed = [parity([of[0][column] for of in found]) for column in range(COLUMNS)]
    again = parity([of[1][0] for of in found])
    before, after = ({*zip(*(x.tolist() for x in of), strict=True)} for of in (values, mixed))
    assert before == after and sorted(again.tolist()) == sorted(values[0].tolist())
    assert not np.array_equal(mixed[0], values[0]) and not np.array_equal(again, mixed[0])
    traffic = [network.traffic(i) for i in range(3)]
    assert [of.rounds for of in traffic] == [6 + 7 + -(-2 * 3 * ROWS // 32) - 1] * 3
    assert [of.bytes_sent for of in traffic] == [2 * 8 * ROWS * 3 * 2 + 2 * 128 + 8 + 8 + 16 + 2 * 33] * 3


def test_the_order_changes_with_any_pair_of_keys() -> None:
    """Two of the three keys, all that a party holds, do not fix the order."""
    rows = np.arange(64, dtype=np.uint64)
    columns = [deal_bits(rows, RNG)]
    for party in range(3):
        orders = set()
        base = MemoryNetwork(3, session_id=bytes(32))
        for _ in range(2):
            found = outcomes(shuffled(columns), network=without_a_key(base, party))
            orders.add(tuple(parity([of[0][0] for of in found]).tolist()))
        assert len(orders) == 2


def test_what_a_receiver_gets_is_uniform() -> None:
    """Of constant rows: a chi-square with 255 degrees of freedom below its 1 - 10^-9 quantile (407) at each
    receiver."""
    columns = [[BitShare(np.zeros(4000, np.uint64), np.zeros(4000, np.uint64))] * 3]
    frames: list[Any] = []
    outcomes(shuffled(columns), tap=frames.append)
    for receiver in range(3):
        seen = b"".join(f.payload for f in frames if f.receiver == receiver and len(f.payload) > 64)
        assert len(seen) == 8 * 4000 * 8  # 4 columns' messages in the shuffles, 4 in the proof
        expected = len(seen) / 256
        counts = np.bincount(np.frombuffer(seen, np.uint8), minlength=256)
        assert ((counts - expected) ** 2 / expected).sum() < 407


SHUFFLES = 6
"""Messages of a party while rows are shuffled: two a column."""


@pytest.mark.parametrize(("number", "cheat"), [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1), (6, 2)])
def test_an_altered_row_is_refused_and_its_sender_named(number: int, cheat: int) -> None:
    """One bit of one row; two rows exchanged. Nothing but what was altered decides: the honest two stop,
    always."""
    _, columns = dealt()

    def exchanged(payload: bytes) -> bytes:
        return payload[8:16] + payload[:8] + payload[16:]

    for change in (lambda payload: flipped(payload, 37, 3), exchanged):

        def alter(count: int, peer: int, payload: bytes, change: Any = change) -> bytes | None:
            return change(payload) if count == number else None

        found = outcomes(shuffled(columns), cheat, alter)
        honest = [str(found[party]) for party in range(3) if party != cheat]
        assert all("stop the run" in said for said in honest), found
        # the other one may have met first that the cheat's own copies are not what it sent
        assert any(
            f"says that party {cheat} sent rows that are not those of its shares" in said for said in honest
        ), found


def test_two_errors_that_cancel_are_refused() -> None:
    """The same bit of two rows, and of two columns."""
    _, columns = dealt()
    for altered in ({1: (0, 8)}, {1: (0,), 2: (0,)}):

        def alter(count: int, peer: int, payload: bytes, altered: Any = altered) -> bytes | None:
            for byte in altered.get(count, ()):
                payload = flipped(payload, byte)
            return payload if count in altered else None

        found = outcomes(shuffled(columns), 1, alter)
        assert all("stop the run" in str(found[party]) for party in (0, 2)), found
        assert any("says that party 1 sent rows" in str(found[party]) for party in (0, 2)), found


MESSAGES = {
    "ready, to the left": (1, 0),
    "a coin's secret": (3, 0),
    "its hash for the other": (4, 31),
    "the prover's value": (5, 1),
    "the second coin's secret": (8, 3),
    "the share": (10, 7),
    "the tag": (11, 15),
    "hidden words": (12, 77),
    "a verdict": (13, 0),
    "what a verdict is about": (14, 12),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_any_message_of_the_proof_that_differs_by_a_bit_ends_it(name: str) -> None:
    _, columns = dealt()
    number, byte = MESSAGES[name]
    found = outcomes(shuffled(columns), 2, message_bit(SHUFFLES + number, byte))
    stopped = [isinstance(said, str) for said in found[:2]]
    assert any(stopped) and (all(stopped) or "verdict" in name), found


@pytest.mark.parametrize("right", [True, False])
def test_a_right_verifier_cannot_test_a_guess(right: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It alters a hidden word and corrects its share as if the operand it does not hold were 0 there: if that
    is right the equation holds all the same, and the tag refuses both alike."""
    found_by_left = found_by_verifiers(monkeypatch)
    value = np.zeros(64, np.uint64) if right else np.full(64, 9, np.uint64)

    def body(wire: Any) -> str:
        trio = Trio(wire)
        zero, ones = np.zeros(64, np.uint64), np.ones(64, np.uint64)
        held = value if trio.me == 0 else zero  # of party 1, whose left verifier is 0 and right one is 2
        sum_of = inner(value, ones)
        claims = inner_products.Claims(
            value if trio.me == 1 else zero,
            ones if trio.me == 1 else zero,
            held,
            sum_of if trio.me == 0 else 0,
            ones if trio.me == 2 else zero,
            0,
        )
        inner_products.prove(trio, claims, b"guess", "sent nothing")
        return "proved"

    def alter(count: int, peer: int, payload: bytes) -> bytes | None:
        return flipped(payload, 5) if count == 8 else None

    found = outcomes(body, 2, alter)
    assert all("different things about the same proof" in str(said) for said in found[:2]), found
    assert (False, right) in found_by_left


def test_nothing_is_sent_without_a_mask() -> None:
    """Of claims about zeros: the prover's value, the hidden words and the share are none (each word by
    chance, below 2^-55)."""
    frames: list[Any] = []
    zeros = np.zeros(50, np.uint64)

    def body(wire: Any) -> str:
        inner_products.prove(
            Trio(wire), inner_products.Claims(zeros, zeros, zeros, 0, zeros, 0), b"zeros", "sent nothing"
        )
        return "proved"

    assert outcomes(body, tap=frames.append) == ["proved"] * 3
    words_sent = [f.payload for f in frames if len(f.payload) in (8, 8 * len(zeros))]
    assert len(words_sent) == 9 and len(set(words_sent)) == 9
    assert all(np.frombuffer(payload, np.uint64).all() for payload in words_sent)
