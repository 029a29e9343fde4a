"""Balancing by compiled code: the rows are NumPy's, to the bit; and NumPy's where there is none."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.mrf import Measurement, Model, fit
from synth.mrf.rows import balance
from synth.mrf.rows.kernel import library
from synth.mrf.rows.kernel.library import Kernel
from tests.synth.mrf.problems import Array, cells, cliques_of, domains, problems


@pytest.fixture(scope="module")
def compiled() -> Kernel:
    pytest.importorskip("llvmlite", reason="make kernel")
    found = balance.kernel(balance.WORTH_COMPILING)
    assert found is not None
    return found


def drawn(model: Model, rows: int, seed: int, targets: list[tuple[str, ...]], kernel: Kernel | None) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balance, "kernel", lambda size: kernel)
        return model.sample(rows, np.random.default_rng(seed), targets=targets)


@given(problems(), st.sampled_from([1, 2, 3, 50, 700]), st.integers(0, 2**32 - 1))
def test_rows_of_any_model_are_those_of_numpy(
    compiled: Kernel, problem: tuple[dict[str, int], list[Measurement]], rows: int, seed: int
) -> None:
    sizes, measurements = problem
    model = fit(sizes, measurements, iterations=30)
    for width in (2, 3):
        targets: list[tuple[str, ...]] = list(combinations(sizes, width))
        tables = [drawn(model, rows, seed, targets, kernel) for kernel in (compiled, None)]
        np.testing.assert_array_equal(*tables)


@given(st.data(), st.integers(2, 400), st.sampled_from([1, 7, 256]), st.integers(0, 2**32 - 1))
def test_any_columns_are_exchanged_between_any_pairs_as_by_numpy(
    compiled: Kernel, data: st.DataObject, rows: int, codes: int, seed: int
) -> None:
    """One target as well as several of one to four columns, in parts; what is kept in mind is the same, too."""
    sizes, rng = data.draw(domains(6)), np.random.default_rng(seed)
    names = list(sizes)
    values = np.stack([rng.integers(0, size, rows) for size in sizes.values()]).astype(np.int32)
    cliques = sorted({*data.draw(cliques_of(sizes, widest=4).filter(bool))})
    answers: list[Array] = [rng.uniform(0, 5, cells(sizes, clique)) + 0.1 for clique in cliques]
    both = [balance.Exchanges(sizes, cliques, answers, values.copy(), of) for of in (compiled, None)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balance, "CODES", codes * len(names))
        patch.setattr(balance, "BATCH", codes)
        for _ in range(3):
            side = sorted(map(names.index, data.draw(st.sets(st.sampled_from(names), min_size=1))))
            first, second = rng.permutation(rows)[: rows // 2 * 2].reshape(2, -1)
            for exchanges in both:
                exchanges.make(first, second, side, exchanges.judges(side))
    np.testing.assert_array_equal(both[0].values, both[1].values)
    for one, other in zip(both[0].kinds, both[1].kinds, strict=True):
        np.testing.assert_array_equal(one.surplus, other.surplus)


EXTREMES: dict[str, tuple[dict[str, int], list[tuple[str, ...]]]] = {
    "one column": ({"a": 5}, [("a",)]),
    "one value each": ({"a": 1, "b": 1, "c": 1}, [("a", "b")]),
    "many cells": ({"a": 150, "b": 3, "c": 140, "d": 90}, [("a", "b"), ("b", "c"), ("d",)]),
    "many pairs": ({f"c{i}": 2 + i % 5 for i in range(24)}, [(f"c{i}", f"c{i + 1}") for i in range(20)]),
    "more columns than bits": (
        {f"c{i}": 2 + i % 3 for i in range(70)},
        [("c0", "c69"), ("c5", "c68", "c64")],
    ),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_models(compiled: Kernel, name: str) -> None:
    """Cells of which the model says that they are empty, too."""
    sizes, cliques = EXTREMES[name]
    rng = np.random.default_rng(3)
    measurements = []
    for clique in cliques:
        counts = rng.uniform(0, 20, cells(sizes, clique))
        counts[rng.random(len(counts)) < 0.6] = 0
        measurements.append(Measurement(clique, counts, 0.1))
    model = fit(sizes, measurements, iterations=50)
    triples = list(combinations(sizes, min(3, len(sizes))))
    targets = [triples[i] for i in rng.permutation(len(triples))[:60]]
    if name == "many pairs":
        targets += combinations(sizes, 2)
    tables = [drawn(model, 3000, 5, targets, kernel) for kernel in (compiled, None)]
    np.testing.assert_array_equal(*tables)
    plain = model.sample(3000, np.random.default_rng(5), targets=targets, sweeps=0)
    assert (tables[0] == plain).all() == (name in ("one column", "one value each"))


@given(st.integers(0, 3000), st.integers(0, 62), st.integers(1, 62), st.integers(0, 2**32 - 1))
def test_numbers_are_sorted(compiled: Kernel, count: int, known: int, bits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    known = max(known, (count - 1).bit_length()) if count else known
    upper = rng.integers(1 << min(bits, 63 - known), size=count)
    keys = (upper << known) + np.arange(count)
    np.testing.assert_array_equal(compiled.sorted(keys.copy(), known), np.sort(keys))


def test_a_table_of_few_rows_is_not_worth_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"a": 3, "b": 4, "c": 5}
    asked: list[int] = []
    model = fit(sizes, [Measurement(("a", "b"), np.ones(12), 1.0)])
    monkeypatch.setattr(balance, "kernel", asked.append)
    for rows in (100, 50_000):
        model.sample(rows, np.random.default_rng(0), targets=combinations(sizes, 2), sweeps=3)
    separators = len(model.tree.nodes) - 1
    assert asked == [3 * separators * rows * 2 for rows in (100, 50_000)]  # a, c and b, c are not in the tree
    assert asked[0] < balance.WORTH_COMPILING


def test_the_plainest_processor_of_its_kind_computes_the_same(
    compiled: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is compiled is valid by LLVM's own rules."""
    import llvmlite.binding as llvm

    from synth.mrf.rows.kernel import code

    llvm.parse_assembly(code.module()).verify()
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: "generic")
    monkeypatch.setattr(llvm, "get_host_cpu_features", llvm.targets.FeatureMap)
    assert balance.kernel.compiled() is not None


@pytest.mark.parametrize("what", ["exchange", "sort"])
def test_numpy_balances_where_the_kernel_computes_something_else(
    what: str, compiled: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "sort":
        monkeypatch.setattr(Kernel, "sorted", lambda self, keys, known: keys)
    else:
        make = library.Exchanger.make
        monkeypatch.setattr(
            library.Exchanger,
            "make",
            lambda self, first, second, *rest: make(self, first[1:], second[1:], *rest),
        )
    assert balance.kernel.compiled() is None


@given(problems(), st.integers(2, 700), st.integers(0, 2**32 - 1))
def test_what_is_compiled_ahead_is_whatever_balancing_asks_for(
    problem: tuple[dict[str, int], list[Measurement]], rows: int, seed: int
) -> None:
    """A table that is worth compiling for is found to be before there is a model of it; none without targets."""
    sizes, measurements = problem
    model, asked = fit(sizes, measurements, iterations=5), list[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balance, "kernel", asked.append)
        for targets in (list(combinations(sizes, 2)), []):
            Model.prepare(len(sizes), rows, len(targets))
            model.sample(rows, np.random.default_rng(seed), targets=targets)
            ahead, *due = asked
            assert all(ahead >= size for size in due) and (targets or not ahead)
            asked.clear()
