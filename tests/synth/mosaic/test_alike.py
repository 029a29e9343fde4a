"""What candidates have in common is worked out once for all of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.functionality import Level
from synth.algorithms.mosaic.algorithm import ALGORITHM
from synth.algorithms.mosaic.answers import Resolutions
from synth.algorithms.mosaic.candidates import Candidate, Grid, level_name
from synth.algorithms.mosaic.config import MosaicConfig
from synth.workload import Workload
from tests.synth.oracles import codes_domain

steps = st.lists(st.integers(2, 3), min_size=0, max_size=3)
"""By what each finer resolution of a column has more values."""


def grid_of(of_columns: list[list[int]]) -> Grid:
    """A grid of columns with nested levels, each of whose values is a multiple of the level before."""
    sizes, levels = {}, {}
    for number, factors in enumerate(of_columns):
        name, bins = f"c{number}", [math.prod(factors[: k + 1]) for k in range(len(factors))]
        sizes[name] = max(bins, default=3)
        levels[name] = [math.prod(factors[: k + 1]) for k in range(len(factors) - 1)]
    domain = codes_domain(**sizes)
    return Grid(
        domain,
        {
            name: [
                Level(
                    level_name(domain, name, size),
                    name,
                    tuple(v * size // sizes[name] for v in range(sizes[name])),
                )
                for size in of
            ]
            for name, of in levels.items()
        },
    )


@given(st.lists(steps, min_size=1, max_size=4), st.sampled_from([1, 4, 16, 64, 1024]))
def test_the_finest_grid_within_so_many_cells_is_found_by_refining_the_coarsest_column(
    of_columns: list[list[int]], cells: int
) -> None:
    grid, columns = grid_of(of_columns), tuple(f"c{number}" for number in range(len(of_columns)))
    at = dict.fromkeys(columns, 0)

    def size(places: dict[str, int]) -> int:
        return math.prod(grid.steps[name][place][1] for name, place in places.items())

    if size(at) > cells:
        assert grid.within(columns, cells) is None
        return
    while True:
        finer = [n for n in columns if at[n] + 1 < len(grid.steps[n]) and size(at | {n: at[n] + 1}) <= cells]
        if not finer:
            break
        at[min(finer, key=lambda n: grid.steps[n][at[n]][1])] += 1
    assert grid.within(columns, cells) == tuple(grid.steps[n][at[n]][0] for n in columns)


@given(st.lists(steps, min_size=2, max_size=2), st.integers(0, 999))
def test_a_coarser_marginal_is_the_sum_of_the_finest_however_often_it_is_asked(
    of_columns: list[list[int]], seed: int
) -> None:
    grid = grid_of(of_columns)
    resolutions, columns = Resolutions(grid), ("c0", "c1")
    cliques = [(one, other) for one, _ in grid.steps["c0"] for other, _ in grid.steps["c1"]]
    offered = [Candidate(columns, q, grid.sizes[q[0]] * grid.sizes[q[1]], 1) for q in cliques]
    table = np.random.default_rng(seed).integers(0, 9, [grid.sizes[n] for n in columns]).astype(np.float64)
    for _ in range(2):
        assert resolutions.finest(offered) == {columns: columns}
        found = resolutions.coarsened([(table.reshape(-1), columns, q) for q in cliques])
        for q, values in zip(cliques, found, strict=True):
            summed = np.zeros([grid.sizes[name] for name in q])
            bins = [grid.levels[name].bins if name in grid.levels else range(grid.sizes[name]) for name in q]
            for (a, b), count in np.ndenumerate(table):
                summed[bins[0][a], bins[1][b]] += count
            np.testing.assert_array_equal(values, summed.reshape(-1))


def test_shares_of_the_columns_are_what_each_costs_of_what_all_cost() -> None:
    domain = codes_domain(a=2, b=7, c=40)
    workload = Workload.from_spec({"degree": 2}, domain)
    plan = ALGORITHM.plan(domain, workload, MosaicConfig(), epsilon=1.0, delta=1e-6, adjacency="add-remove")
    costs = {clique: plan.charges.measuring(sigma2) for clique, sigma2 in plan.column_sigma2.items()}
    assert sum(plan.column_shares.values()) == 1
    assert all(
        share == costs[q] / sum(costs.values(), Fraction(0)) for q, share in plan.column_shares.items()
    )
