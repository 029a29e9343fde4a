"""The streams that two of the three computing parties have in common, AES-CTR (`engine.prg`).

Every correlation begins with masks that both parties draw for themselves, each from its own stream; the
dealer draws both, so it knows the whole, and completes the correlation with one vector for party 0
(`dealer`). CrypTen's streams are Mersenne Twisters of a 64-bit seed, whose state follows from 624 outputs
(`docs/design/additive.md` 4): none of them is used.

Parties 0 and 1 have one, too, which the dealer lacks: of words that no party may know
(`operations.Operations.uniform`).

Both ends count operations in step; a number is used for one draw. A computation that runs beside another has
streams of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words
from mpc_protocols.engine.prg import MASK, KeyStream, Reader, derive
from mpc_protocols.wire import Wire


class Masks:
    """The stream of this party and another one, at either end."""

    def __init__(self, wire: Wire, other: int, stream: str) -> None:
        """stream: the name of the link that it serves."""
        key = derive(wire.key(other), MASK, b"additive", wire.session_id, stream.encode())
        self._stream, self._operation = KeyStream(key), 0

    def reader(self) -> Reader:
        """A stream of its own, to be read piece by piece."""
        self._operation += 1
        return self._stream.reader(self._operation)

    def words(self, shape: tuple[int, ...]) -> Words:
        """Uniform words of 64 bits."""
        return self.elements(shape, np.uint64)

    def elements(self, shape: tuple[int, ...], ring: UInt) -> Elements:
        """Uniform elements of a ring."""
        self._operation += 1
        return self._stream.draw(shape, ring, self._operation)

    def bits(self, count: int) -> NDArray[np.uint8]:
        """Uniform bits, eight to a byte; those of the last byte beyond `count` mean nothing."""
        return self.elements((-(-count // 8),), np.uint8).view(np.uint8)
