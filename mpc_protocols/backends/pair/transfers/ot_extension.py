"""Oblivious transfers by the million from 130 base transfers: SoftSpokenOT (Roy, CRYPTO 2022), its
semi-honest part, k = 5.

Problem: one party (choosing) has bits c_i, random ones or its own, and gets for each a string m_i[c_i]; the
other (offering) gets both strings m_i[0], m_i[1]. From 128 bits Delta of the offering party, of which the choosing one knows
nothing, both expand trees (`ggm`) to rows of 128 bits with q_i = v_i ^ c_i Delta (`docs/design/pair.md` 2),
and

    m_i[0] = H(q_i), m_i[1] = H(q_i ^ Delta), m_i[c_i] = H(v_i)        H of `fixed_key` under a new public key for every piece

Who learns what: nothing but the above. Every stream position is used once: pieces are numbered for as long as
the keys live, and a fork has streams of its own. Assumptions: AES-CTR, and fixed-key AES as a
correlation-robust hash. Semi-honest parties only: one that deviates may learn bits of Delta.

Cost: one byte for eight blocks but one a transfer, from the choosing party (3.125 for k = 5; 3.25 where the
choices are its own), one message a piece; 60 to 90 ns of each party, half of it by compiled code (`kernel`).
k = 4: 3.875 bytes and a tenth less CPU; k = 6: 2.625 and half as much more; k = 8: 1.875 and four times as much.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.transfers.base_ot import BaseTransfers, base_transfers
from mpc_protocols.backends.pair.transfers.bit_matrix import LANES, transpose
from mpc_protocols.backends.pair.transfers.fixed_key import Blocks, PublicPermutation
from mpc_protocols.backends.pair.transfers.ggm import Trees
from mpc_protocols.backends.pair.transfers.kernel.layout import LEVELS, WIDTH
from mpc_protocols.backends.pair.transfers.kernel.library import kernel
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import MASK, derive

PIECE = 4096
"""Words of 64 transfers that are extended at a time: the streams of one block stay in the second-level cache."""
_BUFFER = 1 << 15  # words of streams drawn at a time
_ZEROS = memoryview(bytes(8 * PIECE))


def pieces(words: int) -> list[int]:
    """Words of each piece of an extension by `words` words."""
    return [min(PIECE, words - start) for start in range(0, words, PIECE)]


def blocks_for(levels: int) -> int:
    """Blocks of k bits that hold a row: as many in each half, the last one of a half only as far as the half
    goes."""
    return 2 * -(-LANES // levels)


def base_count(levels: int = LEVELS) -> int:
    """Base transfers in each direction: one for each bit of the blocks."""
    return blocks_for(levels) * levels


def message_bytes(words: int, levels: int = LEVELS, are_given: bool = False) -> int:
    """Bytes that the choosing party sends for `words` words of 64 transfers, of random choices or its own."""
    return 8 * words * (blocks_for(levels) - (not are_given))


class _Streams:
    """One AES-CTR stream per leaf, all read at the same position."""

    def __init__(self, leaves: Blocks, context: bytes) -> None:
        """leaves: (blocks, 2^k, 2)."""
        self.blocks, self.leaves = leaves.shape[:2]
        self._seeds, self._context = leaves.reshape(-1, 2), context

    @cached_property
    def _ciphers(self) -> list[Any]:
        """Of the leaves, block by block; made when they are first drawn from, as a party that is forked may never be."""
        return [
            Cipher(
                algorithms.AES(derive(leaf.tobytes(), MASK, b"transfers", self._context)),
                modes.CTR(bytes(16)),
            ).encryptor()
            for leaf in self._seeds
        ]

    def draw(self, words: int, operation: int) -> Iterator[tuple[slice, Words]]:
        """The next `words` words of every leaf: some blocks of one half, and (blocks, 2^k, words), which is
        reused; the words of a leaf lie one behind the other."""
        nonce = operation.to_bytes(12, "big") + bytes(4)
        half = self.blocks // 2
        at_once = min(half, max(1, _BUFFER // (self.leaves * words)))
        room = np.empty((at_once, self.leaves, words + WIDTH), np.uint64)
        buffer = room[..., :words]
        targets = [row[:words].view(np.uint8).data for row in room.reshape(-1, words + WIDTH)]
        source = _ZEROS[: 8 * words]
        for start in (*range(0, half, at_once), *range(half, self.blocks, at_once)):
            stop = min(start + at_once, half if start < half else self.blocks)
            ciphers = self._ciphers[start * self.leaves : stop * self.leaves]
            for cipher, target in zip(ciphers, targets, strict=False):
                cipher.reset_nonce(nonce)
                cipher.update_into(source, target)
            yield slice(start, stop), buffer[: stop - start]


def _fold(streams: Words, rows: Words) -> Words:
    """rows[:, b] = XOR of the streams x with bit b set; returns the XOR of all. By compiled code, if this
    process has any yet.

    streams: (blocks, 2^k, words). rows: (blocks, k, words).
    """
    made = kernel(0)
    if made is not None and made.folds(streams):
        return made.fold(streams, rows)
    for bit in range(rows.shape[1]):
        np.bitwise_xor.reduce(streams[:, 1::2], axis=1, out=rows[:, bit])
        streams = streams[:, 0::2] ^ streams[:, 1::2]
    return streams[:, 0]


class _Extension:
    """What both roles share: streams, their position, and the public permutation of each piece."""

    def __init__(self, link: Link, leaves: Blocks, chooser: int) -> None:
        self._link = link
        self._leaves = leaves
        self._chooser = chooser
        self._streams = _Streams(leaves, link.context(bytes([chooser])))
        self._levels = leaves.shape[1].bit_length() - 1
        self._operation = 0
        self._made = 0

    def _next(self, words: int) -> tuple[int, PublicPermutation]:
        """The number of the next piece, which is used once, and its permutation."""
        self._operation += 1
        self._made += words
        kernel(self._made)
        key = self._link.context(b"rows", bytes([self._chooser]), self._operation.to_bytes(8, "big"))
        return self._operation, PublicPermutation(key)

    def _rows(self, words: int) -> tuple[Words, Words]:
        """Room for rows (64, words, 2), and the same memory as planes: (2 halves, blocks of a half, k,
        words).

        Where k does not divide 64, the last block of a half has planes that are in no row.
        """
        blocks = self._streams.blocks // 2
        room = np.empty((blocks * self._levels, words, 2), np.uint64)
        planes = room.reshape(blocks, self._levels, words, 2)
        return room[:LANES], np.moveaxis(planes, 3, 0)

    def _of(self, planes: Words, blocks: slice) -> Words:
        """The planes of some blocks, all in one half."""
        half, start = divmod(blocks.start, planes.shape[1])
        return planes[half, start : start + blocks.stop - blocks.start]


class Choosing(_Extension):
    """The party that gets one string of each pair, for random choices. Secret, without a printed form."""

    def extend(self, words: int, choices: Words | None = None) -> Iterator[tuple[slice, Words, Blocks]]:
        """For each piece of `words` words: its words, the choices (words,), and the strings chosen, rows (64,
        words, 2). choices: those of this party; None: random ones.

        Sends one message a piece. The caller takes all pieces.
        """
        start = 0
        for size in pieces(words):
            piece = slice(start, start + size)
            yield piece, *self._piece(size, None if choices is None else choices[piece])
            start += size

    def _piece(self, size: int, given: Words | None) -> tuple[Words, Blocks]:
        operation, permutation = self._next(size)
        room, planes = self._rows(size)
        corrections = np.empty((self._streams.blocks, size), np.uint64)
        for blocks, streams in self._streams.draw(size, operation):
            corrections[blocks] = _fold(streams, self._of(planes, blocks))
        choices = corrections[0].copy() if given is None else given
        corrections ^= choices
        self._link.send(self._link.peer, corrections if given is not None else corrections[1:])
        transpose(room.reshape(LANES, 2 * size))
        return choices, permutation.hash(room)

    def fork(self, link: Link) -> Choosing:
        """The same party with streams of its own, bound to the name of a fork of its link."""
        return Choosing(link, self._leaves, self._chooser)


class Offering(_Extension):
    """The party that gets both strings of each pair. Secret, without a printed form."""

    def __init__(self, link: Link, leaves: Blocks, chooser: int, delta: NDArray[np.intp]) -> None:
        """leaves: (blocks, 2^k, 2), leaf x of block j that of x ^ delta[j], the first one unknown. delta:
        (blocks,)."""
        super().__init__(link, leaves, chooser)
        self._delta = delta
        bits = (delta[:, np.newaxis] >> np.arange(self._levels)) & 1
        self._masks = np.negative(bits.astype(np.uint64))[
            ..., np.newaxis
        ]  # (blocks, k, 1): all ones or zeros
        in_rows = bits.reshape(2, -1)[:, :LANES]
        packed = np.packbits(in_rows.astype(np.uint8).reshape(-1), bitorder="little")
        self.difference = packed.view(np.uint64).copy()

    def extend(self, words: int, are_given: bool = False) -> Iterator[tuple[slice, Blocks, Blocks]]:
        """For each piece of `words` words: its words, and both strings of each pair, rows (64, words, 2).
        are_given: whether the other party's choices are its own.

        Receives one message a piece. Raises `ProtocolAborted` for one of another size.
        """
        start = 0
        for size in pieces(words):
            yield slice(start, start + size), *self._piece(size, are_given)
            start += size

    def _piece(self, size: int, are_given: bool) -> tuple[Blocks, Blocks]:
        operation, permutation = self._next(size)
        room, planes = self._rows(size)
        first = 0 if are_given else 1  # the first block that has a correction
        corrections = self._link.receive(self._link.peer, (self._streams.blocks - first, size), np.uint64)
        for blocks, streams in self._streams.draw(size, operation):
            rows = self._of(planes, blocks)
            _fold(streams, rows)
            later = slice(max(blocks.start, first), blocks.stop)
            rows = rows[later.start - blocks.start :]
            rows ^= corrections[later.start - first : later.stop - first, np.newaxis] & self._masks[later]
        transpose(room.reshape(LANES, 2 * size))
        base = permutation.hash(room)
        room ^= self.difference
        return base, permutation.hash(room)

    def fork(self, link: Link) -> Offering:
        """As `Choosing.fork`."""
        return Offering(link, self._leaves, self._chooser, self._delta)


def start(link: Link, levels: int = LEVELS) -> tuple[Choosing, Offering]:
    """Base transfers and trees in both directions: 3 rounds, 32 + 64 `base_count` bytes a party. levels: k, 1
    to 8.

    Raises `ProtocolAborted` for an invalid point or a message of another size.
    """
    return extension(link, base_transfers(link, base_count(levels)), levels)


def extension(link: Link, base: BaseTransfers, levels: int = LEVELS) -> tuple[Choosing, Offering]:
    """The trees of both directions over `base_count` base transfers, which serve once: 1 round, 32 bytes for
    each."""
    if not 1 <= levels <= 8:
        raise ValueError(f"The 128 bits of a row are cut into blocks of 1 to 8, not {levels}.")
    blocks = blocks_for(levels)
    trees = {
        chooser: Trees(link.context(b"trees", bytes([chooser])), 1 << levels)
        for chooser in (link.me, link.peer)
    }
    seeds = np.frombuffer(secrets.token_bytes(16 * blocks), np.uint64).reshape(blocks, 2)
    leaves, sums = trees[link.me].grow(seeds)
    offered = base.offered.reshape(blocks, levels, 2, 2)
    received = link.exchange(np.ascontiguousarray(sums.transpose(2, 0, 1, 3)) ^ offered)
    sides = base.choices.reshape(blocks, levels).astype(np.intp)
    keys = base.chosen.reshape(blocks, levels, 2)
    away = np.take_along_axis(received, sides[..., np.newaxis, np.newaxis], axis=2)[:, :, 0] ^ keys
    delta = ((1 - sides) << np.arange(levels)[::-1]).sum(axis=1)
    known = trees[link.peer].puncture(delta, np.ascontiguousarray(away.swapaxes(0, 1))).swapaxes(0, 1)
    order = np.arange(1 << levels) ^ delta[:, np.newaxis]
    arranged = np.take_along_axis(known, order[..., np.newaxis], axis=1)
    return (
        Choosing(link, np.ascontiguousarray(leaves.swapaxes(0, 1)), link.me),
        Offering(link, np.ascontiguousarray(arranged), link.peer, delta),
    )
