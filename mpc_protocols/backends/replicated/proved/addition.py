"""Sums of shared bits: full adders that take three numbers to two, then one carry chain. One AND a full adder
and bit.

    a + b + c = (a ^ b ^ c) + 2 carry,      carry = ((a ^ c) & (b ^ c)) ^ c

n numbers of k bits that are added up cost about k n ANDs and log(n) / log(1.5) rounds; the last two numbers a
carry chain, either plane by plane (K - 1 ANDs and rounds) or by doubling (about 2 K lg K ANDs, 1 + lg K
rounds). Nothing is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proved.numbers import Summand, SummedNumbers
from mpc_protocols.backends.replicated.proved.slices import planes_of, values_of
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.engine.bitwise.bits import concatenate
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt

if TYPE_CHECKING:
    from mpc_protocols.backends.replicated.proved.gates import ProvedGates

Counts = NDArray[np.int64]


def compress(
    gates: ProvedGates, planes: BitShare, counts: Counts, width: int, ones: BitShare | None = None
) -> tuple[BitShare, Counts, Counts]:
    """Add up until at most two numbers of each segment are left.

    planes: (bits, numbers, words), the numbers of a segment next to each other. counts: of each segment.
    width: sums are modulo 2^width. ones: (numbers, words), a bit for each number that is added too, where a
    carry leaves its lowest place empty.

    Returns the planes, the numbers left of each segment, and how many of its ones were added.
    """
    used = np.zeros_like(counts)
    first_one = np.cumsum(counts) - counts
    while counts.max(initial=0) > 2:
        triples = counts // 3
        left = counts - 3 * triples
        segment = np.repeat(np.arange(len(counts)), triples)
        rank = _ranks(triples)
        start = np.cumsum(counts) - counts
        a = start[segment] + rank
        b = a + triples[segment]
        c = b + triples[segment]
        rest = np.repeat(start + 3 * triples, left) + _ranks(left)
        counts = 2 * triples + left
        start = np.cumsum(counts) - counts
        sums = start[segment] + rank
        carries = sums + triples[segment]
        kept = np.repeat(start + 2 * triples, left) + _ranks(left)

        third = planes[:, c]
        first, second = planes[:, a] ^ third, planes[:, b] ^ third
        bits = min(len(planes) + 1, width)
        carry = gates.and_bits(first[: bits - 1], second[: bits - 1]) ^ third[: bits - 1]
        total = first ^ planes[:, b]
        added = None
        if ones is not None:
            added = ones[first_one[segment] + used[segment] + rank]
            used = used + triples
        parts = []
        for number in range(2):
            out = np.zeros((bits, int(counts.sum()), planes.shape[2]), np.uint64)
            out[: len(planes), sums] = total.parts[number]
            out[1:, carries] = carry.parts[number]
            out[: len(planes), kept] = planes.parts[number][:, rest]
            if added is not None:
                out[0, carries] = added.parts[number]
            parts.append(out)
        planes = BitShare(*parts)
    return planes, counts, used


def add_up(gates: ProvedGates, numbers: SummedNumbers) -> SummedNumbers:
    """The same numbers as ONE XOR-shared integer each, of shape (n,)."""
    summands = _all_summands(gates, numbers)
    if len(summands) == 1:
        return SummedNumbers(numbers.ring, np.zeros_like(numbers.public), None, tuple(summands))
    width = 8 * np.dtype(numbers.ring).itemsize
    planes = BitShare(
        *(
            planes_of(np.stack(parts), width)
            for parts in zip(*((of.own, of.next) for of in summands), strict=True)
        )
    )
    planes, _, _ = compress(gates, planes, np.array([len(summands)]), width)
    total = add_two(gates, planes[:, 0], planes[:, 1])
    own, following = (values_of(part[:, np.newaxis], len(numbers), numbers.ring)[0] for part in total.parts)
    return SummedNumbers(numbers.ring, np.zeros_like(numbers.public), None, (Summand(own, following),))


def _all_summands(gates: ProvedGates, numbers: SummedNumbers) -> list[Summand]:
    """Ring shares are three integers, each known to two parties; a public one is known to all."""
    nothing = np.zeros_like(numbers.public)
    trio = gates.trio
    public, share = numbers.public, numbers.share
    if numbers.share is not None:
        share = numbers.share
        extra = [public if holder % 3 == 2 else nothing for holder in (trio.me, trio.me + 1)]
        own, following = share.own + extra[0], share.next + extra[1]
        known = [
            Summand(own if trio.me == of else nothing, following if trio.right == of else nothing)
            for of in range(3)
        ]
    elif public.any():
        known = [Summand(public if trio.me == 0 else nothing, public if trio.right == 0 else nothing)]
    else:
        known = []
    inverse = np.invert(nothing)
    for of in numbers.summands:
        if of.inverted:
            of = Summand(
                of.own ^ inverse if trio.me == 0 else of.own,
                of.next ^ inverse if trio.right == 0 else of.next,
            )
        known.append(of)
    return known


def add_two(gates: ProvedGates, a: BitShare, b: BitShare) -> BitShare:
    """a + b modulo 2^planes: (planes, words) each. Few rounds or few bytes, whichever is cheaper."""
    planes, words = a.shape
    doublings = [1 << j for j in range((planes - 2).bit_length())] if planes > 2 else []
    spared = (planes - 2 - len(doublings)) * gates.latency_bytes
    gates_more = sum(2 * (planes - 1 - d) for d in doublings)
    mixed = a ^ b
    if spared > gates_more * 8 * words:
        generate, propagate = gates.and_bits(a[: planes - 1], b[: planes - 1]), mixed[: planes - 1]
        for d in doublings:
            carried, both = gates.and_pairs([(propagate[d:], generate[:-d]), (propagate[d:], propagate[:-d])])
            generate = concatenate([generate[:d], generate[d:] ^ carried])
            propagate = concatenate([propagate[:d], both])
        return concatenate([mixed[:1], mixed[1:] ^ generate])
    found = [mixed[:1]]
    carry = gates.and_bits(a[:1], b[:1])
    for j in range(1, planes):
        found.append(mixed[j : j + 1] ^ carry)
        if j < planes - 1:
            carry = a[j : j + 1] ^ gates.and_bits(mixed[j : j + 1], a[j : j + 1] ^ carry)
    return concatenate(found)


def _ranks(lengths: Counts) -> Counts:
    """0, 1, .. in each run of these lengths."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def add_lanes(gates: ProvedGates, planes: BitShare, counts: Counts, width: int, ring: UInt) -> list[Summand]:
    """The 64 lanes of each number of up to two or more a segment, added up to two integers for each segment:
    (segments,).

    planes: (bits, numbers, 1), counts: as for `compress`.
    """
    segments, most = len(counts), int(counts.max(initial=0))
    column = np.repeat(np.arange(segments), counts)
    addends = []
    for part in planes.parts:
        lanes = values_of(
            np.ascontiguousarray(part.swapaxes(1, 2).reshape(len(part), 1, -1)), 64 * part.shape[1], ring
        )
        by_number = lanes.reshape(32, part.shape[1], 2).transpose(1, 0, 2).reshape(part.shape[1], 64)
        matrix: Elements = np.zeros((most, 64, segments), ring)
        matrix[_ranks(counts), :, column] = by_number
        addends.append(planes_of(matrix.reshape(-1, segments), width))
    together, _, _ = compress(gates, BitShare(*addends), np.array([64 * most]), width)
    own, following = (values_of(part, segments, ring) for part in together.parts)
    return [Summand(own[j], following[j]) for j in range(len(own))]
