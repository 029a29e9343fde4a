"""What a run of two parties and a dealer costs: a dry run on a presumed table (`step_dry_run`), with the messages of
`additive.steps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.additive.engine import DEALERS
from mpc_protocols.additive.steps import Group, StepCosts
from mpc_protocols.engine.inputs.answer_codec import encode
from mpc_protocols.engine.inputs.contribution import block_cells
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.step_dry_run import StepDryRun

if TYPE_CHECKING:
    from mpc_protocols.public.rounded_answers import RoundedAnswers


START_S, SIGN_S, GUMBEL_S, NOISE_S = 2.0, 3e-7, 2e-4, 4e-6
"""CPU seconds of a party for loading CrypTen, and per compared cell, candidate's noise and noisy cell."""


class AdditiveDryRun(StepDryRun[Group]):
    """Two parties, a dealer and `contributors` others."""

    def __init__(self, facts: StudyFacts, counts: LocalCounts, contributors: int) -> None:
        """counts: marginals of the presumed table."""
        self._costs = StepCosts(contributors, leader=facts.leader)
        super().__init__(facts, counts, self._costs.tally, DEALERS, gumbel_s=GUMBEL_S, noise_s=NOISE_S)
        self._seconds = START_S

    def _prepare(self, announced: int, fresh: Sequence[Clique], levels: Sequence[Level]) -> int:
        request, cells = self._inputs(fresh, levels)
        self._costs.prepare(announced, request, cells)
        return sum(cells)

    def _inputs(self, fresh: Sequence[Clique], levels: Sequence[Level]) -> tuple[int, list[int]]:
        """Bytes of the request to contributors, and cells of each message of counts."""
        cells = block_cells(self.facts.with_levels(levels), fresh)
        return len(PrepareStep(tuple(fresh), tuple(levels)).to_bytes()) if fresh else 0, cells

    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[Group]:
        groups = [Group(len(encode(answers)), int(answers.nonzero.sum())) for answers in rounded]
        self._seconds += sum(group.compared_cells for group in groups) * SIGN_S
        return groups

    def _select(
        self, announced: int, groups: list[Group], plan: SelectionPlan, generated: int, lists: Sequence[int]
    ) -> None:
        self._costs.select(announced, groups, plan, generated, lists)

    def _distances(
        self, announced: int, groups: list[Group], sampler: Sampler, count: int, planes: int, generated: int
    ) -> None:
        self._costs.distances(announced, groups, sampler, count, planes, generated)

    def _measure(
        self, announced: int, samplers: Sequence[tuple[Sampler, int]], generated: int | None
    ) -> None:
        self._costs.measure(announced, samplers, generated)

    def _total_first(self, announced: int, smallest: Clique, sampler: Sampler) -> int:
        request, cells = self._inputs([smallest], ())
        self._costs.total_first(announced, request, cells, sampler)
        return sum(cells)

    def _end(self, announced: int) -> None:
        self._costs.end(announced)
