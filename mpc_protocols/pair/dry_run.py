"""What a run between two parties costs: a dry run on a presumed table (`step_dry_run`), with the messages of `pair.steps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.engine.inputs.answer_codec import encode
from mpc_protocols.engine.inputs.check.costs import CheckModel
from mpc_protocols.engine.inputs.contribution import block_cells
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.pair.engine import DEALERS
from mpc_protocols.pair.steps import Group, StepCosts
from mpc_protocols.pair.vertical.contingency import TableShape
from mpc_protocols.pair.vertical.two_owners import check_owners, lifted_cells, plan_tables, shape_of
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.step_dry_run import StepDryRun

if TYPE_CHECKING:
    from mpc_protocols.partition import Partition
    from mpc_protocols.public.rounded_answers import RoundedAnswers


START_S, SIGN_S, GUMBEL_S, NOISE_S = 0.05, 3e-6, 1.2e-3, 40e-6
"""CPU seconds of a party for the base transfers, and per compared cell, candidate's noise and noisy cell."""
RECORD_S, BLOCK_S = 2e-6, 1e-8
"""The same per record of a table over two owners' columns, and per 16 bytes of its leaves' expansions."""


class PairDryRun(StepDryRun[Group]):
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
        self._costs = costs or StepCosts(contributors, leader=facts.leader)
        self._checks = CheckModel(facts, contributors)
        super().__init__(facts, counts, self._costs.tally, DEALERS, gumbel_s=GUMBEL_S, noise_s=NOISE_S)
        self._seconds = START_S

    def _prepare(self, announced: int, fresh: Sequence[Clique], levels: Sequence[Level]) -> int:
        cells, sent = self._inputs(fresh, levels)
        self._costs.prepare(announced, *sent)
        check = self._checks.next(fresh, levels)
        self._check_inputs(check, self._costs.input_check, SIGN_S)
        return cells

    def _inputs(
        self, fresh: Sequence[Clique], levels: Sequence[Level]
    ) -> tuple[int, tuple[int, list[int], list[TableShape], int]]:
        """Cells; bytes of the request to contributors, cells of each message of counts, tables of two owners, cells lifted."""
        facts = self.facts.with_levels(levels)
        cells = block_cells(facts, fresh)
        if self._split is None:
            request = len(PrepareStep(tuple(fresh), tuple(levels)).to_bytes()) if fresh else 0
            return sum(cells), (request, cells, [], 0)
        split = self._split.with_levels(levels)
        shapes = [shape_of(split, facts.sizes, plan) for plan in plan_tables(split, facts.sizes, fresh)]
        for shape in shapes:
            expanded = shape.leaves * -(-shape.row_bytes // 16)
            self._seconds += shape.records * (RECORD_S + BLOCK_S * expanded)
        return sum(cells), (0, [], shapes, lifted_cells(shapes))

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
        candidates, sizes = len(plan.contenders), list(map(len, lists))
        self._costs.select(
            announced, groups, candidates, plan.a, plan.sign_bits, plan.ring_bits, generated, sizes, expected
        )

    def _distances(
        self, announced: int, groups: list[Group], sampler: Sampler, count: int, planes: int, generated: int
    ) -> None:
        self._costs.distances(announced, groups, sampler, count, planes, generated)

    def _measure(
        self, announced: int, samplers: Sequence[tuple[Sampler, int]], generated: int | None
    ) -> None:
        self._costs.measure(announced, samplers, generated)

    def _total_first(self, announced: int, smallest: Clique, sampler: Sampler) -> int:
        cells, sent = self._inputs([smallest], ())
        self._costs.total_first(announced, *sent, sampler, self._checks.next([smallest], ()))
        return cells

    def _end(self, announced: int) -> None:
        self._costs.end(announced)
