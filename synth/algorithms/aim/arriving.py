"""AIM while contributors arrive: DistAIM's schedule, mended (`docs/design/federated.md` 6).

Round t asks about the rows of all who are there by then; a noisy running total N^_t says about how many these
are:

    1   N^_1; all single columns; fit
    t   N^_t; select the marginal that the model, scaled to N^_t rows, approximates worst; measure it; fit
    T   as any round; then N^ once more, and with `again` all single columns once more; fit

A measurement of N^_t rows enters the fit as one of N^_now rows: times f = N^_now / N^_t, its noise's
parameter times f^2 (given f: the noise of f itself is left out). With d columns, T rounds, a twentieth of rho
for the totals, and of the rest the share 1 - r for selecting:

    totals       sigma_N^2 = (T + 1) / (2 rho / 20)
    marginals    sigma^2 = (T + d) / (2 r 0.95 rho), with `again` T + 2 d
    selections   epsilon = sqrt(8 (1 - r) 0.95 rho / T)

in units of one row's effect. A record that came at t is in the sums from t on, and is charged all of rho.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Unpack

from synth.algorithm import SOUND, Promise, WhileArriving
from synth.algorithms.aim.arriving_loop import run
from synth.algorithms.aim.config import AimConfig
from synth.algorithms.aim.plan import AimPlan
from synth.budget.charges import Charges, cell_distance
from synth.plan import SELECTION_DISTANCE, TOTAL_DISTANCE, calibrate, check_sizes, modelled

if TYPE_CHECKING:
    from mpc_protocols.functionality import MarginalOracle, Observe
    from synth.domain import Domain
    from synth.synthesis import Synthesis
    from synth.workload import Workload

TOTALS: Final = Fraction(1, 20)
"""Of rho, for the running totals."""


@dataclass(frozen=True)
class ArrivingPlan(AimPlan):
    """total_sigma2: of every running total. again: whether single columns are measured once more at the end."""

    total_sigma2: Fraction
    again: bool


class AimWhileArriving(WhileArriving[AimConfig, ArrivingPlan]):
    """rounds: of arrivals, each with a selection. again: whether single columns are measured once more at the
    end."""

    name = "aim-while-arriving"
    title = "AIM, while contributors arrive"
    summary = "AIM picks a marginal in each round of arrivals, of the rows that are there"
    config = AimConfig
    left_out = "it is never measured itself, only its subsets are"
    partitions = ("horizontal",)
    constrained = True

    def __init__(self, rounds: int, again: bool) -> None:
        self._rounds, self._again = rounds, again

    def claim(self, config: AimConfig) -> str:
        return SOUND

    def plan(
        self, domain: Domain, workload: Workload, config: AimConfig, **promise: Unpack[Promise]
    ) -> ArrivingPlan:
        """Raises `StudyInvalid` as AIM's plan."""
        charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
        check_sizes(domain, workload, config)
        candidates, left_out = modelled(domain, workload.closure, config.max_model_mb)
        rounds, columns = self._rounds, len(domain)
        measured = rounds + columns * (1 + self._again)
        selecting, rest = Fraction(str(config.select_share)), 1 - TOTALS

        def marginal_noise(rho: Fraction) -> Fraction:
            return charges.sigma2((1 - selecting) * rest * rho / measured)

        def total_noise(rho: Fraction) -> Fraction:
            return charges.total_sigma2(TOTALS * rho / (rounds + 1))

        def noise(rho: Fraction) -> Fraction:
            return max(marginal_noise(rho), total_noise(rho))

        def distance(
            sigma2: Fraction,
        ) -> Fraction:  # each round's total also fixes that round's bound on the rows
            return (
                measured * charges.distance(sigma2)
                + (2 * rounds + 1) * cell_distance(sigma2)
                + rounds * len(candidates) * SELECTION_DISTANCE
                + rounds * TOTAL_DISTANCE
            )

        asked = f"{columns} columns and {rounds} rounds of arrivals"
        budget = calibrate(promise["epsilon"], promise["delta"], noise, distance, asked)
        rho = budget.rho_cap
        return ArrivingPlan(
            domain,
            workload,
            config,
            charges,
            budget,
            marginal_noise(rho),
            charges.epsilon(selecting * rest * rho / rounds),
            (rounds, rounds),
            candidates,
            tuple(clique for clique in workload.cliques if clique in left_out),
            marginal_noise(rho),
            total_noise(rho),
            self._again,
        )

    def asks(self, plan: ArrivingPlan) -> str:
        again = ", and again at the end" if plan.again else ""
        return (
            f"in each of {plan.rounds[1]} rounds of arrivals how many rows there are, which of {len(plan.candidates):,} "
            f"marginals is worst, and its counts; each column in the first{again}"
        )

    def run_on(self, oracles: Iterable[MarginalOracle], plan: ArrivingPlan, observe: Observe) -> Synthesis:
        return run(oracles, plan, observe)
