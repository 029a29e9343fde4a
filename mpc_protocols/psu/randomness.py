"""Secret randomness of the alignment: bytes from the operating system, and uniform permutations made of them.

Every shuffle of the protocols must be uniform and secret, or positions would carry file order from one list
to the next (`docs/design/psu.md` 1.1).

`Entropy` is an argument everywhere; only tests and simulations pass anything but the operating system's
generator.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.noise.permutation import uniform_permutation

Entropy = Callable[[int], bytes]
"""n -> n uniform secret bytes, independent of all others."""


def system(count: int) -> bytes:
    """The operating system's generator, looked up at each call."""
    return secrets.token_bytes(count)


def permutation(count: int, entropy: Entropy = system) -> NDArray[np.int64]:
    """A uniform permutation of 0 .. count - 1; takes 8 bytes of entropy per element."""

    def fill(keys: NDArray[np.uint64]) -> None:
        keys[:] = np.frombuffer(entropy(8 * count), "<u8")

    return uniform_permutation(count, fill)


def below(bound: int, entropy: Entropy = system) -> int:
    """A uniform integer in 0 .. bound - 1 (rejection from the least number of bits that holds bound - 1)."""
    if bound < 1:
        raise ValueError(f"There is no integer below {bound} to draw.")
    bits = (bound - 1).bit_length()
    while True:
        drawn = int.from_bytes(entropy(-(-bits // 8)), "little") & ((1 << bits) - 1)
        if drawn < bound:
            return drawn
