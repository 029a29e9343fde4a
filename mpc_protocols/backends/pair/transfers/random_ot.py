"""Pools of random oblivious transfers in both directions: all the correlated randomness of the two-party
engine.

A transfer is random: the choosing party has a bit a and the string m[a], the offering one both strings, of
which it keeps m[0] and the difference d = m[0] ^ m[1]. Three kinds, which differ in what is kept of the 128
bits of a string:

    bits     one bit each, packed: what an AND takes, one transfer in each direction (`gmw`)
    shorts   32 bits: entries of a small table (`lookup`)
    rows     all 128 bits: one secret bit with a string, or with a ring element (`gmw`, `correlated`)

Transfers do not depend on data, so a protocol that knows its gates asks for all of them before it begins
(`Transfers.reserve`): one round, whatever is asked for, up to BATCH words. What was not asked for is made
when it is needed, for a round of its own, and then as much as the run has used of it so far, up to AHEAD:
what is left over serves what comes next. What is foreseen (`Transfers.foresee`) takes no round at all: it is made beside
the exchanges of whatever is computed meanwhile, by each party once it has sent its own message and would wait
(`Link.give_way`), and comes behind that message; when transfers are asked for, what is on its way is waited for.
Every transfer is given away once.

Sizes are public and alike at both parties: a `Demand` counts words of 64 transfers by the party that CHOOSES,
(of party 0, of party 1). Cost and threat model: `ot_extension`; 130 to 190 ns and 3.125 bytes a party for one
transfer in each direction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.transfers.bit_matrix import LANES
from mpc_protocols.backends.pair.transfers.fixed_key import Blocks
from mpc_protocols.backends.pair.transfers.ot_extension import Choosing, Offering, start
from mpc_protocols.backends.pair.transfers.transfer_pool import (
    Both,
    Counts,
    Demand,
    Growth,
    PoolLevel,
    Pools,
    Shorts,
)
from mpc_protocols.engine.bitwise.bitslice import Words

BATCH = 1 << 15
"""Words that are made in one round: 2^21 transfers, 8 MB in each direction on their way."""


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
class ChosenShorts:
    """As `ChosenRows`; values: (64, n)."""

    choices: Words
    values: Shorts


@dataclass(frozen=True, repr=False)
class OfferedShorts:
    """As `OfferedBits`; both of shape (64, n)."""

    base: Shorts
    difference: Shorts


@dataclass(frozen=True, repr=False)
class OfferedRows:
    """As `OfferedBits`; both of shape (64, n, 2)."""

    base: Blocks
    difference: Blocks


class Transfers:
    """Random transfers over one link, in both directions. One protocol at a time. Secret, without a printed
    form."""

    def __init__(self, link: Link, choosing: Choosing, offering: Offering) -> None:
        """choosing, offering: this party's parts in both directions (`ot_extension.start`); from now on their messages go
        over a fork of the link, as what is foreseen may come between any two others."""
        self.link = link
        own = link.fork("transfers")
        self._choosing, self._offering = choosing.fork(own), offering.fork(own)
        self._chosen, self._offered = Pools(1, 1), Pools(0, 2)
        self._operation = 0
        self._on_way: deque[tuple[Counts, Growth, Counts]] = deque()
        """What this party chose beside the last exchanges, and how much the peer did."""
        link.meanwhile = self._make_foreseen

    @classmethod
    def start(cls, link: Link) -> Transfers:
        """Base transfers and trees: 3 rounds. Once for a run; raises `ProtocolAborted`."""
        return cls(link, *start(link))

    def fork(self, link: Link) -> Transfers:
        """Transfers over a fork of the link, from streams of its own; no message."""
        return Transfers(link, self._choosing, self._offering)

    def foresee(self, demand: Demand) -> None:
        """What will be asked for: what the pools lack of it is made beside the coming exchanges, a piece beside each.
        Demands add up; what is taken is taken from them. No round."""
        self._chosen.claim(demand.of(self.link.me))
        self._offered.claim(demand.of(self.link.peer))

    def hasten(self, demand: Demand) -> None:
        """What was foreseen, so much of it after the next exchange: beside that all of it is made that is lacking."""
        self._chosen.hasten(demand.of(self.link.me))
        self._offered.hasten(demand.of(self.link.peer))

    def reserve(self, demand: Demand) -> None:
        """Make what the pools lack of a demand: 1 round for each BATCH of words, none if they lack nothing."""
        self._ask(demand, PoolLevel.shortfall)

    def need(self, demand: Demand) -> None:
        """As `reserve`, for one step of a protocol: what the pools lack is made with more for the steps to
        come."""
        self._ask(demand, PoolLevel.refill)

    def _ask(self, demand: Demand, question: Callable[[PoolLevel, int], int]) -> None:
        if any(map(sum, self._lacking(demand, question))):
            self._arrive(len(self._on_way))
            self._make(*self._lacking(demand, question))

    def _lacking(self, demand: Demand, question: Callable[[PoolLevel, int], int]) -> tuple[Counts, Counts]:
        """Words to make in which this party chooses, and in which the peer does."""
        chosen = self._chosen.ask(question, demand.of(self.link.me))
        return chosen, self._offered.ask(question, demand.of(self.link.peer))

    def choose(self, own: Words, others: int) -> tuple[Blocks, tuple[Blocks, Blocks]]:
        """Transfers in which each party makes its own choices: this one `own`, (n,), the peer `others` words. Strings
        chosen, (64, n, 2), and both strings of each of the peer's.

        1 round; none where one party chooses nothing: the other's message comes before its next one.
        """
        self._arrive(len(self._on_way))
        chosen = [values for _, _, values in self._choosing.extend(len(own), own)]
        if len(own) and others:
            self.link.give_way()
        both = [(first, second) for _, first, second in self._offering.extend(others, True)]
        nothing: Blocks = np.empty((LANES, 0, 2), np.uint64)
        first, second = (np.concatenate([nothing, *(pair[side] for pair in both)], axis=1) for side in (0, 1))
        return np.concatenate([nothing, *chosen], axis=1), (first, second)

    def operation(self, label: bytes) -> bytes:
        """32 public bytes for one operation, alike at both parties, that no other one of the run has."""
        self._operation += 1
        return self.link.context(label, self._operation.to_bytes(8, "big"))

    def chosen_bits(self, words: int) -> ChosenBits:
        """The next words of one-bit transfers in which this party chooses; the peer calls `offered_bits`."""
        self.need(Demand(bits=self._at(words, 0)))
        return ChosenBits(*self._chosen.bits.take(words))

    def offered_bits(self, words: int) -> OfferedBits:
        """The next words of one-bit transfers in which this party offers; the peer calls `chosen_bits`."""
        self.need(Demand(bits=self._at(0, words)))
        return OfferedBits(*self._offered.bits.take(words))

    def chosen_shorts(self, words: int) -> ChosenShorts:
        """As `chosen_bits`, of 32-bit strings."""
        self.need(Demand(shorts=self._at(words, 0)))
        return ChosenShorts(*self._chosen.shorts.take(words))

    def offered_shorts(self, words: int) -> OfferedShorts:
        """As `offered_bits`, of 32-bit strings."""
        self.need(Demand(shorts=self._at(0, words)))
        return OfferedShorts(*self._offered.shorts.take(words))

    def chosen_rows(self, words: int) -> ChosenRows:
        """As `chosen_bits`, of 128-bit strings."""
        self.need(Demand(rows=self._at(words, 0)))
        return ChosenRows(*self._chosen.rows.take(words))

    def offered_rows(self, words: int) -> OfferedRows:
        """As `offered_bits`, of 128-bit strings."""
        self.need(Demand(rows=self._at(0, words)))
        return OfferedRows(*self._offered.rows.take(words))

    def _at(self, mine: int, others: int) -> Both:
        return (mine, others) if self.link.me == 0 else (others, mine)

    def _make(self, chosen: Counts, offered: Counts) -> None:
        """chosen, offered: words of each kind, made one kind after the other."""
        choosing, offering = Growth(chosen, 1, 1), Growth(offered, 0, 2)
        self._chosen.depart(chosen)  # or what is foreseen would be made again beside the batches
        self._offered.depart(offered)
        for offset in range(0, max(sum(chosen), sum(offered)), BATCH):
            self._arrive(len(self._on_way))  # what left beside the batch before was sent before this one
            self._choose(choosing, offset, _within(sum(chosen), offset))
            self.link.give_way()
            self._offer(offering, offset, _within(sum(offered), offset))
        self._chosen.arrive(chosen, choosing)
        self._offered.arrive(offered, offering)

    def _make_foreseen(self) -> None:
        """Beside an exchange of this link: send the next piece, and take what the peer sent before its last message, so that
        nothing is waited for here."""
        before = len(self._on_way)
        chosen, offered = self._chosen.leave(BATCH), self._offered.leave(BATCH)
        if sum(chosen) or sum(offered):
            choosing = Growth(chosen, 1, 1)
            self._choose(choosing, 0, sum(chosen))
            self._on_way.append((chosen, choosing, offered))
        self._arrive(before - 1)

    def _arrive(self, pieces: int) -> None:
        """Have so many pieces that are on their way in the pools, the oldest first. No round: what is waited for now was sent
        later."""
        for _ in range(pieces):
            chosen, choosing, offered = self._on_way.popleft()
            offering = Growth(offered, 0, 2)
            self._offer(offering, 0, sum(offered))
            self._chosen.arrive(chosen, choosing)
            self._offered.arrive(offered, offering)

    def _choose(self, grown: Growth, offset: int, words: int) -> None:
        for piece, choices, values in self._choosing.extend(words):
            grown.add(offset + piece.start, (choices,), (values,))

    def _offer(self, grown: Growth, offset: int, words: int) -> None:
        for piece, first, second in self._offering.extend(words):
            second ^= first
            grown.add(offset + piece.start, (), (first, second))


def _within(words: int, start: int) -> int:
    """Words of the next batch."""
    return max(0, min(words - start, BATCH))
