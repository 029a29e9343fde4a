"""What a run on replicated shares costs: a dry run on a presumed table (`step_dry_run`), with the messages of `step_costs`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from mpc_protocols.engine.inputs.check.costs import CheckModel
from mpc_protocols.engine.inputs.contribution import block_cells
from mpc_protocols.engine.tally import Tally
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.replicated import costs, step_costs
from mpc_protocols.replicated.gates import PickSizes
from mpc_protocols.replicated.scores.answer_codec import encode
from mpc_protocols.replicated.scores.bit_cache import CacheModel
from mpc_protocols.replicated.scores.dealer import DEALERS
from mpc_protocols.replicated.step_costs import Group
from mpc_protocols.replicated.vertical.costs import prepare_vertical
from mpc_protocols.replicated.vertical.planner import schedule_of
from mpc_protocols.step_dry_run import StepDryRun

if TYPE_CHECKING:
    from mpc_protocols.partition import Partition
    from mpc_protocols.public.rounded_answers import RoundedAnswers


SIGN_S, NOISE_S = 60e-9, 0.8e-6
"""CPU seconds of a party per compared cell and per noisy cell, while others run on the same machine."""
PRODUCT_S = 1e-9
"""The same per product of two numbers in a table over two owners' columns."""


class ReplicatedDryRun(StepDryRun[Group]):
    """Three computing parties and `contributors` others."""

    def __init__(
        self, facts: StudyFacts, counts: LocalCounts, contributors: int, split: Partition | None = None
    ) -> None:
        """counts: marginals of the presumed table. split: of a vertical study's common table."""
        super().__init__(facts, counts, Tally.of(3 + contributors), DEALERS, noise_s=NOISE_S)
        step_costs.agree_on_delay(self.tally)
        self._schedule = None if split is None else schedule_of(split, facts, 3)
        self._cells = CacheModel()
        self._checks = CheckModel(facts, contributors)

    def _prepare(self, announced: int, fresh: Sequence[Clique], levels: Sequence[Level]) -> int:
        """Counts travel, or the owners' columns are multiplied."""
        request = len(PrepareStep(tuple(fresh), tuple(levels)).to_bytes()) if fresh else 0
        facts = self.facts.with_levels(levels)
        cells = block_cells(facts, fresh)
        if self._schedule is None or not fresh:
            check = self._checks.next(fresh, levels)
            step_costs.prepare(self.tally, announced, request, cells, check.contributors if check else 0)
            self._check_inputs(check, lambda sizes: step_costs.input_check(self.tally, sizes), SIGN_S)
            return sum(cells)
        self._schedule.declare(levels)
        work = self._schedule.next(fresh)
        prepare_vertical(self.tally, announced, request, self._schedule.facts, work)
        if work.plan is not None:
            self._seconds += PRODUCT_S * sum(
                work.plan.partition.rows * prod(work.plan.shape(group))
                for group in work.plan.groups(by_permutation=False)
            )
        return sum(cells)

    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[Group]:
        groups = []
        for answers in rounded:
            compared, shared = self._cells.compare(answers, planes)
            groups.append(Group([len(payload) for payload in encode(answers, (0, 2))], compared, shared))
            self._seconds += sum(compared) * SIGN_S
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
        step_costs.select(
            self.tally,
            announced,
            groups,
            len(plan.contenders),
            plan.a,
            plan.sign_bits,
            plan.ring_bits,
            generated=generated,
            sizes=PickSizes.of(plan, lists) if lists else None,
            expected=expected,
        )

    def _distances(
        self, announced: int, groups: list[Group], sampler: Sampler, count: int, planes: int, generated: int
    ) -> None:
        step_costs.distances(self.tally, announced, groups, sampler, count, planes, generated=generated)

    def _measure(
        self, announced: int, samplers: Sequence[tuple[Sampler, int]], generated: int | None
    ) -> None:
        if generated is None:
            step_costs.measure_several(self.tally, announced, samplers)
        else:
            [(sampler, cells)] = samplers
            step_costs.measure(self.tally, announced, sampler, cells, generated=generated)

    def _total_first(self, announced: int, smallest: Clique, sampler: Sampler) -> int:
        cells = self._prepare(announced, [smallest], ())
        costs.gaussian_noise(self.tally, sampler, 1)
        step_costs.agreement(self.tally)
        costs.opening(self.tally, 1)
        return cells

    def _end(self, announced: int) -> None:
        step_costs.end(self.tally, announced)
