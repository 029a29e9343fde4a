"""The arithmetic of two parties and a dealer as the shared code of the engine uses it (`engine.interface.Gates`).

Bits are XOR shares of one part, numbers additive shares modulo 2^32 or 2^64: NumPy arrays. The dealer's are zeros (`operations`).

Random bits of a release are the XOR of streams of parties 0 and 1, each keyed by a secret that nobody else has: uniform unless
these two collude. The secret is drawn anew in each run. Test words of an arg max are the XOR of three streams, of which each of
the three computing parties lacks one (`operations`). Neither is ever the dealer's to know, which hears the outputs: with the
noise it would have the count, with the test words the comparisons.

Threat model and assumption: `dealer`, `masks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.additive.circuits.sign import carry, score_adder, signs
from mpc_protocols.additive.dealing.operations import Operations, Terms
from mpc_protocols.additive.link import Link
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, from_bits, to_bits, to_planes, words_for
from mpc_protocols.engine.by_shape import by_shape
from mpc_protocols.engine.interface import BitSource
from mpc_protocols.engine.prg import NOISE, KeyStream, derive

AND_BYTES = 16
"""Bytes of a word of ANDs from each party: two opened bits a gate."""
TEST_WORDS = 128
"""Random bits of a test for zero: a vector that is not zero passes with probability 2^-128."""
TESTED_AT_ONCE = 1 << 13
"""Words of tested bits of one message, whose test words take 8 MB."""


def shared_latency(latency_bytes: int) -> int:
    """What a round is worth to the shared code, which counts 8 bytes for a word of ANDs; here one costs AND_BYTES."""
    return latency_bytes * 8 // AND_BYTES


def zero_pieces(planes: int, words: int) -> list[int]:
    """Planes that are tested together."""
    step = max(1, TESTED_AT_ONCE // max(1, words))
    return [min(step, planes - start) for start in range(0, planes, step)]


class AdditiveGates:
    """The gates of one party over one link."""

    def __init__(self, operations: Operations, secret: bytes) -> None:
        """secret: this party's own key of random bits, 32 bytes, unknown to all others; the dealer's is not used."""
        self.operations = operations
        self._secret = secret

    @property
    def link(self) -> Link:
        """The messages to the others."""
        return self.operations.link

    @property
    def turn(self) -> Callable[[], None]:
        """See `engine.interface.Turns`."""
        return self.link.turn

    @turn.setter
    def turn(self, turn: Callable[[], None]) -> None:
        self.link.turn = turn

    @property
    def latency_bytes(self) -> int:
        return shared_latency(self.link.latency_bytes)

    # -- bits --------------------------------------------------------------------------------------------------------------

    def complement(self, x: Bits) -> Bits:
        return Bits(~x.parts[0]) if self.link.me == 0 else x

    def xor_public(self, x: Bits, words: NDArray[Any]) -> Bits:
        (own,) = x.parts
        return Bits(own ^ words if self.link.me == 0 else own ^ np.zeros_like(words))

    def and_bits(self, x: Bits, y: Bits) -> Bits:
        return Bits(self.operations.and_words(x.parts[0], y.parts[0]))

    def and_pairs(self, pairs: Sequence[tuple[Bits, Bits]]) -> list[Bits]:
        left = np.concatenate([x.parts[0].reshape(-1) for x, _ in pairs])
        right = np.concatenate([y.parts[0].reshape(-1) for _, y in pairs])
        products = np.split(
            self.operations.and_words(left, right), np.cumsum([x.parts[0].size for x, _ in pairs])[:-1]
        )
        return [Bits(product.reshape(x.shape)) for product, (x, _) in zip(products, pairs, strict=True)]

    def factor(self, y: Bits) -> Bits:
        """See `engine.interface.BitGates`; 1 round: y is opened under a mask, once for all its linear functions."""
        return self.operations.masked(y.parts[0])

    def and_sums(self, shape: tuple[int, ...], terms: Terms) -> Bits:
        return Bits(self.operations.and_sums(shape, terms))

    def release_bits(self, release: bytes) -> BitSource:
        stream = KeyStream(derive(self._secret, NOISE, release))
        drawn = 0

        def draw(shape: tuple[int, ...]) -> Bits:
            nonlocal drawn
            drawn += 1
            return Bits(
                np.zeros(shape, np.uint64) if self.link.deals else stream.draw(shape, np.uint64, drawn)
            )

        return draw

    @by_shape(lambda gates, shape, rows: shape)
    def zero_rows(self, shape: tuple[int, int], rows: Iterable[tuple[slice, Bits]]) -> NDArray[np.bool_]:
        """See `engine.interface.BitGates`; 1 round for each piece, 1 to open, and 1 to tell the dealer.

        Opened is z = XOR_p l_p R_p with test words R_p of TEST_WORDS bits: 0 if all l_p are 0, else uniform
        (`docs/design/mechanisms.md` 1.5).
        """
        vectors = np.concatenate([bits.parts[0] for _, bits in rows], axis=1)
        cells = shape[0] * shape[1]
        planes = from_bits(np.moveaxis(vectors, 2, 0).reshape(-1, cells))
        count, words = planes.shape
        total, start = np.zeros((TEST_WORDS, words), np.uint64), 0
        for size in zero_pieces(count, words):
            tests = self.operations.uniform((TEST_WORDS, size, words))
            place = slice(0, TEST_WORDS), slice(0, words)
            (tested,) = self.and_sums(
                total.shape, [(place, Bits(planes[start : start + size]), tests.parts)]
            ).parts
            total ^= tested
            start += size
        opened = np.bitwise_or.reduce(total ^ self.link.exchange(total), axis=0)
        zero: NDArray[np.bool_] = to_bits(self.link.tell(opened), cells).reshape(shape) == 0
        return zero

    # -- integers ----------------------------------------------------------------------------------------------------------

    def weighted_sum(self, bits: Bits, weights: Sequence[int], cells: int, ring: UInt) -> Elements:
        modulus = 1 << 8 * np.dtype(ring).itemsize
        factors = np.array([weight % modulus for weight in weights], ring)
        numbers = self.operations.integers(bits.parts[0], cells, ring)
        numbers *= factors[:, np.newaxis]
        total: Elements = numbers.sum(axis=0, dtype=ring)
        return total

    def add_public(self, x: Elements, public: NDArray[Any]) -> Elements:
        return x + public.astype(x.dtype) if self.link.me == 0 else x

    def scaled(self, x: Elements, factor: int) -> Elements:
        return x * x.dtype.type(factor % (1 << 8 * x.itemsize))

    def concatenate(self, numbers: Sequence[Elements]) -> Elements:
        return np.concatenate(numbers)

    @by_shape(lambda gates, x: (x.shape, x.dtype))
    def negative(self, x: Elements) -> Bits:
        return signs(self, self.link.me, x, 8 * x.itemsize)

    def less(self, left: Elements, right: Elements) -> Bits:
        return self.negative(left - right)

    @by_shape(lambda gates, x, planes: (x.shape, x.dtype, planes))
    def absolute(self, x: Elements, planes: int) -> Elements:
        """|x| = x - 2 m x with the sign m of x; |x| < 2^(planes - 1). Rounds of the signs, and 2."""
        (negative,) = signs(self, self.link.me, x, planes).parts
        twice = self.operations.products(
            self.operations.integers(negative[np.newaxis], len(x), x.dtype.type)[0], x
        )
        twice <<= x.dtype.type(1)
        return x - twice

    def widened(self, x: Elements) -> Elements:
        """Shares in a ring of k bits of integers in [0, 2^k) as shares of the same integers in the ring of 2 k bits."""
        bits = 8 * x.itemsize
        adder = score_adder(bits + 1, words_for(len(x)), self.latency_bytes)
        overflow = carry(self, self.link.me, to_planes(x, bits), adder)
        wide: UInt = np.uint32 if bits == 16 else np.uint64
        return x.astype(wide) + self.weighted_sum(overflow[np.newaxis], (-(1 << bits),), len(x), wide)
