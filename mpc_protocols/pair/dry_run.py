"""What a run between two parties costs: a dry run on a presumed table, with the messages of `pair.steps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.costed_dry_run import CostedDryRun
from mpc_protocols.engine.step_costs import FreshInputs, Group
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.pair.engine import DEALERS
from mpc_protocols.pair.steps import OwnersTables, StepCosts
from mpc_protocols.pair.vertical.two_owners import check_owners, lifted_cells, plan_tables, shape_of

if TYPE_CHECKING:
    from mpc_protocols.partition import Partition
    from mpc_protocols.public.rounded_answers import RoundedAnswers


START_S, SIGN_S, GUMBEL_S, NOISE_S = 0.05, 3e-6, 1.2e-3, 40e-6
"""CPU seconds of a party for the base transfers, and per compared cell, candidate's noise and noisy cell."""
RECORD_S, BLOCK_S = 2e-6, 1e-8
"""The same per record of a table over two owners' columns, and per 16 bytes of its leaves' expansions."""


class PairDryRun(CostedDryRun[Group, OwnersTables, None]):
    """Two computing parties and `contributors` others."""

    def __init__(
        self,
        facts: StudyFacts,
        counts: LocalCounts,
        contributors: int,
        split: Partition | None = None,
        costs: StepCosts | None = None,
    ) -> None:
        """counts: marginals of the presumed table. split: of a vertical study's common table. costs: of nothing yet, where steps
        cost something else than `pair.steps` says. Raises `StudyInvalid`.
        """
        if split is not None:
            check_owners(split)
        self._split = split
        costs = costs or StepCosts(contributors, leader=facts.leader)
        super().__init__(
            facts, counts, costs, DEALERS, contributors, sign_s=SIGN_S, gumbel_s=GUMBEL_S, noise_s=NOISE_S
        )
        self._seconds = START_S

    def _split_inputs(
        self, request: int, fresh: Sequence[Clique], levels: Sequence[Level]
    ) -> FreshInputs[OwnersTables] | None:
        if self._split is None:
            return None
        split, sizes = self._split.with_levels(levels), self.facts.with_levels(levels).sizes
        shapes = [shape_of(split, sizes, plan) for plan in plan_tables(split, sizes, fresh)]
        for shape in shapes:
            expanded = shape.leaves * -(-shape.row_bytes // 16)
            self._seconds += shape.records * (RECORD_S + BLOCK_S * expanded)
        return FreshInputs(tables=OwnersTables(shapes, lifted_cells(shapes)))

    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[Group]:
        groups = Group.of(rounded)
        self._seconds += sum(group.compared_cells for group in groups) * SIGN_S
        return groups
