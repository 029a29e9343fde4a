"""The algebra on which an engine of parts rests, and every other gate made of it (`engine.interface.Gates`).

Secrets are the XOR (bits) or the sum modulo 2^32 or 2^64 (integers) of one part at each holder
(`engine.link.PartLink`): NumPy arrays; other computing parties run the same code on zeros. A backend brings

    link             messages, openings, who holds parts
    and_words        x AND y, shared
    integers         shared bits as shared integers
    bits_times       a shared bit times a shared integer

What follows from these is here, once: sums of ANDs, zero tests, integers of noise, comparisons, absolute
values, wider rings. Whatever a backend has a faster protocol for it overrides, and names in `faster`; a test
holds it against what is here.

Random bits of a release are the XOR of the holders' own streams, each keyed by a secret that nobody else has
and bound to the release: uniform unless all holders collude. The secret is drawn anew in each run, so no two
runs repeat each other's noise.

Threat model and assumption: those of the backend's three protocols; what is opened here (`zero_rows`) is what
is revealed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import (
    Elements,
    UInt,
    Words,
    from_bits,
    to_bits,
    to_planes,
    words_for,
)
from mpc_protocols.engine.by_shape import by_shape
from mpc_protocols.engine.interface import BitSource
from mpc_protocols.engine.link import LinkedGates, PartLink
from mpc_protocols.engine.parts.sign import carry, score_adder, signs
from mpc_protocols.engine.prg import MASK, NOISE, KeyStream, derive

Terms = Iterable[tuple[Any, Bits, Iterable[NDArray[Any]]]]
"""As in `engine.interface.BitGates.and_sums`."""
TEST_WORDS = 128
"""Random bits of a test for zero: a vector that is not zero passes with probability 2^-128."""
TESTED_AT_ONCE = 1 << 13
"""Words of tested bits of one message, whose test words take 8 MB."""


def zero_pieces(planes: int, words: int) -> list[int]:
    """Planes that are tested together."""
    step = max(1, TESTED_AT_ONCE // max(1, words))
    return [min(step, planes - start) for start in range(0, planes, step)]


class PartGates(LinkedGates):
    """The gates of one party over one link."""

    and_bytes: ClassVar[int] = 16
    """What a word of ANDs is worth, in bytes from each party: what a round is worth to the shared code is
    counted by it."""
    faster: ClassVar[frozenset[str]] = frozenset()
    """The steps of this class that a backend does by a protocol of its own."""

    def __init__(self, secret: bytes) -> None:
        """secret: this party's own key of random bits, 32 bytes, unknown to all others; not used where it
        holds no parts."""
        self._secret = secret
        self._tested = 0

    # -- what a backend brings
    # ---------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def link(self) -> PartLink:
        """The messages to the others."""

    @abstractmethod
    def and_words(self, x: Words, y: Words) -> Words:
        """x AND y, broadcast over leading axes. 1 round."""

    @abstractmethod
    def integers(self, bits: Words, cells: int, ring: UInt) -> Elements:
        """Each bit as an integer: planes (p, words) to (p, cells)."""

    @abstractmethod
    def bits_times(self, bits: Words, x: Elements) -> Elements:
        """x where a bit is 1, else 0: bits (words,), x (cells,)."""

    # -- bits
    # --------------------------------------------------------------------------------------------------------------

    @property
    def latency_bytes(self) -> int:
        """What a round is worth to the shared code, which counts 8 bytes for a word of ANDs; here one is
        worth `and_bytes`."""
        return self.link.latency_bytes * 8 // self.and_bytes

    def complement(self, x: Bits) -> Bits:
        return Bits(~x.parts[0]) if self.link.adds_public else x

    def xor_public(self, x: Bits, words: NDArray[Any]) -> Bits:
        (own,) = x.parts
        return Bits(own ^ words if self.link.adds_public else own ^ np.zeros_like(words))

    def and_bits(self, x: Bits, y: Bits) -> Bits:
        return Bits(self.and_words(x.parts[0], y.parts[0]))

    def and_pairs(self, pairs: Sequence[tuple[Bits, Bits]]) -> list[Bits]:
        left = np.concatenate([x.parts[0].reshape(-1) for x, _ in pairs])
        right = np.concatenate([y.parts[0].reshape(-1) for _, y in pairs])
        ends = np.cumsum([x.parts[0].size for x, _ in pairs])
        products = np.split(self.and_words(left, right), ends[:-1])
        return [Bits(product.reshape(x.shape)) for product, (x, _) in zip(products, pairs, strict=True)]

    def factor(self, y: Bits) -> Bits:
        return y

    def and_sums(self, shape: tuple[int, ...], terms: Terms) -> Bits:
        """See `engine.interface.BitGates`; a round for each term."""
        total = np.zeros(shape, np.uint64)
        for index, x, (factor,) in terms:
            total[index] ^= np.bitwise_xor.reduce(self.and_words(x.parts[0], factor), axis=-2)
        return Bits(total)

    def release_bits(self, release: bytes) -> BitSource:
        stream = KeyStream(derive(self._secret, NOISE, release))
        drawn = 0

        def draw(shape: tuple[int, ...]) -> Bits:
            nonlocal drawn
            drawn += 1
            return Bits(self._own_words(stream, shape, drawn))

        return draw

    def test_factor(self, shape: tuple[int, ...]) -> Bits:
        """Uniform words that nobody knows, in the form of `factor`: of a test for zero."""
        self._tested += 1
        return self.factor(Bits(self._own_words(self._test_words, shape, self._tested)))

    @cached_property
    def _test_words(self) -> KeyStream:
        """Of this link's tests."""
        link = self.link
        context = (link.wire.session_id, link.stream.encode())
        return KeyStream(derive(self._secret, MASK, b"zero test", *context))

    def _own_words(self, stream: KeyStream, shape: tuple[int, ...], number: int) -> Words:
        """This party's part of words that nobody knows."""
        return stream.draw(shape, np.uint64, number) if self.link.holds else np.zeros(shape, np.uint64)

    @by_shape(lambda gates, shape, rows: shape)
    def zero_rows(self, shape: tuple[int, int], rows: Iterable[tuple[slice, Bits]]) -> NDArray[np.bool_]:
        """See `engine.interface.BitGates`; 1 round for each piece, 1 to open, and that of `PartLink.tell`.

        Opened is z = XOR_p l_p R_p with test words R_p of TEST_WORDS bits: 0 if all l_p are 0, else uniform
        (`docs/design/mechanisms.md` 1.5).
        """
        vectors = np.concatenate([bits.parts[0] for _, bits in rows], axis=1)
        cells = shape[0] * shape[1]
        planes = from_bits(np.moveaxis(vectors, 2, 0).reshape(-1, cells))
        count, words = planes.shape
        total, start = np.zeros((TEST_WORDS, words), np.uint64), 0
        for size in zero_pieces(count, words):
            tests = self.test_factor((TEST_WORDS, size, words))
            place = slice(0, TEST_WORDS), slice(0, words)
            (tested,) = self.and_sums(
                total.shape, [(place, Bits(planes[start : start + size]), tests.parts)]
            ).parts
            total ^= tested
            start += size
        opened = np.bitwise_or.reduce(self.link.combine(total, np.bitwise_xor), axis=0)
        zero: NDArray[np.bool_] = to_bits(self.link.tell(opened), cells).reshape(shape) == 0
        return zero

    # -- integers
    # ----------------------------------------------------------------------------------------------------------

    def weighted_sum(self, bits: Bits, weights: Sequence[int], cells: int, ring: UInt) -> Elements:
        modulus = 1 << 8 * np.dtype(ring).itemsize
        factors = np.array([weight % modulus for weight in weights], ring)
        numbers = self.integers(bits.parts[0], cells, ring)
        numbers *= factors[:, np.newaxis]
        total: Elements = numbers.sum(axis=0, dtype=ring)
        return total

    def add_public(self, x: Elements, public: NDArray[Any]) -> Elements:
        return x + public.astype(x.dtype) if self.link.adds_public else x

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
        """|x| = x - 2 m x with the sign m of x; |x| < 2^(planes - 1). Rounds of the signs, and those of
        `bits_times`."""
        (negative,) = signs(self, self.link.me, x, planes).parts
        twice = self.bits_times(negative, x)
        twice <<= x.dtype.type(1)
        return x - twice

    def widened(self, x: Elements) -> Elements:
        """Shares in a ring of k bits of integers in [0, 2^k) as shares of the same integers in the ring of 2
        k bits."""
        bits = 8 * x.itemsize
        adder = score_adder(bits + 1, words_for(len(x)), self.latency_bytes)
        overflow = carry(self, self.link.me, to_planes(x, bits), adder)
        wide: UInt = np.uint32 if bits == 16 else np.uint64
        return x.astype(wide) + self.weighted_sum(overflow[np.newaxis], (-(1 << bits),), len(x), wide)
