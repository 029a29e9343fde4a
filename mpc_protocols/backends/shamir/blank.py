"""How long things take on Shamir shares, for a dry run; its code is the run's, with blank keys
(`engine.blank`)."""

from __future__ import annotations

from mpc_protocols.backends.shamir.oracle import ROLES, contribute
from mpc_protocols.backends.shamir.sharing.field import Scheme, threshold_of
from mpc_protocols.backends.shamir.vertical.plan import schedule_of
from mpc_protocols.in_memory.engine_dry_run import BlankParts, Inputs, Seconds
from mpc_protocols.vertical.block_plan import BlockPlan
from mpc_protocols.vertical.schedule import Schedule

SIGN_S, GUMBEL_S, NOISE_S = 2e-7, 1e-4, 2e-6
"""CPU seconds of a party for a compared cell, a candidate's noise and a noisy cell, of three parties; of m,
times the number of streams that a party draws, of which it has five there (`mesh`)."""
DEALT_S, PRODUCT_S, CELL_S = 4e-9, 4e-10, 3e-6
"""CPU seconds for an element that is dealt, of one stream; a product of two shares in a table; a cell that is
converted."""


def blank_parts(computing: int) -> BlankParts:
    """For a dry run of so many parties that compute."""
    weight = (len(Scheme(0, computing).sets) + computing) / 5
    seconds = Seconds(0.0, SIGN_S * weight, GUMBEL_S * weight, NOISE_S * weight)
    return BlankParts(ROLES, contribute, seconds, _TableSeconds(computing))


class _TableSeconds:
    """Of tables over owners' columns, those that earlier requests left aside."""

    def __init__(self, computing: int) -> None:
        self._computing = computing
        self._schedule: Schedule[BlockPlan] | None = None

    def __call__(self, inputs: Inputs) -> float:
        if inputs.split is None:
            return 0.0
        if self._schedule is None:
            self._schedule = schedule_of(inputs.split, inputs.facts, self._computing)
        self._schedule.declare(inputs.levels)
        plan = self._schedule.next(inputs.cliques).plan
        return 0.0 if plan is None else plan_seconds(plan, threshold_of(self._computing))


def plan_seconds(plan: BlockPlan, threshold: int) -> float:
    """CPU seconds of a party, about."""
    dealt = sum(map(plan.input_width, plan.inputs())) + sum(plan.multiplied()) * (2 * threshold + 1)
    products = sum(left * right for left, right in map(plan.shape, plan.groups))
    return plan.partition.rows * (dealt * DEALT_S * threshold + products * PRODUCT_S) + plan.counts * CELL_S
