"""Mosaic's plan: budget, noise of the columns, price of a step (`synth.plan` has what all algorithms share).

With d columns of n_j values and weight w_j in the workload, and budget rho:

    columns    a share r1 of rho: 1/3 if some column has more than 32 values, else 1/10. Column j gets r1 rho x_j / sum x with
               x_j = (w_j n_j)^(2/3), which minimises the sum of w_j n_j sigma_j.
    adaptive   starts as if 8 d picks were to come: a selection costs select_share rho / (8 d), the measurement of the median
               candidate (1 - select_share) rho / (8 d), of another one in proportion to (w n)^(2/3) (`candidates.prices`)
    fixed T    T picks in batches of 4 share the rest of rho alike; noise does not depend on the clique

in units of one row's effect; `charges` has the sensitivities of the study's adjacency and unit. Bins, prices
and batches are functions of what has been released, so the sum of all charges is filtered by the cap whatever
they are.

Standard library only at import.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Unpack

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_MARGINALS, Clique
from synth.algorithm import PromiseWithReserved
from synth.algorithms.mosaic.bins import SIZES
from synth.algorithms.mosaic.config import MosaicConfig
from synth.budget.charges import Charges, cell_distance
from synth.budget.prices import two_thirds
from synth.budget.reserved import NOTHING_RESERVED
from synth.budget.small.fallback import MIN_TRIAL
from synth.domain import Domain
from synth.plan import SELECTION_DISTANCE, TOTAL_DISTANCE, Plan, calibrate, check_sizes
from synth.workload import Workload

FIRST_PICKS_PER_COLUMN = 8
MAX_PICKS_PER_COLUMN = 72
BATCH, MIN_BATCH, FIXED_BATCH = 6, 2, 4
WIDE = 12
"""Columns from which on a batch has `BATCH` picks; of fewer it has a third of them, and noise falls faster:
so few columns are soon joined, and a batch at the wrong price costs much of the budget."""
WIDE_SHARE, NARROW_SHARE = Fraction(1, 3), Fraction(1, 10)
BUDGETS = (16, 128, 1024)
"""Cells of a candidate at its resolutions."""
RICH_BUDGET = 8192
"""One more resolution above epsilon = 1."""
SMALL_BUDGETS = (4, 8, 16, 64, 256)
"""Cells of a candidate at its resolutions where the table is small (`small`)."""
MIN_SHARPENING = Fraction(1, 20)
"""Of the budget: what is worth a second measurement of the columns at the end."""
CHEAPEST = Fraction(1, 64)


@dataclass(frozen=True)
class MosaicPlan(Plan):
    """Mosaic's plan. sigma2: the largest of the columns'. rounds: fewest and most picks. candidates: each
    column set of the closure with the most cells that any resolution of it may have.

    column_sigma2: noise of each column's marginal. budgets: cells of the resolutions. pick_rho: of the first
    selection, and of the first measurement of the median candidate.
    """

    config: MosaicConfig
    column_sigma2: Mapping[Clique, Fraction]
    budgets: tuple[int, ...]
    pick_rho: tuple[Fraction, Fraction]

    @property
    def known_rounds(self) -> int | None:
        return self.config.fixed_rounds

    @property
    def batch(self) -> int:
        """Picks at a time, at most."""
        if self.config.own_batch is not None:
            return self.config.own_batch
        if self.config.fixed_rounds is not None:
            return FIXED_BATCH
        columns = len(self.domain)
        return BATCH if columns >= WIDE else max(MIN_BATCH, columns // 3)

    @cached_property
    def column_shares(self) -> Mapping[Clique, Fraction]:
        """Of what the columns get, the share of each."""
        costs = {clique: self.charges.measuring(sigma2) for clique, sigma2 in self.column_sigma2.items()}
        whole = sum(costs.values())
        return {clique: cost / whole for clique, cost in costs.items()}

    @property
    def batches(self) -> tuple[int, int]:
        """What is left at the end may make a few batches smaller."""
        if self.config.fixed_rounds is not None:
            return 1, -(-self.rounds[1] // self.batch)
        return 1, -(-self.rounds[1] // self.batch) + BATCH


def plan(
    domain: Domain, workload: Workload, config: MosaicConfig, **promise: Unpack[PromiseWithReserved]
) -> MosaicPlan:
    """Fix budget, noise and candidates of a study.

    Raises `StudyInvalid`: a clique of more than 2^24 cells, a column that no model can hold, more sets of
    columns than a run can compare, (epsilon, delta) out of range.
    """
    charges, columns = Charges(promise["adjacency"], promise.get("unit_rows", 1)), len(domain)
    reserved = promise.get("reserved", NOTHING_RESERVED)
    epsilon, delta = promise["epsilon"], promise["delta"]
    check_sizes(domain, workload, config)
    budgets = (*BUDGETS, RICH_BUDGET) if epsilon > 1 else BUDGETS
    candidates, oversized = _column_sets(domain, workload, budgets[-1])
    if len(candidates) > (comparable := MAX_MARGINALS - columns - len(reserved.cliques)):
        raise StudyInvalid(
            f"[workload] asks about {len(candidates):,} sets of columns, and mosaic compares at most {comparable:,}; add a "
            "count, or list the cliques that matter."
        )
    share = Fraction(str(config.select_share))
    column_share = WIDE_SHARE if max(domain.sizes.values()) > SIZES[-1] else NARROW_SHARE
    shares = _column_shares(domain, workload)
    if config.fixed_rounds is None:
        picks, most = FIRST_PICKS_PER_COLUMN * columns, MAX_PICKS_PER_COLUMN * columns
    else:
        picks = most = config.fixed_rounds

    def pick_rho(rho: Fraction) -> tuple[Fraction, Fraction]:
        each = (rho if config.fixed_rounds is None else (1 - column_share) * rho) / picks
        return share * each, (1 - share) * each

    def widest(rho: Fraction) -> Fraction:
        columns_rho = min(column_share, MIN_SHARPENING) * rho
        least = min(
            min(shares.values()) * columns_rho, CHEAPEST * pick_rho(rho)[1], MIN_TRIAL * rho / columns
        )
        return charges.sigma2(least)

    def distance(
        sigma2: Fraction,
    ) -> Fraction:  # the first batch also fixes the bound on the rows, an event of all its cells
        resolutions = max(len(budgets), len(SMALL_BUDGETS))
        return (
            (most + 5 * columns) * charges.distance(sigma2)
            + sum(domain.sizes.values()) * cell_distance(sigma2)
            + most * len(candidates) * resolutions * SELECTION_DISTANCE
            + TOTAL_DISTANCE
        )

    budget = calibrate(
        epsilon, delta, *reserved.beside(charges, widest, distance), f"{columns} columns and {picks} picks"
    )
    rho = reserved.rest(budget.rho_cap)
    noise = {clique: charges.sigma2(part * column_share * rho) for clique, part in shares.items()}
    first = pick_rho(rho)
    return MosaicPlan(
        domain,
        workload,
        config,
        charges,
        budget,
        max(noise.values()),
        charges.epsilon(first[0]),
        (min(1, len(candidates)), most),
        candidates,
        oversized,
        noise,
        budgets,
        first,
        reserved=reserved,
    )


def _column_sets(
    domain: Domain, workload: Workload, most: int
) -> tuple[dict[Clique, int], tuple[Clique, ...]]:
    """(sets of the closure that some resolution brings within the cells, with the most cells they may have;
    the workload's others)."""
    found: dict[Clique, int] = {}
    left_out: set[Clique] = set()
    sizes = domain.sizes
    coarsest, finest = ({name: min(size, of) for name, size in sizes.items()} for of in (SIZES[0], SIZES[-1]))
    for clique in workload.closure:
        if len(clique) == 1:
            found[clique] = sizes[clique[0]]
        elif math.prod(map(coarsest.__getitem__, clique)) <= most:
            found[clique] = min(math.prod(map(finest.__getitem__, clique)), most)
        else:
            left_out.add(clique)
    return found, tuple(clique for clique in workload.cliques if clique in left_out)


def _column_shares(domain: Domain, workload: Workload) -> dict[Clique, Fraction]:
    """The share of the columns' budget that each column gets; a column that no clique names counts like one
    in one clique."""
    parts = {
        (name,): two_thirds(workload.weights.get((name,), 1) * size) for name, size in domain.sizes.items()
    }
    total = sum(parts.values())
    return {clique: part / total for clique, part in parts.items()}
