"""A dry run whose messages are those of a backend's `StepCosts` (`engine.step_costs`): the backend says what its inputs are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic

from mpc_protocols.engine.inputs.check.costs import CheckModel
from mpc_protocols.engine.inputs.contribution import block_cells
from mpc_protocols.engine.step_costs import EngineStepCosts, FreshInputs, G, P, S
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.step_dry_run import StepDryRun

if TYPE_CHECKING:
    from mpc_protocols.mechanisms.gaussian import Sampler
    from mpc_protocols.mechanisms.selection import SelectionPlan


class CostedDryRun(StepDryRun[G], Generic[G, P, S]):
    """See `StepDryRun`; here all is said but inputs of split columns, and groups."""

    def __init__(
        self,
        facts: StudyFacts,
        counts: LocalCounts,
        costs: EngineStepCosts[G, P, S],
        dealers: int,
        contributors: int,
        *,
        sign_s: float,
        gumbel_s: float,
        noise_s: float,
    ) -> None:
        """costs: of nothing yet. sign_s: CPU seconds of a party for a compared cell; others as for `StepDryRun`."""
        super().__init__(facts, counts, costs.tally, dealers, gumbel_s=gumbel_s, noise_s=noise_s)
        self._costs, self._sign_s = costs, sign_s
        self._checks = CheckModel(facts, contributors)

    @abstractmethod
    def _split_inputs(
        self, request: int, fresh: Sequence[Clique], levels: Sequence[Level]
    ) -> FreshInputs[P] | None:
        """What is shared of split columns, and the time it takes; None where they are not split. request: bytes of a request."""

    def _inputs(self, fresh: Sequence[Clique], levels: Sequence[Level]) -> tuple[int, FreshInputs[P]]:
        """The cells of all marginals, and what is shared for them."""
        request = len(PrepareStep(tuple(fresh), tuple(levels)).to_bytes()) if fresh else 0
        cells = block_cells(self.facts.with_levels(levels), fresh)
        return sum(cells), self._split_inputs(request, fresh, levels) or FreshInputs(request, cells)

    def _prepare(self, announced: int, fresh: Sequence[Clique], levels: Sequence[Level]) -> int:
        cells, inputs = self._inputs(fresh, levels)
        self._costs.prepare(announced, inputs)
        check = self._checks.next(fresh, levels)
        self._check_inputs(check, self._costs.input_check, self._sign_s)
        return cells

    def _select(
        self,
        announced: int,
        groups: list[G],
        plan: SelectionPlan,
        generated: int,
        lists: Sequence[Sequence[int]],
        expected: tuple[Sampler, int] | None,
    ) -> None:
        self._costs.select(announced, groups, plan, generated, list(map(len, lists)), expected)

    def _distances(
        self, announced: int, groups: list[G], sampler: Sampler, count: int, planes: int, generated: int
    ) -> None:
        self._costs.distances(announced, groups, sampler, count, planes, generated)

    def _measure(
        self, announced: int, samplers: Sequence[tuple[Sampler, int]], generated: int | None
    ) -> None:
        self._costs.measure(announced, samplers, generated)

    def _total_first(self, announced: int, smallest: Clique, sampler: Sampler) -> int:
        cells, inputs = self._inputs([smallest], ())
        self._costs.total_first(announced, inputs, sampler, self._checks.next([smallest], ()))
        return cells

    def _end(self, announced: int) -> None:
        self._costs.end(announced)
