"""Sums of |d| over candidates, d = M - c additive among the holders, on shared bits of m parties.

    operands   each holder shares the bits of its part of d (k planes), the leader's less c: 1 round
    signs      the t + 1 operands are added modulo 2^k; s, the highest bit, is the sign:  |d| = (d ^ s) + s
    words      a candidate's cells fill words of their own; its words are added carry-save, three at a time, down to two. An s
               takes the place that is free in each carry, plane 0
    lanes      the 64 lanes of a candidate's last words become 128 numbers, with 64 candidates in a word, which are added
               carry-save down to two again
    result     for each candidate two numbers and two bits that are left of the s (`numbers.Addends`); nobody adds them up here

Nothing is opened. Public bounds, asserted by the caller: |d| < 2^(k-1) in every cell, sum |d| < 2^32. Cells
with c = 0 need none of this, for |M| = M.

About t (k - 1) + 2 k ANDs a cell; k + 6 rounds and log_1.5 of a candidate's words and lanes. Threat model:
`mesh`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.shamir.circuits.adders import add_up
from mpc_protocols.backends.shamir.circuits.gates import ShamirGates, holders
from mpc_protocols.backends.shamir.sharing.numbers import Addends, of_planes
from mpc_protocols.engine.arrays import contiguous
from mpc_protocols.engine.bitwise.adders import Adder, prefix_adder
from mpc_protocols.engine.bitwise.bits import Bits, concatenate, on_parts
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, from_bits, to_planes
from mpc_protocols.engine.by_shape import by_shape

SUM_BITS = 32
_LANES = 64


class CandidateWords:
    """Where the compared cells of each candidate stand: words of 64 cells of their own.

    words: of each candidate, int64. size: of all. slots: of each cell, in the candidates' order, its place
    among 64 * size cells.
    """

    def __init__(self, lengths: NDArray[np.int64]) -> None:
        """lengths: compared cells of each candidate; 0 is allowed."""
        self.words = self.count(lengths)
        self.size = int(self.words.sum())
        starts = np.cumsum(self.words) - self.words
        inside = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        halves = np.repeat(2 * self.words, lengths)  # half words of the candidate: the rows of `bitslice`
        columns = 2 * np.repeat(starts, lengths) + inside % np.maximum(halves, 1)
        self.slots = inside // np.maximum(halves, 1) * (2 * self.size) + columns

    @staticmethod
    def count(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """The words of each candidate."""
        return -(-lengths // _LANES)

    def planes(self, cells: Elements, planes: int) -> Words:
        """The low bits of values of the compared cells: (planes, size)."""
        padded = np.zeros_like(cells, shape=_LANES * self.size)
        padded[self.slots] = cells
        return to_planes(padded, planes)


@dataclass(frozen=True)
class Layer:
    """Three numbers of a candidate become two, wherever it has three. planes: bits of each number before.

    triples: places of the first of each three. rest: places that stay. order: of [sums, carries, rest],
    candidate by candidate. heights: numbers of each candidate afterwards.
    """

    planes: int
    triples: NDArray[np.int64]
    rest: NDArray[np.int64]
    order: NDArray[np.int64]
    heights: NDArray[np.int64]

    @property
    def carried(self) -> int:
        """Planes of a carry that are computed, one AND each."""
        return min(self.planes, SUM_BITS - 1)


def layers(heights: NDArray[np.int64], planes: int) -> Iterator[Layer]:
    """The layers that leave two numbers of each candidate, or one or none if it has no more."""
    heights = heights.copy()
    while int(heights.max(initial=0)) > 2:
        full, left = np.divmod(heights, 3)
        starts, candidates = np.cumsum(heights) - heights, np.arange(len(heights))
        of_triples, of_rest = np.repeat(candidates, full), np.repeat(candidates, left)
        triples = starts[of_triples] + 3 * _within(full)
        rest = starts[of_rest] + 3 * full[of_rest] + _within(left)
        order = np.argsort(np.concatenate([of_triples, of_triples, of_rest]), kind="stable")
        heights = 2 * full + left
        layer = Layer(planes, triples, rest, order, heights)
        yield layer
        planes = min(planes + 1, SUM_BITS)


def score_adder(planes: int, words: int, latency_bytes: int) -> Adder:
    """The form in which so many words of cells are added up (`prefix_adder`)."""
    return prefix_adder(planes - 1, words, latency_bytes)


@by_shape(lambda gates, cells, lengths, planes: (CandidateWords.count(lengths).tobytes(), planes))
def l1_sums(
    gates: ShamirGates, cells: Elements, lengths: NDArray[np.int64], planes: int
) -> tuple[Addends, ...]:
    """Sums of |d| over each candidate's cells, of which there are some: addends of shape (candidates,).

    cells: this party's additive part of d, uint32, if it is a holder. planes: k.
    """
    place = CandidateWords(lengths)
    owners = holders(gates.mesh.scheme.threshold)
    own = place.planes(cells, planes) if gates.mesh.me in owners else None
    operands = gates.inputs(owners, own, (planes, place.size))
    difference = add_up(gates, [[operand[p] for operand in operands] for p in range(planes)])
    sign = difference[planes - 1]
    terms = (difference[: planes - 1] ^ sign[np.newaxis]).reshape(planes - 1, -1, 1)
    terms, bits, heights = _reduced(gates, terms, sign.reshape(-1, 1), place.words)
    terms, bits = _by_candidate(terms, bits, heights)
    terms, bits, _ = _reduced(gates, terms, bits, lane_heights(heights))
    candidates = len(lengths)
    mask = (1 << len(terms)) - 1
    numbers = [of_planes(terms[:, n], candidates, np.uint32, mask) for n in range(2)]
    return (*numbers, *(of_planes(bits[n : n + 1], candidates, np.uint32, 1) for n in range(2)))


def lane_heights(heights: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many numbers of one lane there are, from the numbers of each candidate that `layers` left."""
    return np.array([_LANES * int(heights.max(initial=0))])


@by_shape(lambda gates, terms, bits, heights: (terms.shape, bits.shape, heights.tobytes()))
def _reduced(
    gates: ShamirGates, terms: Bits, bits: Bits, heights: NDArray[np.int64]
) -> tuple[Bits, Bits, NDArray[np.int64]]:
    """All `layers` of numbers (planes, slots, words), each with one bit more (slots, words); and the heights
    left."""
    for layer in layers(heights, len(terms)):
        first, second, third = (layer.triples + k for k in range(3))
        a, b, c = terms[:, first], terms[:, second], terms[:, third]
        differs, low = a ^ b, slice(0, layer.carried)
        carry = a[low] ^ gates.and_bits(differs[low], a[low] ^ c[low])
        total, rest = differs ^ c, terms[:, layer.rest]
        if layer.planes < SUM_BITS:
            total, rest = _wider(total), _wider(rest)
        carry = concatenate([bits[third][np.newaxis], carry])
        terms = on_parts(
            lambda *parts, order=layer.order: np.concatenate(parts, 1)[:, order], total, carry, rest
        )
        bits = concatenate([bits[first], bits[second], bits[layer.rest]])[layer.order]
        heights = layer.heights
    return terms, bits, heights


def _wider(terms: Bits) -> Bits:
    """The same numbers with one plane more."""
    return on_parts(lambda part: np.concatenate([part, np.zeros_like(part[:1])]), terms)


def _by_candidate(terms: Bits, bits: Bits, heights: NDArray[np.int64]) -> tuple[Bits, Bits]:
    """Numbers of 64 lanes side by side, one candidate a bit: (planes, 64 * most heights, words of the
    candidates)."""
    most = int(heights.max())
    starts = np.cumsum(heights) - heights
    row = np.arange(most)[:, np.newaxis]
    places = np.where(row < heights, starts + row, int(heights.sum()))  # the last one is 0

    def lanes(part: Words) -> Words:
        padded = np.concatenate([part[..., 0], np.zeros((*part.shape[:-2], 1), np.uint64)], axis=-1)
        chosen = contiguous(padded[..., places])
        spread = np.unpackbits(chosen.view(np.uint8), axis=-1).reshape(*chosen.shape, _LANES)
        side = np.moveaxis(spread, -1, -2).reshape(*part.shape[:-2], most * _LANES, len(heights))
        return from_bits(side)

    return on_parts(lanes, terms), on_parts(lanes, bits)


def _within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, .. within each of some runs of these lengths."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
