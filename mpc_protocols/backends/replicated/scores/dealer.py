"""One party that deals and two that evaluate, with the roles turned over the three parts of a batch
(`docs/design/engine.md` 2.5, with the argument; masked evaluation of ASTRA and ABY2.0).

Some products need not treat the three parties alike: if one party knows one operand in the clear and the two
others know the other, the first DEALS what depends on its operand, masked, and the two others EVALUATE. So
that no party sends or computes more than another, a batch has three parts, which travel in the same rounds
and messages:

    part t      dealer: party t        first evaluator: t+1, to its right        second evaluator: t-1, to its left

A secret bit is z = opened ^ mask: both evaluators know `opened`, the dealer knows `mask`, and the evaluators
hold XOR shares of it, `share`, which are streams: F(k_{t+1}) of dealer and first evaluator, F(k_t) of dealer
and second evaluator.

Who learns what: nothing; the dealer receives no message at all. Every stream belongs to one part and one
operation and is read once. Threat model and assumption: `trio`. Cost of a step: one bit per opened bit in
each direction between the evaluators, one bit per dealt bit from the dealer to the first evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.interleave import alone
from mpc_protocols.engine.prg import Reader

DEALERS = 3
"""Every computing party deals for a part."""


class DealerRoles:
    """One party's three roles in one batch whose parts have `words` words a plane (0 allowed).

    Rows of words that it evaluates hold the part of its left neighbour, in which it is the first evaluator,
    and then that of its right neighbour, in which it is the second. Streams are read in the same order at
    both ends: `masks` and `deal` as they are called, and after the last `exchange` by whoever goes on with
    `to_second` and `as_second`.
    """

    def __init__(self, trio: Trio, words: Sequence[int]) -> None:
        self._trio = trio
        operations = [trio.operation() for _ in range(DEALERS)]
        self.dealt_words = words[trio.me]
        self._first = words[trio.left]
        self.evaluated_words = self._first + words[trio.right]
        self._to_first, self._as_first = (
            trio.next_reader(operations[trio.me]),
            trio.own_reader(operations[trio.left]),
        )
        self.to_second, self.as_second = (
            trio.own_reader(operations[trio.me]),
            trio.next_reader(operations[trio.right]),
        )
        self._leaving, self._arriving = (
            np.empty((0, self.dealt_words), np.uint64),
            np.empty((0, self.evaluated_words), np.uint64),
        )

    def second(self, rows: Words) -> Words:
        """The columns of evaluated rows in which this party is the second evaluator: one of the two adds what
        both know."""
        return rows[..., self._first :]

    def first(self, rows: Words) -> Words:
        """The columns of evaluated rows in which this party is the first evaluator."""
        return rows[..., : self._first]

    def masks(self, rows: int) -> tuple[Words, Words]:
        """Fresh masks for `rows` rows: the dealer's, of shape (rows, dealt_words), and shares of the others',
        (rows, evaluated_words)."""
        mask = np.empty((rows, self.dealt_words), np.uint64)
        scratch = np.empty_like(mask)
        self._to_first.fill(mask)
        self.to_second.fill(scratch)
        mask ^= scratch
        share = np.empty((rows, self.evaluated_words), np.uint64)
        _fill_rows(self._as_first, self.first(share))
        _fill_rows(self.as_second, self.second(share))
        return mask, share

    def deal(self, rows: Words) -> None:
        """Share what this party knows as a dealer, shape (rows, dealt_words), with its evaluators in the next
        `exchange`."""
        leaving = np.empty_like(rows)
        self.to_second.fill(leaving)
        leaving ^= rows
        self._leaving = leaving
        self._arriving = np.empty((len(rows), self.evaluated_words), np.uint64)
        _fill_rows(self.as_second, self.second(self._arriving))

    def exchange(self, parts: Words, also: Callable[[], None] = alone) -> tuple[Words, Words]:
        """One step: open what the evaluators hold in two parts, shape (rows, evaluated_words), and share what
        was dealt.

        Returns the opened rows and this party's shares of the dealt ones. `also` sends more in the same step.
        """
        trio, rows, dealt = self._trio, len(parts), len(self._leaving)
        trio.send(trio.right, np.concatenate((self._leaving.reshape(-1), self.first(parts).reshape(-1))))
        trio.send(trio.left, self.second(parts))
        also()
        trio.turn()
        share = self._arriving
        seconds = self.evaluated_words - self._first
        received = trio.receive(trio.left, dealt * self._first + rows * seconds, np.uint64)
        self.first(share)[...] = received[: dealt * self._first].reshape(dealt, self._first)
        opened = np.empty_like(parts)  # not in place: the parts are on their way
        np.bitwise_xor(
            self.second(parts),
            received[dealt * self._first :].reshape(rows, seconds),
            out=self.second(opened),
        )
        np.bitwise_xor(
            self.first(parts),
            trio.receive(trio.right, (rows, self._first), np.uint64),
            out=self.first(opened),
        )
        self._leaving, self._arriving = self._leaving[:0], np.empty((0, self.evaluated_words), np.uint64)
        return opened, share


def _fill_rows(reader: Reader, rows: Words) -> None:
    """The next words of a stream as rows that may lie apart."""
    if len(rows) == 1:
        reader.fill(rows[0])
    else:
        together = np.empty(rows.shape, np.uint64)
        reader.fill(together)
        rows[...] = together
