"""Extension: the correlation, what is random, what travels, forks, and messages of another size."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.transfers import ot_extension
from mpc_protocols.backends.pair.transfers.bit_matrix import cells_of, planes_of, transpose
from mpc_protocols.backends.pair.transfers.ggm import Trees
from mpc_protocols.backends.pair.transfers.kernel.layout import LEVELS
from mpc_protocols.backends.pair.transfers.ot_extension import (
    base_count,
    message_bytes,
    pieces,
    start,
)
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork, run_parties
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.pair.pair_run import Words, extended
from tests.trio import Trio
from tests.worlds.words import random_words

Made = tuple[Words, Words, Words, Words]
"""Choices and strings of the direction in which a party chooses; both strings of the other."""


def take(wire: Wire, words: int, levels: int = LEVELS) -> Made:
    _, choosing, offering = extended(wire, levels)
    return both(choosing, offering, words)


def both(choosing: ot_extension.Choosing, offering: ot_extension.Offering, words: int) -> Made:
    mine = [(choices, got) for _, choices, got in choosing.extend(words)]
    others = [(first, second) for _, first, second in offering.extend(words)]
    return (
        np.concatenate([choices for choices, _ in mine]),
        np.concatenate([got for _, got in mine], axis=1),
        np.concatenate([first for first, _ in others], axis=1),
        np.concatenate([second for _, second in others], axis=1),
    )


def bits_of(choices: Words) -> Words:
    return (choices >> np.arange(64, dtype=np.uint64)[:, np.newaxis]) & np.uint64(1)


def check(parties: list[Made]) -> None:
    for me in range(2):
        choices, got = parties[me][:2]
        first, second = parties[1 - me][2:]
        chosen = bits_of(choices)[..., np.newaxis] == 1
        np.testing.assert_array_equal(got, np.where(chosen, second, first))
        assert not (got == np.where(chosen, first, second)).all(axis=2).any()


@pytest.mark.parametrize(
    ("levels", "words"), [*product((1, 2, 4, 5), (1, 3, 65)), (3, 2), (6, 3), (7, 2), (8, 2), (5, 5000)]
)
def test_the_chosen_string_is_the_one_of_the_choice(levels: int, words: int) -> None:
    network = MemoryNetwork(2, 2)
    check(network.run([lambda wire: take(wire, words, levels)] * 2))
    traffic = network.traffic(0)
    assert traffic.rounds == 2  # the trees, the corrections
    assert traffic.bytes_sent == 32 * base_count(levels) + message_bytes(words, levels)
    assert traffic.messages_sent == 1 + len(pieces(words))


@pytest.mark.parametrize("levels", [1, 2, 4, 5])
def test_a_product_of_random_bits_is_one_in_a_quarter(levels: int) -> None:
    """20,480 products; the fraction of ones is off by more than 0.02 with probability below 10^-10."""
    parties = run_parties([lambda wire: take(wire, 320, levels)] * 2, 2)
    choices = bits_of(parties[0][0])
    difference = (parties[1][2] ^ parties[1][3])[:, :, 0] & np.uint64(1)
    shares = (parties[0][1] ^ parties[1][2])[:, :, 0] & np.uint64(1)
    np.testing.assert_array_equal(shares, choices & difference)
    assert abs(float(shares.mean()) - 0.25) < 0.02


def test_what_the_offering_party_sees_is_uniform() -> None:
    """Bits of the corrections: 2^20 of them, so the mean is off by more than 0.0035 with probability below
    10^-12."""
    frames: list[bytes] = []
    network = MemoryNetwork(2, 2, tap=lambda frame: frames.append(frame.payload))
    network.run([lambda wire: take(wire, 530)] * 2)
    bits = np.unpackbits(np.frombuffer(b"".join(frames), np.uint8))
    assert len(bits) > 1 << 20
    assert abs(float(bits.mean()) - 0.5) < 0.0035


def test_no_two_rows_or_runs_are_alike() -> None:
    seen = set()
    session = bytes(32)
    for _ in range(2):
        for made in run_parties([lambda wire: take(wire, 4)] * 2, 2, session_id=session):
            seen |= {row.tobytes() for row in made[2].reshape(-1, 2)}
    assert len(seen) == 2 * 2 * 4 * 64


def test_a_fork_has_streams_of_its_own() -> None:
    def party(wire: Wire) -> tuple[Made, Made]:
        link, choosing, offering = extended(wire)
        other = link.fork("beside")
        return both(choosing, offering, 2), both(choosing.fork(other), offering.fork(other), 2)

    parties = run_parties([party] * 2, 2)
    for which in range(2):
        check([made[which] for made in parties])
    assert not (parties[0][0][0] == parties[0][1][0]).any()


def job(wire: Wire) -> list[object]:
    choosing, offering = start(Link(wire))
    return list(both(choosing, offering, 3))


def test_the_whole_way_between_two_processes(two: Trio) -> None:
    check([(a, b, c, d) for a, b, c, d in two.run(job)])


@pytest.mark.parametrize("change", [-1, 1, -8])
def test_corrections_of_another_size_abort(change: int) -> None:
    def liar(wire: Wire) -> None:
        extended(wire)
        wire.send(1, bytes(message_bytes(2) + change))

    def honest(wire: Wire) -> None:
        _, _, offering = extended(wire)
        list(offering.extend(2))

    with pytest.raises(ProtocolAborted, match="bytes"):
        run_parties([liar, honest], 2)


def test_tree_sums_of_another_size_abort() -> None:
    def liar(wire: Wire) -> None:
        wire.send(1, bytes(32 * base_count() - 1))

    with pytest.raises(ProtocolAborted, match=f"{32 * base_count() - 1} bytes"):
        run_parties([liar, extended], 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("leaves", [2, 3, 5, 8, 13, 16])
def test_a_punctured_tree_lacks_its_path_and_nothing_else(leaves: int) -> None:
    trees = Trees(bytes(range(32)), leaves)
    seeds = random_words(leaves * 3, 2)
    paths = np.repeat(np.arange(leaves), 3)
    grown, sums = trees.grow(seeds)
    assert grown.shape == (leaves, len(seeds), 2)
    bits = (paths >> np.arange(trees.levels)[::-1, np.newaxis]) & 1
    away = np.take_along_axis(sums, (1 ^ bits)[:, np.newaxis, :, np.newaxis], axis=1)[:, 0]
    known = trees.puncture(paths, away)
    place = np.arange(len(paths))
    assert (known[paths, place] == 0).all()
    known[paths, place] = grown[paths, place]
    np.testing.assert_array_equal(known, grown)


def test_the_leaf_of_the_path_does_not_follow_from_what_its_holder_is_given() -> None:
    """The sums away from the path do not depend on the leaf: two owners whose trees differ only below it send
    the same."""
    trees = Trees(bytes(range(32)), 2)
    first, second = random_words(1, 2), random_words(1, 2)
    sums = [trees.grow(seed)[1] for seed in (first, second)]
    known = trees.puncture(np.array([0]), sums[0][:, 1])
    np.testing.assert_array_equal(known[1], trees.grow(first)[0][1])
    assert not (known[0] == trees.grow(first)[0][0]).any()


@pytest.mark.parametrize("words", [1, 5, 1500])
def test_transposition_is_that_of_every_column(words: int) -> None:
    matrix = random_words(64, words)
    turned = matrix.copy()
    transpose(turned)
    for j, t in ((0, 0), (0, 63), (17, 40), (63, 1)):
        np.testing.assert_array_equal(
            (turned[t] >> np.uint64(j)) & np.uint64(1), (matrix[j] >> np.uint64(t)) & np.uint64(1)
        )
    transpose(turned)
    np.testing.assert_array_equal(turned, matrix)


@pytest.mark.parametrize("planes", [1, 64, 65, 128])
def test_planes_hold_the_bits_of_the_rows(planes: int) -> None:
    rows = random_words(64, 3, 2)
    found = planes_of(rows, planes)
    assert found.shape == (planes, 3)
    for plane in (0, planes - 1):
        half, bit = divmod(plane, 64)
        np.testing.assert_array_equal(
            bits_of(found[plane]), (rows[:, :, half] >> np.uint64(bit)) & np.uint64(1)
        )


def test_cells_are_numbered_as_in_bit_planes() -> None:
    from mpc_protocols.engine.bitwise.bitslice import to_bits

    words = random_words(3)
    np.testing.assert_array_equal(cells_of(bits_of(words), 130), to_bits(words, 130))
