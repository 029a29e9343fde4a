"""Additive replicated sharing in Z_2^16, Z_2^32 and Z_2^64: input, open, public operations, products, sums
(`docs/design/engine.md` 2.1).

    x = x_0 + x_1 + x_2 mod 2^K,   party i holds  own = x_i  and  next = x_{i+1}

Linear operations are local. A product costs one element per party and one round: z_i = x_i (y_i + y_{i+1}) +
x_{i+1} y_i + zero_i goes to party i-1. Sums of products (dot products, segment sums) are summed before they
travel, so only the OUTPUT is communicated. Arrays are uint16, uint32 or uint64 and wrap; signed meaning is
read at the end (`centred`). What has been summed and has not travelled yet are `Parts`.

Threat model, masking and assumption: `trio`. Who learns what: nothing, except `open`, after which all three
know the values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.copies import receive_missing
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.arrays import sum_segments
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt

RINGS = (np.uint16, np.uint32, np.uint64)
_DTYPES = tuple(map(np.dtype, RINGS))


@dataclass(frozen=True)
class Parts:
    """One party's part of an array that the parts of all three add up to; dtype uint16, uint32 or uint64.

    It is no sharing yet: what a party sends of it must be masked first (`reshare`, `scores.masked_numbers`). The own
    components of a sharing are such parts.
    """

    own: Elements

    def __post_init__(self) -> None:
        if self.own.dtype not in _DTYPES:
            raise ValueError(f"Parts are uint16, uint32 or uint64, got {self.own.dtype}.")

    @property
    def dtype(self) -> UInt:
        return self.own.dtype.type

    @property
    def shape(self) -> tuple[int, ...]:
        return self.own.shape

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, index: Any) -> Parts:
        return Parts(self.own[index])

    def __add__(self, other: Parts) -> Parts:
        return Parts(self.own + other.own)

    def scaled(self, factors: NDArray[Any] | int) -> Parts:
        """Times public integers (an array, or one for all), which may be negative."""
        return Parts(self.own * ring_array(np.asarray(factors), self.dtype))

    def reshape(self, *shape: int) -> Parts:
        return Parts(self.own.reshape(shape))


@dataclass(frozen=True)
class RingShare(Parts):
    """One party's two components of a shared array; same shape, dtype uint16, uint32 or uint64."""

    next: Elements

    def __post_init__(self) -> None:
        if (
            self.own.dtype not in _DTYPES
            or self.own.dtype != self.next.dtype
            or self.own.shape != self.next.shape
        ):
            raise ValueError(
                f"A ring share holds two like arrays of uint16, uint32 or uint64, got {self.own.dtype}"
                f"{self.own.shape} and {self.next.dtype}{self.next.shape}."
            )

    def __getitem__(self, index: Any) -> RingShare:
        return RingShare(self.own[index], self.next[index])

    @overload
    def __add__(self, other: RingShare) -> RingShare: ...

    @overload
    def __add__(self, other: Parts) -> Parts: ...

    def __add__(self, other: Parts) -> Parts:
        if isinstance(other, RingShare):
            return RingShare(self.own + other.own, self.next + other.next)
        return super().__add__(other)

    def __sub__(self, other: RingShare) -> RingShare:
        return RingShare(self.own - other.own, self.next - other.next)

    def scaled(self, factors: NDArray[Any] | int) -> RingShare:
        """Times public integers (an array, or one for all), which may be negative."""
        public = ring_array(np.asarray(factors), self.dtype)
        return RingShare(self.own * public, self.next * public)

    def reshape(self, *shape: int) -> RingShare:
        return RingShare(self.own.reshape(shape), self.next.reshape(shape))


P = TypeVar("P", bound=Parts)


def ring_array(values: NDArray[Any], dtype: UInt) -> Elements:
    """Public integers (negative ones too) as ring elements; int64 wraps modulo 2^K, floats are refused."""
    if values.dtype.kind not in "iu":
        raise ValueError(f"Ring elements come from integers, got {values.dtype}.")
    return values.astype(dtype)


def centred(values: Elements) -> NDArray[np.int64]:
    """Ring elements read as signed integers in [-2^(K-1), 2^(K-1))."""
    signed = values.view(f"i{values.dtype.itemsize}")
    return signed.astype(np.int64)


def concatenate(shares: list[RingShare]) -> RingShare:
    """Shared vectors one after the other."""
    return RingShare(
        np.concatenate([share.own for share in shares]), np.concatenate([share.next for share in shares])
    )


def add_public(trio: Trio, x: P, public: NDArray[Any]) -> P:
    """x plus public integers: they are added to component 2, which P2 holds and of a sharing P1 too; x itself is not
    modified."""
    constant = ring_array(np.asarray(public), x.dtype)
    if trio.me == 2:
        return replace(x, own=x.own + constant)
    if trio.me == 1 and isinstance(x, RingShare):
        return replace(x, next=x.next + constant)
    return x


def share_own(trio: Trio, values: Elements) -> RingShare:
    """Each of the three parties inputs an array of one public shape; the result shares the SUM of the three
    inputs.

    1 round, one element per cell from each party p to p+1: p's input is x_p = F(k_p), which p-1 derives, and
    x_{p+1} = values - F(k_p).
    """
    operation = trio.operation()
    own = trio.own_mask(values.shape, values.dtype.type, operation)
    following = trio.next_mask(values.shape, values.dtype.type, operation)
    rest = values - own
    trio.send(trio.right, rest)
    trio.turn()
    own += trio.receive(trio.left, values.shape, values.dtype.type)
    following += rest
    return RingShare(own, following)


def share_from(
    trio: Trio, owner: int, values: Elements | None, shape: int | tuple[int, ...], dtype: UInt
) -> RingShare:
    """Input of one party: `values` at the owner, None elsewhere. 1 round, one element per cell from owner to
    owner+1."""
    operation = trio.operation()
    if trio.me == owner:
        if values is None:
            raise ValueError(f"Party {owner} must bring the values it inputs.")
        own = trio.own_mask(shape, dtype, operation)
        rest = values - own
        trio.send(trio.right, rest)
        trio.turn()
        return RingShare(own, rest)
    trio.turn()
    if trio.me == (owner + 1) % 3:
        rest = trio.receive(owner, shape, dtype)
        return RingShare(rest, np.zeros(shape, dtype))
    return RingShare(np.zeros(shape, dtype), trio.next_mask(shape, dtype, operation))


def open_ring(trio: Trio, x: RingShare) -> Elements:
    """Reveal x to all three parties. 1 round, one element per cell: x_i goes to party i+1, which lacks it,
    and its hash from i-1.

    Raises `ProtocolAborted` if the two holders of a component disagree.
    """
    opened: Elements = x.own + x.next + receive_missing(trio, x.own, x.next)
    return opened


def reshare(trio: Trio, parts: Elements) -> RingShare:
    """From parts that sum to the secret over the three parties to a replicated sharing. 1 round, one element
    per cell."""
    masked = masked_parts(trio, parts).own
    return RingShare(masked, trio.pass_left(masked))


def masked_parts(trio: Trio, parts: Elements) -> Parts:
    """Parts of the same array that are uniform to any one other party, whatever it knows of the old ones. Local."""
    return Parts(parts + trio.zero_ring(parts.shape, parts.dtype.type))


def replicated(trio: Trio, x: Parts) -> RingShare:
    """x as a replicated sharing, which it may be already: 1 round if it is not (`reshare`)."""
    return x if isinstance(x, RingShare) else reshare(trio, x.own)


def multiply(trio: Trio, x: RingShare, y: RingShare) -> RingShare:
    """Elementwise product. 1 round, one element per cell and party."""
    return reshare(trio, _product(x, y))


def dot_parts(x: RingShare, y: RingShare) -> Parts:
    """Sums of products along the last axis: shape (..., n) to (...). Local; shared again, one element per RESULT
    and party."""
    return Parts(_product(x, y).sum(axis=-1, dtype=x.dtype))


def _product(x: RingShare, y: RingShare) -> Elements:
    part = y.own + y.next
    part *= x.own
    part += x.next * y.own
    return part


def segment_sums(x: RingShare, lengths: NDArray[np.int64]) -> RingShare:
    """Sums of consecutive segments of a shared vector, of public lengths (0 allowed). Local."""
    return RingShare(sum_segments(x.own, lengths), sum_segments(x.next, lengths))
