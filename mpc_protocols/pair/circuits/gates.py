"""Two parties' arithmetic as the shared code of the engine uses it (`engine.interface.Gates`).

Bits are XOR shares of one part, numbers additive shares (`shares`). One bit ANDed with up to 128 planes (a lookup in a table, a
choice between two numbers) is one transfer of a string, not an AND for each plane.

Random bits of a release are the XOR of both parties' own streams, each keyed by a secret that its peer does not have and bound
to the release: uniform unless both collude. The secret is drawn anew in each run, so no two runs repeat each other's noise.

Threat model, assumptions and costs: `gmw`, `correlated`, `zero_test`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import UInt, Words, from_bits, words_for
from mpc_protocols.engine.interface import BitSource
from mpc_protocols.engine.prg import NOISE, KeyStream, derive
from mpc_protocols.pair.circuits import conversion, gmw
from mpc_protocols.pair.circuits.sign import AND_BYTES, BYTE_WORTH, score_adder, signs
from mpc_protocols.pair.circuits.zero_test import zero_cells
from mpc_protocols.pair.link import Link
from mpc_protocols.pair.shares import Shares, concatenate
from mpc_protocols.pair.transfers.random_ot import Transfers


def shared_latency(latency_bytes: int) -> int:
    """What a round is worth to the shared code, which counts 8 bytes for a word of ANDs; here one sends AND_BYTES."""
    return latency_bytes * 8 // (BYTE_WORTH * AND_BYTES)


class PairGates:
    """The gates of one party over one link."""

    def __init__(self, transfers: Transfers, secret: bytes) -> None:
        """secret: this party's own key of random bits, 32 bytes; the same for all gates of a run, and unknown to the peer."""
        self.transfers = transfers
        self._secret = secret

    @property
    def link(self) -> Link:
        """The messages to the peer."""
        return self.transfers.link

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
        (words,) = x.parts
        return Bits(~words if self.link.me == 0 else words)

    def xor_public(self, x: Bits, words: NDArray[Any]) -> Bits:
        return Bits(gmw.xor_public(self.link, x.parts[0], words))

    def and_bits(self, x: Bits, y: Bits) -> Bits:
        (left,), (right,) = x.parts, y.parts
        if left.ndim == 2 and len(left) == 1 < len(right) <= gmw.MAX_WIDTH and right.ndim == 2:
            return Bits(gmw.string_sums(self.transfers, left, right[np.newaxis]))
        return Bits(gmw.and_bits(self.transfers, left, right))

    def and_pairs(self, pairs: Sequence[tuple[Bits, Bits]]) -> list[Bits]:
        products = gmw.and_pairs(self.transfers, [(x.parts[0], y.parts[0]) for x, y in pairs])
        return [Bits(product) for product in products]

    def factor(self, y: Bits) -> Bits:
        return y

    def and_sums(
        self, shape: tuple[int, ...], terms: Iterable[tuple[Any, Bits, Iterable[NDArray[Any]]]]
    ) -> Bits:
        """See `engine.interface.BitGates`; a round for each run of terms at the same words, as strings of all their planes."""
        total = np.zeros(shape, np.uint64)
        for words, x, strings in _by_words(shape[0], terms):
            total[:, words] ^= gmw.string_sums(self.transfers, x, strings)
        return Bits(total)

    def release_bits(self, release: bytes) -> BitSource:
        stream = KeyStream(derive(self._secret, NOISE, release))
        drawn = 0

        def draw(shape: tuple[int, ...]) -> Bits:
            nonlocal drawn
            drawn += 1
            return Bits(stream.draw(shape, np.uint64, drawn))

        return draw

    def zero_rows(self, shape: tuple[int, int], rows: Iterable[tuple[slice, Bits]]) -> NDArray[np.bool_]:
        """See `engine.interface.BitGates`; 2 rounds or more (`zero_test`)."""
        vectors = np.concatenate([bits.parts[0] for _, bits in rows], axis=1)
        cells = shape[0] * shape[1]
        planes = from_bits(np.moveaxis(vectors, 2, 0).reshape(-1, cells))
        return zero_cells(self.transfers, planes, cells).reshape(shape)

    # -- integers ----------------------------------------------------------------------------------------------------------

    def weighted_sum(self, bits: Bits, weights: Sequence[int], cells: int, ring: UInt) -> Shares:
        return Shares(conversion.weighted_sum(self.transfers, bits.parts[0], weights, cells, ring))

    def add_public(self, x: Shares, public: NDArray[Any]) -> Shares:
        return Shares(x.values + public.astype(x.dtype)) if self.link.me == 0 else x

    def scaled(self, x: Shares, factor: int) -> Shares:
        return Shares(x.values * x.dtype(factor % (1 << 8 * x.values.itemsize)))

    def concatenate(self, numbers: Sequence[Shares]) -> Shares:
        return concatenate(list(numbers))

    def negative(self, x: Shares) -> Bits:
        planes = 8 * x.values.itemsize
        adder = score_adder(planes, words_for(len(x)), self.link.latency_bytes)
        return Bits(signs(self.transfers, x.values, planes, adder))

    def less(self, left: Shares, right: Shares) -> Bits:
        return self.negative(Shares(left.values - right.values))


def _by_words(
    planes: int, terms: Iterable[tuple[Any, Bits, Iterable[NDArray[Any]]]]
) -> Iterable[tuple[slice, Words, Words]]:
    """Runs of terms at the same words put together: the words, x (terms, words), and strings (terms, planes, words)."""
    place: slice | None = None
    x: Words = np.empty(0, np.uint64)
    strings: Words = x
    for (rows, words), bits, (factor,) in terms:
        if words != place:
            if place is not None:
                yield place, x, strings
            place, (x,) = words, bits.parts
            strings = np.zeros((len(x), planes, x.shape[1]), np.uint64)
        strings[:, rows] = factor.swapaxes(0, 1)
    if place is not None:
        yield place, x, strings
