"""Uniform permutations out of uniform keys: of the secret shuffles (`sorting.shuffle`) and of the alignment's
lists (`psu`).

A permutation is the order that sorts n independent uniform keys of 64 bits; given that no two keys are equal
all n! orders are equally likely, so a tie draws all keys again and the result is exactly uniform if the keys
are. Up to 2^18 the place stands in the low bits of its key, which leaves at least 46 random ones: sorted at
once, twice as fast. All keys are drawn again with probability below n^2 / 2^65, packed ones n^2 / 2^47.

Secret as the keys are; local. Sorting takes a time that depends on the keys, which is seen by who runs on the
same machine only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.prg import Reader

PACKED = 1 << 18
"""Longest permutation that is drawn from keys with their place in them."""


def permutation_of(count: int, reader: Reader) -> NDArray[np.int64]:
    """A permutation out of the next bytes of a stream; blank if the stream is."""
    return blank(count, np.int64) if reader.is_blank else uniform_permutation(count, reader.fill)


def uniform_permutation(count: int, fill: Callable[[NDArray[np.uint64]], None]) -> NDArray[np.int64]:
    """A permutation of 0 .. count - 1. fill: overwrites an array with uniform keys, fresh ones at every call."""
    keys = np.empty(count, np.uint64)
    bits = np.uint64(max(1, (count - 1).bit_length()))
    low = (np.uint64(1) << bits) - np.uint64(1)
    while True:
        fill(keys)
        if count <= PACKED:
            keys &= ~low
            keys |= np.arange(count, dtype=np.uint64)
            keys.sort()
            drawn = keys >> bits
            if not (drawn[1:] == drawn[:-1]).any():
                return (keys & low).astype(np.int64)
            continue
        order = np.argsort(keys)
        drawn = keys[order]
        if not (drawn[1:] == drawn[:-1]).any():
            return order.astype(np.int64, copy=False)
