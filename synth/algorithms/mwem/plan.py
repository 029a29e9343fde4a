"""MWEM+PGM's plan: budget, noise, rounds and candidates (`synth.plan` has what all algorithms share).

A fixed number T of rounds, each selects the workload clique that the model approximates worst, measures it
and refits the graphical model (McKenna-Sheldon-Miklau 2019, McKenna-Miklau-Sheldon 2021;
`docs/design/algorithms.md` 2, with what differs):

    total     n^ = N + noise, TOTAL_SHARE of rho: with no marginal measured first, something must say how many rows there are
    round     epsilon_t = sqrt(8 rho' / 2T),  sigma^2 = T / (2 (rho' / 2)),  rho' = (1 - TOTAL_SHARE) rho
    score     || M_q - M_q(model) ||_1 - sqrt(2/pi) sigma n_q

in units of one row's effect. Columns that are in no candidate (no clique names them, or only cliques too
large for a model) would stay uniform in the table: their one-way marginals are measured beforehand, each with
the noise of a round and its share of the measuring budget.

Standard library only at import.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Unpack

from mpc_protocols.functionality import Clique
from synth.algorithm import PromiseWithReserved
from synth.algorithms.mwem.config import MwemConfig
from synth.budget.charges import Charges, cell_distance
from synth.budget.reserved import NOTHING_RESERVED
from synth.budget.small.fallback import least_share
from synth.domain import Domain
from synth.plan import SELECTION_DISTANCE, TOTAL_DISTANCE, RoundPlan, calibrate, check_sizes, modelled
from synth.workload import Workload

TOTAL_SHARE = Fraction(1, 100)
"""Of rho: the standard deviation of the number of rows is then 7 / sqrt(rho), 65 rows at epsilon 1 and delta
1e-9."""
SELECT_SHARE = Fraction(1, 2)
SMALL_SHARE = Fraction(1, 10)
"""For the columns, first of all, on a small table."""


@dataclass(frozen=True)
class MwemPlan(RoundPlan):
    """MWEM+PGM's plan. total_sigma2: noise of the number of rows. uncovered: columns in no candidate,
    measured first."""

    config: MwemConfig
    total_sigma2: Fraction
    uncovered: tuple[Clique, ...]

    @property
    def small_sigma2(self) -> Fraction:
        """The noise of the columns, first of all, on a small table."""
        return self.charges.sigma2(SMALL_SHARE * self.own_rho / len(self.domain))

    def weight(self, clique: Clique) -> int:
        """All cliques of the workload are worth the same."""
        return 1


def plan(
    domain: Domain, workload: Workload, config: MwemConfig, **promise: Unpack[PromiseWithReserved]
) -> MwemPlan:
    """Fix budget, noise and candidates of a study.

    Raises `StudyInvalid`: a clique of more than 2^24 cells, a column that no model can hold, (epsilon, delta)
    out of range.
    """
    charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
    reserved = promise.get("reserved", NOTHING_RESERVED)
    epsilon, delta = promise["epsilon"], promise["delta"]
    rounds, columns = config.rounds, len(domain)
    check_sizes(domain, workload, config)
    candidates, oversized = modelled(domain, workload.cliques, config.max_model_mb)
    covered = {name for clique in candidates for name in clique}
    uncovered = tuple((name,) for name in domain.names if name not in covered)

    def measuring(rho: Fraction) -> Fraction:
        return (1 - TOTAL_SHARE) * (1 - SELECT_SHARE) * rho / (rounds + len(uncovered))

    def widest(
        rho: Fraction,
    ) -> Fraction:  # a last round that finds no candidate gives its measurement to all columns
        least = min(measuring(rho) / columns, least_share(columns) * rho, SMALL_SHARE * rho / columns)
        return max(charges.sigma2(least), charges.total_sigma2(TOTAL_SHARE * rho))

    def distance(
        sigma2: Fraction,
    ) -> Fraction:  # the total also fixes the bound on the rows, one more event of its cell
        return (
            (rounds + len(uncovered) + 4 * columns) * charges.distance(sigma2)
            + 2 * cell_distance(sigma2)
            + rounds * len(candidates) * SELECTION_DISTANCE
            + TOTAL_DISTANCE
        )

    budget = calibrate(
        epsilon, delta, *reserved.beside(charges, widest, distance), f"{columns} columns and {rounds} rounds"
    )
    rho = reserved.rest(budget.rho_cap)
    return MwemPlan(
        domain,
        workload,
        config,
        charges,
        budget,
        charges.sigma2(measuring(rho)),
        charges.epsilon((1 - TOTAL_SHARE) * SELECT_SHARE * rho / rounds),
        (rounds, rounds),
        candidates,
        oversized,
        charges.total_sigma2(TOTAL_SHARE * rho),
        uncovered,
        reserved=reserved,
    )
