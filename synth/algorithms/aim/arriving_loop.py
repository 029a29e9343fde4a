"""The run of AIM while contributors arrive (`arriving`): one oracle for each round of arrivals, of the rows
that are there.

Every oracle begins with the running total, which bounds the rows of its round; what it measures is kept with
that total, so that the fit can scale it. The model may take t / T of its size in round t.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from synth.mrf import Measurement
from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS, Rounds, root
from synth.synthesis import Measured, Synthesis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, MarginalOracle, Observe
    from synth.algorithms.aim.arriving import ArrivingPlan


def run(oracles: Iterable[MarginalOracle], plan: ArrivingPlan, observe: Observe) -> Synthesis:
    """oracles: of the rounds, each used up before the next is asked for. Raises what they raise."""
    run: _Arriving | None = None
    rounds = plan.rounds[1]
    for number, oracle in enumerate(oracles, 1):
        if run is None:
            run = _Arriving(oracle, plan, observe)
        run.enter(oracle)
        if number == 1:
            run.measure_columns(plan.one_way, plan.sigma2, 0)
        run.refit(len(run.selected), ROUND_ITERATIONS if number == 1 else 0)  # later ones: to these rows
        if candidates := run.offered(number / rounds):
            run.share(candidates)
            run.round(candidates, plan.sigma2, plan.epsilon, False)
        if number == rounds:
            run.count_again()
            if plan.again:
                run.measure_columns(plan.one_way, plan.sigma2, len(run.selected) + 1)
            run.refit(len(run.selected), FINAL_ITERATIONS)
    assert run is not None  # there is a round
    return run.synthesis()


class _Arriving(Rounds):
    """rows: the noisy number of the rows that are there."""

    plan: ArrivingPlan

    def __init__(self, oracle: MarginalOracle, plan: ArrivingPlan, observe: Observe) -> None:
        super().__init__(oracle, plan, observe)
        self._total = 1.0

    @property
    def noisy_total(self) -> float:
        """Of the round that is under way."""
        return self._total

    @property
    def _rows(self) -> int:
        return max(1, round(self._total))

    def enter(self, oracle: MarginalOracle) -> None:
        """Ask the next round how many rows there are; what was shared in the one before is another table's."""
        self.oracle, self.handles, self._penalties = oracle, {}, {}
        self._total = float(self._count())

    def count_again(self) -> None:
        """Of the rows of this very round: the mean of both totals has half the noise."""
        self._total = (self._total + self._count()) / 2

    def _count(self) -> int:
        sigma2 = self.plan.total_sigma2
        value = self.oracle.total(sigma2)
        self.spent += self.plan.charges.counting(sigma2)
        self.observe("measure", "total", noisy_total=float(value), sigma=root(sigma2), **self.spending())
        return value

    def offered(self, share: float) -> list[Clique]:
        """Candidates that can win on these rows and fit this share of the model."""
        plan = self.plan
        can_win = plan.can_win(plan.sigma2, self._total)
        self.handles = dict.fromkeys(can_win, 0)
        fitting = self.fitting(can_win, plan.config.max_model_mb * share)
        self.handles = {}
        return fitting

    def _followed(self, measured: Measured) -> Sequence[Measurement]:
        assert measured.rows is not None  # `_keep` has set it
        f = self._rows / measured.rows
        return [
            Measurement(
                measured.clique, measured.values.astype(np.float64) * f, float(measured.sigma2) * f * f
            )
        ]

    def _keep(
        self,
        cliques: Sequence[Clique],
        values: Sequence[NDArray[np.int64]],
        sigma2: Fraction,
        rounds: Sequence[int],
    ) -> None:
        before = len(self.measurements)
        super()._keep(cliques, values, sigma2, rounds)
        self.measurements[before:] = [replace(new, rows=self._rows) for new in self.measurements[before:]]
