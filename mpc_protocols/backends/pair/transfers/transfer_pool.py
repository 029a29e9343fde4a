"""Random transfers as they lie ready: what is asked for, how many there are, and what is kept of each
(`random_ot`).

    bits, shorts, rows      one bit, 32 or 128 bits of each string; words of 64 transfers, counted by the party that chooses

Everything but the content is a function of public sizes, alike at both parties. Every transfer is given away
once. Threat model: `ot_extension`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.transfers.bit_matrix import LANES
from mpc_protocols.backends.pair.transfers.fixed_key import Blocks
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.blank import Blank, blank

AHEAD_BITS, AHEAD_ROWS = 1 << 11, 1 << 9
"""Most words that are made unasked, so the most that a run makes in vain: 0.5 MB in each direction. Shorts
are never."""

PIECE_BESIDE = 640
"""Words that are made beside an exchange, at most, but for what is wanted after it: 0.1 MB in each direction, which travel
in less than parties wait for each other where they are far apart."""

Shorts = NDArray[np.uint32]

Both = tuple[int, int]
Counts = tuple[int, int, int]
"""Words of bits, of shorts and of rows."""


@dataclass(frozen=True)
class Demand:
    """Words of 64 transfers by the party that chooses."""

    bits: Both = (0, 0)
    shorts: Both = (0, 0)
    rows: Both = (0, 0)

    def __add__(self, other: Demand) -> Demand:
        return Demand(
            _sum(self.bits, other.bits), _sum(self.shorts, other.shorts), _sum(self.rows, other.rows)
        )

    def beyond(self, other: Demand) -> Demand:
        """What this has more than another."""
        return Demand(
            _more(self.bits, other.bits), _more(self.shorts, other.shorts), _more(self.rows, other.rows)
        )

    def of(self, party: int) -> Counts:
        """Words of each kind in which this party chooses."""
        return self.bits[party], self.shorts[party], self.rows[party]


def _sum(left: Both, right: Both) -> Both:
    return left[0] + right[0], left[1] + right[1]


def _more(left: Both, right: Both) -> Both:
    return max(0, left[0] - right[0]), max(0, left[1] - right[1])


@dataclass
class PoolLevel:
    """How many words of one kind and direction are there. ahead: most that are made unasked. words_used:
    given away so far. claimed: foreseen, and not given away yet. on_way: made by the choosing party only. soon: how many
    of those that are lacking are wanted after the next exchange."""

    ahead: int
    words_left: int = 0
    words_used: int = 0
    claimed: int = 0
    on_way: int = 0
    soon: int = 0

    def shortfall(self, words: int) -> int:
        """Words to make before so many can be taken."""
        return max(0, words - self.words_left)

    def refill(self, words: int) -> int:
        """As `shortfall`, and if there is one, more for what comes next."""
        shortfall = self.shortfall(words)
        return max(shortfall, min(self.ahead, self.words_used)) if shortfall else 0

    @property
    def lacking(self) -> int:
        """Words that are foreseen, and neither there nor on their way."""
        return max(0, self.claimed - self.words_left - self.on_way)

    def claim(self, words: int) -> None:
        """Foresee that so many words will be taken."""
        self.claimed += words

    def hasten(self, words: int) -> None:
        """So many of them are taken after the next exchange."""
        self.soon = max(self.soon, min(self.lacking, words - self.words_left - self.on_way))

    def leave(self, words: int) -> None:
        """So many of those that are lacking are on their way."""
        self.on_way += words
        self.soon = max(0, self.soon - words)

    def take(self, words: int) -> None:
        """Give away what is there."""
        self.words_left -= words
        self.words_used += words
        self.claimed = max(0, self.claimed - words)


def pool_levels() -> tuple[PoolLevel, PoolLevel, PoolLevel]:
    """Of bits, shorts and rows of one direction."""
    return PoolLevel(AHEAD_BITS), PoolLevel(0), PoolLevel(AHEAD_ROWS)


class TransferPool:
    """Like arrays of words, (n,), (64, n) or (64, n, 2), taken from the front."""

    def __init__(self, level: PoolLevel, arrays: tuple[Words | Shorts, ...]) -> None:
        """arrays: nothing, in the shapes of what will be there."""
        self.level = level
        self._arrays, self._start = arrays, 0

    def put(self, words: int, arrays: tuple[Words | Shorts, ...]) -> None:
        """More words, behind those that are there."""
        if not words:
            return
        if self.level.words_left:
            remainder = tuple(_words(array, slice(self._start, None)) for array in self._arrays)
            arrays = tuple(
                np.concatenate(pair, axis=0 if pair[0].ndim == 1 else 1)
                for pair in zip(remainder, arrays, strict=True)
            )
        self._arrays, self._start = arrays, 0
        self.level.words_left += words

    def take(self, words: int) -> tuple[Any, ...]:
        """The next words; there must be so many."""
        assert words <= self.level.words_left
        piece = slice(self._start, self._start + words)
        self._start += words
        self.level.take(words)
        taken = tuple(_words(array, piece) for array in self._arrays)
        if not self.level.words_left:  # whoever uses them up frees them
            nothing = slice(0, 0)
            self._arrays, self._start = tuple(_words(array, nothing).copy() for array in self._arrays), 0
        return taken


def _words(array: NDArray[Any], piece: slice) -> NDArray[Any]:
    """Some of the words of an array of shape (n,), (64, n) or (64, n, 2)."""
    return array[piece] if array.ndim == 1 else array[:, piece]


class Pools:
    """Those of bits, shorts and rows of one direction, in this order in `all`."""

    def __init__(self, choices: int, strings: int) -> None:
        """Empty ones, of transfers with so many words of choices and so many strings."""
        self.all = [
            TransferPool(level, arrays)
            for level, arrays in zip(pool_levels(), Growth((0, 0, 0), choices, strings).kinds, strict=True)
        ]
        self.bits, self.shorts, self.rows = self.all

    def ask(self, question: Callable[[PoolLevel, int], int], words: Counts) -> Counts:
        """The answers of every pool's level about so many words."""
        bits, shorts, rows = (
            question(pool.level, count) for pool, count in zip(self.all, words, strict=True)
        )
        return bits, shorts, rows

    def claim(self, words: Counts) -> None:
        """See `PoolLevel`."""
        for pool, count in zip(self.all, words, strict=True):
            pool.level.claim(count)

    def hasten(self, words: Counts) -> None:
        """See `PoolLevel`."""
        for pool, count in zip(self.all, words, strict=True):
            pool.level.hasten(count)

    def leave(self, most: int) -> Counts:
        """Words of each kind that are made beside the next exchange: what is wanted after it, and as much of what is
        wanted later as fills a piece; `most` at most."""
        levels = [pool.level for pool in self.all]
        counts = [min(level.soon, level.lacking) for level in levels]
        room = min(PIECE_BESIDE, most) - sum(counts)
        for number in (1, 0, 2):  # comparisons begin with shorts and end with rows
            more = max(0, min(room, levels[number].lacking - counts[number]))
            counts[number] += more
            room -= more
        for number in (2, 0, 1):  # more than may be on its way is made later
            counts[number] -= min(counts[number], max(0, sum(counts) - most))
        bits, shorts, rows = counts
        self.depart((bits, shorts, rows))
        return bits, shorts, rows

    def depart(self, words: Counts) -> None:
        """So many words of each kind are being made."""
        for pool, count in zip(self.all, words, strict=True):
            pool.level.leave(count)

    def arrive(self, words: Counts, grown: Growth) -> None:
        """What was on its way is there, behind what was there before."""
        for pool, count, arrays in zip(self.all, words, grown.kinds, strict=True):
            pool.level.on_way -= count
            pool.put(count, arrays)


_DIAGONAL = (np.uint64(1) << np.arange(LANES, dtype=np.uint64))[:, np.newaxis]


def _one_bit(rows: Blocks) -> Words:
    """One bit of each row, packed: of transfer t of a word, bit t."""
    packed: Words = np.bitwise_xor.reduce(rows[:, :, 0] & _DIAGONAL, axis=0)
    return packed


def _short(rows: Blocks) -> Shorts:
    """32 bits of each row: (64, n)."""
    return rows.view(np.uint32)[:, :, 0]


def _whole(rows: Blocks) -> Blocks:
    return rows


_KEPT: tuple[Callable[[Blocks], NDArray[Any]], ...] = (_one_bit, _short, _whole)


class Growth:
    """Transfers of one direction as they are made, piece by piece: the first words as bits, then shorts, then
    rows.

    kinds: for each of them choices, where the party has them, and strings.
    """

    def __init__(self, words: Counts, choices: int, strings: int) -> None:
        """choices: 1 where the choices are known, 0 where not. strings: how many belong to a transfer."""
        self._ends = list(accumulate(words))
        shapes = zip(words, ((), (LANES,), (LANES,)), ((), (), (2,)), strict=True)
        types = (np.uint64, np.uint32, np.uint64)
        self.kinds = [
            (
                *(np.empty(count, np.uint64) for _ in range(choices)),
                *(np.empty((*before, count, *behind), dtype) for _ in range(strings)),
            )
            for (count, before, behind), dtype in zip(shapes, types, strict=True)
        ]

    def add(self, start: int, choices: tuple[Words, ...], strings: tuple[Blocks, ...]) -> None:
        """The transfers of the words from `start` on."""
        if isinstance(strings[0], Blank):
            self.kinds = [tuple(blank(of.shape, of.dtype) for of in arrays) for arrays in self.kinds]
            return
        stop, begin = start + strings[0].shape[1], 0
        for arrays, kept, end in zip(self.kinds, _KEPT, self._ends, strict=True):
            low, high = max(start, begin), min(stop, end)
            if low < high:
                source = slice(low - start, high - start)
                parts = (*(of[source] for of in choices), *(kept(of[:, source]) for of in strings))
                for array, part in zip(arrays, parts, strict=True):
                    _words(array, slice(low - begin, high - begin))[...] = part
            begin = end
