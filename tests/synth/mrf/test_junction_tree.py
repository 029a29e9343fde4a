"""Junction trees: the defining properties, networkx as an independent judge of chordality, and the size
estimate."""

from __future__ import annotations

from itertools import combinations
from math import prod

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.mrf.junction_tree import ColumnSet, JunctionTree, junction_tree
from synth.mrf.tree_size import SizeEstimator, model_size_mb
from tests.synth.mrf.problems import cliques_of, domains


def _cells(tree: JunctionTree, sizes: dict[str, int]) -> int:
    return sum(prod(sizes[name] for name in node) for node in tree.nodes)


@given(st.data())
def test_nodes_cover_the_cliques_and_every_column_is_connected(data: st.DataObject) -> None:
    sizes = data.draw(domains(9))
    cliques = data.draw(cliques_of(sizes, most=12))
    tree = junction_tree(sizes, cliques)
    for clique in cliques:
        varying = {name for name in clique if sizes[name] > 1}
        assert any(varying <= set(node) for node in tree.nodes)
    assert {name for node in tree.nodes for name in node} == set(sizes)
    assert tree.parents[0] == -1 and all(
        0 <= parent < index for index, parent in enumerate(tree.parents) if index
    )
    for node, parent, separator in zip(tree.nodes, tree.parents, tree.separators, strict=True):
        assert set(separator) == (set(node) & set(tree.nodes[parent]) if parent >= 0 else set())
    for first, second in combinations(tree.nodes, 2):
        assert not set(first) <= set(second) and not set(second) <= set(first)
    # Running intersection: of the nodes that hold a column, exactly one does not find it in its separator.
    for name in sizes:
        tops = [i for i, node in enumerate(tree.nodes) if name in node and name not in tree.separators[i]]
        assert len(tops) == 1


@given(st.data())
def test_nodes_are_the_maximal_cliques_of_a_chordal_graph_by_networkx(data: st.DataObject) -> None:
    sizes = data.draw(domains(9))
    tree = junction_tree(sizes, data.draw(cliques_of(sizes, most=12)))
    graph = nx.Graph()
    graph.add_nodes_from(sizes)
    for node in tree.nodes:
        graph.add_edges_from(combinations(node, 2))
    assert nx.is_chordal(graph)
    assert {frozenset(clique) for clique in nx.find_cliques(graph)} == set(map(frozenset, tree.nodes))
    weights = nx.Graph()
    weights.add_nodes_from(range(len(tree.nodes)))
    for (i, first), (j, second) in combinations(enumerate(tree.nodes), 2):
        weights.add_edge(i, j, weight=len(set(first) & set(second)))
    heaviest = nx.maximum_spanning_tree(weights).size(weight="weight")
    assert sum(map(len, tree.separators)) == heaviest


@given(st.data())
def test_the_estimate_is_the_size_of_the_tree_that_is_built(data: st.DataObject) -> None:
    sizes = data.draw(domains(9))
    cliques = data.draw(cliques_of(sizes, most=10))
    estimator = SizeEstimator(sizes, cliques)
    assert estimator.mb == _cells(junction_tree(sizes, cliques), sizes) * 8 / 2**20
    for candidate in data.draw(cliques_of(sizes, most=4)):
        expected = _cells(junction_tree(sizes, [*cliques, candidate]), sizes) * 8 / 2**20
        limit = data.draw(st.floats(0, 2 * expected))
        limited = SizeEstimator(sizes, cliques).with_clique(candidate, limit_mb=limit)
        assert limited == expected if expected <= limit else limited > limit or limited == estimator.mb
        assert estimator.with_clique(candidate) == expected == model_size_mb(sizes, [*cliques, candidate])


def test_a_chordal_graph_is_not_filled() -> None:
    sizes = {"a": 10, "b": 10, "c": 10, "d": 10, "e": 7}
    assert model_size_mb(sizes, [("a", "b"), ("b", "c"), ("c", "d")]) == (300 + 7) * 8 / 2**20
    assert (
        SizeEstimator(sizes, [("a", "b"), ("b", "c"), ("c", "d")]).with_clique(("a", "d"))
        == (2000 + 7) * 8 / 2**20
    )


def test_sizes_beyond_any_memory_are_numbers_not_failures() -> None:
    sizes = {f"c{i}": 100 for i in range(40)}
    assert model_size_mb(sizes, [tuple(sizes)]) > 1e70


def test_a_column_with_one_value_needs_no_edge() -> None:
    sizes = {"a": 3, "one": 1, "b": 4}
    tree = junction_tree(sizes, [("a", "one"), ("one", "b")])
    assert sorted(tree.nodes) == [("a",), ("b",), ("one",)]


def test_unknown_columns_and_impossible_sizes_are_named() -> None:
    with pytest.raises(ValueError, match=r"Column 'z' is not in the domain \(a, b\)"):
        model_size_mb({"a": 2, "b": 2}, [("a", "z")])
    with pytest.raises(ValueError, match="Column 'b' must have at least one value, got size 0"):
        model_size_mb({"a": 2, "b": 0}, [])
    with pytest.raises(ValueError, match="at least one column"):
        model_size_mb({}, [])


def test_a_model_may_have_more_columns_than_python_has_frames() -> None:
    sizes = {f"c{number}": 2 for number in range(1500)}
    columns = ColumnSet(sizes, {"c1499": ("c1498", "c1497")})
    assert columns.cells(columns.mask(sizes)) == 2**1498
    assert columns.cells(columns.mask(["c3", "c700"])) == 4
    assert columns.cells(columns.mask(["c1499", "c0"])) == 4 and columns.cells(0) == 1
