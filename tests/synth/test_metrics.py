"""Marginal distances against sums over dictionaries, at their extremes, and alike in their dense and sparse
forms."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.functionality import Clique
from synth.domain import Domain
from synth.judgement.metrics import marginal, random_cliques, total_variation, workload_error
from tests.synth.oracles import codes_domain


def by_dictionary(real: np.ndarray, synthetic: np.ndarray, domain: Domain, cliques: list[Clique]) -> float:
    errors = []
    for clique in cliques:
        columns = [domain.names.index(name) for name in clique]
        p, q = (Counter(tuple(row[columns]) for row in table) for table in (real, synthetic))
        errors.append(
            sum(abs(p[cell] / len(real) - q[cell] / len(synthetic)) for cell in p.keys() | q.keys())
        )
    return sum(errors) / len(errors)


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([2, 3, 70]), st.integers(0, 2**32))
def test_the_error_is_its_definition(rows: int, others: int, size: int, seed: int) -> None:
    domain = codes_domain(a=size, b=3, c=size)  # 70 x 3 x 70 cells against at most 120 rows: the sparse form
    rng = np.random.default_rng(seed)
    real, synthetic = (
        np.stack([rng.integers(0, domain[name].size, n) for name in domain.names], axis=1)
        for n in (rows, others)
    )
    cliques: list[Clique] = [("a",), ("c", "b"), ("a", "b", "c")]
    error = workload_error(real, synthetic, domain, cliques)
    assert error == pytest.approx(by_dictionary(real, synthetic, domain, cliques), abs=1e-12)
    assert total_variation(real, synthetic, domain, cliques) == error / 2


def test_extremes() -> None:
    domain = codes_domain(a=2, b=2)
    zeros, ones = np.zeros((5, 2), dtype=np.int8), np.ones((9, 2), dtype=np.int8)
    assert workload_error(zeros, zeros[:1], domain, [("a",), ("a", "b")]) == 0
    assert workload_error(zeros, ones, domain, [("a",), ("a", "b")]) == 2
    assert marginal(ones, domain, ("b", "a")).tolist() == [0, 0, 0, 9]


def test_cells_follow_the_order_of_the_clique() -> None:
    domain = codes_domain(a=2, b=3)
    codes = np.array([[1, 0], [1, 2], [0, 2]])
    assert marginal(codes, domain, ("a", "b")).tolist() == [0, 0, 1, 1, 0, 1]
    assert marginal(codes, domain, ("b", "a")).tolist() == [0, 1, 0, 0, 1, 1]


def test_tables_that_do_not_fit_are_refused() -> None:
    domain = codes_domain(a=2, b=3)
    good = np.zeros((2, 2), dtype=int)
    wide = np.zeros((2, 3), dtype=int)
    for bad, named in (
        (np.array([[2, 0]]), "column a"),
        (np.array([[0, -1]]), "column b"),
        (wide, "2 columns"),
    ):
        with pytest.raises(ValueError, match=named):
            workload_error(good, bad, domain, [("a", "b")])
    with pytest.raises(ValueError, match="at least one"):
        workload_error(good, good[:0], domain, [("a",)])


def test_random_cliques_are_sets_of_the_degree_in_domain_order() -> None:
    domain = codes_domain(a=2, b=2, c=2, d=2)
    cliques = random_cliques(domain, 2, 600, np.random.default_rng(4))
    seen = Counter(cliques)
    assert all(q == domain.ordered(q) and len(q) == 2 for q in seen) and len(seen) == 6
    assert (
        sum((n - 100) ** 2 / 100 for n in seen.values()) < 36
    )  # 5 degrees of freedom: false alarm 1e-6 (fixed seed)
