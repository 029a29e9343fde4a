"""What a run costs: a dry run in one process on a presumed table, with every message of the secure protocols counted.

The synthesizer is the real one; its oracle answers in the clear (`ideal`, the same distribution) and replays each step's
messages on a `Tally` (`replicated.step_costs`). What no plan can know is taken from the presumed table: which
candidates win, and how many of the model's answers are 0. No private data, nothing released, nothing charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

from mpc_protocols.backend import AllowAll, DryRun
from mpc_protocols.engine.noise_pool import GAUSSIAN_ROWS, GUMBEL_ROWS, PoolModel
from mpc_protocols.engine.tally import Tally
from mpc_protocols.functionality import Clique, Handle, Level, LocalCounts, StudyFacts
from mpc_protocols.ideal import IdealOracle
from mpc_protocols.mechanisms.measurement import by_sampler
from mpc_protocols.public.state import (
    Begun,
    BegunDistances,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
    BegunTotal,
)
from mpc_protocols.public.steps import EndStep, PrepareStep
from mpc_protocols.replicated import costs, step_costs
from mpc_protocols.replicated.inputs.contribution import blocks
from mpc_protocols.replicated.scores.answer_codec import encode
from mpc_protocols.replicated.scores.bit_cache import CacheModel
from mpc_protocols.replicated.scores.dealer import DEALERS
from mpc_protocols.replicated.vertical.costs import prepare_vertical
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
        self, facts: StudyFacts, counts: LocalCounts, contributors: int, split: Partition | None = None
    ) -> None:
        """counts: marginals of the presumed table. split: of a vertical study's common table."""
        self.facts = facts
        self.tally = Tally.of(3 + contributors)
        step_costs.agree_on_delay(self.tally)
        self._shared_cells = 0
        self.signs = 0
        self.noise = 0
        self.products = 0
        self._schedule = None if split is None else Schedule(split, facts, 3)
        self._marks: list[tuple[int, int]] = []
        self._cells = CacheModel()
        self._selecting: tuple[BegunSelect, RoundedAnswers] | None = None
        self._ideal = IdealOracle(facts, counts, AllowAll(), dealers=DEALERS, watch=self._count)
        self._gumbel, self._gaussian = PoolModel(GUMBEL_ROWS), PoolModel(GAUSSIAN_ROWS)

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

    def prepare(self, cliques: Sequence[Clique], levels: Sequence[Level] = ()) -> list[Handle]:
        return self._ideal.prepare(cliques, levels)

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        picked = self._ideal.select(handles, answers, weights, penalties, epsilon, picks, conflicts)
        assert self._selecting is not None
        self._select(*self._selecting, picked)
        return picked

    def measure(
        self, handles: Sequence[Handle], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        return self._ideal.measure(handles, sigma2)

    def distances(
        self, handles: Sequence[Handle], answers: Sequence[NDArray[np.float64]], sigma2: Fraction
    ) -> NDArray[np.int64]:
        return self._ideal.distances(handles, answers, sigma2)

    def total(self, sigma2: Fraction) -> int:
        return self._ideal.total(sigma2)

    def _count(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        """What a step sends."""
        announced = len(begun.step.to_bytes())
        if isinstance(begun, BegunPrepare):
            self._share(announced, begun.fresh, begun.levels)
        elif isinstance(begun, BegunSelect):
            assert rounded is not None
            self._selecting = begun, rounded  # counted when it is known on which lists the picks were made
        elif isinstance(begun, BegunDistances):
            assert rounded is not None
            self._distances(announced, begun, rounded)
        elif isinstance(begun, BegunMeasure):
            self._measure(announced, begun)
        elif isinstance(begun, BegunTotal):
            self._total(announced, begun)

    def _share(self, announced: int, fresh: Sequence[Clique], levels: Sequence[Level]) -> None:
        """Marginals are shared that were not before: counts travel, or the owners' columns are multiplied."""
        request = len(PrepareStep(tuple(fresh), tuple(levels)).to_bytes()) if fresh else 0
        facts = self.facts.with_levels(levels)
        cells = [sum(map(facts.cells, fresh[block])) for block in blocks(facts, fresh)]
        self._shared_cells += sum(cells)
        if self._schedule is None or not fresh:
            step_costs.prepare(self.tally, announced, request, cells)
            return
        self._schedule.declare(levels)
        work = self._schedule.next(fresh)
        prepare_vertical(self.tally, announced, request, self._schedule.facts, work)
        if work.plan is not None:
            self.products += sum(
                work.plan.partition.rows * prod(work.plan.shape(group))
                for group in work.plan.groups(by_permutation=False)
            )

    def _select(self, begun: BegunSelect, rounded: RoundedAnswers, picked: Sequence[int]) -> None:
        plan = begun.plan
        several = len(plan.kept) > 1
        groups = self._groups(rounded, plan.sign_bits) if several else []
        rows = plan.picks * len(plan.kept)
        generated = self._gumbel.take((plan.a, plan.ring_bits), rows) if several else 0
        lists = [len(plan.candidates(picked[:number])) for number in range(len(picked))]
        step_costs.select(
            self.tally,
            len(begun.step.to_bytes()),
            groups,
            len(plan.kept),
            plan.a,
            plan.sign_bits,
            plan.ring_bits,
            generated=generated,
            lists=lists + [0] * (plan.picks - len(lists)) if plan.picks > 1 else (),
        )
        self.signs += sum(sum(group.compared) for group in groups)

    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[step_costs.Group]:
        """What travels for each group of candidates."""
        found = []
        for answers in rounded:
            compared, shared = self._cells.compare(answers, planes)
            found.append(
                step_costs.Group([len(payload) for payload in encode(answers, (0, 2))], compared, shared)
            )
        return found

    def _measure(self, announced: int, begun: BegunMeasure) -> None:
        samplers = [(of, sum(cells)) for of, cells in by_sampler(begun.plan.samplers, begun.cells)]
        if len(samplers) > 1:
            step_costs.measure_several(self.tally, announced, samplers)
            self.noise += sum(begun.cells)
        else:
            [(sampler, cells)] = samplers
            generated = self._gaussian.take(sampler.digest, cells)
            step_costs.measure(self.tally, announced, sampler, cells, generated=generated)
            self.noise += generated
        self._marks.append((self.tally.rounds, sum(self.tally.sent)))

    def _distances(self, announced: int, begun: BegunDistances, rounded: RoundedAnswers) -> None:
        sampler, n, planes = begun.plan.samplers[0], len(begun.step.handles), begun.answers.planes
        groups = self._groups(rounded, planes)
        generated = self._gaussian.take(sampler.digest, n)
        step_costs.distances(self.tally, announced, groups, sampler, n, planes, generated=generated)
        self.signs += sum(sum(group.compared) for group in groups)
        self.noise += generated

    def _total(self, announced: int, begun: BegunTotal) -> None:
        sampler = begun.plan.samplers[0]
        generated = self._gaussian.take(sampler.digest, 1)
        self.noise += generated
        if self._ideal.state.shared:
            step_costs.measure(self.tally, announced, sampler, 1, generated=generated)
            return
        # nothing is shared yet: the smallest column travels for it, with an agreement of its own (`replicated.party`)
        smallest = (min(self.facts.sizes, key=lambda column: self.facts.sizes[column]),)
        self._share(announced, [smallest], ())
        step_costs.agreement(self.tally)
        costs.gaussian_noise(self.tally, sampler, 1)
        costs.opening(self.tally, 1)

    def close(self) -> None:
        """The end of the run: one more step."""
        step_costs.end(self.tally, len(EndStep().to_bytes()))
