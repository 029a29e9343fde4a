"""The operations of parties 0 and 1: CrypTen's protocols for AND, bit to integer and product; sums of ANDs of
our own.

CrypTen's, called on its own tensors (Beaver 1991): integers of 64 bits and precision 0, words of 64 gates.
Its comparison, which adds all 64 bits whatever the numbers are, some seven times as much as
`engine.parts.sign`, is not used. Ours, since CrypTen has nothing like it: XOR_t x_t & y_t, where the y_t are
public linear functions of words y. With y opened once under a mask b, f = y ^ b, and x under a, e = x ^ a,

    XOR_t x_t y_t  =  XOR_t e_t f_t ^ e_t b_t ^ a_t f_t ^ c           c = XOR_t a_t b_t, dealt

(each y_t, f_t, b_t the same linear function): a table's lookup costs the bits of its two one-hot vectors, not
of all products.

Who learns what: e, f and what CrypTen opens are masked by what the other party and the dealer draw together;
nobody else sees them. Assumption: AES (`masks`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.additive.adapter.communicator import LinkCommunicator
from mpc_protocols.backends.additive.adapter.library import acting, load
from mpc_protocols.backends.additive.adapter.provider import StreamProvider
from mpc_protocols.backends.additive.dealing.masks import Masks
from mpc_protocols.backends.additive.dealing.operations import by_words, planes_at_once
from mpc_protocols.backends.additive.link import DEALER, Link
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, to_bits
from mpc_protocols.engine.parts.gates import Terms


class CrypTenOperations:
    """See `operations.Operations`."""

    def __init__(self, link: Link) -> None:
        """Raises `StudyInvalid` if CrypTen is not installed."""
        self.link = link
        self._library = load()
        self._masks, self._common = (Masks(link.wire, other, link.stream) for other in (DEALER, 1 - link.me))
        self._communicator = LinkCommunicator(link, self._library)
        self._provider = StreamProvider(self._communicator, self._masks, self._library)

    def and_words(self, x: Words, y: Words) -> Words:
        product = self._run(self._library.beaver.AND, self._binary(x), self._binary(y))
        return product.view(np.uint64)

    def masked(self, y: Words) -> Bits:
        """The operand's mask, XORed with f at party 0, and f: the parts that `and_sums` multiplies by e and
        by a."""
        mask = self._masks.words(y.shape)
        own = y ^ mask
        return self._factor(mask, own ^ self.link.exchange(own))

    def uniform(self, shape: tuple[int, ...]) -> Bits:
        return self._factor(self._masks.words(shape), self._common.words(shape))

    def and_sums(self, shape: tuple[int, ...], terms: Terms) -> Words:
        total = np.zeros(shape, np.uint64)
        for words, run in by_words(terms):
            place, mask, known = total[:, words], None, None
            for (rows, _), x, (mine, opened) in run:
                if mask is None:
                    mask, known = self._opened_left(x.parts[0], place)
                mine &= known
                opened &= mask
                mine ^= opened
                place[rows] ^= np.bitwise_xor.reduce(mine, axis=1)
        return total

    def integers(self, bits: Words, cells: int, ring: UInt) -> Elements:
        found, start = np.empty((len(bits), cells), ring), 0
        for planes in planes_at_once(len(bits), cells):
            piece = self._binary(to_bits(bits[start : start + planes], cells, np.uint64).reshape(-1))
            numbers = self._run(self._library.beaver.B2A_single_bit, piece, ring=ring, opens_bits=True)
            found[start : start + planes] = numbers.reshape(planes, cells)
            start += planes
        return found

    def products(self, x: Elements, y: Elements) -> Elements:
        product = self._run(self._library.beaver.mul, self._number(x), self._number(y), ring=x.dtype.type)
        return product.astype(x.dtype)

    def _factor(self, mask: Words, opened: Words) -> Bits:
        return Bits(mask ^ opened if self.link.me == 0 else mask, opened)

    def _opened_left(self, x: Words, sums: Words) -> tuple[Words, Words]:
        """The mask of x, and x opened under it; this party's share of c goes into `sums`."""
        mask, rest = self._masks.words(x.shape), np.empty(sums.shape, np.uint64)
        if self.link.me == 0:
            self.link.due(rest, np.uint64)
        own = x ^ mask
        known = own ^ self.link.exchange(own)
        sums ^= rest if self.link.me == 0 else self._masks.words(sums.shape)
        return mask, known

    def _run(
        self, protocol: Any, *operands: Any, ring: UInt = np.uint64, opens_bits: bool = False
    ) -> NDArray[np.int64]:
        """This party's share of what one of CrypTen's protocols computes."""
        self._communicator.ring, self._communicator.opens_bits = ring, opens_bits
        with acting(self._communicator, self._provider):
            share: NDArray[np.int64] = protocol(*operands).share.numpy()
        return share

    def _binary(self, words: Words) -> Any:
        return self._library.binary.from_shares(self._tensor(words.view(np.int64)), precision=0)

    def _number(self, numbers: Elements) -> Any:
        return self._library.arithmetic.from_shares(self._tensor(numbers.astype(np.int64)), precision=0)

    def _tensor(self, array: NDArray[np.int64]) -> Any:
        """The array itself where PyTorch can have it, which it must be able to write."""
        return self._library.torch.from_numpy(np.require(array, requirements=("C", "W")))
