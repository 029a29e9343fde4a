"""MST's plan: budget, noise, and which pairs of columns may be edges (`synth.plan` has what all algorithms
share).

MST (McKenna-Miklau-Sheldon 2021, "Winning the NIST contest"; `docs/design/algorithms.md` 3, with what is not
taken over): a third of rho each for

    columns    all d one-way marginals,                sigma1^2 = 3 d / (2 rho)
    a tree     d - 1 selections among pairs,           epsilon  = sqrt(8 rho / (3 (d - 1)))
    its pairs  the d - 1 chosen two-way marginals,     sigma2^2 = 3 (d - 1) / (2 rho)

in units of one row's effect. Candidates are the pairs that a model of max_model_mb can hold beside all other
columns. If not every tree of them fits, the run stops at a forest. What is left over by selections that were
not needed goes to the pairs. Without any candidate all of rho measures the columns.

Standard library only at import.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Unpack

from mpc_protocols.functionality import MAX_CELLS, Clique
from synth.algorithm import PromiseWithReserved
from synth.algorithms.mst.config import MstConfig
from synth.budget.charges import Charges, cell_distance, mean_noise
from synth.budget.reserved import NOTHING_RESERVED
from synth.budget.small.fallback import MIN_COLUMNS, MIN_TRIAL
from synth.config import cells_within
from synth.domain import Domain
from synth.plan import SELECTION_DISTANCE, TOTAL_DISTANCE, Plan, calibrate, check_sizes
from synth.workload import Workload

TRIAL_EDGES = 3
"""At a time, of a small table."""
THIRD = Fraction(1, 3)


@dataclass(frozen=True)
class MstPlan(Plan):
    """MST's plan. rounds: fewest and most edges of the tree; the most are planned for. epsilon: of each
    selection."""

    config: MstConfig

    def pair_sigma2(self, rho: Fraction, pairs: int) -> Fraction:
        """Noise of so many pairs measured as one batch that spends rho."""
        return self.charges.sigma2(rho / pairs)

    def noise(self, clique: Clique, sigma2: Fraction) -> Fraction:
        """The L1 norm that the noise of measuring a pair is expected to have."""
        return mean_noise(sigma2) * self.candidates[clique]


class Components:
    """Columns and which of them a forest connects so far."""

    def __init__(self, names: Iterable[str]) -> None:
        self._of = {name: name for name in names}

    def apart(self, pair: Clique) -> bool:
        """Whether an edge between the two would connect two components."""
        return self._of[pair[0]] != self._of[pair[1]]

    def join(self, pair: Clique) -> None:
        """Add an edge."""
        kept, gone = (self._of[name] for name in pair)
        self._of = {name: kept if of == gone else of for name, of in self._of.items()}


def plan(
    domain: Domain, workload: Workload, config: MstConfig, **promise: Unpack[PromiseWithReserved]
) -> MstPlan:
    """Fix budget, noise and candidates of a study.

    Raises `StudyInvalid`: a clique of more than 2^24 cells, a column that no model can hold, (epsilon, delta)
    out of range.
    """
    charges, columns = Charges(promise["adjacency"], promise.get("unit_rows", 1)), len(domain)
    reserved = promise.get("reserved", NOTHING_RESERVED)
    epsilon, delta = promise["epsilon"], promise["delta"]
    check_sizes(domain, workload, config)
    candidates, oversized = _pairs(domain, config.max_model_mb)
    edges = _forest(domain, candidates)
    most = len(edges)
    share = THIRD if most else Fraction(1)

    def sigma2(rho: Fraction) -> Fraction:
        return charges.sigma2(share * rho / columns)

    def widest(rho: Fraction) -> Fraction:  # fewer pairs have less noise
        if not most:
            return sigma2(rho)
        least = min(THIRD / most, MIN_COLUMNS / columns, MIN_TRIAL / (2 * TRIAL_EDGES))
        return max(sigma2(rho), charges.sigma2(least * rho))

    def distance(
        sigma2: Fraction,
    ) -> Fraction:  # the first batch also fixes the bound on the rows, an event of all its cells
        return (
            (4 * columns + most) * charges.distance(sigma2)
            + sum(domain.sizes.values()) * cell_distance(sigma2)
            + most * len(candidates) * SELECTION_DISTANCE
            + TOTAL_DISTANCE
        )

    budget = calibrate(
        epsilon, delta, *reserved.beside(charges, widest, distance), f"a tree of {columns} columns"
    )
    fits = _cells(domain, edges) <= cells_within(
        config.max_model_mb
    )  # the largest tree does, hence every one
    rho = reserved.rest(budget.rho_cap)
    return MstPlan(
        domain,
        workload,
        config,
        charges,
        budget,
        sigma2(rho),
        charges.epsilon(THIRD * rho / max(1, most)),
        (most if fits else min(1, most), most),
        candidates,
        oversized,
        reserved=reserved,
    )


def _pairs(domain: Domain, max_model_mb: float) -> tuple[dict[Clique, int], tuple[Clique, ...]]:
    """(pairs that fit a model with all other columns beside them, with their number of cells; the others)."""
    fitting: dict[Clique, int] = {}
    oversized: list[Clique] = []
    for pair in combinations(domain.names, 2):
        cells = domain.cells(pair)
        if cells <= MAX_CELLS and _cells(domain, [pair]) <= cells_within(max_model_mb):
            fitting[pair] = cells
        else:
            oversized.append(pair)
    return fitting, tuple(oversized)


def _forest(domain: Domain, candidates: Mapping[Clique, int]) -> list[Clique]:
    """The edges of the largest model: a maximum spanning forest by number of cells (Kruskal)."""
    components = Components(domain.names)
    edges: list[Clique] = []
    for pair in sorted(candidates, key=lambda pair: -candidates[pair]):
        if components.apart(pair):
            components.join(pair)
            edges.append(pair)
    return edges


def _cells(domain: Domain, edges: Iterable[Clique]) -> int:
    """Cells of the model of these pairs and the columns in none of them."""
    edges = list(edges)
    touched = {name for pair in edges for name in pair}
    return sum(map(domain.cells, edges)) + sum(
        size for name, size in domain.sizes.items() if name not in touched
    )
