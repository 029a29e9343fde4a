"""What may be asked once the bins are known: each clique of the closure at several resolutions.

For a clique and a budget of cells: every column starts at its coarsest level; while the product of the bins
stays within the budget, the column with the fewest bins is refined, the first in the clique among equals. A
clique of one column is asked as it is. Different budgets often give the same grid, which then is one
candidate.

Public and deterministic: a function of the study and of the bins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mpc_protocols.functionality import Clique, Level
from synth.algorithms.mosaic.bins import SIZES, is_ordered, partitions
from synth.budget.prices import two_thirds
from synth.budget.small import fallback
from synth.domain import Domain

if TYPE_CHECKING:
    from synth.synthesis import Measured


@dataclass(frozen=True, eq=False)
class Candidate:
    """A marginal that may be asked; of a run, one object each. columns: of the domain. clique: each of them,
    or a level of it. weight: of the workload."""

    columns: Clique
    clique: Clique
    cells: int
    weight: int


def level_name(domain: Domain, column: str, size: int) -> str:
    """A level's name, unlike any column's."""
    name = f"{column}/{size}"
    while name in domain:
        name += "'"
    return name


def levels_of(
    domain: Domain, counts: Mapping[str, Sequence[int]], sigma2: Mapping[str, Fraction]
) -> dict[str, tuple[Level, ...]]:
    """The levels of each column, the coarsest first. counts, sigma2: of the one-way marginals, by column."""
    return {
        name: tuple(
            Level(level_name(domain, name, max(bins) + 1), name, bins)
            for bins in partitions(counts[name], sigma2[name], ordered=is_ordered(domain[name]))
        )
        for name in domain.names
    }


class Grid:
    """The resolutions of each column. levels: by name. steps: of each column, (name, size) from coarse to
    fine. sizes: of all."""

    def __init__(self, domain: Domain, levels: Mapping[str, Sequence[Level]]) -> None:
        self.levels: dict[str, Level] = {level.name: level for of in levels.values() for level in of}
        self.steps: dict[str, list[tuple[str, int]]] = {}
        self.sizes = domain.sizes | {name: level.size for name, level in self.levels.items()}
        for name, size in domain.sizes.items():
            steps = [(level.name, level.size) for level in levels[name]]
            self.steps[name] = [*steps, (name, size)] if size <= SIZES[-1] or not steps else steps

    def within(self, columns: Clique, cells: int) -> Clique | None:
        """The clique at the finest resolution of at most so many cells; None if even the coarsest has more."""
        steps = [self.steps[name] for name in columns]
        at = _finest_within(tuple(tuple(size for _, size in of) for of in steps), cells)
        return None if at is None else tuple(of[place][0] for of, place in zip(steps, at, strict=True))


@lru_cache(1 << 12)
def _finest_within(steps: tuple[tuple[int, ...], ...], cells: int) -> tuple[int, ...] | None:
    """The place of each column's resolution, by the sizes of all its resolutions: of thousands of sets of columns
    most are alike."""
    at = [0] * len(steps)
    product = math.prod(of[0] for of in steps)
    if product > cells:
        return None
    while True:
        finer = [
            (of[place], axis)
            for axis, (of, place) in enumerate(zip(steps, at, strict=True))
            if place + 1 < len(of) and product // of[place] * of[place + 1] <= cells
        ]
        if not finer:
            return tuple(at)
        size, axis = min(finer)
        at[axis] += 1
        product = product // size * steps[axis][at[axis]]


def candidates(
    grid: Grid, cliques: Iterable[Clique], weights: Mapping[Clique, int], budgets: Sequence[int]
) -> list[Candidate]:
    """All candidates, clique by clique and from coarse to fine."""
    found: dict[Clique, Candidate] = {}
    for columns in cliques:
        asked = [columns] if len(columns) == 1 else [grid.within(columns, cells) for cells in budgets]
        for clique in asked:
            if clique is not None and clique not in found:
                cells = math.prod(grid.sizes[name] for name in clique)
                found[clique] = Candidate(columns, clique, cells, weights[columns])
    return list(found.values())


def at_most(
    most: int, offered: Callable[[Sequence[int]], list[Candidate]], budgets: Sequence[int]
) -> list[Candidate]:
    """What is offered at these budgets of cells, without the finest where all together are more than a run
    can use. One resolution of each clique stays."""
    while len(found := offered(budgets)) > most and len(budgets) > 1:
        budgets = budgets[:-1]
    return found


def grid_of(domain: Domain, columns: Sequence[Measured]) -> Grid:
    """The grid that the one-way marginals of all columns give."""
    counts = {m.clique[0]: m.values.tolist() for m in columns}
    return Grid(domain, levels_of(domain, counts, {m.clique[0]: m.sigma2 for m in columns}))


def joint_candidates(
    grid: Grid, cliques: Iterable[Clique], weights: Mapping[Clique, int], budgets: Sequence[int]
) -> list[Candidate]:
    """Those of several columns."""
    return [c for c in candidates(grid, cliques, weights, budgets) if len(c.columns) > 1]


def typical_cells(offered: Sequence[Candidate]) -> int:
    """Of a typical question: a median candidate, or twice what it takes to join a column to another,
    whichever is more."""
    joint = {c.clique: c.cells for c in offered if len(c.columns) > 1}
    return max(fallback.median(c.cells for c in offered), 2 * fallback.joining_cells(joint))


def prices(offered: Sequence[Candidate]) -> list[Fraction]:
    """Of each candidate, what its measurement costs in units of the median candidate's: (w n / m)^(2/3), at
    least 1/64.

    A measurement of n cells at noise sigma gains w (L1 - sqrt(2/pi) sigma n) at a cost of 1 / (2 sigma^2);
    this share of the budget maximises the gain of all, so it spends more on what has more cells.
    """
    sizes = sorted(c.weight * c.cells for c in offered)
    median = sizes[len(sizes) // 2]
    of_size = {size: max(Fraction(1, 64), two_thirds(size, median)) for size in set(sizes)}
    return [of_size[c.weight * c.cells] for c in offered]


class Priced(NamedTuple):
    """A candidate with what its measurement would cost, the noise that buys, and its penalty in the score."""

    candidate: Candidate
    rho: Fraction
    sigma2: Fraction
    noise: Fraction
    penalty: Fraction
