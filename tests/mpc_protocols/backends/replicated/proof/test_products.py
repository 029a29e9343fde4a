"""A proof of products: honest ones pass; whoever deviates is refused by both honest parties, who name the
link."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof.bit_products import products
from mpc_protocols.backends.replicated.proof.bit_products.basis import Challenge, challenge
from mpc_protocols.backends.replicated.proof.bit_products.functional import Functional
from mpc_protocols.backends.replicated.proof.bit_products.grid import Grid, cube
from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.coins import stream, toss
from mpc_protocols.backends.replicated.proof.field import ONE, dots, multiply, read, subfield, write
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.proof.verdict import Finding
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from tests.mpc_protocols.backends.replicated.proof.cheating import (
    check_ended,
    flipped,
    found_by_verifiers,
    message_bit,
    multiplied,
    outcomes,
    proved,
)
from tests.trio import Trio as Processes

SIZES = [(70, 1), (3, 4), (130, 1)]
PROVED = ["proved"] * 3


def cost(sizes: list[tuple[int, int]], variables: int) -> int:
    """Bytes of one party in a proof: two coins, the prover's values, hidden rows and a share, a tag,
    verdicts."""
    rows = 1 << variables
    by_entries: dict[int, int] = {}
    for words, entries in sizes:
        by_entries[entries] = by_entries.get(entries, 0) + words
    hidden = sum(2 * 8 * entries * rows * -(-words // rows) for entries, words in by_entries.items())
    return 2 * 128 + 16 * (3 ** (variables + 1) - rows) + hidden + 16 + 16 + 2 * 33


@pytest.mark.parametrize("variables", [3, 6])
def test_honest_products_are_proved_at_the_stated_cost(variables: int) -> None:
    network = MemoryNetwork(3)

    def body(wire: Any) -> tuple[int, int]:
        trio, transcript = Trio(wire), Transcript()
        for words, entries in SIZES:
            multiplied(trio, transcript, words, entries)
        assert transcript.gates == 64 * (200 + 12)
        before = wire.traffic()
        prove(trio, transcript, variables)
        after = wire.traffic()
        return after.bytes_sent - before.bytes_sent, after.rounds - before.rounds

    assert outcomes(body, network=network) == [(cost(SIZES, variables), 7)] * 3


def job(wire: Any) -> str:
    """Honest products in a process of its own."""
    return proved(SIZES, 6)(wire)


def test_products_are_proved_over_real_wires(trio: Processes) -> None:
    assert trio.run(job) == PROVED


def one_bit(part: Any) -> None:
    part[5] ^= np.uint64(1 << 17)


def constant(part: Any) -> None:
    part ^= np.uint64(0xFFFF)


def same_column(part: Any) -> None:
    """70 and 130 words are cut into 64 rows of 4: these two errors stand in one column of two rows."""
    part[0] ^= np.uint64(8)
    part[4] ^= np.uint64(8)


def same_row(part: Any) -> None:
    part[0] ^= np.uint64(8)
    part[1] ^= np.uint64(8)


@pytest.mark.parametrize("spoil", [one_bit, constant, same_column, same_row])
def test_wrong_products_are_refused_and_the_link_is_named(spoil: Any) -> None:
    for cheat in range(3):
        accuser = (cheat - 1) % 3
        sentence = (
            f"Party {accuser} says that party {cheat} sent it products that are not those of its shares"
        )
        found = outcomes(proved(SIZES, 6, cheat, spoil=spoil))
        assert all(sentence in said for said in found), found
        for me, said in enumerate(found):  # whom it cannot exclude, and never itself
            one, other = sorted({0, 1, 2} - {me})
            assert said.startswith(
                f"One of these two did not follow the protocol: party {one}, party {other}."
            )


def test_replayed_and_swapped_products_are_refused() -> None:
    sent: list[bytes] = []

    def replay(number: int, peer: int, payload: bytes) -> bytes | None:
        sent.append(payload)
        return sent[0] if number == 3 else None

    sizes = [(70, 1), (3, 4), (70, 1)]
    found = outcomes(proved(sizes, 6), 1, replay)
    assert "Party 0 says that party 1 sent it products" in found[0] and found[2].endswith(
        found[0].split(".", 1)[1]
    )
    held: list[bytes] = []

    def swap(number: int, peer: int, payload: bytes) -> bytes | None:
        # a message sent in the place of an earlier one of another batch, whose own content goes later
        held.append(payload)
        return {1: bytes(560), 3: held[0]}.get(number)

    assert "proved" not in [outcomes(proved(sizes, 6), 1, swap)[i] for i in (0, 2)]


MESSAGES = {
    "ready, to the left": (1, 0),
    "a coin's secret": (3, 0),
    "its hash for the other": (4, 31),
    "the prover's values": (5, 1000),
    "the second coin's secret": (8, 3),
    "hidden rows": (10, 77),
    "hidden rows of a sum": (12, 77),
    "the share of the value": (14, 9),
    "the tag": (15, 15),
    "a verdict": (16, 0),
    "what a verdict is about": (17, 12),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_any_message_of_a_proof_that_differs_by_a_bit_ends_it(name: str) -> None:
    """Also that of a party whose products are right; at least one honest party stops, and the other does not
    go on alone."""
    number, byte = MESSAGES[name]
    check_ended(name, outcomes(proved(SIZES, 6), 2, message_bit(len(SIZES) + number, byte))[:2])


def test_different_verdicts_leave_one_honest_party_alone() -> None:
    """The party that heard "fine" goes on to open, and needs the other's message for it, which has stopped."""

    def body(wire: Any) -> str:
        proved(SIZES, 6)(wire)
        Trio(wire).wire.receive((wire.me + 1) % 3, 1)
        return "opened"

    def alter(count: int, peer: int, payload: bytes) -> bytes | None:
        return flipped(payload) if count == len(SIZES) + 16 else None

    assert "opened" not in outcomes(body, 2, alter)[:2]


def test_a_cheat_that_opens_alone_is_not_denied() -> None:
    """It tells its right neighbour that it refuses and its left one that all is fine, which then sends its
    component: only the cheat opens, and the sentence of the party that stopped does not say that nobody did.
    """

    def body(wire: Any) -> str:
        proved(SIZES, 6)(wire)
        trio = Trio(wire)
        trio.send(trio.right, np.zeros(1, np.uint64))
        trio.receive(trio.left, 1, np.uint64)
        return "opened"

    def alter(count: int, peer: int, payload: bytes) -> bytes | None:
        return flipped(payload) if count == len(SIZES) + 17 else None

    found = outcomes(body, 2, alter)
    assert found[2] == "opened"
    assert "nothing was opened at this party, another one may have opened it" in found[0], found
    assert "has ended" in found[1], found


@pytest.mark.parametrize("guess_is_right", [True, False])
def test_a_right_verifier_cannot_test_what_it_does_not_hold(
    guess_is_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alters a coordinate of the hidden x and corrects its share as if the y it does not hold were 0.
    Where that is right the equation holds all the same; the prover's tag refuses both alike, so a verdict
    tells nothing."""
    coins: list[bytes] = []
    monkeypatch.setattr(products, "toss", noting(coins, 2))
    found_by_left = found_by_verifiers(monkeypatch)
    hidden = np.empty((64, 1, 1), np.uint64)

    def alter(count: int, peer: int, payload: bytes) -> bytes | None:
        if count == 1 + 10:
            return flipped(payload, 3)
        if count == 1 + 11:
            hidden[...] = np.frombuffer(payload, np.uint64).reshape(64, 1, 1)
        if count == 1 + 12:
            error = np.zeros_like(hidden)
            error[0] = 1 << 24
            values = np.zeros((3**6, 16), np.uint8)
            Grid(6, 1, 1).add_products(error, hidden, Functional(coins[0], 0, 1), values)
            [wrong] = dots(challenge(stream(coins[1], b"point"), 6).weights, values[np.newaxis])
            return write(read(payload) ^ wrong)
        return None

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        multiplied(trio, transcript, 64, zero=guess_is_right)
        prove(trio, transcript, 6)
        return "proved"

    found = outcomes(body, 2, alter)
    assert all("different things about the same proof" in said for said in found[:2]), found
    assert found_by_left.count((False, guess_is_right)) == 1
    assert found_by_left.count((True, True)) == 2


def test_coins_are_revealed_only_when_both_others_are_ready() -> None:
    """Every message that reveals a part of a coin leaves its sender after the "ready" of both others has come
    there."""
    frames: list[Frame] = []

    def body(wire: Any) -> bytes:
        return toss(Trio(wire), b"batch")

    coins = outcomes(body, tap=frames.append)
    assert coins[0] == coins[1] == coins[2] and len(coins[0]) == 32
    assert (
        sorted(frame.clock for frame in frames) == [1] * 6 + [2] * 6
    )  # none of the second round before all of the first
    assert outcomes(body)[0] != coins[0]


def test_a_party_that_answers_early_is_not_answered() -> None:
    """It sends its part of the coin before anybody asked; without its "ready" no honest party reveals theirs."""
    frames: list[Frame] = []

    def body(wire: Any) -> Any:
        trio = Trio(wire)
        if trio.me == 1:
            operation = trio.operation()
            for peer in (0, 2):
                wire.send(peer, trio.own_mask(32, np.uint8, operation).tobytes())
            return "early"
        return toss(trio, b"batch")

    found = outcomes(body, tap=frames.append)
    assert "do not agree on what precedes" in found[0] or "ended" in found[0]
    assert {frame.clock for frame in frames if frame.sender != 1} == {1}


class Forger:
    """What a prover in GF(2^8) adds to its values so that an error passes at as many points as possible.

    The error is one gate in each of the 8 rows, so that what is missing on the cube is theta at all of its
    points. Added is theta q(u_1) q(u_2) q(u_3) q'(t) with q(0) = q(1) = q'(0) = 1, of degree 2: with two
    roots in each variable.
    """

    def __init__(self, root: int | None = None) -> None:
        """root: one of those in t, if the prover knows what it will be."""
        field = subfield(8)
        roots = [field.element(0x35 + 31 * j) for j in range(5)]
        on_grid = [[ONE, ONE, inverse(multiply(g, g) ^ g)] for g in roots[:3]]
        s, w = inverse(roots[3]), inverse(root or roots[4])
        of_point = [ONE]
        for of in on_grid:
            of_point = [multiply(weight, value) for weight in of_point for value in of]
        in_t = [ONE, multiply(ONE ^ s, ONE ^ w), multiply(s, w)]
        self.values = [multiply(weight, value) for value in in_t for weight in of_point]

    def passes(self, point: Challenge) -> bool:
        """Whether the forgery is not seen at a challenge."""
        at = dots(
            point.weights, np.frombuffer(b"".join(map(write, self.values)), np.uint8).reshape(3, 27, 16)
        )
        t = point.factor
        return at[0] ^ multiply(t, at[0] ^ at[1] ^ at[2] ^ multiply(t, at[2])) == 0

    def forged(self, seed: bytes, payload: bytes) -> bytes:
        """The message of values for an error of the first bit of every row (rows of 2 words)."""
        theta = read(Functional(seed, 0, 2).of(np.array([[1, 0]], np.uint64))[0].tobytes())
        free = np.ones((3, 27), np.bool_)
        free[0, cube(3)] = False
        wanted = np.flatnonzero(free)
        added = b"".join(write(multiply(theta, self.values[place])) for place in wanted)
        return bytes(a ^ b for a, b in zip(payload, added, strict=True))


def inverse(a: int) -> int:
    """1 / a in GF(2^8): a to the power 254."""
    result, square = ONE, a
    for _ in range(7):
        square = multiply(square, square)
        result = multiply(result, square)
    return result


def noting(coins: list[bytes], party: int) -> Any:
    """`toss` that notes the coins of one party."""

    def noted(trio: Trio, public: bytes) -> bytes:
        coin = toss(trio, public)
        if trio.me == party:
            coins.append(coin)
        return coin

    return noted


def forge(forger: Forger, coins: list[bytes], network: MemoryNetwork | None = None) -> bool:
    """Whether a forged proof of wrong products of party 1 passes at both others. coins: noted of party 1."""

    def spoil(part: Any) -> None:
        part[::2] ^= np.uint64(1)

    def alter(count: int, peer: int, payload: bytes) -> bytes | None:
        return forger.forged(coins[-1], payload) if count == 1 + 5 else None

    found = outcomes(proved([(16, 1)], 3, 1, spoil=spoil), 1, alter, network=network)
    assert (found[0] == "proved") == (found[2] == "proved")
    return bool(found[0] == "proved")


def point_of(coin: bytes) -> Challenge:
    return challenge(stream(coin, b"point"), 3)


def test_a_prover_that_knew_the_coins_could_forge(monkeypatch: pytest.MonkeyPatch) -> None:
    """In GF(2^8): with the coins of an earlier run of the same keys, which no run has, it passes; with other
    ones as the forgery vanishes at them, and nearly never."""
    coins: list[bytes] = []
    monkeypatch.setattr(products, "toss", noting(coins, 1))
    first, second = (MemoryNetwork(3, session_id=bytes(32)) for _ in range(2))
    second.share_keys(first)
    blind = Forger()
    assert forge(blind, coins, first) == blind.passes(point_of(coins[-1]))
    assert forge(Forger(point_of(coins[-1]).factor), coins, second)
    for _ in range(10):
        assert forge(blind, coins) == blind.passes(point_of(coins[-1]))


@pytest.mark.campaign
def test_two_thousand_forged_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """About 2 of 254 points a variable: 3 % pass, at most 12 of 256 (4 sd on either side)."""
    coins: list[bytes] = []
    monkeypatch.setattr(products, "toss", noting(coins, 1))
    forger, passed = Forger(), 0
    for _ in range(2000):
        passes = forge(forger, coins)
        assert passes == forger.passes(point_of(coins[-1]))
        passed += passes
    print(f"{passed} of 2000 forged proofs pass")
    assert 0.015 < passed / 2000 < 12 / 256


@pytest.mark.parametrize("factor", [0, 1])
def test_a_tag_is_of_both_factors(factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of either the left verifier is sent another coordinate: neither is left to the equation."""
    matching, original = list[bool](), Finding.of

    def record(matches: bool, holds: bool) -> Any:
        matching.append(matches)
        return original(matches, holds)

    monkeypatch.setattr(Finding, "of", staticmethod(record))

    def alter(count: int, peer: int, payload: bytes) -> bytes | None:
        return flipped(payload, 3) if count == 1 + 10 + factor else None

    outcomes(proved([(64, 1)], 6), 2, alter)
    assert sorted(matching) == [False, True, True]
