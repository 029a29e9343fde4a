"""The workload is the contract's NumPy expression, and closure and weights are what their definitions say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from synth.domain import Codes, Domain
from synth.workload import Workload, _combination


def domain_of(columns: int) -> Domain:
    return Domain(tuple(f"c{i}" for i in range(columns)), tuple(Codes(2 + i % 3) for i in range(columns)))


@given(st.integers(1, 9), st.data())
def test_a_random_subset_is_numpys_choice_of_the_combinations(columns: int, data: st.DataObject) -> None:
    degree, seed = data.draw(st.integers(1, columns)), data.draw(st.integers(0, 2**40))
    domain = domain_of(columns)
    sets = list(itertools.combinations(domain.names, degree))
    count = data.draw(st.integers(1, len(sets) + 2))
    got = Workload.from_spec({"degree": degree, "count": count, "seed": seed}, domain).cliques
    if count >= len(sets):
        assert got == tuple(sets)
    else:
        assert got == tuple(
            sets[i] for i in np.random.default_rng(seed).choice(len(sets), count, replace=False)
        )


def test_the_contracts_example() -> None:
    domain = domain_of(14)
    sets = list(itertools.combinations(domain.names, 3))
    expected = [sets[i] for i in np.random.default_rng(123).choice(len(sets), 64, replace=False)]
    workload = Workload.from_spec({"degree": 3, "count": 64, "seed": 123}, domain)
    assert list(workload.cliques) == expected
    assert len(workload.closure) == 161 and (
        min(workload.weights.values()),
        max(workload.weights.values()),
    ) == (7, 51)


def test_few_cliques_of_very_many_are_not_enumerated() -> None:
    workload = Workload.from_spec({"degree": 8, "count": 5, "seed": 1}, domain_of(200))  # 5e13 sets
    assert len(workload.cliques) == 5


@settings(max_examples=30)
@given(st.integers(1, 8), st.data())
def test_ranks_count_combinations_in_order(columns: int, data: st.DataObject) -> None:
    degree = data.draw(st.integers(1, columns))
    assert [_combination(columns, degree, r) for r in range(math.comb(columns, degree))] == list(
        itertools.combinations(range(columns), degree)
    )


@given(
    st.lists(st.sets(st.integers(0, 6), min_size=1, max_size=4), min_size=1, max_size=6, unique_by=frozenset)
)
def test_closure_and_weights_by_definition(cliques: list[set[int]]) -> None:
    domain = domain_of(7)
    workload = Workload.from_spec(
        {"cliques": [[f"c{i}" for i in sorted(c, reverse=True)] for c in cliques]}, domain
    )
    subsets = {
        frozenset(s) for c in cliques for k in range(1, len(c) + 1) for s in itertools.combinations(c, k)
    }
    assert {frozenset(int(name[1:]) for name in q) for q in workload.closure} == subsets
    assert len(workload.closure) == len(subsets)
    assert list(workload.closure) == sorted(
        workload.closure, key=lambda q: (len(q), [domain.names.index(n) for n in q])
    )
    for q in workload.closure:
        assert domain.ordered(q) == q
        assert workload.weights[q] == sum(len({int(name[1:]) for name in q} & c) for c in cliques)


@given(st.integers(2, 7), st.data())
def test_a_label_joins_every_clique_once(columns: int, data: st.DataObject) -> None:
    domain = domain_of(columns)
    spec = {"degree": data.draw(st.integers(1, columns)), "count": data.draw(st.integers(1, 20)), "seed": 3}
    label = data.draw(st.sampled_from(domain.names))
    plain, joined = Workload.from_spec(spec, domain), Workload.from_spec({**spec, "label": label}, domain)
    assert all(label in clique for clique in joined.cliques) and joined.label == label and plain.label is None
    assert {frozenset(clique) | {label} for clique in plain.cliques} == set(map(frozenset, joined.cliques))
    assert joined.cliques == Workload.from_spec({"cliques": joined.cliques}, domain).cliques


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({}, "cliques or degree"),
        ({"cliques": [["c0"]], "degree": 1}, "only one"),
        ({"cliques": [["c0"]], "seed": 1}, "seed"),
        ({"degree": 2, "shape": 1}, "shape"),
        ({"degree": 0}, "degree"),
        ({"degree": 4}, "degree = 4"),
        ({"degree": True}, "degree"),
        ({"degree": 2, "count": 0}, "count"),
        ({"degree": 2, "count": 1, "seed": -1}, "seed"),
        ({"degree": 2, "seed": 1}, "seed has no meaning"),
        ({"cliques": []}, "at least one clique"),
        ({"cliques": [[]]}, "empty clique"),
        ({"cliques": "c0"}, "list of lists"),
        ({"cliques": [["c0", "salary"]]}, "the column salary"),
        ({"cliques": [["c0", "c0"]]}, "twice in the clique"),
        ({"cliques": [["c0", "c1"], ["c1", "c0"]]}, "lists the clique c0, c1 twice"),
        ({"cliques": [["c0"], ["c0"]], "label": "c1"}, "lists the clique c0 twice"),
        ({"degree": 1, "label": "salary"}, "label must be a column of the domain, got 'salary'"),
        ({"degree": 1, "label": ["c0"]}, "label must be a column"),
    ],
)
def test_a_wrong_workload_is_refused_by_name(spec: dict[str, object], named: str) -> None:
    with pytest.raises(StudyInvalid) as caught:
        Workload.from_spec(spec, domain_of(3))
    assert named in caught.value.sentence


def test_a_closure_that_would_not_end_is_refused() -> None:
    with pytest.raises(StudyInvalid, match="too many cliques"):
        _ = Workload.from_spec({"degree": 30}, domain_of(30)).closure
