"""A run in progress: what has been released so far, the model fitted to it, and the budget it took.

The algorithms (`aim.loop`, `mwem.loop`, `mst.loop`) decide what to ask; asking, keeping and fitting is the same for all and
stands here. Private data is seen through a `MarginalOracle` alone, and everything computed with (noisy counts, the model, its
answers) is public post-processing: floats are allowed, and nothing is charged but the oracle's releases. Each computing
party's own accountant stands inside the oracle; the sums here are exact rationals that never fall short of the oracle's
events, so that a run that plans with them is never refused.

`observe` is told public values only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from synth.budget.small.fallback import least_share, noise_share, sentence
from synth.budget.small.small_table import Bought
from synth.budget.small.smoothing import SMALL_VALUES, smoothed
from synth.judgement.dependence import column_sums
from synth.mrf import Chains, Measurement, Model, SizeEstimator, fit, model_size_mb
from synth.mrf.fit import TOLERANCE, estimate_total
from synth.plan import too_large
from synth.synthesis import Measured, Synthesis, pooled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Handle, Level, MarginalOracle, Observe
    from synth.plan import Plan, RoundPlan

ROUND_ITERATIONS = 100
FINAL_ITERATIONS = 1000
FORESEEN_ROUNDS = 4
"""For which noise is made ahead where nobody knows how many there will be, nor for how long the noise stays the same."""
PRESUMED_ITERATIONS = 5
"""Of each fit to a presumed table: it moves as far as whoever chooses the next question can see."""


class Run:
    """One run of a plan on an oracle. spent: at least the rho of the events so far. selected: as `Synthesis.selections`.
    inherited: of a prior, what the model follows beside the measurements (`synth.prior`). is_small: whether the table is small
    (`synth.budget.small.small_table`).

    Every method that asks raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`.
    """

    def __init__(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> None:
        self.oracle, self.plan, self.observe = oracle, plan, observe
        self.measurements: list[Measured] = []
        self.inherited: Sequence[Measurement] = ()
        self.selected: list[Clique] = []
        self.handles: dict[Clique, Handle] = {}
        self.levels: dict[str, Level] = {}
        self.spent = Fraction(0)
        self.noise_share: float | None = None
        self.is_small = False
        self._smoothed: dict[
            tuple[int, int], Measurement
        ] = {}  # by a column's first measurement, how many it has
        self._model: Model | None = None

    @property
    def model(self) -> Model:
        """The model that `refit` fitted last."""
        if self._model is None:
            raise RuntimeError("A model must be fitted before it is asked.")
        return self._model

    @property
    def followed(self) -> list[Clique]:
        """The cliques of what was measured and of what is inherited."""
        return [*(m.clique for m in self.measurements), *(m.clique for m in self.inherited)]

    @property
    def noisy_total(self) -> float:
        """The number of rows as it was released first."""
        total = self.oracle.noisy_total
        if total is None:
            raise RuntimeError("An oracle must know a noisy total once marginals have been measured.")
        return total

    @property
    def total(self) -> float:
        """The number of rows as everything released tells it, where that matters: on a small table the first count may have the
        noise of a hundredth or a tenth of the budget, and a model that was scaled to it is off in every cell. At least 1."""
        if not (self.is_small and self.measurements):
            return max(1.0, self.noisy_total)
        return estimate_total(
            [Measurement(m.clique, m.values.astype(np.float64), float(m.sigma2)) for m in self.measurements]
        )

    @property
    def left(self) -> Fraction:
        """rho that is not spent yet."""
        return self.plan.budget.rho_cap - self.spent

    def share(self, cliques: Sequence[Clique]) -> None:
        """Make candidates available, once."""
        if cliques:
            self.handles = dict(zip(cliques, self.oracle.prepare(cliques), strict=True))

    def foresee(self, candidates: int, rounds: int | None) -> None:
        """Tell the oracle before the first question how many candidates so many selections will have; rounds: None if that
        is not known."""
        self.oracle.expect_keys(candidates * (FORESEEN_ROUNDS if rounds is None else rounds))

    def count_rows(self, sigma2: Fraction) -> None:
        """Ask for the number of rows: for algorithms that measure nothing before they select."""
        self.oracle.total(sigma2)
        self.spent += self.plan.charges.counting(sigma2)
        self.observe("measure", "total", noisy_total=self.noisy_total, sigma=root(sigma2), **self.spending())

    def measure_columns(self, columns: Sequence[Clique], sigma2: Fraction, number: int) -> None:
        """Measure one-way marginals as one batch; the first gives the noisy total."""
        values = self.oracle.measure(self.oracle.prepare(columns), sigma2)
        self._keep(columns, values, sigma2, [number] * len(columns))
        self.observe(
            "measure",
            "measured",
            round=number,
            cliques=[list(clique) for clique in columns],
            sigma=root(sigma2),
            noisy_total=self.noisy_total,
            **self.spending(),
        )

    def measure_reserved(self) -> None:
        """Measure what is measured whatever is selected, as one batch after the columns. Raises `StudyInvalid` if no model of
        max_model_mb holds it."""
        reserved, plan = self.plan.reserved, self.plan
        if not reserved.cliques:
            return
        self.check_size(reserved.cliques)
        sigma2 = reserved.sigma2(plan.charges, plan.budget.rho_cap)
        values = self.oracle.measure(self.oracle.prepare(reserved.cliques), sigma2)
        self._keep(reserved.cliques, values, sigma2, [0] * len(values))
        self.observe(
            "measure",
            "reserved",
            cliques=[list(clique) for clique in reserved.cliques],
            sigma=root(sigma2),
            **self.spending(),
        )

    def fall_back(self, cells: int, limit: float) -> None:
        """Have the columns take what is left: a question of so many cells has more noise than `limit` of the rows, and none
        that was tried has shown dependence."""
        share = self.noise_share = noise_share(self.plan, cells, self.noisy_total)
        reason = sentence(self.noisy_total, share, tried=any(len(m.clique) > 1 for m in self.measurements))
        self.observe("select", "fallback", cells=cells, limit=limit, reason=reason)

    def sharpen(self) -> None:
        """Spend what remains on the one-way marginals when no candidate can win. Ends the run.

        Less than plans reckon with is left: there may be no noise of such a variance."""
        number, plan = len(self.selected) + 1, self.plan
        if self.left >= len(plan.one_way) * least_share(len(plan.domain)) * plan.budget.rho_cap:
            self.sharpen_columns(self.left, number)
        self.refit(number, FINAL_ITERATIONS)

    def sharpen_columns(self, rho: Fraction, number: int = 0) -> None:
        """Measure the one-way marginals once more, for so much together. number: as `Measured.round`."""
        one_way = self.plan.one_way
        self.measure_columns(one_way, self.plan.charges.sigma2(rho / len(one_way)), number)

    def column_share(self, clique: Clique) -> Fraction:
        """Of what the one-way marginals get together, the share of this one."""
        return Fraction(1, len(self.plan.one_way))

    def column_rho(self) -> dict[Clique, Fraction]:
        """What has been spent on each one-way marginal."""
        spent = dict.fromkeys(self.plan.one_way, Fraction(0))
        for m in self.measurements:
            if m.clique in spent:
                spent[m.clique] += self.plan.charges.measuring(m.sigma2)
        return spent

    def fitting(
        self, cliques: Iterable[Clique], limit_mb: float, beside: Iterable[Clique] = ()
    ) -> list[Clique]:
        """Shared cliques that would keep the model within limit_mb, or that add nothing to it.

        beside: cliques to count as measured.
        """
        held = {*(m.clique for m in self.measurements), *beside, *self.plan.domain.impossible}
        size = SizeEstimator(self.plan.domain.sizes, held)
        return [
            clique
            for clique in cliques
            if clique in self.handles
            and ((grown := size.with_clique(clique)) <= limit_mb or grown == size.mb)
        ]

    def check_size(self, cliques: Iterable[Clique] = ()) -> None:
        """Raise `StudyInvalid` if a model of max_model_mb would not hold what was measured and these cliques: before anything is
        spent on them, and memory asked for."""
        domain, limit = self.plan.domain, self.plan.config.model_mb
        joint = [*self.followed, *cliques, *domain.impossible]
        chains = Chains.used(domain.sizes, self.levels, joint)
        size = model_size_mb(chains.sizes, joint, chains.coarser)
        if size > max(limit, model_size_mb(domain.sizes, domain.impossible)):
            raise too_large(size, limit)

    def select(
        self,
        candidates: Sequence[Clique],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
    ) -> int:
        """Position of the candidate that the oracle finds worst approximated; arguments as `MarginalOracle.select`."""
        [position] = self.oracle.select(
            [self.handles[clique] for clique in candidates], answers, weights, penalties, epsilon
        )
        self.spent += self.plan.charges.selecting(epsilon)
        clique = candidates[position]
        self.selected.append(clique)
        self.observe(
            "select",
            "selected",
            round=len(self.selected),
            rounds=self.plan.known_rounds,
            clique=list(clique),
            candidates=len(candidates),
            epsilon=float(epsilon),
            **self.spending(),
        )
        return position

    def measure_selected(
        self,
        cliques: Sequence[Clique],
        answers: Sequence[NDArray[np.float64]],
        sigma2: Fraction,
        penalties: Sequence[Fraction],
    ) -> None:
        """Measure the last selected cliques as one batch; arguments as `measure_shared`'s."""
        first = len(self.selected) - len(cliques) + 1
        self.measure_shared(cliques, answers, sigma2, penalties, range(first, first + len(cliques)))

    def measure_shared(
        self,
        cliques: Sequence[Clique],
        answers: Sequence[NDArray[np.float64]],
        sigma2: Fraction,
        penalties: Sequence[Fraction],
        rounds: Sequence[int],
    ) -> None:
        """Measure cliques as one batch. answers, penalties: the model's counts, the L1 norm of the noise. rounds: of the
        selections that picked them, 0 for none. Raises `StudyInvalid` if a model of them all would be too large."""
        self.check_size(cliques)
        values = self.oracle.measure([self.handles[clique] for clique in cliques], sigma2)
        self._keep(cliques, values, sigma2, rounds)
        for number, clique, noisy, answer, penalty in zip(
            rounds, cliques, values, answers, penalties, strict=True
        ):
            self.observe(
                "measure",
                "measured",
                round=number,
                clique=list(clique),
                sigma=root(sigma2),
                cells=len(noisy),
                noisy_l1_to_model=float(np.abs(noisy - answer).sum()),
                l1_of_noise=float(penalty),
                **self.spending(),
            )

    def refit(self, number: int, iterations: int, tolerance: float = TOLERANCE) -> None:
        """Fit the model to everything measured so far, from the last potentials; iterations, tolerance: as `fit`'s."""
        self.check_size()
        sizes, loss = self.plan.domain.sizes, float("nan")

        def watch(_: int, now: float) -> None:
            nonlocal loss
            loss = now

        if self.oracle.presumed:
            iterations = min(iterations, PRESUMED_ITERATIONS)
        began = time.perf_counter()
        self._model = fit(
            sizes,
            [
                *(followed for measured in self.measurements for followed in self._followed(measured)),
                *self.inherited,
            ],
            total=self.total if self.noise_share is None else None,
            warm_start=self._model,
            levels=self.levels,
            impossible=self.plan.domain.impossible,
            iterations=iterations,
            tolerance=tolerance,
            callback=watch,
            passing=iterations < FINAL_ITERATIONS,
        )
        self.observe(
            "fit",
            "fitted",
            round=number,
            iterations=iterations,
            loss=loss,
            model_mb=self.model.size_mb,
            seconds=time.perf_counter() - began,
        )

    def _followed(self, measured: Measured) -> Sequence[Measurement]:
        """What the model is to follow of a measurement: the released counts.

        Of a joint one in a table of independent columns, its columns' sums; of a column's first one, on a small table, what all
        of them say, and of the others nothing.
        """
        if len(measured.clique) > 1 and self.noise_share is not None:
            return column_sums(measured, measured.shape(self.plan.domain.sizes))
        if len(measured.clique) == 1 and self._smoothed_from:
            again = [m for m in self.measurements if m.clique == measured.clique]
            return [self._column(again)] if measured is again[0] else []
        return [Measurement(measured.clique, measured.values.astype(np.float64), float(measured.sigma2))]

    @property
    def _smoothed_from(self) -> int:
        """Values of an ordered column from which on it is smoothed; 0: none is."""
        return SMALL_VALUES if self.is_small else 0

    def _column(self, measured: Sequence[Measured]) -> Measurement:
        """A column as its measurements tell it; if its values have an order and are many, without what is only noise."""
        place = id(measured[0]), len(measured)
        if place not in self._smoothed:
            values, variance = pooled(measured)
            name = measured[0].columns[0]
            if len(values) >= self._smoothed_from and self.plan.domain[name].ordered:
                values = smoothed(values, math.sqrt(variance))
            self._smoothed[place] = Measurement(measured[0].clique, values, variance)
        return self._smoothed[place]

    def synthesis(self) -> Synthesis:
        """The result of the run."""
        rows, total = self.plan.config.synthetic_rows, self.noisy_total
        if (
            self.is_small or self.noise_share is not None
        ):  # most of the budget was spent after the first count
            total = self.model.total
        if rows is None:  # wide noise must not ask for more than could be there
            rows = min(max(0, round(total)), self.oracle.row_bound)
        named = {name for clique in (*self.selected, *self.followed) for name in clique}
        return Synthesis(
            self.model,
            tuple(self.measurements),
            tuple(self.selected),
            self.noisy_total,
            rows,
            self.noise_share,
            tuple(level for name, level in self.levels.items() if name in named),
        )

    def spending(self) -> dict[str, float]:
        """For observers."""
        return {"rho_spent": float(self.spent), "rho": float(self.plan.budget.rho_cap)}

    def _keep(
        self,
        cliques: Sequence[Clique],
        values: Sequence[NDArray[np.int64]],
        sigma2: Fraction,
        rounds: Sequence[int],
    ) -> None:
        self.spent += len(cliques) * self.plan.charges.measuring(sigma2)
        self.measurements += [
            Measured(clique, sigma2, number, noisy)
            for clique, noisy, number in zip(cliques, values, rounds, strict=True)
        ]


class Rounds(Run):
    """A run in rounds: select, measure, fit."""

    plan: RoundPlan

    def __init__(self, oracle: MarginalOracle, plan: RoundPlan, observe: Observe) -> None:
        super().__init__(oracle, plan, observe)
        self._weights = {clique: Fraction(plan.weight(clique)) for clique in plan.candidates}
        self._penalties: dict[Fraction, dict[Clique, Fraction]] = {}  # of the last round's noise

    def _penalty(self, sigma2: Fraction) -> dict[Clique, Fraction]:
        """The penalties of all shared candidates at this noise."""
        if sigma2 not in self._penalties:
            self._penalties = {sigma2: {clique: self.plan.penalty(clique, sigma2) for clique in self.handles}}
        return self._penalties[sigma2]

    def candidates(self, sigma2: Fraction, epsilon: Fraction, last: bool) -> list[Clique]:
        """Shared candidates that can win at this noise and fit the share of the model that the budget has reached."""
        plan = self.plan
        used = self.spent + plan.round_cost(sigma2, epsilon)
        limit = plan.config.max_model_mb * (1.0 if last else float(used / plan.budget.rho_cap))
        return self.fitting(plan.can_win(sigma2, self.noisy_total), limit)

    def round(self, candidates: Sequence[Clique], sigma2: Fraction, epsilon: Fraction, last: bool) -> Bought:
        """Select, measure, fit; what that taught."""
        answers, penalty = self.model.marginals(candidates), self._penalty(sigma2)
        self.oracle.expect(sigma2, promised=True)
        position = self.select(
            candidates,
            answers,
            [self._weights[clique] for clique in candidates],
            [penalty[clique] for clique in candidates],
            epsilon,
        )
        clique, before = candidates[position], answers[position]
        noise = penalty[clique]
        self.measure_selected([clique], [before], sigma2, [noise])
        self.refit(len(self.selected), FINAL_ITERATIONS if last else ROUND_ITERATIONS)
        return Bought(float(np.abs(self.model.marginal(clique) - before).sum()), float(noise))


def root(sigma2: Fraction) -> float:
    """A standard deviation, for observers."""
    return math.sqrt(sigma2)
