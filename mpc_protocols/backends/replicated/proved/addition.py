"""Sums of shared bits: full adders that take three numbers to two, then one carry chain. One AND a full adder
and bit.

    a + b + c = (a ^ b ^ c) + 2 carry,      carry = ((a ^ c) & (b ^ c)) ^ c

The sum of a full adder is local, so it takes in the next two numbers in the same round: of n numbers a round leaves
one sum and (n - 1) / 2 carries. n numbers of k bits cost about k n ANDs and lg n rounds until two are left; these a
carry chain, either plane by plane (K - 1 ANDs and rounds) or by a prefix tree (about K lg K ANDs, 1 + lg K rounds,
`engine.bitwise.adders`). Of a comparison only the highest bit is wanted: about 3 K ANDs. Nothing is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proved.numbers import Summand, SummedNumbers
from mpc_protocols.backends.replicated.proved.slices import planes_of, values_of
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.engine.bitwise.adders import (
    adder_for,
    merge_planes,
    prefix_adder,
    prefix_carries,
    tree_gates,
)
from mpc_protocols.engine.bitwise.bits import concatenate, on_parts
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, words_for

if TYPE_CHECKING:
    from mpc_protocols.backends.replicated.proved.gates import ProvedGates

Counts = NDArray[np.int64]
PROVED_WORD_BYTES: Final = 16
"""What a word of ANDs is worth: 8 bytes in its message, and about as many in its proof, between 2 and 16."""


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
        adders = np.where(counts > 2, (counts - 1) // 2, 0)
        summed = (adders > 0).astype(np.int64)
        length = summed + 2 * adders  # numbers of a segment that are added to one another
        left = counts - length
        segment, rank = np.repeat(np.arange(len(counts)), adders), _ranks(adders)
        start = np.cumsum(counts) - counts
        end = start + length
        b = start[segment] + 1 + 2 * rank
        rest = np.repeat(end, left) + _ranks(left)
        counts = summed + adders + left
        start = np.cumsum(counts) - counts
        totals, carries = start[adders > 0], start[segment] + 1 + rank
        kept = np.repeat(start + summed + adders, left) + _ranks(left)

        before = on_parts(_before, planes)
        first = before[:, b] ^ before[:, (end - length)[segment]]
        total = before[:, end[adders > 0]] ^ before[:, (end - length)[adders > 0]]
        third = planes[:, b + 1]
        bits = min(len(planes) + 1, width)
        low = slice(bits - 1)
        carry = gates.and_bits(first[low] ^ third[low], planes[low, b] ^ third[low]) ^ third[low]
        added = None
        if ones is not None:
            added = ones[first_one[segment] + used[segment] + rank]
            used = used + adders
        parts = []
        for number in range(2):
            out = np.zeros((bits, int(counts.sum()), planes.shape[2]), np.uint64)
            out[: len(planes), totals] = total.parts[number]
            out[1:, carries] = carry.parts[number]
            out[: len(planes), kept] = planes.parts[number][:, rest]
            if added is not None:
                out[0, carries] = added.parts[number]
            parts.append(out)
        planes = BitShare(*parts)
    return planes, counts, used


def add_up(gates: ProvedGates, numbers: SummedNumbers) -> SummedNumbers:
    """The same numbers as ONE XOR-shared integer each, of shape (n,)."""
    planes = _two_at_most(gates, numbers)
    total = planes[:, 0] if planes.shape[1] == 1 else add_two(gates, planes[:, 0], planes[:, 1])
    return _numbers(numbers, total[:, np.newaxis])


def carry_saved(gates: ProvedGates, numbers: SummedNumbers) -> SummedNumbers:
    """The same numbers as one or TWO XOR-shared integers each, of shape (n,): without a carry chain."""
    return _numbers(numbers, _two_at_most(gates, numbers))


def _two_at_most(gates: ProvedGates, numbers: SummedNumbers) -> BitShare:
    """Planes of one or two integers each: (K, 1 or 2, words)."""
    summands = _all_summands(gates, numbers)
    width = 8 * np.dtype(numbers.ring).itemsize
    return compress(gates, stacked(summands, width), np.array([len(summands)]), width)[0]


def stacked(summands: Sequence[Summand], width: int) -> BitShare:
    """Planes of integers next to each other: (width, summands, words)."""
    sides = zip(*((of.own, of.next) for of in summands), strict=True)
    return BitShare(*(planes_of(np.stack(parts), width) for parts in sides))


def _numbers(like: SummedNumbers, planes: BitShare) -> SummedNumbers:
    """Of as many integers each as `planes` has."""
    sides = (values_of(part, len(like), like.ring) for part in planes.parts)
    summands = tuple(Summand(*parts) for parts in zip(*sides, strict=True))
    return SummedNumbers(like.ring, np.zeros_like(like.public), None, summands)


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
    mixed = a ^ b
    if len(a) == 1:
        return mixed
    return concatenate([mixed[:1], mixed[1:] ^ carries_of(gates, a[:-1], mixed[:-1])])


def carries_of(gates: ProvedGates, a: BitShare, differs: BitShare) -> BitShare:
    """The carries out of all planes of a + b, differs = a ^ b: (planes, words), in the cheaper form."""
    planes, words = a.shape
    adder = prefix_adder(planes, words, gates.latency_bytes, PROVED_WORD_BYTES)
    return prefix_carries(gates, a, differs, adder)


def top_bit(gates: ProvedGates, a: BitShare, b: BitShare, carry_in: bool) -> BitShare:
    """The highest bit of a + b, and of 1 if carry_in: (planes, words) to (words,), in the cheaper form."""
    low, differs = slice(len(a) - 1), a ^ b
    worth = gates.latency_bytes * 8 // PROVED_WORD_BYTES  # `adder_for` counts 8 bytes a word
    if adder_for(len(a) - 1, a.shape[1], worth) == "ripple":
        carry = gates.and_bits(a[:1], b[:1])
        if carry_in:
            carry = carry ^ differs[:1]
        for j in range(1, len(a) - 1):
            carry = a[j : j + 1] ^ gates.and_bits(differs[j : j + 1], a[j : j + 1] ^ carry)
        return (differs[len(a) - 1 :] ^ carry)[0]
    generate = gates.and_bits(a[low], b[low])
    if carry_in:  # a + b + 1 carries out of plane 0 where a OR b
        generate = concatenate([generate[:1] ^ differs[:1], generate[1:]])
    return differs[len(a) - 1] ^ merge_planes(gates, generate, differs[low])


def _before(numbers: Words) -> Words:
    """The XOR of all numbers before each, and of all: (bits, n, words) to (bits, n + 1, words)."""
    bits, count, words = numbers.shape
    out = np.zeros_like(numbers, shape=(bits, count + 1, words))
    np.bitwise_xor.accumulate(numbers, axis=1, out=out[:, 1:])
    return out


def compared_in_parts(numbers: int, pairs: int, planes: int, latency_bytes: int) -> bool:
    """Whether so many comparisons of so many numbers of two parts each add up all four parts (2 rounds, 2 ANDs a
    plane), and not the parts of each number before (a carry chain): from public sizes."""
    words, carries = words_for(numbers), planes - 1
    tree = prefix_adder(carries, words, latency_bytes, PROVED_WORD_BYTES) == "tree"
    chain = tree_gates(carries) if tree else [1] * carries
    spared = (len(chain) - 2) * latency_bytes + PROVED_WORD_BYTES * words * sum(chain)
    return spared > PROVED_WORD_BYTES * words_for(pairs) * 2 * planes


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
