"""Secret randomness of the alignment: bytes from the operating system, and uniform permutations made of them.

Every shuffle of the protocols must be uniform and secret, or positions would carry file order from one list to the next
(`notes.md` 2.4.6). A permutation is the order that sorts n independent 64-bit keys; given that no two keys are equal all n!
orders are equally likely, so a tie (probability below n^2 / 2^65) redraws all keys and the result is exactly uniform.

`Entropy` is an argument everywhere; only tests and simulations pass anything but the operating system's generator.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Entropy = Callable[[int], bytes]
"""n -> n uniform secret bytes, independent of all others."""

system: Entropy = secrets.token_bytes


def permutation(count: int, entropy: Entropy = system) -> NDArray[np.int64]:
    """A uniform permutation of 0 .. count - 1; takes 8 bytes of entropy per element."""
    while True:
        keys = np.frombuffer(entropy(8 * count), "<u8")
        order = np.argsort(keys)
        drawn = keys[order]
        if not (drawn[1:] == drawn[:-1]).any():
            return order.astype(np.int64, copy=False)


def below(bound: int, entropy: Entropy = system) -> int:
    """A uniform integer in 0 .. bound - 1 (rejection from the least number of bits that holds bound - 1)."""
    if bound < 1:
        raise ValueError(f"there is no integer below {bound} to draw")
    bits = (bound - 1).bit_length()
    while True:
        drawn = int.from_bytes(entropy(-(-bits // 8)), "little") & ((1 << bits) - 1)
        if drawn < bound:
            return drawn
