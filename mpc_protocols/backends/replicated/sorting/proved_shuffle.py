"""Secret shuffle whose messages are proved: shared rows in a uniformly random order that no party knows
(`docs/design/malicious.md` 9.3).

Three stages, one for each pair of parties: A and B = A + 1, which draw a uniform permutation pi from their
common key, and C = A + 2 modulo 3, which does not learn it. With a and b two streams of that key,

    A   y_A = pi(x_A) ^ a  -> C          C holds y_C and y_A
    B   y_C = pi(x_C) ^ b  -> C          A and B compute y_B = pi(x_B) ^ a ^ b

(y_A, y_B, y_C) is a replicated sharing of pi(x). Every message has one sender and one receiver; the receiver
knows the component that was permuted, the other holder of the key the permutation and the mask, and the
sender both. So for weights tau that a coin fixes once all messages have come,

    <pi^-1(tau), x> = <tau, y> + <tau, a>          for tau uniform, exactly if y = pi(x) ^ a, but for a chance of 2^-64

where one verifier holds the first operand and <tau, a>, and the other one x and <tau, y>:
`proof.inner_products`. The columns of one shuffle go through the same permutations.

What a receiver gets is masked by a stream of a key that it lacks, uniform whatever the rows are. Threat
model: one party deviates as it likes; nothing that depends on a shuffle is opened before `prove`. Rounds: 3 a
shuffle and 7 a proof of all; sent: 16 bytes a row and column, and as much again in the proof. Memory: some
100 bytes a row and column until it is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.coins import stream, toss
from mpc_protocols.backends.replicated.proof.inner_products import Claims, message_pieces, prove
from mpc_protocols.backends.replicated.proof.word_field import inner
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.noise.permutation import permutation_of
from mpc_protocols.engine.prg import binding

Order = NDArray[np.int64]
ELSEWHERE: Words = np.empty(0, np.uint64)
"""Words that this party does not hold."""
WRONG = "sent rows that are not those of its shares in the order that it shares with a neighbour"


@dataclass(frozen=True)
class Permuting:
    """What a party holds of the message y = pi(x) ^ mask: pi as `order` and the mask, or x and y, or (the
    sender) pi and x.

    by_left: whether the sender's left neighbour is the other holder of pi and mask; its right one is else.
    """

    by_left: bool
    order: Order | None
    x: Words
    other: Words
    """y at who holds x, the mask at who holds pi."""
    rows: int


class ProvedShuffle:
    """Shuffles of a trio, and the proof of all of them."""

    def __init__(self, trio: Trio) -> None:
        self.trio = trio
        self._notes: list[list[Permuting]] = [[], [], []]
        """By sender, in the order of its messages, the same at all parties."""

    def shuffle(self, columns: Sequence[BitShare], first: int = 0) -> list[BitShare]:
        """Columns of shape (n,), all in the same new order. first: A of the first stage. 3 rounds."""
        current = list(columns)
        for stage in range(3):
            current = self._stage(current, (first + stage) % 3)
        return current

    def prove(self, agreed: bytes) -> None:
        """Prove all shuffles so far. agreed: names what all three have agreed on. 7 rounds.

        Raises `ProtocolAborted` if a message was not what its sender's shares give.
        """
        trio = self.trio
        rows = [permuting.rows for permuting in self._notes[trio.me]]
        public = binding(b"shuffles", repr(rows).encode(), agreed)
        seed = toss(trio, public)
        left, right, _, _ = self._claim(trio.me, seed)
        held_left, _, left_share, _ = self._claim(trio.right, seed)
        _, held_right, _, right_share = self._claim(trio.left, seed)
        self._notes = [[], [], []]
        prove(trio, Claims(left, right, held_left, left_share, held_right, right_share), public, WRONG)

    def _stage(self, columns: Sequence[BitShare], a: int) -> list[BitShare]:
        trio, count = self.trio, len(columns[0])
        b, c = (a + 1) % 3, (a + 2) % 3
        operation = trio.operation()
        if trio.me == c:
            trio.turn()
            return [self._received(x, a, b) for x in columns]
        reader = trio.next_reader(operation) if trio.me == a else trio.own_reader(operation)
        order = permutation_of(count, reader)
        mixed = []
        for x in columns:
            masks = reader.draw(count, np.uint64), reader.draw(count, np.uint64)
            common = (x.next if trio.me == a else x.own)[order] ^ masks[0] ^ masks[1]
            mine, mask = (x.own, masks[0]) if trio.me == a else (x.next, masks[1])
            sent = mine[order] ^ mask
            for piece in message_pieces(count):
                trio.send(c, sent[piece])
            self._notes[trio.me].append(Permuting(trio.me == b, order, mine, ELSEWHERE, count))
            other, of_other = (b, masks[1]) if trio.me == a else (a, masks[0])
            self._notes[other].append(Permuting(other == b, order, ELSEWHERE, of_other, count))
            mixed.append(BitShare(sent, common) if trio.me == a else BitShare(common, sent))
        trio.turn()
        return mixed

    def _received(self, x: BitShare, a: int, b: int) -> BitShare:
        """At C: a column's new components."""
        own, following = np.empty_like(x.own), np.empty_like(x.own)
        for sender, part in ((a, following), (b, own)):
            for piece in message_pieces(len(x)):
                part[piece] = self.trio.receive(sender, len(part[piece]), np.uint64)
        self._notes[a].append(Permuting(False, None, x.next, following, len(x)))
        self._notes[b].append(Permuting(True, None, x.own, own, len(x)))
        return BitShare(own, following)

    def _claim(self, sender: int, seed: bytes) -> tuple[Words, Words, int, int]:
        """Of a sender's claim what this party holds: left operand, right operand, the left verifier's share,
        the right one's."""
        reader = stream(seed, b"weights of party %d" % sender)
        operands: tuple[list[Words], list[Words]] = [], []
        shares = [0, 0]
        for permuting in self._notes[sender]:
            weights = reader.draw(permuting.rows, np.uint64)
            knower = 0 if permuting.by_left else 1
            if permuting.order is not None:
                moved = np.empty_like(weights)
                moved[permuting.order] = weights
                operands[knower].append(moved)
            if len(permuting.x) == permuting.rows:
                operands[1 - knower].append(permuting.x)
            if len(permuting.other) == permuting.rows:
                shares[knower if permuting.order is not None else 1 - knower] ^= inner(
                    weights, permuting.other
                )
        left, right = (np.concatenate([ELSEWHERE, *words]) for words in operands)
        return left, right, shares[0], shares[1]
