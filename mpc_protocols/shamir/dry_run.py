"""What a run on Shamir shares costs: a dry run on a presumed table, with the messages of `shamir.steps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.costed_dry_run import CostedDryRun
from mpc_protocols.engine.inputs.answer_codec import encode
from mpc_protocols.engine.inputs.contribution import block_cells
from mpc_protocols.engine.step_costs import FreshInputs
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.shamir.costs import Masks
from mpc_protocols.shamir.engine import DEALERS
from mpc_protocols.shamir.sharing.field import Scheme
from mpc_protocols.shamir.steps import Group, StepCosts
from mpc_protocols.shamir.vertical.costs import seconds
from mpc_protocols.shamir.vertical.plan import TablesPlan, schedule_of

if TYPE_CHECKING:
    from mpc_protocols.partition import Partition
    from mpc_protocols.public.rounded_answers import RoundedAnswers


SIGN_S, GUMBEL_S, NOISE_S = 2e-7, 1e-4, 2e-6
"""CPU seconds of a party for a compared cell, a candidate's noise and a noisy cell, of three parties; of m, times the
number of streams that a party draws, of which it has five there (`mesh`)."""


class ShamirDryRun(CostedDryRun[Group, TablesPlan, Masks]):
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
        weight = (len(Scheme(0, computing).sets) + computing) / 5
        super().__init__(
            facts,
            counts,
            StepCosts(computing, contributors, leader=facts.leader),
            DEALERS,
            contributors,
            sign_s=SIGN_S * weight,
            gumbel_s=GUMBEL_S * weight,
            noise_s=NOISE_S * weight,
        )

    def _split_inputs(
        self, request: int, fresh: Sequence[Clique], levels: Sequence[Level]
    ) -> FreshInputs[TablesPlan] | None:
        if self._schedule is None or not fresh:
            return None
        self._schedule.declare(levels)
        work = self._schedule.next(fresh)
        if work.plan is not None:
            self._seconds += seconds(work.plan, self._computing)
        return FreshInputs(request, block_cells(self._schedule.facts, work.histograms), work.plan)

    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[Group]:
        groups = [
            Group(len(encode(of)), of.layout.sums(0, of.nonzero.astype(np.int64), np.int64)) for of in rounded
        ]
        self._seconds += sum(int(group.lengths.sum()) for group in groups) * self._sign_s
        return groups
