"""The dealer: of every correlation it knows all masks, and sends party 0 the one part that is not a mask.

    words        a, b uniform, c = a & b           parties draw a_i, b_i, party 1 draws c_1; party 0 is sent c ^ c_1
    sums         a, b uniform, c = XOR of a_t & (linear function t of b)        the same
    integers     r uniform bits, as XOR shares and as ring elements             party 0 is sent r - r_1
    products     a, b uniform, c = a b in the ring                              the same

It runs the shared algorithms on zeros (`operations`), so it knows every size, and waits for nothing while it
deals (`link`).

What it knows: masks. It receives no opening, neither a bit of noise nor a test word of an arg max comes from
it (`gates`), and it hears a result when that is open to all. Threat model: it must not collude with either
party; it holds no share of anything.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.additive.dealing.masks import Masks
from mpc_protocols.backends.additive.dealing.operations import by_words, planes_at_once
from mpc_protocols.backends.additive.link import Link
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words
from mpc_protocols.engine.parts.gates import Terms


class DealerOperations:
    """See `operations.Operations`: what is returned are zeros, and masks where a later operation needs them."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._first, self._second = (Masks(link.wire, party, link.stream) for party in (0, 1))

    def and_words(self, x: Words, y: Words) -> Words:
        product = self._words(x.shape) & self._words(y.shape)
        self.link.deal(product ^ self._second.words(product.shape))
        self.link.turn()
        return np.zeros_like(product)

    def masked(self, y: Words) -> Bits:
        """The mask: linear functions of it are what `and_sums` deals with."""
        mask = self._words(y.shape)
        self.link.turn()
        return Bits(mask)

    def uniform(self, shape: tuple[int, ...]) -> Bits:
        """The part of the words that the dealer knows."""
        return Bits(self._words(shape))

    def and_sums(self, shape: tuple[int, ...], terms: Terms) -> Words:
        dealt = np.empty(0, np.uint64)
        for words, run in by_words(terms):
            total, mask = np.zeros((shape[0], words.stop - words.start), np.uint64), None
            for (rows, _), x, (factor,) in run:
                if mask is None:
                    mask = self._words(x.shape)
                factor &= mask
                total[rows] ^= np.bitwise_xor.reduce(factor, axis=1)
            dealt = total ^ self._second.words(total.shape)
            self.link.deal(dealt)
            self.link.turn()
        return np.zeros_like(dealt, shape=shape)

    def integers(self, bits: Words, cells: int, ring: UInt) -> Elements:
        dealt = np.empty(0, ring)
        for planes in planes_at_once(len(bits), cells):
            count = planes * cells
            packed = self._first.bits(count) ^ self._second.bits(count)
            known = np.unpackbits(packed, count=count).astype(ring)
            dealt = known - self._second.elements((count,), ring)
            self.link.deal(dealt)
            self.link.turn()
        return np.zeros_like(dealt, shape=(len(bits), cells))

    def products(self, x: Elements, y: Elements) -> Elements:
        ring = x.dtype.type
        left, right = (
            self._first.elements(x.shape, ring) + self._second.elements(x.shape, ring) for _ in range(2)
        )
        self.link.deal(left * right - self._second.elements(x.shape, ring))
        self.link.turn()
        return np.zeros_like(x)

    def _words(self, shape: tuple[int, ...]) -> Words:
        return self._first.words(shape) ^ self._second.words(shape)
