"""AIM's run: select, measure, fit, until the budget is spent (`docs/design/algorithms.md` 1; `plan` fixes noise and candidates,
`synth.run` asks and fits).

    0   measure all one-way marginals (one batch); their sums give the noisy total, the only row count used anywhere
    1   share the candidates that can win (`AimPlan.shared`), once
    t   candidates: those that can win at this round's noise and keep the model within max_model_mb * (rho used / rho),
        or that the model holds already; select; measure; refit from the last potentials

Adaptive rounds: if measuring q moved the model's answer by no more than the noise would, sigma is halved and epsilon doubled;
when less than two rounds' worth is left, the last round takes all of it. The loop is a zCDP filter's client: noise and
stopping read released values only (`docs/design/mechanisms.md` 4). If no candidate can win (a small table, little budget), what
is left sharpens the one-way marginals. Where joining two columns has much noise, the run makes few rounds (no more than the
study's), each with a larger share of the budget, and goes on while that is worth it (`synth.small_table`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.functionality import Observe, unobserved
from mpc_protocols.mechanisms.gaussian import MIN_SIGMA2
from synth.algorithms.aim.plan import TRIAL_ROUNDS
from synth.budget.charges import MAX_EPSILON
from synth.fallback import joining_cells, noise_share
from synth.run import ROUND_ITERATIONS, Rounds, Synthesis
from synth.small_table import Bought, SmallTable

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle
    from synth.algorithms.aim.plan import AimPlan

NOISE_LIMIT = 0.16
"""Of the noise of joining a column to another, as a share of the rows; above it the table is small."""
DEAR = 0.5
"""The most noise of a candidate on a small table, as a share of the rows."""


def run(oracle: MarginalOracle, plan: AimPlan, observe: Observe = unobserved) -> Synthesis:
    """Run AIM on an oracle. `observe` is told public values only.

    Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is released after that.
    """
    run = Rounds(oracle, plan, observe)
    run.measure_columns(plan.one_way, plan.sigma2, 0)
    run.refit(0, ROUND_ITERATIONS)
    joining = joining_cells(plan.candidates)
    fixed, sigma2, epsilon = plan.config.fixed_rounds, plan.sigma2, plan.epsilon
    if noise_share(plan, joining, run.noisy_total) > NOISE_LIMIT:
        small_table(run, joining)
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


def is_news(bought: Bought) -> bool:
    """Whether the model's answer moved by more than the noise would move it."""
    return bought.moved > bought.noise


def small_table(run: Rounds, joining: int) -> None:
    """Rounds at a price at which a few of them show whether columns depend on each other, while they are worth it
    (`synth.small_table`). What is left is the columns'. joining: cells of what joins a column to another."""
    plan: AimPlan = run.plan  # type: ignore[assignment]
    table = SmallTable(run)
    price = table.trial / TRIAL_ROUNDS
    if price:
        table.sharpen_columns()
        run.refit(0, ROUND_ITERATIONS)
        run.share(plan.shared(run.noisy_total))
    while price and run.left >= price:
        sigma2, epsilon = plan.spend(price)
        noise, charge = max(sigma2, MIN_SIGMA2), min(epsilon, MAX_EPSILON)
        clear = DEAR * run.noisy_total
        candidates = [
            q for q in run.candidates(noise, charge, True) if len(q) > 1 and plan.penalty(q, noise) <= clear
        ]
        if not candidates:
            break
        if len(run.selected) < TRIAL_ROUNDS:  # what a label depends on is asked first
            candidates = [q for q in candidates if len(q) == 2 and plan.workload.label in q] or candidates
        before = run.left
        table.learn([run.round(candidates, noise, charge, False)], before - run.left)
        if len(run.selected) >= TRIAL_ROUNDS and not (table.is_dependent and table.pays()):
            break
        if len(run.selected) == plan.rounds[1]:
            break
    if not run.selected or not table.is_dependent:
        run.fall_back(joining, NOISE_LIMIT)
    run.sharpen()
