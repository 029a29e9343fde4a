"""What each of the three sees: the dealer nothing but what is public, the two others uniform words, whatever
the data are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.backends.additive.oracle import ROLES
from mpc_protocols.engine.noise import sampling
from mpc_protocols.engine.tally import AGREEMENT
from mpc_protocols.functionality import LocalCounts
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.mechanisms import gaussian
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.additive.dealt_run import DEALER, run_three
from tests.worlds.tables import PARTS, counter, facts
from tests.worlds.words import random_words

pytestmark = pytest.mark.usefixtures("crypten")

CHI_SQUARE = 415
"""Of 256 bins, 255 degrees of freedom: uniform bytes exceed it with probability 1e-9 (Wilson and Hilferty)."""


def released(network: MemoryNetwork, data: list[LocalCounts]) -> tuple[list[Any], list[Frame]]:
    """A selection, counts and distances with noise on these data, and all messages. One selection without a
    choice."""
    frames: list[Frame] = []
    network.tap = frames.append
    of = facts(session=network.session_id)

    def party(wire: Wire) -> Any:
        if wire.me != of.leader:
            return ROLES.follow(wire, of, data[wire.me], Recorder())
        with ROLES.lead(wire, of, data[wire.me], Recorder()) as oracle:
            handles = oracle.prepare([("a", "b"), ("b", "c")])
            answers = [np.full(12, 40.0), np.full(20, 3.0)]
            weights, penalties = [Fraction(1)] * 2, [Fraction(0)] * 2
            first = oracle.select(handles, answers, weights, penalties, Fraction(1, 100))
            second = oracle.measure(handles, Fraction(10_000))
            return [first, second, oracle.distances(handles, answers, Fraction(10_000))]

    return network.run([party] * 3)[1], frames


def test_what_is_dealt_does_not_depend_on_data() -> None:
    """The same keys twice, other tables at both holders of shares: the dealer's correlations are the same
    bytes."""
    networks = [MemoryNetwork(3, 3, session_id=bytes([9]) * 32) for _ in range(2)]
    networks[1].share_keys(networks[0])
    tables = [[PARTS[0], PARTS[1], PARTS[2]], [PARTS[1][::2], PARTS[0][1:], PARTS[2]]]
    dealt = []
    for network, parts in zip(networks, tables, strict=True):
        _, frames = released(network, [counter(part) for part in parts])
        mine = [frame.payload for frame in frames if (frame.sender, frame.receiver) == (DEALER, 0)]
        dealt.append([payload for payload in mine if len(payload) not in (1, 16, AGREEMENT)])
    # but for its own counts, which it shares under a fresh seed, and for hashes of what was released
    assert len(dealt[0]) > 50 and len(dealt[0]) == len(dealt[1])
    assert sum(a != b for a, b in zip(*dealt, strict=True)) <= 1


def test_the_dealer_receives_nothing_but_what_all_hear() -> None:
    """Steps, answers, hashes, pace; and each release after it was opened: no bit of noise, no opening, no
    test word."""
    network = MemoryNetwork(3, 3, session_id=bytes([9]) * 32)
    (picked, counts, distances), frames = released(network, [counter(part) for part in PARTS[:3]])
    heard = [frame for frame in frames if frame.receiver == DEALER]
    assert not [frame for frame in heard if frame.stream.endswith("noise")]
    told = [frame for frame in heard if frame.sender == 0 and len(frame.payload) not in (1, AGREEMENT)]
    contents = [np.frombuffer(frame.payload, np.uint32).view(np.int32).tolist() for frame in told]
    assert contents[1:] == [np.concatenate(counts).tolist(), distances.tolist()]
    [winner] = picked
    lost = 3 & ~(1 << winner)
    assert np.frombuffer(told[0].payload, np.uint64).tolist() == [_lane(lost)]
    opened = {frame.clock for frame in frames if (frame.sender, frame.receiver) == (1, 0)}
    assert all(frame.clock - 1 in opened for frame in told)
    of_leader = [
        frame.payload for frame in heard if frame.sender == 1 and len(frame.payload) not in (1, 4, AGREEMENT)
    ]
    others = [frame.payload for frame in frames if (frame.sender, frame.receiver) == (1, 0)]
    assert of_leader and all(payload in others for payload in of_leader)


def _lane(lost: int) -> int:
    """The word in which those of candidates 0 and 1 are marked that lost: lowest bits of its halves
    (`bitslice`)."""
    return (lost & 1) | (lost >> 1) << 32


def test_what_travels_between_the_two_is_uniform() -> None:
    """Zeros throughout, so that nothing but masks makes a byte: AND, bits to integers, products, lookups,
    tests for zero."""
    sampler = gaussian.sampler(Fraction(100))

    def body(gates: AdditiveGates) -> NDArray[Any]:
        x = np.zeros(20_000, np.uint32)
        gates.absolute(x, 8)
        return sampling.gaussian_noise(gates, gates.release_bits(b"release"), sampler, 4000, np.uint32)  # type: ignore[type-var]

    ran = run_three(body)
    for way in ((0, 1), (1, 0), (DEALER, 0)):
        sent = b"".join(f.payload for f in ran.frames if (f.sender, f.receiver) == way)
        bins = np.bincount(np.frombuffer(sent, np.uint8), minlength=256)
        assert len(sent) > 100_000 and ((bins - len(sent) / 256) ** 2).sum() * 256 / len(sent) < CHI_SQUARE, (
            way
        )
    assert not [frame for frame in ran.frames if frame.receiver == DEALER]


def test_no_mask_is_used_twice() -> None:
    """The same operation on the same shares, twice in a stream, in two sessions of the same keys, and beside:
    other bytes."""
    networks = [MemoryNetwork(3, 3) for _ in range(2)]
    networks[1].share_keys(networks[0])
    x = random_words(64)

    def body(gates: AdditiveGates) -> None:
        for _ in range(2):
            gates.operations.and_words(x, x)

    seen = [f.payload for network in networks for f in run_three(body, network=network).frames]
    assert len(seen) == len(set(seen)) == 12
    blocks = [payload[at : at + 8] for payload in seen for at in range(0, len(payload), 8)]
    assert len(blocks) == len(set(blocks))


def test_the_words_of_a_test_for_zero_are_nobodys() -> None:
    """Their shares make words that neither a stream of the two nor the dealer's masks are; no message is sent
    for them."""
    ran = run_three(lambda gates: gates.operations.uniform((4, 3)))
    (first, common), (second, same) = (factor.parts for factor in ran.results[:DEALER])
    (dealers,) = ran.results[DEALER].parts
    words = first ^ second
    np.testing.assert_array_equal(common, same)
    np.testing.assert_array_equal(words, common ^ dealers)
    assert not any((words == known).any() for known in (common, dealers, first, second)) and not ran.frames
