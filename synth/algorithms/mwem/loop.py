"""MWEM+PGM's run (`plan` fixes noise and candidates, `synth.run` asks and fits).

    0   the noisy number of rows; the marginals of columns in no candidate (one batch), if there are such
    1   share the candidates that can win at the noise of every round, once
    t   candidates: those that can win and keep the model within max_model_mb * (rho used / rho), or that the model holds
        already; select; measure; refit from the last potentials

If nothing fits the share of the model that a round has reached, its candidates may take the whole: unlike
AIM's closure, a workload need not hold small cliques for the early rounds. If no candidate can win (a small
table, little budget), what is left goes to the one-way marginals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpc_protocols.functionality import Observe, unobserved
from synth.budget.small import fallback
from synth.budget.small.fallback import median
from synth.budget.small.small_table import buy_few
from synth.run import ROUND_ITERATIONS, Rounds
from synth.synthesis import Synthesis

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle
    from synth.algorithms.mwem.plan import MwemPlan

NOISE_LIMIT = 0.06
"""Of the noise of a median candidate, as a share of the rows; above it the table is small
(`synth.budget.small.small_table`)."""


def run(oracle: MarginalOracle, plan: MwemPlan, observe: Observe = unobserved) -> Synthesis:
    """Run MWEM+PGM on an oracle. `observe` is told public values only.

    Raises what the oracle raises: `BudgetRefused` by a guard, `PeerLost`, `ProtocolAborted`; nothing is
    released after that.
    """
    run = Rounds(oracle, plan, observe)
    run.foresee(len(plan.candidates), plan.config.rounds)
    run.count_rows(plan.total_sigma2)
    run.measure_reserved()
    if small_share(plan, run.noisy_total):
        run.share(plan.can_win(plan.sigma2, run.noisy_total))
        run.measure_columns(plan.one_way, plan.small_sigma2, 0)
        buy_few(run, median(plan.candidates.values()), NOISE_LIMIT, plan.weight, plan.rounds[1])
        return run.synthesis()
    if plan.uncovered:
        run.measure_columns(plan.uncovered, plan.sigma2, 0)
    run.refit(0, ROUND_ITERATIONS)
    run.share(plan.can_win(plan.sigma2, run.noisy_total))
    for number in range(1, plan.config.rounds + 1):
        last = number == plan.config.rounds
        candidates = run.candidates(plan.sigma2, plan.epsilon, last) or run.fitting(
            plan.can_win(plan.sigma2, run.noisy_total), plan.config.max_model_mb
        )
        if not candidates:  # nor will a later round have any: its noise is the same, and the model no smaller
            run.sharpen()
            break
        run.round(candidates, plan.sigma2, plan.epsilon, last)
    return run.synthesis()


def small_share(plan: MwemPlan, noisy_total: float) -> float:
    """See `synth.algorithm.Algorithm`."""
    return fallback.small_share(plan, median(plan.candidates.values()), noisy_total, NOISE_LIMIT)
