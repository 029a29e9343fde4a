"""DistAIM as its paper schedules it: AIM's rounds while clients arrive, mended (`docs/design/flaim.md` 5).

A client shares all its counts when it arrives; round t selects and measures on the sum of those who are there so far. Its
paper compares a part of the rows with a model of all; here a noisy running total (5 % of rho for all of them) scales both. A
measurement taken when N_t rows had arrived enters the fit as that of N_now rows.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from mpc_protocols.functionality import Clique
from mpc_protocols.mechanisms.gaussian import sample, sampler
from mpc_protocols.mechanisms.rounding import theta_of
from runner.bench.utility.federated.world import Outcome, World
from synth.algorithms.aim.algorithm import AimConfig
from synth.algorithms.flaim.scores import choose, distances, scaled_to
from synth.algorithms.flaim.server import NoisySum
from synth.budget.accounting import Budget
from synth.budget.charges import Charges, mean_noise
from synth.mrf import Measurement, Model, SizeEstimator, fit
from synth.plan import modelled
from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS

TOTALS: Final = Fraction(1, 20)
SELECTING: Final = Fraction(1, 10)


def run(world: World, again: bool = False, wait: int = 1) -> Outcome:
    """again: the one-way marginals are measured once more at the end. wait: rounds of arrivals before the first measurement."""
    table, rng, charges = world.table, world.rng, Charges("add-remove", 1)
    budget = Budget.of(world.epsilon, world.delta, Fraction(1, 2**40))
    rho, columns, rounds = budget.rho_cap, len(table.domain), len(world.arrivals) - wait + 1
    rest = rho * (1 - TOTALS)
    sigma2 = charges.sigma2((1 - SELECTING) * rest / (rounds + columns * (1 + again)))
    epsilon = charges.epsilon(SELECTING * rest / rounds)
    total_sigma2 = charges.total_sigma2(TOTALS * rho / (rounds + 1))
    one_way: list[Clique] = [(name,) for name in table.domain.names]
    candidates, _ = modelled(table.domain, table.workload.closure, AimConfig().max_model_mb)
    session, noise, sums = rng.bytes(32), sampler(sigma2), list[NoisySum]()
    model: Model | None = None
    spent = Fraction(0)

    def measure(cliques: list[Clique], total: int) -> None:
        nonlocal spent
        for clique, counts in zip(cliques, count(cliques), strict=True):
            sums.append(NoisySum(clique, counts + sample(noise, len(counts), rng.bytes), sigma2, total))
            spent += charges.measuring(sigma2)

    def running_total() -> int:
        nonlocal spent
        spent += charges.counting(total_sigma2)
        [drawn] = sample(sampler(total_sigma2), 1, rng.bytes).tolist()
        return max(1, len(union) + int(drawn))

    def refit(total: int, iterations: int) -> Model:
        scaled = [(of, total / of.rows) for of in sums]
        measured = [
            Measurement(of.clique, of.values.astype(np.float64) * f, float(of.sigma2) * f * f)
            for of, f in scaled
        ]
        return fit(table.domain.sizes, measured, total=total, warm_start=model, iterations=iterations)

    union = table.codes[:0]
    for number, there in enumerate(world.newcomers):
        union = np.concatenate([union, *(world.rows[k] for k in there)])
        if number + 1 < wait:
            continue
        count = world.counter(union)
        total = running_total()
        if model is None:
            measure(one_way, total)
            model = refit(total, ROUND_ITERATIONS)
        size = SizeEstimator(table.domain.sizes, {of.clique for of in sums})
        limit = AimConfig().max_model_mb * (number + 2 - wait) / rounds
        worth = [q for q in candidates if mean_noise(sigma2) * candidates[q] <= 2 * total]
        offered = [q for q in worth if (grown := size.with_clique(q)) <= limit or grown == size.mb]
        if not offered:
            continue
        shares = [answer / model.total for answer in model.marginals(offered)]
        answers = scaled_to(shares, total, theta_of(session, number), 1 << 22)
        l1 = distances(
            dict(zip(offered, count(offered), strict=True)), dict(zip(offered, answers, strict=True)), offered
        )
        position = choose(
            [l1[q] for q in offered],
            [Fraction(table.workload.weights[q]) for q in offered],
            [mean_noise(sigma2) * candidates[q] for q in offered],
            epsilon,
            factor=1,
            highest=(1 << 22) + total + 2,
            lowest=0,
            randomness=rng.bytes,
        )
        spent += charges.selecting(epsilon)
        measure([offered[position]], total)
        model = refit(total, ROUND_ITERATIONS)
    total = running_total()
    if again:
        measure(one_way, total)
    model = refit(total, FINAL_ITERATIONS)
    return Outcome(model, total, spent / rho)
