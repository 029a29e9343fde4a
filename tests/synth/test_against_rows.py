"""Which relations of real rows a table carries: figures on tables whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from synth.domain import Codes, Domain
from synth.judgement.against_rows import PairBeside, beside
from synth.judgement.relations import cramers_v

DOMAIN = Domain(("a", "b", "c"), (Codes(4), Codes(3), Codes(2)))
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


def rows(count: int, seed: int) -> NDArray[np.int64]:
    """c follows a in nine rows of ten; b is independent of both."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, count)
    c = np.where(rng.random(count) < 0.9, a // 2, rng.integers(0, 2, count))
    return np.column_stack([a, rng.integers(0, 3, count), c])


def judged(table: NDArray[np.int64], real: NDArray[np.int64]) -> dict[tuple[str, ...], PairBeside]:
    return {pair.columns: pair for pair in beside(real, table, DOMAIN, PAIRS)}


def test_a_table_of_the_same_law_carries_what_there_is() -> None:
    """400 rows: the share's standard deviation is below 0.05."""
    found = judged(rows(5000, 1), rows(400, 2))
    (related,) = (pair for pair in found.values() if pair.carried is not None)
    assert related.columns == ("a", "c") and related.kept and related.carried == pytest.approx(1, abs=0.3)
    assert related.real == pytest.approx(0.9, abs=0.1) and related.table == pytest.approx(0.9, abs=0.05)


def test_columns_apart_carry_nothing_and_a_relation_turned_round_less() -> None:
    rng, real = np.random.default_rng(3), rows(2000, 4)
    apart = judged(np.column_stack([rng.permutation(column) for column in rows(2000, 5).T]), real)
    assert not any(pair.kept for pair in apart.values()) and abs(apart["a", "c"].carried or 9) < 0.15
    turned = real.copy()
    turned[:, 2] = 1 - turned[:, 2]
    assert (judged(turned, real)["a", "c"].carried or 0) < -0.9


def test_real_rows_of_independent_columns_show_a_relation_in_a_tenth_of_the_cases_at_most() -> None:
    """Of 300 tables with a chance of 0.1 more than 0.18 show one with a chance of 1e-5."""
    rng = np.random.default_rng(6)
    shown = 0
    for _ in range(300):
        real = np.column_stack([rng.integers(0, size, 300) for size in (4, 3, 2)])
        shown += any(pair.carried is not None for pair in beside(real, real, DOMAIN, PAIRS))
    assert shown / 300 < 0.18


def test_the_strength_is_corrected_for_the_number_of_rows() -> None:
    """Bergsma 2013: independent columns have about 0, where the plain figure grows with cells per row."""
    rng = np.random.default_rng(7)
    counts = rng.multinomial(200, np.full(64, 1 / 64)).reshape(8, 8).astype(np.float64)
    assert cramers_v(counts) > 0.15 and cramers_v(counts, corrected=True) < 0.12
    assert cramers_v(np.eye(3) * 50) == pytest.approx(1) and cramers_v(
        np.eye(3) * 50, corrected=True
    ) == pytest.approx(1, abs=0.02)
    assert cramers_v(np.array([[5.0, 3.0]])) == 0 == cramers_v(np.zeros((2, 2)))
