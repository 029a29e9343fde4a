"""Products of tables summed down, each way of making them, against the product of all cells."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from mpc_protocols.functionality import Level
from synth.mrf.levels import Chains
from synth.mrf.marginals.tables import BLOCK, SMALL, Table, Tables

SIZES = {"a": 8, "b": 8, "c": 16, "d": 16, "e": 12}
LEVELS = {
    "b/3": Level("b/3", "b", (0, 0, 1, 1, 1, 2, 2, 2)),
    "c/4": Level("c/4", "c", tuple(value // 4 for value in range(16))),
    "d/2": Level("d/2", "d", tuple(value % 2 for value in range(16))),  # bins are not contiguous
    "e/5": Level("e/5", "e", (0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4)),
}


def all_cells(chains: Chains, left: Table, right: Table, out: tuple[str, ...]) -> np.ndarray:
    """The product of every cell at the finest levels, summed."""
    joint = tuple(chains.finest(left.columns, right.columns).values())
    whole = chains.lifted(left.values, left.columns, joint) * chains.lifted(
        right.values, right.columns, joint
    )
    assert whole.size == prod(chains.sizes[name] for name in joint)
    return chains.summed(whole, joint, out)


@pytest.mark.parametrize(
    ("ours", "theirs", "target"),
    [
        (("a", "b"), ("b", "e"), ("a", "e")),  # small
        (("a", "b", "c", "d"), ("b", "d", "e"), ("a", "b", "d", "e")),  # one sum, in blocks
        (("a", "b", "c", "d"), ("b", "c", "e"), ("a", "c", "d", "e")),
        (("a", "b", "c", "d"), ("b", "c", "e"), ("a", "b/3", "c", "d", "e")),
        (("a", "b", "c", "d"), ("b", "d", "e"), ("a", "e")),  # long sums: matrices
        (("a", "b", "c", "d"), ("b/3", "d", "e"), ("a", "b", "d", "e")),  # one side has bins
        (("a", "b", "c", "d"), ("b/3", "d/2", "e"), ("a", "b", "d", "e/5")),
        (("a", "b", "c/4", "d"), ("b", "c", "e"), ("b/3", "c", "d/2", "e")),
        (("a", "b", "c", "d"), ("b", "c/4", "d", "e"), ("a", "c", "e/5")),  # matrices, one side has bins
        (("a", "b", "c", "d"), ("a", "b", "c", "d", "e"), ()),
        (("a", "c"), ("b", "d", "e"), ("a", "b", "c/4", "e/5")),  # no column in common
        (("e",), ("a", "b", "c", "d"), ("b/3", "d/2", "e")),
    ],
)
@pytest.mark.parametrize("last", ["abcde", "edcba", "acdeb"])
def test_a_product_is_that_of_all_cells(
    ours: tuple[str, ...], theirs: tuple[str, ...], target: tuple[str, ...], last: str
) -> None:
    """In several orders of the axes: the columns of the larger tables stand last."""
    chains, rng = Chains(SIZES, LEVELS), np.random.default_rng(7)
    nodes = [tuple(last[:count]) for count in range(1, 6)]
    tables = Tables(chains, nodes)
    left, right = (
        tables.arranged(names, rng.random([chains.sizes[name] for name in names])) for names in (ours, theirs)
    )
    made = tables.contract(left, right, {chains.column[name]: name for name in target})
    assert made.columns == tables.order(target)
    np.testing.assert_allclose(made.values, all_cells(chains, left, right, made.columns), rtol=1e-12)
    coarse = tables.restricted(made, {"b": "b/3", "d": "d/2", "e": "e"})
    np.testing.assert_allclose(
        coarse.values, chains.summed(made.values, made.columns, coarse.columns), rtol=1e-12
    )


def test_the_products_above_are_of_every_kind() -> None:
    assert 8 * 8 * 12 <= SMALL < BLOCK < 8 * 8 * 16 * 16 * 12


def test_a_result_beyond_memory_is_refused_by_name() -> None:
    chains = Chains({"a": 1 << 15, "b": 1 << 15}, {})
    tables = Tables(chains, [("a", "b")])
    one, other = (tables.arranged((name,), np.ones(1 << 15)) for name in "ab")
    with pytest.raises(ValueError, match=r"needs a table of 1073741824 cells over \(a, b\)"):
        tables.contract(one, other, {"a": "a", "b": "b"})
