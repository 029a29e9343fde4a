"""Shared bits as one party holds them: a tuple of like arrays of words, whatever the sharing.

XOR sharing among two parties has one part, replicated sharing two, a sharing over GF(8) three. XOR, indexing,
stacking and reshaping act on each part alike, so that code over `interface.Gates` need not know how many
there are. A product or a public constant does depend on the sharing: those are `Gates`.

Words are 64 cells each (`bitslice`), or single bits as uint8 where few cells are picked out one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

B = TypeVar("B", bound="Bits")
_KINDS = (np.dtype(np.uint64), np.dtype(np.uint8))


class Bits:
    """One party's parts of shared words; same shape and dtype, uint64 or uint8."""

    __slots__ = ("parts",)

    def __init__(self, *parts: NDArray[Any]) -> None:
        """Raises `ValueError` unless the parts are alike."""
        dtype, shape = parts[0].dtype, parts[0].shape
        if dtype not in _KINDS or any([part.dtype != dtype or part.shape != shape for part in parts[1:]]):
            kinds = ", ".join(f"{part.dtype}{part.shape}" for part in parts)
            raise ValueError(f"Shared bits are like arrays of uint64 or uint8, not {kinds}.")
        self.parts = parts

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of each part."""
        return self.parts[0].shape

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, index: Any) -> Self:
        return self._like(tuple([part[index] for part in self.parts]))

    def __iter__(self) -> Iterator[Self]:
        return map(self._like, zip(*self.parts, strict=True))

    def __xor__(self, other: Self) -> Self:
        pairs = zip(self.parts, other.parts, strict=True)
        return self._like(tuple([mine ^ theirs for mine, theirs in pairs]))

    def _like(self, parts: tuple[NDArray[Any], ...]) -> Self:
        """Of parts that came out alike."""
        made = object.__new__(type(self))
        made.parts = parts
        return made

    def reshape(self, *shape: int) -> Self:
        """The same bits in another shape."""
        return type(self)(*(part.reshape(shape) for part in self.parts))


def on_parts(function: Callable[..., NDArray[Any]], *shares: B) -> B:
    """A linear function of one or several sharings, part by part."""
    return type(shares[0])(*map(function, *(share.parts for share in shares)))


def stack(shares: Sequence[B]) -> B:
    """Shares of one shape along a new first axis."""
    return type(shares[0])(*(np.stack(parts) for parts in zip(*(s.parts for s in shares), strict=True)))


def concatenate(shares: Sequence[B]) -> B:
    """Shares along their first axis."""
    return type(shares[0])(*(np.concatenate(parts) for parts in zip(*(s.parts for s in shares), strict=True)))
