"""Shared numbers that never leave the world of bits: sums of summands, added up when somebody needs their
bits.

    number = ring share (three integers, each known to two parties) + XOR-shared integers + a public one       modulo 2^K

Each part is linear, so adding two numbers, taking some of them, multiplying by a public integer and
reordering are local: a sum only grows longer. What makes bits of it is `addition.add_up`, whose products are
proved. A bit with a weight stands where the weight's bits say (`placed`): no party turns a shared bit into a
ring element, which it could scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proved.slices import values_of
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare, concatenate, ring_array
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt


@dataclass(frozen=True)
class Summand:
    """One party's two components of XOR-shared integers. inverted: whether they stand for their complements."""

    own: Elements
    next: Elements
    inverted: bool = False

    def map(self, function: Callable[[Elements], Elements]) -> Summand:
        """A linear function of both components."""
        return replace(self, own=function(self.own), next=function(self.next))


@dataclass(frozen=True)
class SummedNumbers:
    """One party's shares of an array of numbers modulo the ring; every part has the same shape.

    share: replicated ring shares, None if there are none. public: what is added, the same at all parties.
    """

    ring: UInt
    public: Elements
    share: RingShare | None = None
    summands: tuple[Summand, ...] = ()

    @classmethod
    def of(cls, share: RingShare) -> SummedNumbers:
        """Numbers that are ring shares."""
        return cls(share.dtype, np.zeros_like(share.own), share)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.public.shape

    def __len__(self) -> int:
        return len(self.public)

    def __getitem__(self, index: Any) -> SummedNumbers:
        return self.map(lambda part: part[index])

    def __add__(self, other: SummedNumbers) -> SummedNumbers:
        shape = np.broadcast_shapes(self.shape, other.shape)
        mine, theirs = (
            of if of.shape == shape else of.map(lambda part: np.broadcast_to(part, shape))
            for of in (self, other)
        )
        shares = [of.share for of in (mine, theirs) if of.share is not None]
        share = shares[0] + shares[1] if len(shares) == 2 else shares[0] if shares else None
        return SummedNumbers(self.ring, mine.public + theirs.public, share, mine.summands + theirs.summands)

    def reshape(self, *shape: int) -> SummedNumbers:
        return self.map(lambda part: part.reshape(shape))

    def plus_public(self, public: NDArray[Any]) -> SummedNumbers:
        """Plus public integers."""
        return replace(self, public=self.public + ring_array(np.asarray(public), self.ring))

    def scaled(self, factors: int | NDArray[Any]) -> SummedNumbers:
        """Times public integers (one for all or an array), which may be negative: a summand for each bit of
        them."""
        given = np.broadcast_to(np.asarray(factors, np.int64), self.shape)
        magnitude, negative = np.abs(given), given < 0
        if negative.any() and not negative.all():
            raise ValueError("Numbers are multiplied by integers of one sign at a time.")
        share, public = self.share, self.public * ring_array(given, self.ring)
        summands: list[Summand] = []
        for bit in range(int(magnitude.max(initial=0)).bit_length()):
            chosen = (magnitude >> bit & 1).astype(self.ring)
            if not chosen.any():
                continue
            for of in self.summands:
                if of.inverted:
                    raise ValueError(
                        "Numbers that were multiplied by a negative integer are not multiplied again."
                    )
                place = self.ring(bit)
                own, following = ((part * chosen) << place for part in (of.own, of.next))
                summands.append(Summand(own, following, bool(negative.any())))
                if negative.any():  # -v = ~v + 1, and of what is not chosen -0 = ~0 + 1
                    public = public + self.ring(1)
        return SummedNumbers(
            self.ring, public, None if share is None else share.scaled(given), tuple(summands)
        )

    def single(self) -> Summand:
        """The only part of numbers that are added up. Raises `ValueError` for others."""
        if len(self.parts) > 1:
            raise ValueError("Numbers are opened once they are added up.")
        return self.parts[0]

    @property
    def parts(self) -> tuple[Summand, ...]:
        """The one or two parts of numbers that are added up, but for their last carries perhaps. Raises
        `ValueError` for others."""
        number = len(self.summands)
        if self.share is not None or number not in (1, 2) or self.public.any():
            raise ValueError("Numbers are compared once they are added up.")
        if any(of.inverted for of in self.summands):
            raise ValueError("Numbers are compared once they are added up.")
        return self.summands

    def map(self, function: Callable[[Any], Any]) -> SummedNumbers:
        """A function of every part that is linear and changes none of what is added in public."""
        share = self.share
        if share is not None:
            share = RingShare(function(share.own), function(share.next))
        return SummedNumbers(
            self.ring, function(self.public), share, tuple(of.map(function) for of in self.summands)
        )


def concatenated(numbers: Sequence[SummedNumbers]) -> SummedNumbers:
    """Vectors one after the other; where one has fewer parts than another, zeros fill it up."""
    ring = numbers[0].ring
    share = None
    if any(of.share is not None for of in numbers):
        zeros = (RingShare(np.zeros(of.shape, ring), np.zeros(of.shape, ring)) for of in numbers)
        share = concatenate([of.share or zero for of, zero in zip(numbers, zeros, strict=True)])
    columns = []
    for which in (False, True):
        sorts = [[s for s in of.summands if s.inverted is which] for of in numbers]
        for j in range(max(map(len, sorts))):
            if which and any(len(sort) <= j for sort in sorts):
                raise ValueError("Vectors with and without negated parts are not put together.")
            parts = [
                (sort[j].own, sort[j].next) if j < len(sort) else (np.zeros(of.shape, ring),) * 2
                for of, sort in zip(numbers, sorts, strict=True)
            ]
            own, following = (np.concatenate(side) for side in zip(*parts, strict=True))
            columns.append(Summand(own, following, which))
    return SummedNumbers(ring, np.concatenate([of.public for of in numbers]), share, tuple(columns))


def placed(bits: BitShare, weights: Sequence[int], cells: int, ring: UInt) -> SummedNumbers:
    """sum_j weights[j] * bits[j] of every cell, modulo the ring: planes (len(weights), words) to numbers
    (cells,). Local.

    Each bit of a weight puts the shared bit at that place of the first summand that has nothing there.
    """
    if len(bits) != len(weights):
        raise ValueError(f"{len(weights)} weights do not fit {len(bits)} planes of bits.")
    width = 8 * np.dtype(ring).itemsize
    layers: list[dict[int, int]] = []
    for number, weight in enumerate(weights):
        for place in range(width):
            if (weight % (1 << width)) >> place & 1:
                layer = next((of for of in layers if place not in of), None)
                if layer is None:
                    layers.append(layer := {})
                layer[place] = number
    summands = []
    for layer in layers:
        parts = []
        for part in bits.parts:
            planes = np.zeros((width, 1, part.shape[1]), np.uint64)
            for place, number in layer.items():
                planes[place, 0] = part[number]
            parts.append(values_of(planes, cells, ring)[0])
        summands.append(Summand(*parts))
    return SummedNumbers(ring, np.zeros(cells, ring), None, tuple(summands))
