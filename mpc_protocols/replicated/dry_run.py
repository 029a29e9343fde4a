"""What a run costs: a dry run in one process on a presumed table, with every message of the secure protocols counted.

The synthesizer is the real one; its oracle answers in the clear (`ideal`, the same law) and replays each step's messages on a
`Tally` (`mpc_protocols.replicated.costs`). What no plan can know is taken from the presumed table: which candidates win, and how
many of the model's answers are 0. No private data, nothing released, nothing charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

from mpc_protocols.backend import AllowAll, DryRun
from mpc_protocols.engine.noise_pool import GAUSSIAN_ROWS, GUMBEL_ROWS, Supply
from mpc_protocols.functionality import Clique, Handle, LocalCounts, Setting
from mpc_protocols.ideal import IdealOracle
from mpc_protocols.public.state import EndStep, MeasureStep, PrepareStep, TotalStep
from mpc_protocols.replicated import costs
from mpc_protocols.replicated.inputs.contribution import blocks
from mpc_protocols.replicated.scores.answer_codec import encode
from mpc_protocols.replicated.scores.bit_cache import ComparedCells
from mpc_protocols.replicated.vertical import costs as vertical
from mpc_protocols.replicated.vertical.schedule import Schedule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.partition import Partition
    from mpc_protocols.public.rounded_answers import RoundedAnswers


SIGN_S, NOISE_S = 60e-9, 0.8e-6
"""CPU seconds of a party per compared cell and per noisy cell, while others run on the same machine."""
PRODUCT_S = 1e-9
"""The same per product of two numbers in a table over two owners' columns."""


class ReplicatedDryRun(DryRun):
    """The ideal oracle, counting what three computing parties and `contributors` others would send.

    tally: clocks and bytes so far. signs, noise: cells compared over all selections, and cells' noise made, which the time of a
    run follows; products: of two numbers, at each party, where columns are split.
    """

    def __init__(
        self, setting: Setting, counts: LocalCounts, contributors: int, split: Partition | None = None
    ) -> None:
        """counts: marginals of the presumed table. split: of a vertical study's common table."""
        self.setting = setting
        self.tally = costs.Tally.of(3 + contributors)
        costs.pace(self.tally)
        self._shared_cells = 0
        self.signs = 0
        self.noise = 0
        self.products = 0
        self._schedule = None if split is None else Schedule(split, setting, 3)
        self._marks: list[tuple[int, int]] = []
        self._cells = ComparedCells()
        self._ideal = IdealOracle(setting, counts, AllowAll())
        self._gumbel, self._gaussian = Supply(GUMBEL_ROWS), Supply(GAUSSIAN_ROWS)

    @property
    def rounds(self) -> int:
        return self.tally.rounds

    @property
    def sent(self) -> Sequence[int]:
        return self.tally.sent

    @property
    def marks(self) -> Sequence[tuple[int, int]]:
        return self._marks

    @property
    def shared_cells(self) -> int:
        return self._shared_cells

    @property
    def seconds(self) -> float:
        return self.signs * SIGN_S + self.noise * NOISE_S + self.products * PRODUCT_S

    @property
    def row_bound(self) -> int:
        return self._ideal.row_bound

    @property
    def noisy_total(self) -> float | None:
        return self._ideal.noisy_total

    def prepare(self, cliques: Sequence[Clique]) -> list[Handle]:
        step = PrepareStep(tuple(cliques))
        fresh = self._ideal.state.to_share(step)
        self._share(len(step.to_bytes()), fresh)
        return self._ideal.prepare(cliques)

    def _share(self, announced: int, fresh: Sequence[Clique]) -> None:
        """Marginals are shared that were not before: counts travel, or the owners' columns are multiplied."""
        request = len(PrepareStep(tuple(fresh)).to_bytes()) if fresh else 0
        cells = [sum(map(self.setting.cells, fresh[block])) for block in blocks(self.setting, fresh)]
        self._shared_cells += sum(cells)
        if self._schedule is None or not fresh:
            costs.prepare(self.tally, announced, request, cells)
            return
        work = self._schedule.next(fresh)
        vertical.prepare(self.tally, announced, request, self.setting, work)
        if work.plan is not None:
            self.products += sum(
                work.plan.partition.rows * prod(work.plan.shape(group))
                for group in work.plan.groups(ordered=False)
            )

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
    ) -> int:
        state = self._ideal.state
        step, rounded = state.select_step(handles, answers, weights, penalties, epsilon)
        plan = state.plan_select(step)
        several = len(plan.kept) > 1
        groups = self._groups(rounded, plan.sign_bits) if several else []
        made = self._gumbel.take((plan.a, plan.ring_bits), len(plan.kept)) if several else 0
        costs.select(
            self.tally,
            len(step.to_bytes()),
            groups,
            len(plan.kept),
            plan.a,
            plan.sign_bits,
            plan.ring_bits,
            made=made,
        )
        self.signs += sum(sum(group.compared) for group in groups)
        return self._ideal.select(handles, answers, weights, penalties, epsilon)

    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[costs.Group]:
        """What travels for each group of candidates."""
        found = []
        for answers in rounded:
            compared, shared = self._cells.compare(answers, planes)
            found.append(costs.Group([len(payload) for payload in encode(answers, (0, 2))], compared, shared))
        return found

    def measure(self, handles: Sequence[Handle], sigma2: Fraction) -> list[NDArray[np.int64]]:
        state = self._ideal.state
        step = MeasureStep(state.next_number, tuple(handles), sigma2)
        cells = sum(map(state.cells, handles))
        sampler = state.plan_measure(step).sampler
        made = self._gaussian.take(sampler.digest, cells)
        costs.measure(self.tally, len(step.to_bytes()), sampler, cells, made=made)
        self.noise += made
        self._marks.append((self.tally.rounds, sum(self.tally.sent)))
        return self._ideal.measure(handles, sigma2)

    def total(self, sigma2: Fraction) -> int:
        state = self._ideal.state
        step = TotalStep(state.next_number, sigma2)
        sampler, announced = state.plan_total(step).sampler, len(step.to_bytes())
        made = self._gaussian.take(sampler.digest, 1)
        self.noise += made
        if state.shared:
            costs.measure(self.tally, announced, sampler, 1, made=made)
            return self._ideal.total(sigma2)
        # nothing is shared yet: the smallest column travels for it, with an agreement of its own (`replicated.party`)
        smallest = (min(self.setting.sizes, key=lambda column: self.setting.sizes[column]),)
        self._share(announced, [smallest])
        costs.agreement(self.tally)
        costs.gaussian_noise(self.tally, sampler, 1)
        costs.opening(self.tally, 1)
        return self._ideal.total(sigma2)

    def close(self) -> None:
        """The end of the run: one more step."""
        costs.end(self.tally, len(EndStep().to_bytes()))
