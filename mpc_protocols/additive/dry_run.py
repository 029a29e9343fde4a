"""What a run of two parties and a dealer costs: a dry run on a presumed table (`step_dry_run`), with the messages of
`additive.steps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.additive.engine import DEALERS
from mpc_protocols.additive.steps import Group, StepCosts
from mpc_protocols.additive.vertical.plan import TablesPlan, check_owners, make_plan
from mpc_protocols.engine.inputs.answer_codec import encode
from mpc_protocols.engine.inputs.check.costs import CheckModel
from mpc_protocols.engine.inputs.contribution import block_cells
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.step_dry_run import StepDryRun

if TYPE_CHECKING:
    from mpc_protocols.partition import Partition
    from mpc_protocols.public.rounded_answers import RoundedAnswers


START_S, SIGN_S, GUMBEL_S, NOISE_S = 2.0, 3e-7, 2e-4, 4e-6
"""CPU seconds of a party for loading CrypTen, and per compared cell, candidate's noise and noisy cell."""
COLUMN_S, PRODUCT_S = 4e-9, 1e-10
"""The same per masked element of two owners' columns, and per row and cell of the products."""


class AdditiveDryRun(StepDryRun[Group]):
    """Two parties, a dealer and `contributors` others."""

    def __init__(
        self, facts: StudyFacts, counts: LocalCounts, contributors: int, split: Partition | None = None
    ) -> None:
        """counts: marginals of the presumed table. split: of a vertical study's common table. Raises `StudyInvalid`."""
        if split is not None:
            check_owners(split)
        self._split = split
        self._costs = StepCosts(contributors, leader=facts.leader)
        self._checks = CheckModel(facts, contributors)
        super().__init__(facts, counts, self._costs.tally, DEALERS, gumbel_s=GUMBEL_S, noise_s=NOISE_S)
        self._seconds = START_S

    def _prepare(self, announced: int, fresh: Sequence[Clique], levels: Sequence[Level]) -> int:
        cells, request, blocks, plan = self._inputs(fresh, levels)
        self._costs.prepare(announced, request, blocks, plan)
        check = self._checks.next(fresh, levels)
        self._check_inputs(check, self._costs.input_check, SIGN_S)
        return cells

    def _inputs(
        self, fresh: Sequence[Clique], levels: Sequence[Level]
    ) -> tuple[int, int, list[int], TablesPlan | None]:
        """Cells; bytes of the request to contributors, cells of each message of counts; tables of two owners."""
        facts = self.facts.with_levels(levels)
        cells = block_cells(facts, fresh)
        if self._split is None:
            request = len(PrepareStep(tuple(fresh), tuple(levels)).to_bytes()) if fresh else 0
            return sum(cells), request, cells, None
        plan = make_plan(self._split.with_levels(levels), facts.sizes, fresh)
        self._seconds += plan.rows * sum(map(plan.breadth, (0, 1))) * COLUMN_S
        self._seconds += plan.rows * plan.dealt_cells * PRODUCT_S
        return sum(cells), 0, [], plan

    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[Group]:
        groups = [Group(len(encode(answers)), int(answers.nonzero.sum())) for answers in rounded]
        self._seconds += sum(group.compared_cells for group in groups) * SIGN_S
        return groups

    def _select(
        self,
        announced: int,
        groups: list[Group],
        plan: SelectionPlan,
        generated: int,
        lists: Sequence[Sequence[int]],
        expected: tuple[Sampler, int] | None,
    ) -> None:
        self._costs.select(announced, groups, plan, generated, list(map(len, lists)), expected)

    def _distances(
        self, announced: int, groups: list[Group], sampler: Sampler, count: int, planes: int, generated: int
    ) -> None:
        self._costs.distances(announced, groups, sampler, count, planes, generated)

    def _measure(
        self, announced: int, samplers: Sequence[tuple[Sampler, int]], generated: int | None
    ) -> None:
        self._costs.measure(announced, samplers, generated)

    def _total_first(self, announced: int, smallest: Clique, sampler: Sampler) -> int:
        cells, request, blocks, plan = self._inputs([smallest], ())
        self._costs.total_first(announced, request, blocks, sampler, plan, self._checks.next([smallest], ()))
        return cells

    def _end(self, announced: int) -> None:
        self._costs.end(announced)
