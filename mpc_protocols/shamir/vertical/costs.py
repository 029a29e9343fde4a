"""Rounds and bytes of the vertical protocols on Shamir shares, as functions of public sizes (`shamir.costs`, `shamir.steps`).

Each function replays the messages of its protocol on a tally; the tests hold them against the wire's counters, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.shamir.circuits.adders import sum_gates
from mpc_protocols.shamir.costs import WORD, ShamirCosts
from mpc_protocols.shamir.vertical.counts import (
    BATCH,
    PART_BITS,
    RING_BITS,
    masked_heights,
    sum_heights,
)
from mpc_protocols.shamir.vertical.dealer import drawing, evaluators, receiving
from mpc_protocols.shamir.vertical.plan import TablesPlan
from mpc_protocols.shamir.vertical.prime import ELEMENT


def run(costs: ShamirCosts, plan: TablesPlan) -> None:
    """`source.VerticalMarginals` of one plan: seeds, every block of rows, the end of every range."""
    threshold = costs.holders - 1
    outside = [owner for owner in plan.inputs() if owner >= costs.computing]
    costs.tally.step([(owner, peer, SEED_BYTES) for owner in outside for peer in drawing(owner, threshold)])
    for row_range in plan.row_ranges():
        for start, stop in row_range:
            rows = stop - start
            _deal(costs, [(owner, rows * plan.input_width(owner)) for owner in plan.inputs()])
            for columns in plan.multiplied():
                _deal(costs, [(party, rows * columns) for party in evaluators(threshold)])
        held_counts(costs, plan.counts)


def held_counts(costs: ShamirCosts, cells: int) -> None:
    """`counts.held_counts`."""
    threshold = costs.holders - 1
    holders = range(1, threshold + 1)
    costs.tally.step([(holder + threshold, holder, ELEMENT * cells) for holder in holders])
    for start in range(0, cells, BATCH):
        words = words_for(min(BATCH, cells - start))
        costs.all(WORD * PART_BITS * words, costs.holders)
        _add_up(costs, sum_heights(threshold), words)
        peers = range(costs.computing)
        size = WORD * RING_BITS * words
        costs.tally.step([(holder, peer, size) for holder in holders for peer in peers if peer != holder])
        _add_up(costs, masked_heights(threshold), words)
        costs.tally.step([(peer, 0, size) for peer in peers if peer])


def seconds(plan: TablesPlan, computing: int) -> float:
    """CPU seconds of a party, about."""
    threshold = (computing - 1) // 2
    dealt = sum(map(plan.input_width, plan.inputs())) + sum(plan.multiplied()) * (2 * threshold + 1)
    products = sum(left * right for left, right in map(plan.shape, plan.groups))
    return plan.partition.rows * (dealt * DEALT_S * threshold + products * PRODUCT_S) + plan.counts * CELL_S


DEALT_S, PRODUCT_S, CELL_S = 4e-9, 4e-10, 3e-6
"""CPU seconds for an element that is dealt, of one stream; a product of two shares in a table; a cell that is converted."""


def _deal(costs: ShamirCosts, dealt: Sequence[tuple[int, int]]) -> None:
    threshold = costs.holders - 1
    costs.tally.step(
        [
            (dealer, peer, ELEMENT * elements)
            for dealer, elements in dealt
            for peer in receiving(dealer, threshold)
        ]
    )


def _add_up(costs: ShamirCosts, heights: Sequence[int], words: int) -> None:
    costs.and_words(sum_gates(heights, words, costs.latency_bytes), words)
