"""What a run of two parties and a dealer costs: a dry run on a presumed table, with the messages of `additive.steps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.additive.engine import DEALERS
from mpc_protocols.additive.steps import StepCosts
from mpc_protocols.additive.vertical.plan import TablesPlan, check_owners, make_plan
from mpc_protocols.costed_dry_run import CostedDryRun
from mpc_protocols.engine.step_costs import FreshInputs, Group
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts

if TYPE_CHECKING:
    from mpc_protocols.partition import Partition
    from mpc_protocols.public.rounded_answers import RoundedAnswers


START_S, SIGN_S, GUMBEL_S, NOISE_S = 2.0, 3e-7, 2e-4, 4e-6
"""CPU seconds of a party for loading CrypTen, and per compared cell, candidate's noise and noisy cell."""
COLUMN_S, PRODUCT_S = 4e-9, 1e-10
"""The same per masked element of two owners' columns, and per row and cell of the products."""


class AdditiveDryRun(CostedDryRun[Group, TablesPlan, None]):
    """Two parties, a dealer and `contributors` others."""

    def __init__(
        self, facts: StudyFacts, counts: LocalCounts, contributors: int, split: Partition | None = None
    ) -> None:
        """counts: marginals of the presumed table. split: of a vertical study's common table. Raises `StudyInvalid`."""
        if split is not None:
            check_owners(split)
        self._split = split
        costs = StepCosts(contributors, leader=facts.leader)
        super().__init__(
            facts, counts, costs, DEALERS, contributors, sign_s=SIGN_S, gumbel_s=GUMBEL_S, noise_s=NOISE_S
        )
        self._seconds = START_S

    def _split_inputs(
        self, request: int, fresh: Sequence[Clique], levels: Sequence[Level]
    ) -> FreshInputs[TablesPlan] | None:
        if self._split is None:
            return None
        plan = make_plan(self._split.with_levels(levels), self.facts.with_levels(levels).sizes, fresh)
        self._seconds += plan.rows * sum(map(plan.breadth, (0, 1))) * COLUMN_S
        self._seconds += plan.rows * plan.dealt_cells * PRODUCT_S
        return FreshInputs(tables=plan)

    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[Group]:
        groups = Group.of(rounded)
        self._seconds += sum(group.compared_cells for group in groups) * SIGN_S
        return groups
