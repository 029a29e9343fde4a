"""AIM's run: select, measure, fit, until the budget is spent (`notes.md` 4; `plan` fixes noise and candidates).

The loop sees private data through a `MarginalOracle` alone, and everything it computes with (noisy counts, the model, its
answers) is public post-processing: floats are allowed, and nothing is charged but the oracle's releases. Each computing
party's own accountant stands inside the oracle; this loop plans with the same exact rationals so that it is never refused.

    0   measure all one-column marginals (one batch); their sums give the noisy total, the only row count used anywhere
    1   share the candidates that can win (`AimPlan.shared`), once
    t   candidates: those that can win at this round's noise and keep the model within max_model_mb * (rho used / rho),
        or that the model holds already; select; measure; refit from the last potentials

Adaptive rounds: if measuring q moved the model's answer by no more than the noise would, sigma is halved and epsilon doubled;
when less than two rounds' worth is left, the last round takes all of it. The loop is a zCDP filter's client: noise and
stopping read released values only (`mechanisms.md` 4). If no candidate can win (a small table, little budget), what is left
sharpens the one-column marginals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mpc_protocols.mechanisms.gaussian import MIN_SIGMA2
from synth.charges import MOST_EPSILON
from synth.mrf import Measurement, Model, SizeEstimator, fit, model_size_mb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Handle, MarginalOracle
    from synth.aim import Observe
    from synth.aim.plan import AimPlan

ROUND_ITERATIONS = 100
FINAL_ITERATIONS = 1000


@dataclass(frozen=True)
class Measured:
    """One noisy marginal: int64 counts in row-major order of the clique's columns; round 0 is the first batch."""

    clique: Clique
    sigma2: Fraction
    round: int
    values: NDArray[np.int64]


@dataclass(frozen=True)
class Synthesis:
    """What AIM releases. rows: how many rows the table is to have (public: the study's number, else the noisy total)."""

    model: Model
    measurements: tuple[Measured, ...]
    selected: tuple[Clique, ...]
    noisy_total: float
    rows: int


def run(oracle: MarginalOracle, plan: AimPlan, observe: Observe) -> Synthesis:
    """Run AIM on an oracle. `observe` is told public values only.

    Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is released after that.
    """
    loop = _Loop(oracle, plan, observe)
    sigma2, epsilon = plan.sigma2, plan.epsilon
    last = False
    while not last:
        left = plan.budget.rho_cap - loop.spent
        if plan.config.rounds is not None:
            last = len(loop.selected) + 1 == plan.config.rounds
        elif left < 2 * plan.round_cost(sigma2, epsilon) or len(loop.selected) + 1 == plan.rounds[1]:
            last = True
            sigma2, epsilon = plan.spend(left)
        noise, charge = max(sigma2, MIN_SIGMA2), min(epsilon, MOST_EPSILON)
        candidates = loop.candidates(noise, charge, last)
        moved = bool(candidates) and loop.round(candidates, noise, charge, last)
        if not candidates and (last or plan.config.rounds is not None):  # nor will a later round of the same noise have any
            loop.measure_singles(plan.charges.sigma2(left / len(plan.singles)), len(loop.selected) + 1)
            loop.refit(len(loop.selected) + 1, FINAL_ITERATIONS)
            break
        if plan.config.rounds is None and not moved:
            sigma2, epsilon = sigma2 / 4, epsilon * 2
    rows = plan.config.synthetic_rows
    if rows is None:
        rows = min(max(0, round(loop.noisy_total)), oracle.row_bound)  # wide noise must not ask for more than could be there
    return Synthesis(loop.model, tuple(loop.measurements), tuple(loop.selected), loop.noisy_total, rows)


class _Loop:
    """What a run has released so far, the model fitted to it, and the budget it took (an upper bound of the events).

    Building one measures the one-column marginals, fits them and shares the candidates.
    """

    def __init__(self, oracle: MarginalOracle, plan: AimPlan, observe: Observe) -> None:
        self.oracle, self.plan, self.observe = oracle, plan, observe
        self.measurements: list[Measured] = []
        self.selected: list[Clique] = []
        self.handles: dict[Clique, Handle] = {}
        self.spent = Fraction(0)
        self.measure_singles(plan.sigma2, 0)
        self.model = self._fitted(None, 0, ROUND_ITERATIONS)
        if cliques := plan.shared(self.noisy_total):
            self.handles = dict(zip(cliques, oracle.prepare(cliques), strict=True))

    @property
    def noisy_total(self) -> float:
        total = self.oracle.noisy_total
        if total is None:
            raise RuntimeError("an oracle must know a noisy total once marginals have been measured")
        return total

    def measure_singles(self, sigma2: Fraction, number: int) -> None:
        """Measure all one-column marginals as one batch."""
        singles = self.plan.singles
        values = self.oracle.measure(self.oracle.prepare(singles), sigma2)
        self.spent += len(singles) * self.plan.charges.measuring(sigma2)
        self.measurements += [Measured(clique, sigma2, number, v) for clique, v in zip(singles, values, strict=True)]
        self.observe("measure", "measured", round=number, cliques=[list(clique) for clique in singles], sigma=_root(sigma2),
                     noisy_total=self.noisy_total, **self._spending())

    def candidates(self, sigma2: Fraction, epsilon: Fraction, last: bool) -> list[Clique]:
        """Shared candidates that can win at this noise and fit the share of the model that the budget has reached."""
        plan = self.plan
        used = self.spent + plan.round_cost(sigma2, epsilon)
        limit = plan.config.max_model_mb * (1.0 if last else float(used / plan.budget.rho_cap))
        size = SizeEstimator(plan.domain.sizes, {m.clique for m in self.measurements})
        fitting = []
        for clique in plan.can_win(sigma2, self.noisy_total):
            if clique in self.handles:
                grown = size.with_clique(clique)
                if grown <= limit or grown == size.mb:
                    fitting.append(clique)
        return fitting

    def round(self, candidates: Sequence[Clique], sigma2: Fraction, epsilon: Fraction, last: bool) -> bool:
        """Select, measure, fit; whether the model's answer moved by more than the noise of the measurement would move it."""
        plan, number = self.plan, len(self.selected) + 1
        answers = self.model.marginals(candidates)
        position = self.oracle.select(
            [self.handles[clique] for clique in candidates], answers,
            [Fraction(plan.workload.weights[clique]) for clique in candidates],
            [plan.penalty(clique, sigma2) for clique in candidates], epsilon)
        self.spent += plan.charges.selecting(epsilon)
        clique, before = candidates[position], answers[position]
        self.selected.append(clique)
        self.observe("select", "selected", round=number, rounds=plan.rounds[1], clique=list(clique), candidates=len(candidates),
                     epsilon=float(epsilon), **self._spending())

        values, = self.oracle.measure([self.handles[clique]], sigma2)
        self.spent += plan.charges.measuring(sigma2)
        self.measurements.append(Measured(clique, sigma2, number, values))
        noise = float(plan.penalty(clique, sigma2))
        self.observe("measure", "measured", round=number, clique=list(clique), sigma=_root(sigma2), cells=len(values),
                     noisy_l1_to_model=float(np.abs(values - before).sum()), l1_of_noise=noise, **self._spending())

        self.refit(number, FINAL_ITERATIONS if last else ROUND_ITERATIONS)
        return float(np.abs(self.model.marginal(clique) - before).sum()) > noise

    def refit(self, number: int, iterations: int) -> None:
        """Fit the model to everything measured so far, from the last potentials."""
        self.model = self._fitted(self.model, number, iterations)

    def _fitted(self, last: Model | None, number: int, iterations: int) -> Model:
        sizes, loss = self.plan.domain.sizes, float("nan")

        def watch(_: int, now: float) -> None:
            nonlocal loss
            loss = now

        began = time.perf_counter()
        measurements = [Measurement(m.clique, m.values.astype(np.float64), float(m.sigma2)) for m in self.measurements]
        model = fit(sizes, measurements, total=max(1.0, self.noisy_total), warm_start=last, iterations=iterations, callback=watch)
        self.observe("fit", "fitted", round=number, iterations=iterations, loss=loss,
                     model_mb=model_size_mb(sizes, model.cliques), seconds=time.perf_counter() - began)
        return model

    def _spending(self) -> dict[str, float]:
        return {"rho_spent": float(self.spent), "rho": float(self.plan.budget.rho_cap)}


def _root(sigma2: Fraction) -> float:
    return math.sqrt(sigma2)
