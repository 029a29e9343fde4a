"""AIM's plan: budget, noise, rounds and candidates (`synth.plan` has what all algorithms share).

AIM (McKenna-Mullins-Sheldon-Miklau 2022; `docs/design/algorithms.md` 1) measures all one-way marginals, then
repeats: select the marginal that the model approximates worst, measure it, refit. With d columns, budget rho,
share r = 1 - select_share for measuring:

    fixed rounds T    sigma^2 = (T + d) / (2 r rho),  epsilon_t = sqrt(8 (1 - r) rho / T)
    adaptive          starts as if T = 8 d rounds were to come, the d first measurements among them, and anneals (`loop`)

in units of one row's effect; `charges` has the sensitivities of the study's adjacency and unit. Every column
of the domain is measured and modelled, also one that no workload clique names: the table will have it, and
uniform noise is no use to anybody. Candidates are the workload's closure, with weight w_q = sum over workload
cliques q' of |q ∩ q'|.

Standard library only at import.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Unpack

from mpc_protocols.functionality import Clique
from synth.algorithm import PromiseWithReserved
from synth.algorithms.aim.config import AimConfig
from synth.budget.charges import Charges, cell_distance
from synth.budget.reserved import NOTHING_RESERVED
from synth.budget.small.fallback import least_share
from synth.domain import Domain
from synth.plan import SELECTION_DISTANCE, TOTAL_DISTANCE, RoundPlan, calibrate, check_sizes, modelled
from synth.workload import Workload

FIRST_ROUNDS_PER_COLUMN = 8


@dataclass(frozen=True)
class AimPlan(RoundPlan):
    """AIM's plan. least_sigma2: the smallest noise any round can reach."""

    config: AimConfig
    least_sigma2: Fraction

    def weight(self, clique: Clique) -> int:
        """How much of the workload measuring the clique may help."""
        return self.workload.weights[clique]

    def shared(self, noisy_total: float) -> list[Clique]:
        """Candidates that are made available to the oracle: all that can win at the smallest noise the budget
        can reach."""
        return self.can_win(self.least_sigma2, noisy_total)

    def likely(self, rows: float) -> Collection[Clique]:
        return self.shared(rows)

    def spend(self, rho: Fraction) -> tuple[Fraction, Fraction]:
        """(sigma2, epsilon) of one round that spends all of rho."""
        epsilon = self.charges.epsilon(rho * _exact(self.config.select_share))
        return self.charges.sigma2(rho - self.charges.selecting(epsilon)), epsilon


def plan(
    domain: Domain, workload: Workload, config: AimConfig, **promise: Unpack[PromiseWithReserved]
) -> AimPlan:
    """Fix budget, noise and candidates of a study.

    Raises `StudyInvalid`: a clique of more than 2^24 cells, a column that no model can hold, (epsilon, delta)
    out of range.
    """
    charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
    reserved = promise.get("reserved", NOTHING_RESERVED)
    epsilon, delta = promise["epsilon"], promise["delta"]
    check_sizes(domain, workload, config)
    candidates, left_out = modelled(domain, workload.closure, config.max_model_mb)
    oversized = tuple(clique for clique in workload.cliques if clique in left_out)
    columns, share, fixed = len(domain), _exact(config.select_share), config.fixed_rounds
    most_rounds = FIRST_ROUNDS_PER_COLUMN * columns if fixed is None else fixed

    def noise(rho: Fraction) -> Fraction:
        measured = most_rounds if fixed is None else most_rounds + columns
        return charges.sigma2((1 - share) * rho / measured)

    def distance(
        sigma2: Fraction,
    ) -> Fraction:  # the first batch also fixes the bound on the rows, an event of all its cells
        return (
            (most_rounds + 4 * columns) * charges.distance(sigma2)
            + sum(domain.sizes.values()) * cell_distance(sigma2)
            + most_rounds * len(candidates) * SELECTION_DISTANCE
            + TOTAL_DISTANCE
        )

    def widest(rho: Fraction) -> Fraction:
        """The most noise of any measurement, also of one on a small table."""
        return max(noise(rho), charges.sigma2(least_share(columns) * rho))

    budget = calibrate(
        epsilon,
        delta,
        *reserved.beside(charges, widest, distance),
        f"{columns} columns and {most_rounds} rounds",
    )
    rho = reserved.rest(budget.rho_cap)
    sigma2, first_epsilon = noise(rho), charges.epsilon(share * rho / most_rounds)
    left = rho - columns * charges.measuring(sigma2)
    draft = AimPlan(
        domain,
        workload,
        config,
        charges,
        budget,
        sigma2,
        first_epsilon,
        (most_rounds, most_rounds),
        candidates,
        oversized,
        sigma2,
        reserved=reserved,
    )
    if fixed is not None:
        return draft
    return replace(draft, rounds=_adaptive_rounds(draft, left), least_sigma2=draft.spend(left)[0])


def _exact(share: float) -> Fraction:
    """The decimal number that was written: 0.1 is a tenth."""
    return Fraction(str(share))


def _adaptive_rounds(first: AimPlan, left: Fraction) -> tuple[int, int]:
    """Fewest rounds (noise halves after each) and most (it never does) until `left` is spent, the last taking
    what is left."""
    cost = first.round_cost(first.sigma2, first.epsilon)
    most = min(max(1, math.floor(left / cost)), FIRST_ROUNDS_PER_COLUMN * len(first.domain))
    sigma2, epsilon, fewest, spent = first.sigma2, first.epsilon, 1, cost
    while left - spent >= 2 * (cost := first.round_cost(sigma2 / 4, epsilon * 2)):
        sigma2, epsilon, fewest, spent = sigma2 / 4, epsilon * 2, fewest + 1, spent + cost
    return min(fewest + 1, most), most
