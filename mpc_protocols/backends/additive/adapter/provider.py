"""Where CrypTen's protocols get their correlations: masks from streams shared with the dealer, and one vector
from the dealer.

Both parties draw their shares of a and b, party 1 also its share of c; party 0's share of c is what the
dealer sends, c - c_1 (`dealer`), which is there when the opening of the same protocol is (`link.Link.due`):
CrypTen uses c after the opening only.

What is asked for follows from public sizes, in the same order at both parties and at the dealer, so no
request travels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mpc_protocols.backends.additive.adapter.communicator import LinkCommunicator, Signed
from mpc_protocols.backends.additive.adapter.library import Library
from mpc_protocols.backends.additive.dealing.masks import Masks
from mpc_protocols.engine.bitwise.bitslice import UInt


class StreamProvider:
    """CrypTen's tuple provider of party 0 or 1."""

    def __init__(self, communicator: LinkCommunicator, masks: Masks, library: Library) -> None:
        self._communicator, self._masks, self._library = communicator, masks, library

    def generate_additive_triple(
        self, size0: Any, size1: Any, op: str, device: Any = None
    ) -> tuple[Any, Any, Any]:
        """Shares of a, b and a b. Only products element by element are dealt."""
        if op != "mul" or size0 != size1:
            raise NotImplementedError(f"The dealer has no correlation for {op} of {size0} and {size1}.")
        ring = self._communicator.ring
        a, b = (self._masks.elements(tuple(size0), ring).astype(np.int64) for _ in range(2))
        return self._numbers(a), self._numbers(b), self._numbers(self._last(tuple(size0), ring))

    def generate_binary_triple(self, size0: Any, size1: Any, device: Any = None) -> tuple[Any, Any, Any]:
        """Shares of a, b and a & b, broadcast."""
        a, b = (self._masks.words(tuple(size)).view(np.int64) for size in (size0, size1))
        c = self._last(np.broadcast_shapes(a.shape, b.shape), np.uint64)
        return self._words(a), self._words(b), self._words(c)

    def B2A_rng(self, size: Any, device: Any = None) -> tuple[Any, Any]:
        """Shares of random bits, in the ring and under XOR."""
        shape, ring = tuple(size), self._communicator.ring
        count = int(np.prod(shape))
        bits = np.unpackbits(self._masks.bits(count), count=count).astype(np.int64).reshape(shape)
        return self._numbers(self._last(shape, ring)), self._words(bits)

    def square(self, size: Any, device: Any = None) -> Any:
        """Not dealt."""
        raise NotImplementedError("The dealer has no correlation for squares; multiply instead.")

    def wrap_rng(self, size: Any, device: Any = None) -> Any:
        """Not dealt: shares are integers, and nothing is ever truncated."""
        raise NotImplementedError("The dealer has no correlation for truncations: all numbers are integers.")

    def _last(self, shape: tuple[int, ...], ring: UInt) -> Signed:
        """The last part of a correlation: drawn at party 1, dealt to party 0."""
        if self._communicator.link.me == 1:
            return self._masks.elements(shape, ring).astype(np.int64)
        dealt = np.empty(shape, np.int64)
        self._communicator.link.due(dealt, ring)
        return dealt

    def _numbers(self, share: Signed) -> Any:
        return self._library.arithmetic.from_shares(self._library.torch.from_numpy(share), precision=0)

    def _words(self, share: Signed) -> Any:
        return self._library.binary.from_shares(self._library.torch.from_numpy(share), precision=0)
