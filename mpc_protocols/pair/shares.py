"""One party's additive shares of integers modulo 2^32 or 2^64, as the shared code of the engine handles them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Elements, UInt


@dataclass(frozen=True, repr=False, eq=False)
class Shares:
    """values: uint32 or uint64; the sum of both parties' values is the secret."""

    values: Elements

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.values.shape

    @property
    def dtype(self) -> UInt:
        """The ring's element."""
        return self.values.dtype.type

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Shares:
        return Shares(self.values[index])

    def __add__(self, other: Shares) -> Shares:
        return Shares(self.values + other.values)

    def reshape(self, *shape: int) -> Shares:
        """The same numbers in another shape."""
        return Shares(self.values.reshape(shape))


def concatenate(shares: list[Shares]) -> Shares:
    """Vectors one after the other."""
    return Shares(np.concatenate([share.values for share in shares]))
