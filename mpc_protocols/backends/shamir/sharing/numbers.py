"""Shared integers of m parties, as the shared code of the engine handles them: sums that nobody has added up
yet.

An addition of shared bits costs ANDs, so a number is kept as its addends until a sum is needed (`gates`):

    held      additive modulo 2^32 among the holders, parties 0..t; at all others 0. Counts, and sums of counts
    terms     integers whose BITS are shared (`bit_gates`): bit j of part p of an element is plane p of bit j, so that they
              are indexed, reshaped and moved about like integers. `masks`: which bits of a term may be 1, public
    public    integers that all know

The value is the sum of all of them modulo the ring. Nothing here travels; masks and which addends there are
follow from public sizes, alike at all parties.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.arrays import contiguous
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, from_planes, to_planes
from mpc_protocols.engine.bitwise.packing import pack, unpack

Parts = tuple[Elements, ...]
_HALF = 32


@dataclass(frozen=True, repr=False, eq=False)
class Addends:
    """A vector or matrix of numbers modulo the ring of its elements. held, public: None where there are none."""

    ring: UInt
    shape: tuple[int, ...]
    terms: tuple[Parts, ...] = ()
    masks: tuple[int, ...] = ()
    held: Elements | None = None
    public: Elements | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Addends:
        return self._map_parts(lambda array: array[index])

    def __add__(self, other: Addends) -> Addends:
        shape = np.broadcast_shapes(self.shape, other.shape)
        mine, theirs = self._spread(shape), other._spread(shape)
        return Addends(
            self.ring,
            shape,
            mine.terms + theirs.terms,
            mine.masks + theirs.masks,
            _total(mine.held, theirs.held),
            _total(mine.public, theirs.public),
        )

    def reshape(self, *shape: int) -> Addends:
        """The same numbers in another shape."""
        return self._map_parts(lambda array: array.reshape(shape))

    def scaled(self, factors: Sequence[int] | int) -> Addends:
        """Times public integers of at least 0, one for all or one for each of a vector. Local: shifted terms."""
        bits = 8 * np.dtype(self.ring).itemsize
        modulus = 1 << bits
        each: Elements = np.array(
            [factor % modulus for factor in ([factors] if isinstance(factors, int) else factors)], self.ring
        )
        shifts = shifts_of(each)
        terms = []
        for parts in self.terms:
            for shift in shifts:
                chosen = np.negative(each >> self.ring(shift) & self.ring(1))
                terms.append(tuple((part << self.ring(shift)) & chosen for part in parts))
        return Addends(
            self.ring,
            self.shape,
            tuple(terms),
            scaled_masks(self.masks, shifts, bits),
            None if self.held is None else self.held * each,
            None if self.public is None else self.public * each,
        )

    def plus(self, public: NDArray[Any]) -> Addends:
        """Plus public integers, modulo the ring."""
        added: Elements = public.astype(self.ring)
        return self + Addends(self.ring, added.shape, public=added)

    def planes(self, number: int) -> Bits:
        """The shared bits of a term of a vector, lowest first: (bits of the ring, words)."""
        bits = 8 * np.dtype(self.ring).itemsize
        return Bits(*(to_planes(part, bits) for part in self.terms[number]))

    def packed(self) -> bytes:
        """For this party's own disk (`engine.packing`); `unpacked` reads it."""
        there = [of is not None for of in (self.held, self.public)]
        form = np.array([len(self.terms), *there, *self.masks], np.uint64)
        parts = [part for term in self.terms for part in term]
        like = np.broadcast_to(self.ring(0), self.shape)
        return pack([form, like, *(of for of in (self.held, self.public) if of is not None), *parts])

    def _map_parts(self, function: Callable[[Any], Any]) -> Addends:
        terms = tuple(tuple(map(function, parts)) for parts in self.terms)
        held, public = (None if of is None else function(of) for of in (self.held, self.public))
        shape = function(np.broadcast_to(np.uint8(0), self.shape)).shape
        return Addends(self.ring, shape, terms, self.masks, held, public)

    def _spread(self, shape: tuple[int, ...]) -> Addends:
        return self if self.shape == shape else self._map_parts(lambda array: np.broadcast_to(array, shape))


def unpacked(packed: bytes) -> Addends:
    """The inverse of `Addends.packed`. Raises `UsageError`."""
    form, like, *arrays = unpack(packed)
    count, held, public, *masks = form.tolist()
    sums = [arrays.pop(0) if there else None for there in (held, public)]
    parts = len(arrays) // count if count else 0
    terms = tuple(tuple(arrays[at : at + parts]) for at in range(0, count * parts, parts or 1))
    return Addends(like.dtype.type, like.shape, terms, tuple(masks), *sums)


def of_planes(planes: Bits, cells: int, ring: UInt, mask: int) -> Addends:
    """One term from shared bits (planes, words); its bits beyond the planes are 0."""
    term = tuple(_elements(part, cells, ring) for part in planes.parts)
    return Addends(ring, (cells,), (term,), (mask,))


def concatenate(numbers: Sequence[Addends]) -> Addends:
    """Vectors one after the other; one that has fewer terms has zeros there."""
    if len(numbers) == 1:
        return numbers[0]
    ring, masks = numbers[0].ring, joint_masks([of.masks for of in numbers])
    parts = max((len(term) for of in numbers for term in of.terms), default=0)
    terms = []
    for number in range(len(masks)):
        pieces = [
            of.terms[number] if number < len(of.terms) else (np.zeros(of.shape, ring),) * parts
            for of in numbers
        ]
        terms.append(tuple(map(np.concatenate, zip(*pieces, strict=True))))
    held, public = (
        None
        if all(column is None for column in columns)
        else np.concatenate(
            [
                np.zeros(of.shape, ring) if column is None else column
                for of, column in zip(numbers, columns, strict=True)
            ]
        )
        for columns in ([of.held for of in numbers], [of.public for of in numbers])
    )
    return Addends(ring, (sum(map(len, numbers)),), tuple(terms), masks, held, public)


def shifts_of(factors: NDArray[Any]) -> list[int]:
    """The bits that occur in any of some factors: a number times them is the sum of as many shifted terms."""
    together = int(np.bitwise_or.reduce(factors)) if len(factors) else 0
    return [j for j in range(together.bit_length()) if together >> j & 1]


def scaled_masks(masks: Sequence[int], shifts: Sequence[int], bits: int) -> tuple[int, ...]:
    """Masks of `Addends.scaled`."""
    return tuple((mask << shift) & ((1 << bits) - 1) for mask in masks for shift in shifts)


def joint_masks(of: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Masks of `concatenate`."""
    joint = [0] * max(map(len, of))
    for masks in of:
        for number, mask in enumerate(masks):
            joint[number] |= mask
    return tuple(joint)


def weighted_layers(weights: Sequence[int], bits: int) -> list[list[int | None]]:
    """sum_j weights[j] * bit_j modulo 2^bits as few numbers: for each, which bit j stands at each position
    (None: none).

    A bit stands at every position where its weight, modulo 2^bits, has a 1; those that meet at a position go
    into different numbers.
    """
    columns: list[list[int]] = [[] for _ in range(bits)]
    for j, weight in enumerate(weights):
        for position in range(bits):
            if weight % (1 << bits) >> position & 1:
                columns[position].append(j)
    return [
        [column[layer] if layer < len(column) else None for column in columns]
        for layer in range(max(map(len, columns), default=0))
    ]


def layer_mask(layer: Sequence[int | None]) -> int:
    """Which bits of a number of `weighted_layers` may be 1."""
    return sum(1 << position for position, j in enumerate(layer) if j is not None)


def _elements(planes: Words, cells: int, ring: UInt) -> Elements:
    low: Elements = from_planes(contiguous(planes[:_HALF]), cells)
    if ring is np.uint32:
        return low
    wide: Elements = low.astype(np.uint64)
    if len(planes) > _HALF:
        wide |= from_planes(contiguous(planes[_HALF:]), cells).astype(np.uint64) << np.uint64(_HALF)
    return wide


def _total(mine: Elements | None, theirs: Elements | None) -> Elements | None:
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    return mine + theirs
