"""What a run over an engine costs: a dry run in one process on a presumed table, with every message counted.

The synthesizer is the real one; its oracle answers in the clear (`ideal`, the same distribution), and a backend replays each
step's messages on a `Tally`. What no plan can know is taken from the presumed table: which candidates win, and how many of the
model's answers are 0. No private data, nothing released, nothing charged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from mpc_protocols.engine.noise.pool import GAUSSIAN_ROWS, GUMBEL_ROWS, PoolModel
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.mechanisms.measurement import by_sampler
from mpc_protocols.public.begun import (
    Begun,
    BegunDistances,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
    BegunTotal,
)
from mpc_protocols.public.steps import EndStep
from mpc_protocols.tallied_dry_run import TalliedDryRun

if TYPE_CHECKING:
    from mpc_protocols.engine.inputs.check.costs import CheckSizes
    from mpc_protocols.engine.tally import Tally
    from mpc_protocols.mechanisms.gaussian import Sampler
    from mpc_protocols.mechanisms.selection import SelectionPlan
    from mpc_protocols.public.rounded_answers import RoundedAnswers

G = TypeVar("G")
"""What a backend's costs know of a group of candidates."""


class StepDryRun(TalliedDryRun, Generic[G]):
    """The ideal oracle, counting what every party would send; a backend says what each step sends.

    generated: rows of noise that a step makes, for itself and ahead (`PoolModel`).
    """

    def __init__(
        self,
        facts: StudyFacts,
        counts: LocalCounts,
        tally: Tally,
        dealers: int,
        *,
        gumbel_s: float = 0.0,
        noise_s: float = 0.0,
    ) -> None:
        """counts: marginals of the presumed table. gumbel_s, noise_s: CPU seconds of a party for one row of either noise."""
        super().__init__(facts, counts, tally, dealers)
        self._gumbel_s, self._noise_s = gumbel_s, noise_s
        self._seconds = 0.0
        self._fresh_cells = 0
        self._check_rounds = self._check_bytes = 0
        self._gumbel, self._gaussian = PoolModel(GUMBEL_ROWS), PoolModel(GAUSSIAN_ROWS)

    @property
    def input_checks(self) -> tuple[int, int]:
        return self._check_rounds, self._check_bytes

    @property
    def shared_cells(self) -> int:
        return self._fresh_cells

    @property
    def seconds(self) -> float:
        return self._seconds

    def close(self) -> None:
        """The end of the run: one more step."""
        self._end(len(EndStep().to_bytes()))

    # -- what a backend says -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _prepare(self, announced: int, fresh: Sequence[Clique], levels: Sequence[Level]) -> int:
        """Marginals are shared that were not before, in a step of so many bytes; the cells of all of them."""

    @abstractmethod
    def _groups(self, rounded: RoundedAnswers, planes: int) -> list[G]:
        """What travels for each group of candidates, and the time it takes."""

    @abstractmethod
    def _select(
        self,
        announced: int,
        groups: list[G],
        plan: SelectionPlan,
        generated: int,
        lists: Sequence[Sequence[int]],
        expected: tuple[Sampler, int] | None,
    ) -> None:
        """A selection. groups: empty if there is one contender. lists: of several picks, the candidates of each. expected: the
        noise that is made beside the picks, and how many rows."""

    @abstractmethod
    def _distances(
        self, announced: int, groups: list[G], sampler: Sampler, count: int, planes: int, generated: int
    ) -> None:
        """So many noisy distances."""

    @abstractmethod
    def _measure(
        self, announced: int, samplers: Sequence[tuple[Sampler, int]], generated: int | None
    ) -> None:
        """Noisy counts: so many cells of each sampler. generated: None if there are several samplers, which make their own."""

    @abstractmethod
    def _total_first(self, announced: int, smallest: Clique, sampler: Sampler) -> int:
        """The noisy number of rows where nothing is shared yet: the smallest column travels for it. Returns its cells."""

    @abstractmethod
    def _end(self, announced: int) -> None:
        """The last step."""

    def _check_inputs(
        self, check: CheckSizes | None, count: Callable[[CheckSizes], None], seconds: float
    ) -> None:
        """A check of contributors' inputs, if there is one. count: what it sends. seconds: of CPU for one sign."""
        if check is None:
            return
        rounds, sent = self.rounds, sum(self.sent)
        count(check)
        self._check_rounds += self.rounds - rounds
        self._check_bytes += sum(self.sent) - sent
        self._seconds += check.signs * seconds

    # -- what is counted alike ---------------------------------------------------------------------------------------------

    def _count(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        announced = len(begun.step.to_bytes())
        if isinstance(begun, BegunPrepare):
            self._fresh_cells += self._prepare(announced, begun.fresh, begun.levels)
        elif isinstance(begun, BegunDistances):
            assert rounded is not None
            sampler, count = begun.plan.samplers[0], len(begun.step.handles)
            planes = begun.answers.planes
            groups = self._groups(rounded, planes)
            self._distances(announced, groups, sampler, count, planes, self._noise(sampler, count))
        elif isinstance(begun, BegunMeasure):
            samplers = [(of, sum(cells)) for of, cells in by_sampler(begun.plan.samplers, begun.cells)]
            if len(samplers) > 1:
                self._seconds += sum(begun.cells) * self._noise_s
                self._measure(announced, samplers, None)
            else:
                self._measure(announced, samplers, self._noise(*samplers[0]))
        elif isinstance(begun, BegunTotal):
            sampler = begun.plan.samplers[0]
            generated = self._noise(sampler, 1)
            if self._ideal.state.shared:
                self._measure(announced, [(sampler, 1)], generated)
            else:  # the smallest column travels for it, with an agreement of its own (`engine.step`)
                smallest = min(self.facts.sizes, key=lambda column: self.facts.sizes[column])
                self._fresh_cells += self._total_first(announced, (smallest,), sampler)

    def _count_select(self, begun: BegunSelect, rounded: RoundedAnswers, picked: Sequence[int]) -> None:
        plan = begun.plan
        several = len(plan.contenders) > 1
        rows = plan.picks * len(plan.contenders)
        generated = self._gumbel.take((plan.a, plan.ring_bits), rows) if several else 0
        self._seconds += generated * self._gumbel_s
        made = None
        if several and begun.expected is not None:
            sampler, most = begun.expected
            made = sampler, self._gaussian.fill(sampler.digest, most)
            self._seconds += made[1] * self._noise_s
        lists = [plan.candidates(picked[:number]) for number in range(len(picked))]
        self._select(
            len(begun.step.to_bytes()),
            self._groups(rounded, plan.sign_bits) if several else [],
            plan,
            generated,
            lists + [()] * (plan.picks - len(lists)) if plan.picks > 1 else (),
            made,
        )

    def _noise(self, sampler: Sampler, cells: int) -> int:
        """Rows that are generated for so many cells."""
        generated = self._gaussian.take(sampler.digest, cells)
        self._seconds += generated * self._noise_s
        return generated
