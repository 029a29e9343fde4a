"""Impossible cells have no mass after a fit, a file and a sample; the rest is the best model of the possible
cells."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted
from synth.mrf import Measurement, Model, fit
from synth.mrf.conditional import given
from synth.mrf.factor import Impossible

SIZES = {"a": 3, "b": 4, "one": 1, "c": 5, "d": 3}


def zeros(seed: int) -> Impossible:
    """A staircase over b and c, one over a and d, and random cells over a, one and b."""
    rng = np.random.default_rng(seed)
    steps = np.arange(4)[:, None] > np.arange(5)[None, :]
    return {
        ("b", "c"): steps,
        ("a", "d"): np.arange(3)[:, None] < np.arange(3)[None, :],
        ("a", "one", "b"): rng.random((3, 1, 4)) < 0.2,
    }


def joint_mask(impossible: Impossible) -> NDArray[np.bool_]:
    """Which cells of all columns are possible."""
    names = list(SIZES)
    possible = np.ones(list(SIZES.values()), np.bool_)
    for clique, cells in impossible.items():
        shape = [SIZES[name] if name in clique else 1 for name in names]
        possible &= ~cells.reshape(shape)
    return possible


def measured(seed: int, impossible: Impossible) -> list[Measurement]:
    rng = np.random.default_rng(seed)
    truth = np.where(joint_mask(impossible), rng.gamma(0.5, 200.0, list(SIZES.values())), 0)
    found = []
    for clique in [("a",), ("b",), ("c",), ("d",), ("a", "b"), ("b", "c"), ("c", "d"), ("a", "c", "d")]:
        axes = tuple(i for i, name in enumerate(SIZES) if name not in clique)
        counts = truth.sum(axis=axes).reshape(-1)
        found.append(Measurement(clique, counts + rng.normal(0, 30, counts.size), 900.0))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_impossible_cells_have_no_mass_and_no_rows(seed: int) -> None:
    impossible = zeros(seed)
    model = fit(SIZES, measured(seed, impossible), impossible=impossible)
    model = fit(SIZES, measured(seed + 9, impossible), impossible=impossible, warm_start=model)
    whole = model.marginal(tuple(SIZES)).reshape(list(SIZES.values()))
    assert whole[~joint_mask(impossible)].max() == 0 and abs(whole.sum() - model.total) < 1e-6 * model.total
    again = Model.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    assert np.array_equal(again.marginal(("a", "b", "c", "d")), model.marginal(("a", "b", "c", "d")))
    rows = again.sample(20_000, np.random.default_rng(seed), targets=list(combinations(SIZES, 3)), sweeps=3)
    assert joint_mask(impossible)[tuple(rows.T)].all()
    some = given(model, {"c": np.arange(5) > 1, "a": np.arange(3) < 2}).sample(
        5000, np.random.default_rng(seed)
    )
    assert joint_mask(impossible)[tuple(some.T)].all() and some[:, 3].min() > 1 and some[:, 0].max() < 2


def test_a_model_that_is_passed_on_answers_as_the_one_made_of_its_potentials() -> None:
    impossible = zeros(2)
    passed, made = (
        fit(SIZES, measured(2, impossible), impossible=impossible, iterations=30, passing=passing)
        for passing in (True, False)
    )
    for clique in combinations(SIZES, 2):
        np.testing.assert_allclose(passed.marginal(clique), made.marginal(clique), rtol=1e-9, atol=1e-9)
    assert passed.marginal(tuple(SIZES))[~joint_mask(impossible).reshape(-1)].max() == 0


@pytest.mark.campaign
def test_no_row_of_a_million_breaks_a_constraint() -> None:
    impossible = zeros(1)
    model = fit(SIZES, measured(1, impossible), impossible=impossible)
    rows = model.sample(10**6, np.random.default_rng(2))
    assert joint_mask(impossible)[tuple(rows.T)].all()


def test_it_is_the_maximum_entropy_model_of_the_possible_cells() -> None:
    impossible = zeros(3)
    model = fit(SIZES, measured(3, impossible), impossible=impossible, iterations=3000, tolerance=0)
    possible = joint_mask(impossible)
    # exponential form on the possible cells: the log of the mass is a sum of functions of the measured
    # cliques
    mass = model.marginal(tuple(SIZES)).reshape(list(SIZES.values()))
    logs = np.log(mass[possible])
    cells = np.argwhere(possible)
    names = list(SIZES)
    design = []
    for clique in model.cliques:
        number = np.ravel_multi_index(
            tuple(cells[:, names.index(name)] for name in clique), [SIZES[name] for name in clique]
        )
        design.append(np.eye(int(np.prod([SIZES[name] for name in clique])))[number])
    matrix = np.concatenate(design, axis=1)
    left = logs - matrix @ np.linalg.lstsq(matrix, logs, rcond=None)[0]
    assert np.abs(left).max() < 1e-6
    # and it is where the loss has no slope on them: each clique's residuals leave no function of it to follow
    slope = np.zeros_like(mass)
    for one in measured(3, impossible):
        axes = tuple(i for i, name in enumerate(names) if name not in one.clique)
        shape = [SIZES[name] if name in one.clique else 1 for name in names]
        reachable = possible.any(axis=axes).reshape(shape)
        goal = np.where(reachable, one.values.reshape(shape), mass.sum(axis=axes).reshape(shape))
        slope += (mass.sum(axis=axes).reshape(shape) - goal) / one.variance * possible
    weights = mass[possible] / mass.sum()
    centred = slope[possible] - weights @ slope[possible]
    # along every direction of the potentials
    directions = matrix - weights @ matrix
    gradient = directions.T @ (weights * centred)
    assert np.abs(gradient).max() < 2e-2 * np.abs(centred).max()


def test_without_zeros_nothing_changes() -> None:
    plain = fit(SIZES, measured(5, {}))
    same = fit(SIZES, measured(5, {}), impossible={})
    assert same.to_bytes() == plain.to_bytes()


def test_zeros_that_leave_nothing_are_refused() -> None:
    nothing: Impossible = {("a", "b"): np.ones((3, 4), np.bool_)}
    with pytest.raises(ValueError, match="possible"):
        fit(SIZES, measured(0, {}), impossible=nothing)
    with pytest.raises(ValueError, match="possible"):
        fit(SIZES, [], impossible={("one",): np.ones(1, np.bool_)})


@pytest.mark.parametrize(
    "entry",
    [
        [],
        [[["b", "a"], [0]]],
        [[["a", "e"], [0]]],
        [[["a", "b"], [12]]],
        [[["a", "b"], [-1]]],
        [[["a", "b"], [True]]],
        [[["a", "b"], [0]], [["a", "b"], [1]]],
        [[["a", "b"], list(range(12))]],
        [[["one"], [0]]],
        [["a", [0]]],
    ],
)
def test_a_file_with_odd_zeros_is_refused(entry: object) -> None:
    from io import BytesIO

    model = fit(SIZES, measured(0, {}), impossible={("a", "b"): np.eye(3, 4, dtype=np.bool_)})
    with np.load(BytesIO(model.to_bytes())) as archive:
        header, potentials = json.loads(archive["header"].tobytes()), archive["potentials"]
    header["impossible"] = entry
    stream = BytesIO()
    text = np.frombuffer(json.dumps(header, separators=(",", ":")).encode(), np.uint8)
    np.savez(stream, header=text, potentials=potentials)
    with pytest.raises(ProtocolAborted):
        Model.from_bytes(stream.getvalue())
