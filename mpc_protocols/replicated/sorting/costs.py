"""Rounds and bytes of the protocols on sorted lists, as functions of public sizes: what `costs` is for the marginal oracle.

Each function replays the message pattern of its protocol on a `costs.Tally`, batch by batch; the tests assert them against the
wire's counters, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.tally import Tally
from mpc_protocols.replicated.costs import WORD, products
from mpc_protocols.replicated.sorting import grouping, merging, shuffle

GREATER = (1.0, 0.5, 0.5, 0.25, 1 / 8, 1 / 16, 1 / 64)
"""Words that travel per comparison in each round of `comparison.greater`."""
EQUAL = (0.5, 0.25, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
"""The same for `comparison.equal`."""


def comparisons(tally: Tally, words: int, rounds: Sequence[float] = GREATER) -> None:
    """`comparison.greater`, or `equal` with rounds = EQUAL; words: a multiple of 64."""
    for share in rounds:
        products(tally, int(words * share), WORD)


def merge(tally: Tally, lengths: Sequence[int], limit: int = merging.BATCH) -> None:
    """`merging.merge` of lists of these lengths."""
    sizes = list(lengths)
    for joined in merging.depths(sizes):
        sums = [sum(sizes[i] for i in group) for group in joined]
        for _, batch in merging.schedule(
            [total for total, group in zip(sums, joined, strict=True) if len(group) == 2], limit
        ):
            comparisons(tally, merging.comparators(batch))
            products(tally, merging.comparators(batch), WORD)
        sizes = sums


def repeats(tally: Tally, words: int, limit: int = grouping.BATCH) -> None:
    """`grouping.repeats`."""
    for start in range(1, words, limit):
        comparisons(tally, 64 * words_for(min(limit, words - start)), EQUAL)


def spread(tally: Tally, words: int, longest: int, limit: int = grouping.BATCH) -> None:
    """`grouping.spread`."""
    distance = 1
    while distance < min(longest, words):
        for stop in range(words, distance, -limit):
            products(tally, stop - max(distance, stop - limit), WORD)
        if 2 * distance < min(longest, words):
            products(tally, words_for(words - distance), WORD)
        distance *= 2


def mix(tally: Tally, rows: int, columns: int, first: int = 0) -> None:
    """`shuffle.shuffle`."""
    a, b, c = ((first + i) % 3 for i in range(3))
    blocks = [min(shuffle.BLOCK, rows - start) * WORD for start in range(0, rows, shuffle.BLOCK)]
    for _ in range(columns):
        tally.step([(sender, receiver, size) for sender, receiver in ((a, b), (b, c)) for size in blocks])
        for size in blocks:
            tally.step([(b, c, size), (c, b, size)])
