"""Replicated bits as the shared code of the engine uses them (`engine.interface.BitGates`). Threat model and
masking: `trio`.

`zero_rows` masks every loss bit with fresh random words of 128 bits that nobody knows, R = F(k_i) as a random
sharing, sums the products before they travel, and sends the masked parts straight to both others: 1 round, 16
bytes a row to either neighbour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing import boolean
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bits import concatenate
from mpc_protocols.engine.bitwise.bitslice import Words, from_bits
from mpc_protocols.engine.blank import Blank
from mpc_protocols.engine.by_shape import by_shape
from mpc_protocols.engine.interface import BitSource
from mpc_protocols.engine.link import LinkedGates

TEST_WORDS = 2
"""Words of 64 bits in which a vector that is not zero looks like one with probability 2^-128."""


class TrioBitGates(LinkedGates):
    """The bit gates of a trio."""

    def __init__(self, trio: Trio) -> None:
        self.trio = trio

    @property
    def link(self) -> Trio:
        return self.trio

    @property
    def latency_bytes(self) -> int:
        return self.trio.latency_bytes

    def complement(self, x: BitShare) -> BitShare:
        return boolean.complement(self.trio, x)

    def xor_public(self, x: BitShare, words: NDArray[Any]) -> BitShare:
        return boolean.xor_public(self.trio, x, words)

    def and_bits(self, x: BitShare, y: BitShare) -> BitShare:
        return boolean.and_bits(self.trio, x, y)

    def and_pairs(self, pairs: Sequence[tuple[BitShare, BitShare]]) -> list[BitShare]:
        return boolean.and_pairs(self.trio, pairs)

    def factor(self, y: BitShare) -> BitShare:
        return BitShare(y.own ^ y.next, y.own)

    def and_sums(
        self, shape: tuple[int, ...], terms: Iterable[tuple[Any, BitShare, Iterable[NDArray[Any]]]]
    ) -> BitShare:
        part = self.trio.zero_bits(shape)
        for index, x, y in () if isinstance(part, Blank) else terms:
            products = None
            for factor, mine in zip(y, x.parts, strict=True):
                factor &= mine
                if products is None:
                    products = factor
                else:
                    products ^= factor
            assert products is not None
            part[index] ^= np.bitwise_xor.reduce(products, axis=-2)
        return BitShare(part, self.trio.pass_left(part))

    def release_bits(self, release: bytes) -> BitSource:
        streams = self.trio.noise_streams(release)
        drawn = 0

        def draw(shape: tuple[int, ...]) -> BitShare:
            nonlocal drawn
            drawn += 1
            return boolean.random_bits(streams, shape, drawn)

        return draw

    @by_shape(lambda gates, shape, rows: shape)
    def zero_rows(self, shape: tuple[int, int], rows: Iterable[tuple[slice, BitShare]]) -> NDArray[np.bool_]:
        trio = self.trio
        parts = trio.zero_bits((*shape, TEST_WORDS))
        operation = trio.operation()
        own_words, next_words = trio.own_reader(operation), trio.next_reader(operation)
        for block, bits in () if isinstance(parts, Blank) else rows:
            wide = (*bits.shape, TEST_WORDS)
            secret, other = np.empty(wide, np.uint64), np.empty(wide, np.uint64)
            own_words.fill(secret)
            next_words.fill(other)
            other ^= secret
            other &= _spread(bits.own)
            secret &= _spread(bits.next)
            other ^= secret
            parts[:, block] ^= np.bitwise_xor.reduce(other, axis=2)
        opened: NDArray[np.bool_] = (_open_parts(trio, parts) == 0).all(axis=2)
        return opened


def standing_of(gates: TrioBitGates, lost: BitShare, halvings: int | None = None) -> BitShare:
    """A plane of all candidates, group by group: 1 without a loss. lost: uint8 of shape (groups, width,
    losses).

    halvings: at most so many; then planes are left that are 1 without a loss only together, (left, words). 1 round
    for each halving of the losses.
    """
    planes = [from_bits(np.moveaxis(bits, 2, 0).reshape(lost.shape[2], -1)) for bits in lost.parts]
    standing = gates.complement(BitShare(*planes))
    while len(standing) > 1 and halvings != 0:
        half = len(standing) // 2
        both = gates.and_bits(standing[:half], standing[half : 2 * half])
        standing = both if len(standing) % 2 == 0 else concatenate([both, standing[2 * half :]])
        halvings = None if halvings is None else halvings - 1
    return standing[0] if halvings is None else standing


def _spread(bits: NDArray[np.uint8]) -> Words:
    """All ones where a bit is 1, with an axis for the words of a test."""
    return np.negative(bits.astype(np.uint64))[..., np.newaxis]


def _open_parts(trio: Trio, parts: Words) -> Words:
    """XOR of the three parties' masked parts, revealed to all. 1 round, their size to either neighbour."""
    for peer in (trio.left, trio.right):
        trio.send(peer, parts)
    trio.turn()
    opened: Words = (
        parts
        ^ trio.receive(trio.left, parts.shape, np.uint64)
        ^ trio.receive(trio.right, parts.shape, np.uint64)
    )
    return opened
