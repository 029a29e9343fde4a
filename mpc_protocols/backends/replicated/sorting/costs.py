"""Rounds and bytes of the protocols on sorted lists, as functions of public sizes: what `costs` is for the
marginal oracle.

Each function replays the message pattern of its protocol on a `costs.Tally`, batch by batch; the tests assert
them against the wire's counters, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.backends.replicated.costs import WORD, products
from mpc_protocols.backends.replicated.proof.costs import coin_steps, word_proof_steps
from mpc_protocols.backends.replicated.proof.inner_products import message_pieces
from mpc_protocols.backends.replicated.proved.counted import CountedGates, CountedTrio
from mpc_protocols.backends.replicated.sorting import grouping, merging, shuffle
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.tally import Tally

GREATER = (1.0, 0.5, 0.5, 0.25, 1 / 8, 1 / 16, 1 / 64)
"""Words that travel per comparison in each round of `comparison.greater`."""
EQUAL = (0.5, 0.25, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
"""The same for `comparison.equal`."""


class GateTally:
    """What ANDs of shared words send, on a tally; where they are proved, `ProvedGateTally`."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def and_words(self, words: int) -> None:
        """An AND of so many words."""
        products(self.tally, words)

    def verify(self) -> None:
        """Where they are proved: all so far."""


class ProvedGateTally(GateTally):
    """The same of `proved.gates`."""

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self.gates = CountedGates(CountedTrio(tally))

    def and_words(self, words: int) -> None:
        self.gates.count(words)

    def verify(self) -> None:
        self.gates.verify()


def comparisons(gates: GateTally, words: int, rounds: Sequence[float] = GREATER) -> None:
    """`comparison.greater`, or `equal` with rounds = EQUAL; words: a multiple of 64."""
    for share in rounds:
        gates.and_words(int(words * share))


def merge(gates: GateTally, lengths: Sequence[int], limit: int = merging.BATCH) -> None:
    """`merging.merge` of lists of these lengths."""
    sizes = list(lengths)
    for joined in merging.depths(sizes):
        sums = [sum(sizes[i] for i in group) for group in joined]
        for _, batch in merging.schedule(
            [total for total, group in zip(sums, joined, strict=True) if len(group) == 2], limit
        ):
            comparisons(gates, merging.comparators(batch))
            gates.and_words(merging.comparators(batch))
        sizes = sums


def repeats(gates: GateTally, words: int, limit: int = grouping.BATCH) -> None:
    """`grouping.repeats`."""
    for start in range(1, words, limit):
        comparisons(gates, 64 * words_for(min(limit, words - start)), EQUAL)


def spread(gates: GateTally, words: int, longest: int, limit: int = grouping.BATCH) -> None:
    """`grouping.spread`."""
    distance = 1
    while distance < min(longest, words):
        for stop in range(words, distance, -limit):
            gates.and_words(stop - max(distance, stop - limit))
        if 2 * distance < min(longest, words):
            gates.and_words(words_for(words - distance))
        distance *= 2


def mix_proved(tally: Tally, rows: int, columns: int, first: int = 0) -> None:
    """`proved_shuffle.ProvedShuffle.shuffle`."""
    sizes = [WORD * (piece.stop - piece.start) for piece in message_pieces(rows)]
    for stage in range(3):
        a, b, c = ((first + stage + i) % 3 for i in range(3))
        tally.step([(sender, c, size) for sender in (a, b) for size in sizes * columns])


def shuffle_proof(tally: Tally, products: int) -> None:
    """`proved_shuffle.ProvedShuffle.prove`, of so many products of each party: two for each row and column of
    a shuffle."""
    tally.proofs += 1
    for transfers in (*coin_steps(), *word_proof_steps(products)):
        tally.step(transfers)


def mix(tally: Tally, rows: int, columns: int, first: int = 0) -> None:
    """`shuffle.shuffle`."""
    a, b, c = ((first + i) % 3 for i in range(3))
    blocks = [min(shuffle.BLOCK, rows - start) * WORD for start in range(0, rows, shuffle.BLOCK)]
    for _ in range(columns):
        tally.step([(sender, receiver, size) for sender, receiver in ((a, b), (b, c)) for size in blocks])
        for size in blocks:
            tally.step([(b, c, size), (c, b, size)])
