"""What a run on Shamir shares costs: a dry run on a presumed table (`step_dry_run`), with the messages of `shamir.steps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.engine.inputs.answer_codec import encode
from mpc_protocols.engine.inputs.check.costs import CheckModel
from mpc_protocols.engine.inputs.contribution import block_cells
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.shamir.engine import DEALERS
from mpc_protocols.shamir.sharing.field import Scheme
from mpc_protocols.shamir.steps import Group, StepCosts
from mpc_protocols.shamir.vertical.costs import seconds
from mpc_protocols.shamir.vertical.plan import TablesPlan, schedule_of
from mpc_protocols.step_dry_run import StepDryRun

if TYPE_CHECKING:
    from mpc_protocols.partition import Partition
    from mpc_protocols.public.rounded_answers import RoundedAnswers


SIGN_S, GUMBEL_S, NOISE_S = 2e-7, 1e-4, 2e-6
"""CPU seconds of a party for a compared cell, a candidate's noise and a noisy cell, of three parties; of m, times the
number of streams that a party draws, of which it has five there (`mesh`)."""


class ShamirDryRun(StepDryRun[Group]):
    """`computing` parties and `contributors` others."""

    def __init__(
        self,
        facts: StudyFacts,
        counts: LocalCounts,
        computing: int,
        contributors: int,
        split: Partition | None = None,
    ) -> None:
        """counts: marginals of the presumed table. split: of a vertical study's common table. Raises `StudyInvalid` (number of
        parties)."""
        self._computing = computing
        self._schedule = None if split is None else schedule_of(split, facts, computing)
        self._costs = StepCosts(computing, contributors, leader=facts.leader)
        self._checks = CheckModel(facts, contributors)
        weight = (len(Scheme(0, computing).sets) + computing) / 5
        self._sign_s = SIGN_S * weight
        super().__init__(
            facts,
            counts,
            self._costs.tally,
            DEALERS,
            gumbel_s=GUMBEL_S * weight,
            noise_s=NOISE_S * weight,
        )

    def _prepare(self, announced: int, fresh: Sequence[Clique], levels: Sequence[Level]) -> int:
        cells, inputs = self._inputs(fresh, levels)
        self._costs.prepare(announced, *inputs)
        check = self._checks.next(fresh, levels)
        self._check_inputs(check, self._costs.input_check, self._sign_s)
        return cells

    def _inputs(
        self, fresh: Sequence[Clique], levels: Sequence[Level]
    ) -> tuple[int, tuple[int, list[int], TablesPlan | None]]:
        """Cells; bytes of the request to contributors, cells of each message of counts, the plan of several owners' tables."""
        facts = self.facts.with_levels(levels)
        request = len(PrepareStep(tuple(fresh), tuple(levels)).to_bytes()) if fresh else 0
        cells = block_cells(facts, fresh)
        if self._schedule is None or not fresh:
            return sum(cells), (request, cells, None)
        self._schedule.declare(levels)
        work = self._schedule.next(fresh)
        if work.plan is not None:
            self._seconds += seconds(work.plan, self._computing)
        return sum(cells), (request, block_cells(self._schedule.facts, work.histograms), work.plan)

    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[Group]:
        groups = [
            Group(len(encode(of)), of.layout.sums(0, of.nonzero.astype(np.int64), np.int64)) for of in rounded
        ]
        self._seconds += sum(int(group.lengths.sum()) for group in groups) * self._sign_s
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
        cells, (request, blocks, plan) = self._inputs([smallest], ())
        self._costs.total_first(announced, request, blocks, sampler, plan, self._checks.next([smallest], ()))
        return cells

    def _end(self, announced: int) -> None:
        self._costs.end(announced)
