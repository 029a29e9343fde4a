"""Marginals of a model, inside its cliques and across them, against the joint distribution."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique
from synth.mrf import Measurement, Model, fit
from tests.synth.mrf.problems import cells, cliques_of, domains, joint, project


@given(st.data(), st.sampled_from([0.0, 1.0, 30.0, 2000.0]))
def test_every_marginal_is_that_of_the_joint_distribution(data: st.DataObject, spread: float) -> None:
    sizes = data.draw(domains())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    potentials = {}
    for clique in data.draw(cliques_of(sizes)):
        ordered = tuple(name for name in sizes if name in clique and sizes[name] > 1)
        if ordered:
            potentials[ordered] = rng.normal(0, spread, cells(sizes, ordered))
    model = Model(sizes, 500.0, potentials)
    table = joint(sizes, potentials, 500.0)
    queries = [
        tuple(data.draw(st.permutations(query)))
        for width in range(len(sizes) + 1)
        for query in combinations(sizes, width)
    ]
    for query, answer in zip(queries, model.marginals(queries), strict=True):
        np.testing.assert_allclose(answer, project(sizes, table, query), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(
            answer, model.marginal(query), rtol=1e-12
        )  # sums may be taken in another order


def test_a_long_chain_and_a_star_carry_distant_columns() -> None:
    """Fourteen columns, queries of three columns far apart: the joint has 2^14 cells, small enough to check."""
    sizes = {f"c{i}": 2 for i in range(14)}
    rng = np.random.default_rng(2)
    names = list(sizes)
    chain = [(names[i], names[i + 1]) for i in range(13)]
    star = [(names[0], names[i]) for i in range(1, 14)]
    for cliques in (chain, star, [*chain, (names[0], names[13])]):
        potentials: dict[Clique, NDArray[np.float64]] = {clique: rng.normal(0, 1, 4) for clique in cliques}
        table = joint(sizes, potentials, 100.0)
        model = Model(sizes, 100.0, potentials)
        for query in [
            (names[0], names[7], names[13]),
            (names[13], names[0]),
            (names[3], names[9], names[6], names[1]),
        ]:
            np.testing.assert_allclose(model.marginal(query), project(sizes, table, query), rtol=1e-9)


def test_a_marginal_beyond_memory_is_refused_by_name() -> None:
    model = fit({f"c{i}": 1000 for i in range(5)}, [])
    with pytest.raises(
        ValueError, match=r"needs a table of 1000000000000000 cells over \(.+\); ask for fewer columns"
    ):
        model.marginal([f"c{i}" for i in range(5)])


def test_answers_belong_to_the_caller() -> None:
    model = fit({"a": 2, "b": 2}, [Measurement(("a", "b"), np.array([1.0, 2.0, 3.0, 4.0]), 1.0)])
    first = model.marginal(("a", "b"))
    first[:] = -1
    assert (model.marginal(("a", "b")) > 0).all()


@pytest.mark.parametrize("query", [("a", "z"), ("a", "a")])
def test_unknown_and_repeated_columns_are_refused(query: tuple[str, ...]) -> None:
    model = fit({"a": 2, "b": 2}, [])
    with pytest.raises(ValueError, match="must name columns of the domain, each once"):
        model.marginal(query)


def test_many_sets_over_several_parts_of_a_model() -> None:
    """Three parts, one of them a cycle: sets inside a part, across parts, inside one another; in any order of
    asking."""
    sizes = {name: size for name, size in zip("abcdefgh", (2, 3, 4, 2, 5, 1, 3, 2), strict=True)}
    rng = np.random.default_rng(8)
    cliques = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("e", "g")]
    potentials: dict[Clique, NDArray[np.float64]] = {
        clique: rng.normal(0, 2, cells(sizes, clique)) for clique in cliques
    }
    table = joint(sizes, potentials, 77.0)
    queries = [query for width in range(6) for query in combinations(sizes, width)]
    for _ in range(3):
        queries = [tuple(rng.permutation(queries[place]).tolist()) for place in rng.permutation(len(queries))]
        model = Model(sizes, 77.0, potentials)
        for query, answer in zip(queries, model.marginals(queries), strict=True):
            np.testing.assert_allclose(answer, project(sizes, table, query), rtol=1e-9)
            answer[:] = -1  # whoever asked may do so, also while others read theirs
