"""An array of shared integers that knows how large they can be (`docs/howto/protocols.md`).

Shares are integers modulo 2^32, so that a sum that leaves [-2^31, 2^31) would come back as another number,
and a comparison of such sums would be wrong without a word. Each array therefore carries public bounds of its
entries, `low <= entry <= high`, that hold whatever the data: owners check what they input, operations work
out what they give, and an operation whose result might not fit is refused before anything is sent.

Who learns what: nothing; a share alone is uniform, and an array's text shows its shape and its bounds.
Operations here are local.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.errors import UsageError

BITS: Final = 32
"""Entries are integers modulo 2^32."""
MIN_ENTRY: Final = -(1 << BITS - 1)
MAX_ENTRY: Final = (1 << BITS - 1) - 1


@dataclass(frozen=True)
class SharedArray:
    """One party's shares of an int array of any shape. share: uint32; low, high: public bounds of every
    entry.

    `x + y`, `x - y` (alike shapes), `x * k` (a public int or int array of a shape that NumPy broadcasts to
    x's), `x.sum()`, `x[..]` and `x.reshape(..)` are local. Raises `UsageError`: shapes differ, or an entry
    might not fit 32 bits.
    """

    share: RingShare = field(repr=False)
    low: int
    high: int

    def __post_init__(self) -> None:
        for name, bound in zip(("low", "high"), check_bounds(self.low, self.high), strict=True):
            object.__setattr__(self, name, bound)

    @property
    def shape(self) -> tuple[int, ...]:
        """Public."""
        return self.share.shape

    @property
    def size(self) -> int:
        """Entries."""
        return prod(self.shape)

    def __repr__(self) -> str:
        return f"SharedArray(shape={self.shape}, low={self.low}, high={self.high})"

    def __len__(self) -> int:
        return len(self.share)

    def __getitem__(self, index: Any) -> SharedArray:
        try:
            own, following = (np.asarray(part[index]) for part in (self.share.own, self.share.next))
        except (IndexError, TypeError, ValueError):
            raise UsageError(f"An array of shape {self.shape} has no entries {index!r:.100}.") from None
        if own.size == 0:
            raise UsageError(f"Of an array of shape {self.shape} no entry was taken; take one or more.")
        return SharedArray(RingShare(own, following), self.low, self.high)

    def reshape(self, *shape: int | tuple[int, ...]) -> SharedArray:
        """The same entries in another shape: integers, or a tuple of them."""
        dimensions: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        try:
            return SharedArray(self.share.reshape(*dimensions), self.low, self.high)
        except (TypeError, ValueError):
            raise UsageError(
                f"An array of shape {self.shape} cannot be given the shape {dimensions!r:.100}."
            ) from None

    def __add__(self, other: SharedArray) -> SharedArray:
        self._check_alike(other)
        check_bounds(self.low + other.low, self.high + other.high)
        return SharedArray(self.share + other.share, self.low + other.low, self.high + other.high)

    def __sub__(self, other: SharedArray) -> SharedArray:
        self._check_alike(other)
        check_bounds(self.low - other.high, self.high - other.low)
        return SharedArray(self.share - other.share, self.low - other.high, self.high - other.low)

    def __mul__(self, factors: int | NDArray[np.integer[Any]]) -> SharedArray:
        if isinstance(factors, SharedArray):
            raise UsageError(
                "Shared arrays are multiplied by all three parties together; call party.multiply(x, y)."
            )
        public = integers(factors, "The public factors")
        alike = zip(reversed(public.shape), reversed(self.shape), strict=False)
        if public.ndim > len(self.shape) or any(count not in (1, own) for count, own in alike):
            raise UsageError(f"Factors of shape {public.shape} do not fit an array of shape {self.shape}.")
        ends = [end * int(factor) for end in (self.low, self.high) for factor in (public.min(), public.max())]
        check_bounds(min(ends), max(ends))
        return SharedArray(self.share.scaled(public), min(ends), max(ends))

    __rmul__ = __mul__
    __array_ufunc__ = None  # a NumPy array to the left leaves the operation to this class

    def sum(self) -> SharedArray:
        """The sum of all entries: shape (1,)."""
        check_bounds(self.size * self.low, self.size * self.high)
        own, following = (part.sum(dtype=np.uint32).reshape(1) for part in (self.share.own, self.share.next))
        return SharedArray(RingShare(own, following), self.size * self.low, self.size * self.high)

    def _check_alike(self, other: SharedArray) -> None:
        check_shared(other)
        if self.shape != other.shape:
            raise UsageError(
                f"Shared arrays of shapes {self.shape} and {other.shape} cannot be added or subtracted; give them one shape."
            )


def check_shared(value: object) -> None:
    """Raise `UsageError` unless it is a shared array; no value is named."""
    if not isinstance(value, SharedArray):
        raise UsageError(
            f"A shared array is needed, got {type(value).__name__}; share public numbers by a party's share(..) first."
        )


def check_bounds(low: int, high: int) -> tuple[int, int]:
    """Both as Python's integers, which do not wrap as NumPy's do where bounds are worked out.

    Raises `UsageError` unless low <= high and both are integers in [-2^31, 2^31).
    """
    if not (is_integer(low) and is_integer(high)) or low > high:
        raise UsageError(f"Bounds are two integers, low <= high, got {low!r} and {high!r}.")
    if low < MIN_ENTRY or high > MAX_ENTRY:
        raise UsageError(
            f"Entries between {low} and {high} do not fit {BITS} bits with a sign; give narrower bounds, or scale the numbers "
            "down before they are shared."
        )
    return int(low), int(high)


def is_integer(value: object) -> bool:
    """Whether it is an integer, of Python or NumPy, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def integers(values: object, what: str) -> NDArray[np.int64]:
    """Plain integers (or truth values, as 0 and 1) as int64. Raises `UsageError`; no value is named."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise UsageError(f"{what} must be one array of integers; give rows of one length.") from None
    if array.dtype.kind not in "iub" or array.size == 0:
        raise UsageError(
            f"{what} must be one or more integers, got {array.size} of dtype {array.dtype}; round and scale them first."
        )
    if array.dtype == np.uint64 and int(array.max()) > np.iinfo(np.int64).max:
        raise UsageError(f"{what} must fit 64 bits with a sign.")
    return array.astype(np.int64)
