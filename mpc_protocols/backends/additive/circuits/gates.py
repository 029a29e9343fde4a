"""The arithmetic of two parties and a dealer, whose parts are zeros: `engine.parts.gates` over what it deals
(`operations`).

Test words of an arg max are the XOR of three streams, of which each of the three computing parties lacks one
(`operations`). They are never the dealer's to know, nor are bits of noise, of which it draws none: it hears
the outputs, and with the noise it would have the count, with the test words the comparisons.

Threat model and assumption: `dealer`, `masks`.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.additive.dealing.operations import Operations
from mpc_protocols.backends.additive.link import Link
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words
from mpc_protocols.engine.parts.gates import PartGates, Terms


class AdditiveGates(PartGates):
    """The gates of one party over one link."""

    faster = frozenset({"factor", "and_sums", "test_factor"})

    def __init__(self, operations: Operations, secret: bytes) -> None:
        """secret: see `PartGates`; the dealer's is not used."""
        super().__init__(secret)
        self.operations = operations

    @property
    def link(self) -> Link:
        return self.operations.link

    def and_words(self, x: Words, y: Words) -> Words:
        return self.operations.and_words(x, y)

    def integers(self, bits: Words, cells: int, ring: UInt) -> Elements:
        return self.operations.integers(bits, cells, ring)

    def bits_times(self, bits: Words, x: Elements) -> Elements:
        return self.operations.products(self.integers(bits[np.newaxis], len(x), x.dtype.type)[0], x)

    def factor(self, y: Bits) -> Bits:
        """See `engine.interface.BitGates`; 1 round: y is opened under a mask, once for all its linear
        functions."""
        return self.operations.masked(y.parts[0])

    def and_sums(self, shape: tuple[int, ...], terms: Terms) -> Bits:
        return Bits(self.operations.and_sums(shape, terms))

    def test_factor(self, shape: tuple[int, ...]) -> Bits:
        return self.operations.uniform(shape)
