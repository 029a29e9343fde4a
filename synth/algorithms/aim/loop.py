"""AIM's run: select, measure, fit, until the budget is spent (`docs/design/algorithms.md` 1; `plan` fixes
noise and candidates, `synth.run` asks and fits).

    0   measure all one-way marginals (one batch); their sums give the noisy total, the only row count used anywhere
    1   share the candidates that can win (`AimPlan.shared`), once
    t   candidates: those that can win at this round's noise and keep the model within max_model_mb * (rho used / rho),
        or that the model holds already; select; measure; refit from the last potentials

Adaptive rounds: if measuring q moved the model's answer by no more than the noise would, sigma is halved and
epsilon doubled; when less than two rounds' worth is left, the last round takes all of it. The loop is a zCDP
filter's client: noise and stopping read released values only (`docs/design/mechanisms.md` 4). If no candidate
can win (a small table, little budget), what is left sharpens the one-way marginals. Where joining two columns
has much noise, the run makes few rounds (no more than the study's), each with a larger share of the budget,
and goes on while that is worth it (`synth.budget.small.small_table`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.functionality import Observe, unobserved
from mpc_protocols.mechanisms.gaussian import MIN_SIGMA2
from synth.budget.charges import MAX_EPSILON
from synth.budget.small import fallback
from synth.budget.small.fallback import joining_cells
from synth.budget.small.small_table import Bought, buy_few
from synth.run import ROUND_ITERATIONS, Rounds
from synth.synthesis import Synthesis

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle
    from synth.algorithms.aim.plan import AimPlan

NOISE_LIMIT = 0.16
"""Of the noise of joining a column to another, as a share of the rows; above it the table is small."""


def run(oracle: MarginalOracle, plan: AimPlan, observe: Observe = unobserved) -> Synthesis:
    """Run AIM on an oracle. `observe` is told public values only.

    Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is
    released after that.
    """
    run = Rounds(oracle, plan, observe)
    run.foresee(len(plan.candidates), plan.config.fixed_rounds)
    run.measure_columns(plan.one_way, plan.sigma2, 0)
    run.measure_reserved()
    run.refit(0, ROUND_ITERATIONS)
    fixed, sigma2, epsilon = plan.config.fixed_rounds, plan.sigma2, plan.epsilon
    if small_share(plan, run.noisy_total):
        run.share(plan.shared(run.noisy_total))
        buy_few(run, joining_cells(plan.candidates), NOISE_LIMIT, plan.weight, plan.rounds[1])
        return run.synthesis()
    run.share(plan.shared(run.noisy_total))
    last = False
    while not last:
        if fixed is not None:
            last = len(run.selected) + 1 == fixed
        elif run.left < 2 * plan.round_cost(sigma2, epsilon) or len(run.selected) + 1 == plan.rounds[1]:
            last = True
            sigma2, epsilon = plan.spend(run.left)
        noise, charge = max(sigma2, MIN_SIGMA2), min(epsilon, MAX_EPSILON)
        candidates = run.candidates(noise, charge, last)
        moved = bool(candidates) and is_news(run.round(candidates, noise, charge, last))
        if not candidates and (
            last or fixed is not None
        ):  # nor will a later round of the same noise have any
            run.sharpen()
            break
        if fixed is None and not moved:
            sigma2, epsilon = sigma2 / 4, epsilon * 2
    return run.synthesis()


def small_share(plan: AimPlan, noisy_total: float) -> float:
    """See `synth.algorithm.Algorithm`."""
    return fallback.small_share(plan, joining_cells(plan.candidates), noisy_total, NOISE_LIMIT)


def is_news(bought: Bought) -> bool:
    """Whether the model's answer moved by more than the noise would move it."""
    return bought.moved > bought.noise
