"""The law of some columns given all others, row by row, against the model's joint distribution written out."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from mpc_protocols.functionality import Level
from synth.linked import conditional
from synth.linked.conditional import ConditionalLaw
from synth.mrf import Model

SIZES = {"a": 3, "b": 2, "c": 4, "d": 3}
DRAWS = 40_000
CLIQUES = (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"))


def a_model(levels: Any = None, cliques: Any = CLIQUES, impossible: Any = None) -> Model:
    rng = np.random.default_rng(3)
    sizes = SIZES | {name: level.size for name, level in (levels or {}).items()}
    potentials = {clique: rng.normal(size=int(np.prod([sizes[n] for n in clique]))) for clique in cliques}
    return Model(SIZES, 100.0, potentials, levels, impossible)


def joint(model: Any) -> Any:
    return model.marginal(tuple(SIZES)).reshape(tuple(SIZES.values()))


def check(model: Any, free: Any, allowed: Any = None, weights: Any = None) -> None:
    """A chi-square of the draws for every evidence: false alarm below 1e-6 for each."""
    from scipy.stats import chisquare

    table, names = joint(model), list(SIZES)
    known = [name for name in names if name not in free]
    law, rng = ConditionalLaw(model, free, allowed), np.random.default_rng(5)
    for values in product(*(range(SIZES[name]) for name in known)):
        row = np.zeros(len(names), dtype=np.int64)
        for name, value in zip(known, values, strict=True):
            row[names.index(name)] = value
        cells = table[tuple(slice(None) if name in free else row[names.index(name)] for name in names)].copy()
        cells = cells.transpose([sorted(free, key=names.index).index(name) for name in free])
        for axis, name in enumerate(free):
            keep = (
                np.ones(SIZES[name], dtype=bool) if allowed is None or name not in allowed else allowed[name]
            )
            if weights and name in weights:
                keep = keep * np.exp(weights[name])
            cells = cells * keep.reshape([-1 if i == axis else 1 for i in range(len(free))])
        drawn = law.draw(
            np.tile(row, (DRAWS, 1)), rng, {n: np.tile(v, (DRAWS, 1)) for n, v in (weights or {}).items()}
        )
        seen = np.zeros(cells.shape)
        np.add.at(seen, tuple(drawn.T), 1)
        assert not seen[cells == 0].any()
        expected = cells[cells > 0] / cells.sum() * DRAWS
        if len(expected) > 1:
            assert chisquare(seen[cells > 0], expected).pvalue > 1e-6


@pytest.mark.parametrize("free", [("a",), ("c", "a"), ("a", "b", "d")])
def test_draws_follow_the_models_conditional_law(free: Any) -> None:
    check(a_model(), free)


def test_codes_that_are_not_allowed_are_never_drawn_and_a_rows_weights_multiply_its_law() -> None:
    weights = np.where(np.arange(SIZES["c"]) < 1, -np.inf, 0.7 * np.arange(SIZES["c"]))
    check(a_model(), ("c", "d"), {"d": np.array([True, False, True])}, {"c": weights})


def test_a_potential_over_bins_of_a_column_counts_for_every_value_of_the_bin() -> None:
    levels = {"c/2": Level("c/2", "c", (0, 0, 1, 1))}
    model = a_model(levels, (("a", "c/2"), ("b", "c"), ("a", "d")))
    check(model, ("c", "b"))
    check(model, ("a",))


def test_structural_zeros_of_the_model_stay_impossible() -> None:
    cells = np.zeros((3, 2), dtype=bool)
    cells[0, 1] = cells[2, 0] = True
    check(a_model(impossible={("a", "b"): cells}), ("a", "d"))


def test_a_row_that_the_model_has_no_mass_for_takes_an_allowed_code() -> None:
    cells = np.ones((3, 2), dtype=bool)
    cells[1] = False
    law = ConditionalLaw(
        a_model(impossible={("a", "b"): cells}), ("a",), {"a": np.array([True, False, True])}
    )
    drawn = law.draw(np.zeros((50, 4), dtype=np.int64), np.random.default_rng(0))
    assert set(drawn[:, 0]) == {0, 2}


def test_rows_of_different_evidence_in_blocks_are_each_drawn_by_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conditional, "CELLS", 1000)
    model = a_model()
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, size, 200_000) for size in SIZES.values()])
    drawn = ConditionalLaw(model, ("b",)).draw(rows, np.random.default_rng(2))[:, 0]
    table = joint(model)
    share = table[:, 1] / table.sum(axis=1)
    expected = share[rows[:, 0], rows[:, 2], rows[:, 3]]
    for a in range(3):
        for c in range(4):
            here = (rows[:, 0] == a) & (rows[:, 2] == c)
            assert abs(drawn[here].mean() - expected[here].mean()) < 5 * 0.5 / np.sqrt(here.sum())
