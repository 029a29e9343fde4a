"""The deviations that the semi-honest engine lets through, tried on the engine that proves its products."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.proved import addends
from mpc_protocols.backends.replicated.proved import gates as proved_gates
from mpc_protocols.backends.replicated.proved.addends import deal
from mpc_protocols.backends.replicated.proved.addition import add_up
from mpc_protocols.backends.replicated.proved.conversion import in_ring
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.numbers import Summand, SummedNumbers
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.argmax import argmax_rows
from mpc_protocols.engine.bitwise.bitslice import to_bits, to_planes
from mpc_protocols.engine.interleave import interleave
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame
from tests.mpc_protocols.backends.replicated.proof.cheating import CheatingWire, flipped, outcomes
from tests.mpc_protocols.backends.replicated.proved.openings import noted_conversions
from tests.mpc_protocols.backends.replicated.trio_run import deal_bits, deal_ring

RNG = np.random.default_rng(11)


def accused(found: list[Any], cheat: int) -> bool:
    """Whether both honest parties stopped with a sentence in which an honest one accuses the cheat: of its
    products, or, together with the other one that reports on them, where it goes on with shares that nobody
    else holds."""
    left, right = (cheat - 1) % 3, (cheat + 1) % 3
    said = (
        f"Party {left} says that party {cheat} sent it products that are not those of its shares",
        f"Party {left} says that parties {cheat} and {right} told it different things about the same proof",
        f"Party {right} says that parties {left} and {cheat} told it different things about the same proof",
    )
    return all(any(each in found[i] for each in said) for i in (left, right))


@pytest.mark.parametrize("factor", [1000, 1 + (1 << 16)])
def test_bits_of_a_multiple_of_the_addend(factor: int) -> None:
    """P0 deals the bits of 1000 a, or of (1 + 2^16) a, in place of a's: the sensitivity of a score times
    that."""
    shares = deal_ring(RNG.integers(0, 1000, 200).astype(np.uint32), RNG)

    def body(wire: Any) -> str:
        trio, transcript, x = Trio(wire), Transcript(), shares[wire.me]
        dealt = x if trio.me else RingShare(x.own * np.uint32(factor), x.next * np.uint32(factor))
        deal(trio, transcript, dealt, 24)
        prove(trio, transcript)
        return "proved"

    assert accused(outcomes(body), 0)


def test_bits_of_one_more_than_the_addend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every carry follows from the one before it; but the first one must be 0."""
    shares, dealt = deal_ring(RNG.integers(0, 1000, 200).astype(np.uint32), RNG), list[int]()

    def planes_of_more(values: Any, planes: int) -> Any:
        if threading.current_thread().name == "party-0" and not dealt:
            dealt.append(planes)
            return to_planes(values + np.uint32(1), planes)
        return to_planes(values, planes)

    monkeypatch.setattr(addends, "to_planes", planes_of_more)

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        deal(trio, transcript, shares[wire.me], 24)
        prove(trio, transcript)
        return "proved"

    assert accused(outcomes(body), 0) and dealt


def test_a_single_dealt_bit() -> None:
    """Also the highest one, of which no further carry depends, and one of padding."""
    shares = deal_ring(RNG.integers(0, 1000, 200).astype(np.uint32), RNG)

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        deal(trio, transcript, shares[wire.me], 11)
        prove(trio, transcript)
        return "proved"

    assert outcomes(body) == ["proved"] * 3
    for byte in (0, 10 * 32, 11 * 32 - 1):  # planes of 4 words

        def alter(number: int, peer: int, payload: bytes, at: int = byte) -> bytes | None:
            return flipped(payload, at) if number == 1 else None

        assert accused(outcomes(body, 0, alter), 0)


@pytest.mark.parametrize("cheat", range(3))
def test_scaled_noise(cheat: int) -> None:
    """A party goes on with its components of the noise times 1 + 2^16, and finds fault with nobody: all it
    sends is wrong."""
    x = deal_ring(np.arange(40, dtype=np.uint32), RNG)
    bits = deal_bits(RNG.integers(0, 2**63, (6, 1), dtype=np.uint64), RNG)

    def body(wire: Any) -> Any:
        gates = ProvedGates(Trio(wire))
        noise = gates.weighted_sum(bits[wire.me], [1, 2, 4, 8, 16, -31], 40, np.uint32)
        if wire.me == cheat:
            scaled = tuple(of.map(lambda part: part ^ part << np.uint32(16)) for of in noise.summands)
            noise = SummedNumbers(np.uint32, noise.public, None, scaled)
        add_up(gates, SummedNumbers.of(x[wire.me]) + noise)
        gates.verify()
        return "proved"

    def silent(number: int, peer: int, payload: bytes) -> bytes | None:
        return bytes(1) + payload[1:] if len(payload) == 33 else None

    assert accused(outcomes(body, cheat, silent), cheat)


@pytest.mark.parametrize("number", [1, 4])
def test_bits_that_become_ring_shares_are_proved_before_they_are_opened_under_a_mask(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted = noted_conversions(monkeypatch)
    bits = deal_bits(RNG.integers(0, 2**63, (6, 1), dtype=np.uint64), RNG)

    def body(wire: Any) -> Any:
        gates = ProvedGates(Trio(wire))
        in_ring(gates, gates.weighted_sum(bits[wire.me], [1, 2, 4, 8, 16, -31], 40, np.uint32))
        return "converted"

    assert outcomes(body) == ["converted"] * 3 and sorted(converted) == [0, 1, 2]
    converted.clear()
    assert accused(outcomes(body, 1, lambda n, peer, p: flipped(p) if n == number else None), 1)
    assert not converted


@pytest.mark.parametrize("cheat", range(3))
def test_two_holders_of_a_masked_value_send_the_same(cheat: int) -> None:
    """What P1 and P2 hear of it comes from one party, its hash from another."""
    bits = deal_bits(RNG.integers(0, 2**63, (6, 1), dtype=np.uint64), RNG)

    def body(wire: Any) -> Any:
        gates = ProvedGates(Trio(wire))
        gates.opened_to_two(Summand(*(part[0].view(np.uint32) for part in bits[wire.me].parts)))
        return "opened"

    found = outcomes(body, cheat, lambda n, peer, p: flipped(p) if n == 1 else None)
    honest = [found[me] for me in range(3) if me != cheat]
    assert any("different parts of a masked value" in said for said in honest), found


def test_no_part_of_an_arg_max_can_be_chosen_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party holds back what it opens until it has heard the others, and then opens what makes candidate 0
    win.

    Its right neighbour sees the other holder's hash; the left one does not depend on it, and has the right
    index.
    """
    monkeypatch.setattr(proved_gates, "test_halvings", lambda *_: 2)
    keys = deal_ring(np.array([3, 50, 7, 20], np.uint32), RNG)

    class Rushing(CheatingWire):
        def __init__(self, wire: Any) -> None:
            super().__init__(wire, lambda *_: None)
            self.held: list[tuple[int, Any]] = []

        def send(self, peer: int, payload: Any) -> None:
            if (
                len(payload) == 8 and peer == (self._wire.me + 1) % 3
            ):  # one word of four flags: the component it opens
                self.held.append((peer, payload))
            else:
                self._wire.send(peer, payload)

        def receive(self, peer: int, size: int) -> Any:
            got = self._wire.receive(peer, size)
            while self.held and size == 8:
                to, payload = self.held.pop()
                right = np.frombuffer(payload, np.uint64) ^ np.uint64(0b0011)
                self._wire.send(to, right.tobytes())
            return got

    def body(wire: Any) -> Any:
        if wire.me == 2:
            wire = Rushing(wire)
        gates = ProvedGates(Trio(wire))
        single = add_up(gates, SummedNumbers.of(keys[wire.me]))
        return int(argmax_rows(gates, single.reshape(1, -1))[0])

    found = outcomes(body)
    assert found[1] == 1 and "different parts of a value that was to be opened" in found[0]


@pytest.mark.parametrize("halvings", [0, 1, 2])
def test_an_error_in_a_comparison_is_found_before_the_index_is_opened(
    halvings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all losses are ANDed together, where they are multiplied by unknown words, and both."""
    monkeypatch.setattr(proved_gates, "test_halvings", lambda *_: halvings)
    keys = deal_ring(np.array([3, 50, 7, 20], np.uint32), RNG)
    frames: list[Frame] = []

    def body(wire: Any) -> Any:
        gates = ProvedGates(Trio(wire))
        single = add_up(gates, SummedNumbers.of(keys[wire.me]))
        return int(argmax_rows(gates, single.reshape(1, -1))[0])

    assert outcomes(body, tap=frames.append) == [1, 1, 1]
    openings = [frame for frame in frames if frame.clock == max(f.clock for f in frames)]
    opened = 8 if halvings == 2 else 8 * proved_gates.TEST_BITS
    assert sorted(len(frame.payload) for frame in openings) == sorted([opened] * 3 + [32] * 3)
    products = openings[0].clock - 8  # the last round of them, before a proof of 7 rounds
    for number in range(9, products + 1):  # a message a round; the last ones are those of the test
        frames.clear()

        def alter(n: int, peer: int, payload: bytes, which: int = number) -> bytes | None:
            return flipped(payload) if n == which else None

        assert accused(outcomes(body, 1, alter, tap=frames.append), 1)
        assert max(frame.clock for frame in frames) == openings[0].clock - 1  # nobody opens


def test_what_an_arg_max_opens_of_losers_is_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of a winner always the same: in 40 runs no bit of a loser's 128 is constant and no two losers' are equal, but
    with a chance below 2^-30."""
    monkeypatch.setattr(proved_gates, "test_halvings", lambda *_: 0)
    keys, seen = deal_ring(np.array([3, 50, 7, 20], np.uint32), RNG), list[Any]()
    opened = ProvedGates.opened

    def noted(self: ProvedGates, *given: Any) -> Any:
        found = opened(self, *given)
        if self.trio.me == 0:
            seen.append([to_bits(found, 4)[..., place] for place in range(4)])
        return found

    monkeypatch.setattr(ProvedGates, "opened", noted)

    def body(wire: Any) -> Any:
        gates = ProvedGates(Trio(wire))
        return int(argmax_rows(gates, add_up(gates, SummedNumbers.of(keys[wire.me])).reshape(1, -1))[0])

    for _ in range(40):
        assert outcomes(body) == [1, 1, 1]
    bits = np.array(seen)  # (runs, candidates, bits)
    assert bits[:, 1].all()
    losers = bits[:, [0, 2, 3]]
    assert losers.any(axis=0).all() and not losers.all(axis=0).any()
    assert (losers[:, 0] != losers[:, 1]).any(axis=1).all()


def test_numbers_keep_what_is_inverted() -> None:
    own = np.arange(3, dtype=np.uint32)
    assert Summand(own, own, True).map(lambda part: part[:1]).inverted


def test_nothing_is_opened_after_a_proof_that_failed() -> None:
    """Not even by a party that goes on all the same: its products are no longer in the transcript, but not
    forgotten."""
    x = deal_bits(RNG.integers(0, 2**63, 1, dtype=np.uint64), RNG)

    def body(wire: Any) -> list[str]:
        trio = Trio(wire)
        beside = ProvedGates(trio.fork("noise"))
        gates, said = ProvedGates(trio, beside), []
        gates.and_bits(x[wire.me], x[wire.me])
        rows = BitShare(*(np.zeros((1, 1, 1), np.uint8) for _ in range(2)))
        for attempt in (gates.verify, gates.verify, lambda: gates.zero_rows((1, 1), [(slice(0, 1), rows)])):
            with pytest.raises(ProtocolAborted) as stopped:
                attempt()
            said.append(stopped.value.sentence)
        with pytest.raises(ProtocolAborted, match="were not found to be right"):
            beside.verify()
        return said

    found = outcomes(body, 1, lambda number, peer, payload: flipped(payload) if number == 1 else None)
    for party in (0, 2):
        assert "Party 0 says that party 1 sent it products" in found[party][0]
        assert all("were not found to be right" in said for said in found[party][1:])


class Beside:
    """Protocols that take turns: one multiplies a number of times and verifies, the products of the other are
    proved in between.

    wrong: the party whose first message beside is another one.
    """

    def __init__(self, wire: Any, multiplications: int, wrong: int | None = None) -> None:
        self._x = deal_bits(np.arange(64, dtype=np.uint64), np.random.default_rng(5))[wire.me]
        trio = Trio(wire)
        fork = trio.fork("noise")
        if wire.me == wrong:
            fork.wire = CheatingWire(fork.wire, lambda n, peer, payload: flipped(payload) if n == 1 else None)
        self.beside = ProvedGates(fork)
        self.gates = ProvedGates(trio, self.beside)
        self._multiplications = multiplications
        self.met = False
        """Whether a proof was under way beside when the first wanted to verify."""

    def first(self) -> None:
        for _ in range(self._multiplications):
            self.gates.and_bits(self._x[:1], self._x[:1])
        self.met = bool(self.beside._proofs)
        self.gates.verify()

    def second(self) -> None:
        self.beside.and_bits(self._x, self._x)

    def run(self) -> bool:
        interleave(self.gates, self.first, self.beside, self.second)
        self.gates.verify()
        return self.met


@pytest.mark.parametrize("multiplications", [2, 5, 8])
def test_a_proof_under_way_beside_is_waited_for(
    multiplications: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever in it the first protocol wants to open something. Nobody has deviated, and nobody stops."""
    monkeypatch.setattr(proved_gates, "MAX_UNPROVED", 64 * 64)
    proofs, prove_noted = list[list[int]](), ProvedGates._prove_noted

    def noted(self: ProvedGates, parts: Sequence[ProvedGates]) -> None:
        proofs.append([part._proofs for part in parts])
        prove_noted(self, parts)

    monkeypatch.setattr(ProvedGates, "_prove_noted", noted)
    assert outcomes(lambda wire: Beside(wire, multiplications).run()) == [True] * 3
    assert proofs.count([1]) == 3 and {*map(tuple, proofs)} == {
        (1,),
        (1, 1),
    }  # no two of the same stream at a time


@pytest.mark.parametrize("multiplications", [1, 4])
def test_a_failed_proof_beside_is_not_covered_by_another_one(
    multiplications: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proved_gates, "MAX_UNPROVED", 64 * 64)

    def body(wire: Any) -> list[str]:
        protocols, said = Beside(wire, multiplications, wrong=1), []
        for attempt in (protocols.run, protocols.gates.verify, protocols.beside.verify):
            with pytest.raises(ProtocolAborted) as stopped:
                attempt()
            said.append(stopped.value.sentence)
        return said

    found = outcomes(body)
    for honest in (0, 2):
        assert "Party 0 says that party 1 sent it products" in found[honest][0], found
        assert all("were not found to be right" in said for said in found[honest][1:]), found


@pytest.mark.parametrize("sooner", [20, 1, 0, -1])
@pytest.mark.parametrize("wrong", [None, 1, 3])
def test_noise_beside_is_converted_once_it_is_proved_whoever_proves_it(
    sooner: int, wrong: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products that are noted beside may be proved by the first protocol, before, while, or after the second would: it waits
    for that proof, and opens nothing under a mask if it fails.

    sooner: by so many rounds the first protocol begins to prove, which takes it longer than the second to prove what is left.
    wrong: the number of the message beside, of party 1, that is another one.
    """
    converted = noted_conversions(monkeypatch)

    def slow(trio: Trio, transcript: Transcript, **given: Any) -> None:
        for _ in range(0 if trio.stream else 8):
            trio.turn()
        prove(trio, transcript, **given)

    monkeypatch.setattr(proved_gates, "prove", slow)
    bits = deal_bits(RNG.integers(0, 2**63, (6, 1), dtype=np.uint64), RNG)

    def body(wire: Any, multiplications: int = 0, spoilt: int | None = None) -> Any:
        trio = Trio(wire)
        fork = trio.fork("noise")
        if spoilt is not None and wire.me == 1:
            fork.wire = CheatingWire(fork.wire, lambda n, peer, p: flipped(p) if n == spoilt else None)
        beside = ProvedGates(fork)
        gates = ProvedGates(trio, beside)
        x = bits[wire.me]

        def first() -> None:
            for _ in range(multiplications):
                gates.and_bits(x, x)
            if multiplications:
                gates.verify()

        def second() -> RingShare:
            noise = beside.weighted_sum(x, [1, 2, 4, 8, 16, -31], 40, np.uint32)
            return in_ring(beside, noise)

        return interleave(gates, first, beside, second)[1]

    products = list[int]()
    verify = ProvedGates.verify

    def counted(self: ProvedGates) -> None:
        products.append(self.trio.wire.traffic().rounds)
        verify(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProvedGates, "verify", counted)
        outcomes(body)
    converted.clear()
    found = outcomes(lambda wire: body(wire, max(products) - sooner, wrong))
    if wrong is None:
        assert sorted(converted) == [0, 1, 2]
        values = to_bits(bits[0].own ^ bits[0].next ^ bits[1].next, 40, np.uint32)
        weights = np.array([1, 2, 4, 8, 16, -31]).astype(np.uint32)
        assert (found[0].own + found[0].next + found[1].next == weights @ values).all()
    else:
        assert not converted and accused(found, 1), found
