"""How a batch of tables over several owners is computed on Shamir shares: chosen from public sizes, alike at
every party.

All joints are one-hot columns (`vertical.tables`). An estimate of what travels in all decides whose own
cliques have their narrowest column, times w, on the right: a column that its owner inputs costs t messages a
row, a product row by row 2t + 1 times as much. Rows go in blocks, so that what a party holds of them does not
grow with their number.
"""

from __future__ import annotations

from math import prod
from typing import Final

from mpc_protocols.backends.shamir.sharing.field import threshold_of
from mpc_protocols.backends.shamir.vertical.prime import ELEMENT, MAX_ROWS
from mpc_protocols.functionality import StudyFacts
from mpc_protocols.vertical.block_plan import BlockPlan, block_planner
from mpc_protocols.vertical.partition import Partition
from mpc_protocols.vertical.schedule import Schedule

BLOCK_ELEMENTS: Final = 1 << 21
"""Elements of one block of rows at a party, about: 4 MiB of shares, and as floats four times that."""
MIN_BLOCK_ROWS: Final = 256
"""Rows of a block, if that makes no more than MAX_BLOCK_ELEMENTS."""
MAX_BLOCK_ELEMENTS: Final = 1 << 25
"""Elements of a block of more than one row: 64 MiB, far below the longest message; a row of the widest clique
is 32."""


def schedule_of(partition: Partition, facts: StudyFacts, computing: int) -> Schedule[BlockPlan]:
    """The schedule of a run of so many computing parties."""
    return Schedule(partition, facts, computing, make_plan)


def estimate(plan: BlockPlan, computing: int) -> int:
    """Cost of a plan in all, in bytes and work counted as bytes; for comparing plans; a dry run has the exact
    figures."""
    threshold, row = threshold_of(computing), 0
    for owner in plan.inputs():
        row += ELEMENT * plan.input_width(owner) * (threshold + (owner > 2 * threshold))
    row += (2 * threshold + 1) * threshold * ELEMENT * sum(plan.multiplied())
    return plan.partition.rows * (row + sum(prod(plan.shape(group)) for group in plan.groups) // 64)


def _block_rows(plan: BlockPlan) -> int:
    width = max(1, sum(map(plan.input_width, plan.inputs())) + sum(plan.multiplied()))
    return max(BLOCK_ELEMENTS // width, min(MIN_BLOCK_ROWS, MAX_BLOCK_ELEMENTS // width), 1)


make_plan = block_planner(MAX_ROWS, estimate, _block_rows)
"""The plan of some tables, of ranges whose counts are below p whatever they are."""
