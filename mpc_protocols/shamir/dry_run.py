"""What a run on Shamir shares costs: a dry run in one process on a presumed table, with every message counted.

The synthesizer is the real one; its oracle answers in the clear (`ideal`, the same law) and replays each step's messages
(`shamir.steps`). What no plan can know is taken from the presumed table: which candidates win, and how many of the model's
answers are 0. No private data, nothing released, nothing charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.backend import AllowAll, DryRun
from mpc_protocols.engine.noise_pool import GAUSSIAN_ROWS, GUMBEL_ROWS, PoolModel
from mpc_protocols.functionality import Clique, Handle, Level, LocalCounts, StudyFacts
from mpc_protocols.ideal import IdealOracle
from mpc_protocols.mechanisms.measurement import by_sampler
from mpc_protocols.pair.answer_codec import encode
from mpc_protocols.public.state import (
    Begun,
    BegunDistances,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
    BegunTotal,
)
from mpc_protocols.public.steps import EndStep, PrepareStep
from mpc_protocols.replicated.inputs.contribution import blocks
from mpc_protocols.shamir.engine import DEALERS
from mpc_protocols.shamir.field import Scheme
from mpc_protocols.shamir.steps import Group, StepCosts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.public.rounded_answers import RoundedAnswers


SIGN_S, GUMBEL_S, NOISE_S = 2e-7, 1e-4, 2e-6
"""CPU seconds of a party for a compared cell, a candidate's noise and a noisy cell, of three parties; of m, times the
number of streams that a party draws, of which it has five there (`mesh`)."""


class ShamirDryRun(DryRun):
    """The ideal oracle, counting what `computing` parties and `contributors` others would send."""

    def __init__(self, facts: StudyFacts, counts: LocalCounts, computing: int, contributors: int) -> None:
        """counts: marginals of the presumed table. Raises `StudyInvalid` (number of parties)."""
        self.facts = facts
        self._costs = StepCosts(computing, contributors, leader=facts.leader)
        self._weight = (len(Scheme(0, computing).sets) + computing) / 5
        self._seconds = 0.0
        self._shared_cells = 0
        self._marks: list[tuple[int, int]] = []
        self._selecting: tuple[BegunSelect, RoundedAnswers] | None = None
        self._ideal = IdealOracle(facts, counts, AllowAll(), dealers=DEALERS, watch=self._count)
        self._gumbel, self._gaussian = PoolModel(GUMBEL_ROWS), PoolModel(GAUSSIAN_ROWS)

    @property
    def rounds(self) -> int:
        return self._costs.tally.rounds

    @property
    def sent(self) -> Sequence[int]:
        return self._costs.tally.sent

    @property
    def marks(self) -> Sequence[tuple[int, int]]:
        return self._marks

    @property
    def shared_cells(self) -> int:
        return self._shared_cells

    @property
    def seconds(self) -> float:
        return self._seconds

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

    def close(self) -> None:
        """The end of the run: one more step."""
        self._costs.end(len(EndStep().to_bytes()))

    def _count(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        """What a step sends."""
        announced = len(begun.step.to_bytes())
        if isinstance(begun, BegunPrepare):
            self._costs.prepare(announced, *self._inputs(begun.fresh, begun.levels))
        elif isinstance(begun, BegunSelect):
            assert rounded is not None
            self._selecting = begun, rounded  # counted when it is known on which lists the picks were made
        elif isinstance(begun, BegunDistances):
            assert rounded is not None
            sampler, count = begun.plan.samplers[0], len(begun.step.handles)
            groups, planes = self._groups(rounded), begun.answers.planes
            self._costs.distances(
                announced, groups, sampler, count, planes, self._noise(sampler.digest, count)
            )
        elif isinstance(begun, BegunMeasure):
            self._measure(announced, begun)
        elif isinstance(begun, BegunTotal):
            self._total(announced, begun)

    def _inputs(self, fresh: Sequence[Clique], levels: Sequence[Level]) -> tuple[int, list[int]]:
        """Bytes of the request to contributors, and cells of each message of counts."""
        facts = self.facts.with_levels(levels)
        cells = [sum(map(facts.cells, fresh[block])) for block in blocks(facts, fresh)]
        self._shared_cells += sum(cells)
        return len(PrepareStep(tuple(fresh), tuple(levels)).to_bytes()) if fresh else 0, cells

    def _select(self, begun: BegunSelect, rounded: RoundedAnswers, picked: Sequence[int]) -> None:
        plan = begun.plan
        several = len(plan.kept) > 1
        rows = plan.picks * len(plan.kept)
        generated = self._gumbel.take((plan.a, plan.ring_bits), rows) if several else 0
        self._seconds += generated * GUMBEL_S * self._weight
        lists = [len(plan.candidates(picked[:number])) for number in range(len(picked))]
        self._costs.select(
            len(begun.step.to_bytes()),
            self._groups(rounded) if several else [],
            plan,
            generated,
            lists + [0] * (plan.picks - len(lists)) if plan.picks > 1 else (),
        )

    def _groups(self, rounded: RoundedAnswers) -> list[Group]:
        """What travels for each group of candidates."""
        groups = [
            Group(len(encode(of)), of.layout.sums(0, of.nonzero.astype(np.int64), np.int64)) for of in rounded
        ]
        self._seconds += sum(int(group.lengths.sum()) for group in groups) * SIGN_S * self._weight
        return groups

    def _noise(self, kind: bytes, cells: int) -> int:
        """Noise that is generated for so many cells."""
        generated = self._gaussian.take(kind, cells)
        self._seconds += generated * NOISE_S * self._weight
        return generated

    def _measure(self, announced: int, begun: BegunMeasure) -> None:
        samplers = [(of, sum(cells)) for of, cells in by_sampler(begun.plan.samplers, begun.cells)]
        if len(samplers) > 1:
            self._seconds += sum(begun.cells) * NOISE_S * self._weight
            self._costs.measure(announced, samplers)
        else:
            [(sampler, cells)] = samplers
            self._costs.measure(announced, samplers, self._noise(sampler.digest, cells))
        self._marks.append((self.rounds, sum(self.sent)))

    def _total(self, announced: int, begun: BegunTotal) -> None:
        sampler = begun.plan.samplers[0]
        generated = self._noise(sampler.digest, 1)
        if self._ideal.state.shared:
            self._costs.measure(announced, [(sampler, 1)], generated)
            return
        # nothing is shared yet: the smallest column travels for it, with an agreement of its own (`engine.step`)
        smallest = (min(self.facts.sizes, key=lambda column: self.facts.sizes[column]),)
        self._costs.total_first(announced, *self._inputs([smallest], ()), sampler)
