"""Pools of random oblivious transfers in both directions: all the correlated randomness of the two-party engine.

A transfer is random: the choosing party has a bit a and the string m[a], the offering one both strings, of which it keeps m[0]
and the difference d = m[0] ^ m[1]. Two kinds, which differ in what is kept of the 128 bits of a string:

    bits     one bit each, packed: what an AND takes, one transfer in each direction (`gmw`)
    rows     all 128 bits: one secret bit with a string, or with a ring element (`gmw`, `correlated`)

Transfers do not depend on data, so a protocol that knows its gates asks for all of them before it begins (`Transfers.reserve`):
one round, whatever is asked for, up to BATCH words. What was not asked for is made when it is needed, for a round of its own, and
then as much as the run has used of it so far, up to AHEAD: what is left over serves what comes next. Every transfer is given
away once.

Sizes are public and alike at both parties: a `Demand` counts words of 64 transfers by the party that CHOOSES, (of party 0, of
party 1). Cost and threat model: `ot_extension`; 110 to 170 ns and 3.875 bytes a party for one transfer in each direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.pair.link import Link
from mpc_protocols.pair.transfers.bit_matrix import LANES
from mpc_protocols.pair.transfers.fixed_key import Blocks
from mpc_protocols.pair.transfers.ot_extension import Choosing, Offering, start

BATCH = 1 << 15
"""Words that are made in one round: 2^21 transfers, 8 MB in each direction on their way."""

AHEAD_BITS, AHEAD_ROWS = 1 << 11, 1 << 9
"""Most words that are made unasked, so the most that a run makes in vain: 0.6 MB in each direction."""

Both = tuple[int, int]


@dataclass(frozen=True)
class Demand:
    """Words of 64 transfers by the party that chooses."""

    bits: Both = (0, 0)
    rows: Both = (0, 0)

    def __add__(self, other: Demand) -> Demand:
        return Demand(_sum(self.bits, other.bits), _sum(self.rows, other.rows))

    def times(self, count: int) -> Demand:
        """So many of these."""
        return Demand(
            (self.bits[0] * count, self.bits[1] * count), (self.rows[0] * count, self.rows[1] * count)
        )


def _sum(left: Both, right: Both) -> Both:
    return left[0] + right[0], left[1] + right[1]


@dataclass(frozen=True, repr=False)
class ChosenBits:
    """Transfers in which this party chooses: its choices a, and m[a]; words of shape (n,)."""

    choices: Words
    values: Words


@dataclass(frozen=True, repr=False)
class OfferedBits:
    """Transfers in which this party offers: m[0], and m[0] ^ m[1]; words of shape (n,)."""

    base: Words
    difference: Words


@dataclass(frozen=True, repr=False)
class ChosenRows:
    """As `ChosenBits`; values: (64, n, 2), numbered as in `bit_matrix`."""

    choices: Words
    values: Blocks


@dataclass(frozen=True, repr=False)
class OfferedRows:
    """As `OfferedBits`; both of shape (64, n, 2)."""

    base: Blocks
    difference: Blocks


@dataclass
class PoolLevel:
    """How many words of one kind and direction are there. ahead: most that are made unasked. words_used: given away so far."""

    ahead: int
    words_left: int = 0
    words_used: int = 0

    def shortfall(self, words: int) -> int:
        """Words to make before so many can be taken."""
        return max(0, words - self.words_left)

    def refill(self, words: int) -> int:
        """As `shortfall`, and if there is one, more for what comes next."""
        shortfall = self.shortfall(words)
        return max(shortfall, min(self.ahead, self.words_used)) if shortfall else 0

    def take(self, words: int) -> None:
        """Give away what is there."""
        self.words_left -= words
        self.words_used += words


class _TransferPool:
    """Like arrays of words, (n,) or (64, n, 2), taken from the front."""

    def __init__(self, ahead: int, *arrays: Words) -> None:
        """ahead: of the level. arrays: nothing, in the shapes of what will be there."""
        self.level = PoolLevel(ahead)
        self._arrays, self._start = arrays, 0

    def put(self, words: int, *arrays: Words) -> None:
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

    def take(self, words: int) -> tuple[Words, ...]:
        """The next words; there must be so many."""
        assert words <= self.level.words_left
        piece = slice(self._start, self._start + words)
        self._start += words
        self.level.take(words)
        return tuple(_words(array, piece) for array in self._arrays)


def _words(array: Words, piece: slice) -> Words:
    """Some of the words of an array of shape (n,) or (64, n, 2)."""
    result: Words = array[piece] if array.ndim == 1 else array[:, piece]
    return result


class Transfers:
    """Random transfers over one link, in both directions. One protocol at a time. Secret, without a printed form."""

    def __init__(self, link: Link, choosing: Choosing, offering: Offering) -> None:
        """choosing, offering: this party's parts in both directions (`ot_extension.start`)."""
        self.link = link
        self._choosing, self._offering = choosing, offering
        nothing, no_rows = np.empty(0, np.uint64), np.empty((LANES, 0, 2), np.uint64)
        self._chosen_bits, self._offered_bits = (
            _TransferPool(AHEAD_BITS, nothing, nothing) for _ in range(2)
        )
        self._chosen_rows, self._offered_rows = (
            _TransferPool(AHEAD_ROWS, nothing, no_rows),
            _TransferPool(AHEAD_ROWS, no_rows, no_rows),
        )
        self._operation = 0

    @classmethod
    def start(cls, link: Link) -> Transfers:
        """Base transfers and trees: 3 rounds. Once for a run; raises `ProtocolAborted`."""
        return cls(link, *start(link))

    def fork(self, link: Link) -> Transfers:
        """Transfers over a fork of the link, from streams of its own; no message."""
        return Transfers(link, self._choosing.fork(link), self._offering.fork(link))

    def reserve(self, demand: Demand) -> None:
        """Make what the pools lack of a demand: 1 round for each BATCH of words, none if they lack nothing."""
        me, peer = self.link.me, self.link.peer
        self._make(
            (
                self._chosen_bits.level.shortfall(demand.bits[me]),
                self._chosen_rows.level.shortfall(demand.rows[me]),
            ),
            (
                self._offered_bits.level.shortfall(demand.bits[peer]),
                self._offered_rows.level.shortfall(demand.rows[peer]),
            ),
        )

    def need(self, demand: Demand) -> None:
        """As `reserve`, for one step of a protocol: what the pools lack is made with more for the steps to come."""
        me, peer = self.link.me, self.link.peer
        self._make(
            (
                self._chosen_bits.level.refill(demand.bits[me]),
                self._chosen_rows.level.refill(demand.rows[me]),
            ),
            (
                self._offered_bits.level.refill(demand.bits[peer]),
                self._offered_rows.level.refill(demand.rows[peer]),
            ),
        )

    def operation(self, label: bytes) -> bytes:
        """32 public bytes for one operation, alike at both parties, that no other one of the run has."""
        self._operation += 1
        return self.link.context(label, self._operation.to_bytes(8, "big"))

    def chosen_bits(self, words: int) -> ChosenBits:
        """The next words of one-bit transfers in which this party chooses; the peer calls `offered_bits`."""
        self.need(Demand(bits=self._at(words, 0)))
        return ChosenBits(*self._chosen_bits.take(words))

    def offered_bits(self, words: int) -> OfferedBits:
        """The next words of one-bit transfers in which this party offers; the peer calls `chosen_bits`."""
        self.need(Demand(bits=self._at(0, words)))
        return OfferedBits(*self._offered_bits.take(words))

    def chosen_rows(self, words: int) -> ChosenRows:
        """As `chosen_bits`, of 128-bit strings."""
        self.need(Demand(rows=self._at(words, 0)))
        return ChosenRows(*self._chosen_rows.take(words))

    def offered_rows(self, words: int) -> OfferedRows:
        """As `offered_bits`, of 128-bit strings."""
        self.need(Demand(rows=self._at(0, words)))
        return OfferedRows(*self._offered_rows.take(words))

    def _at(self, mine: int, others: int) -> Both:
        return (mine, others) if self.link.me == 0 else (others, mine)

    def _make(self, chosen: Both, offered: Both) -> None:
        """chosen, offered: words of bits, and of rows behind them."""
        if not sum(chosen) and not sum(offered):
            return
        choosing, offering = _Growth(chosen, 1, 1), _Growth(offered, 2, 0)
        for offset in range(0, max(sum(chosen), sum(offered)), BATCH):
            for piece, choices, values in self._choosing.extend(_within(sum(chosen), offset)):
                choosing.add(offset + piece.start, (choices,), (values,))
            self.link.turn()
            for piece, first, second in self._offering.extend(_within(sum(offered), offset)):
                second ^= first
                offering.add(offset + piece.start, (), (first, second))
        self._chosen_bits.put(chosen[0], *choosing.bits)
        self._chosen_rows.put(chosen[1], *choosing.rows)
        self._offered_bits.put(offered[0], *offering.bits)
        self._offered_rows.put(offered[1], *offering.rows)


def _within(words: int, start: int) -> int:
    """Words of the next batch."""
    return max(0, min(words - start, BATCH))


_DIAGONAL = (np.uint64(1) << np.arange(LANES, dtype=np.uint64))[:, np.newaxis]


def _one_bit(rows: Blocks) -> Words:
    """One bit of each row, packed: of transfer t of a word, bit t."""
    packed: Words = np.bitwise_xor.reduce(rows[:, :, 0] & _DIAGONAL, axis=0)
    return packed


class _Growth:
    """Transfers of one direction as they are made, piece by piece: the first words as bits, the others as rows."""

    def __init__(self, words: Both, strings: int, choices: int) -> None:
        """strings: how many rows belong to a transfer. choices: 1 where the choices are known, 0 where not."""
        bits, rows = words
        self._bit_words = bits
        self.bits = tuple(np.empty(bits, np.uint64) for _ in range(choices + strings))
        self.rows = (
            *(np.empty(rows, np.uint64) for _ in range(choices)),
            *(np.empty((LANES, rows, 2), np.uint64) for _ in range(strings)),
        )

    def add(self, start: int, choices: tuple[Words, ...], strings: tuple[Blocks, ...]) -> None:
        """The transfers of the words from `start` on."""
        size = strings[0].shape[1]
        as_bits = min(max(self._bit_words - start, 0), size)
        if as_bits:
            packed = [_one_bit(string[:, :as_bits]) for string in strings]
            for bits, values in zip(self.bits, (*(c[:as_bits] for c in choices), *packed), strict=True):
                bits[start : start + as_bits] = values
        if as_bits < size:
            place = slice(start + as_bits - self._bit_words, start + size - self._bit_words)
            for rows, string in zip(self.rows, (*choices, *strings), strict=True):
                _words(rows, place)[...] = _words(string, slice(as_bits, size))
