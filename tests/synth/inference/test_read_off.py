"""The read-off: unbiased, exact variance, and where the model is fitted to the end, the same estimate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mpc_protocols.functionality import Level
from synth.inference.licence import NotMeasured
from synth.inference.moments import Moment, Part
from synth.inference.read_off import ReadOff
from synth.synthesis import Measured
from tests.synth.inference.small import AB, AC, BC, DOMAIN, measured, model, people

CLIQUES = [("a",), ("b",), AB, BC, AC, AB]
VARIANCES = [Fraction(9), Fraction(4), Fraction(25), Fraction(16), Fraction(7), Fraction(60)]
LEVEL = Level("a/2", "a", (0, 0, 0, 1))


def counts(rows: int = 1000) -> dict[str, np.ndarray]:
    table = people(rows)
    return {
        name: np.bincount(table[:, j], minlength=DOMAIN.sizes[name]).astype(float)
        for j, name in enumerate(DOMAIN.names)
    }


def dense_weights(measurements: list[Measured], moment: np.ndarray) -> np.ndarray:
    """Generalised least squares over all cells of the table, written out: of all measured cells."""
    sizes = list(DOMAIN.sizes.values())
    cells = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), 1)
    blocks, weights = [], []
    for m in measurements:
        levels = {level.name: level for level in m.levels}
        codes = [
            np.array(levels[n].bins)[cells[:, DOMAIN.names.index(levels[n].column)]]
            if n in levels
            else cells[:, DOMAIN.names.index(n)]
            for n in m.clique
        ]
        shape = [levels[n].size if n in levels else DOMAIN.sizes[n] for n in m.clique]
        block = np.zeros((int(np.prod(shape)), len(cells)))
        block[np.ravel_multi_index(codes, shape), np.arange(len(cells))] = 1
        blocks.append(block)
        weights += [1 / float(m.sigma2)] * len(block)
    design, weight = np.concatenate(blocks), np.array(weights)
    solved = np.linalg.pinv(design.T @ (design * weight[:, None]), rcond=1e-12) @ moment.reshape(-1)
    return np.asarray(weight * (design @ solved))


def weights_of(measurements: list[Measured], columns: tuple[str, ...], table: np.ndarray) -> np.ndarray:
    read_off = ReadOff(DOMAIN.sizes, measurements, counts())
    coarse = read_off.coarse(Moment.table(columns, table))
    return np.concatenate(read_off.estimate(coarse.names).weights(coarse.values))


@pytest.mark.parametrize("columns", [("a",), AB, AC, BC])
def test_the_read_off_is_the_least_squares_estimate_over_the_whole_table(columns: tuple[str, ...]) -> None:
    """Although it looks at the asked columns only: without bins nothing is lost by that
    (`docs/design/inference.md` 3)."""
    table = np.random.default_rng(3).normal(size=[DOMAIN.sizes[name] for name in columns])
    measurements = measured(people(500), CLIQUES, VARIANCES)
    shape = [DOMAIN.sizes[name] if name in columns else 1 for name in DOMAIN.names]
    whole = np.broadcast_to(table.reshape(shape), list(DOMAIN.sizes.values()))
    assert np.allclose(
        weights_of(measurements, columns, table), dense_weights(measurements, whole), atol=1e-9
    )


def test_the_variance_is_exact_by_enumeration_of_every_noise() -> None:
    """Noise of -s or +s in each of eight cells, all 256 cases: mean and variance are those that the weights
    foretell."""
    table = people(300)
    exact = measured(table, [("b",), BC], [Fraction(9), Fraction(25)])
    moment = np.array([[0.0, 1.0, 2.0], [1.0, 3.0, 0.0]])
    truth = float((np.bincount(table[:, 1] * 3 + table[:, 2], minlength=6).reshape(2, 3) * moment).sum())
    values = []
    for case in range(256):
        signs = np.array([1 if case >> k & 1 else -1 for k in range(8)])
        noisy = [
            Measured(m.clique, m.sigma2, m.round, m.values + signs[first : first + m.values.size] * size)
            for m, first, size in zip(exact, (0, 2), (3, 5), strict=True)
        ]
        read_off = ReadOff(DOMAIN.sizes, noisy, counts())
        coarse = read_off.coarse(Moment.table(BC, moment))
        values.append(float((read_off.estimate(coarse.names).values * coarse.values).sum()))
    weights = weights_of(exact, BC, moment)
    foretold = float(np.concatenate([np.full(2, 9.0), np.full(6, 25.0)]) @ np.square(weights))
    assert np.isclose(np.mean(values), truth, atol=1e-8)
    assert np.isclose(np.var(values), foretold, rtol=1e-9)


def test_the_order_of_the_measurements_does_not_matter() -> None:
    noisy = measured(people(500), CLIQUES, VARIANCES, np.random.default_rng(2))
    moment = Moment.table(AB, np.arange(8.0).reshape(4, 2))
    found = []
    for order in (range(6), reversed(range(6)), (3, 1, 5, 0, 4, 2)):
        read_off = ReadOff(DOMAIN.sizes, [noisy[k] for k in order], counts())
        found.append(float((read_off.estimate(AB).values * moment.centre).sum()))
    assert np.ptp(found) < 1e-8 * abs(found[0])


def test_a_model_fitted_to_the_end_gives_the_read_offs_estimate() -> None:
    """`docs/design/inference.md` 3: in the interior the two are one, once both know the total."""
    rows = 40_000
    noisy = measured(
        people(rows), [AB, BC, AC], [Fraction(900), Fraction(400), Fraction(2500)], np.random.default_rng(5)
    )
    total = Measured((), Fraction(1, 10**4), 0, np.array([rows]))
    read_off, fitted = ReadOff(DOMAIN.sizes, [*noisy, total], counts()), model(noisy, rows)
    for columns in (AB, BC, AC, ("a",), ("c",)):
        mine = read_off.estimate(read_off.resolutions(columns)[0]).values.reshape(-1)
        assert np.allclose(mine, fitted.marginal(columns), atol=0.2)


def test_the_sandwich_of_the_dense_model_has_the_read_offs_weights() -> None:
    """J = R (H W H + lambda)^-1 H W / N, written out; both without what a shift of a marginal's sum would do."""
    rows, columns = 40_000, AC
    noisy = measured(
        people(rows), [AB, BC, AC], [Fraction(900), Fraction(400), Fraction(2500)], np.random.default_rng(5)
    )
    sizes = list(DOMAIN.sizes.values())
    p = model(noisy, rows).marginal(DOMAIN.names) / rows
    moment = np.random.default_rng(3).normal(size=(4, 3))
    whole = np.broadcast_to(moment[:, None, :], sizes).reshape(-1)
    cells = np.stack(np.unravel_index(np.arange(len(p)), sizes), 1)
    blocks = []
    for m in noisy:
        shape = [DOMAIN.sizes[n] for n in m.clique]
        block = np.zeros((int(np.prod(shape)), len(p)))
        block[
            np.ravel_multi_index([cells[:, DOMAIN.names.index(n)] for n in m.clique], shape),
            np.arange(len(p)),
        ] = 1
        blocks.append(block)
    a = np.concatenate(blocks)
    w = np.concatenate([np.full(len(b), 1 / float(m.sigma2)) for b, m in zip(blocks, noisy, strict=True)])
    mu = a @ p
    h = rows * ((a * p) @ a.T - np.outer(mu, mu))
    r = rows * ((whole * p) @ a.T - (whole @ p) * mu)
    q = h @ (h * w[:, None])
    j = r @ np.linalg.pinv(q, rcond=1e-11) @ (h * w) / rows
    total = Measured((), Fraction(1, 10**12), 0, np.array([rows]))
    mine = weights_of([*noisy, total], columns, moment)[:-1]
    assert np.allclose(mine, j * rows, atol=1e-5)
    noise = sum(
        float(m.sigma2) * float(np.square(part).sum())
        for m, part in zip(noisy, np.split(mine, np.cumsum([len(b) for b in blocks])[:-1]), strict=True)
    )
    assert np.isclose(noise, float(np.square(j * rows) @ (1 / w)), rtol=1e-6)


def test_over_bins_the_read_off_stays_unbiased_and_says_how_much_is_open() -> None:
    table = people(5000)
    exact = measured(table, [("a",), ("b",), ("a/2", "b")], [Fraction(1)] * 3, levels=[LEVEL])
    read_off = ReadOff(DOMAIN.sizes, exact, counts(5000))
    mean = Moment.product(
        {"a": Part.exact(np.arange(4.0)), "b": Part.exact(np.array([0.0, 1.0]))}, DOMAIN.sizes
    )
    coarse = read_off.coarse(mean)
    truth = float(table[table[:, 1] == 1, 0].sum())
    value = float((read_off.estimate(coarse.names).values * coarse.values).sum())
    below, above = coarse.coded
    assert coarse.names == ("a/2", "b") and value - below <= truth <= value + above
    least = np.sort(
        table[table[:, 0] < 3, 0]
    )  # the sharpest bounds: the lower bin's people, smallest or largest first
    group = int((table[table[:, 0] < 3, 1] == 1).sum())
    top = 3 * int(((table[:, 0] == 3) & (table[:, 1] == 1)).sum())
    assert np.isclose(value - below, least[:group].sum() + top)
    assert np.isclose(value + above, least[-group:].sum() + top)


def test_a_function_that_bins_carry_leaves_nothing_open() -> None:
    exact = measured(people(5000), [("a",), ("a/2", "b")], [Fraction(1)] * 2, levels=[LEVEL])
    read_off = ReadOff(DOMAIN.sizes, exact, counts(5000))
    top = Moment.product(
        {"a": Part.exact(np.array([0.0, 0.0, 0.0, 1.0])), "b": Part.exact(np.array([0.0, 1.0]))}, DOMAIN.sizes
    )
    assert read_off.coarse(top).coded == (0.0, 0.0)


def test_columns_that_no_marginal_holds_are_refused_by_name() -> None:
    read_off = ReadOff(DOMAIN.sizes, measured(people(50), [AB, BC], [Fraction(1)] * 2), counts())
    with pytest.raises(NotMeasured, match="a x c"):
        read_off.coarse(Moment.table(AC, np.ones((4, 3))))
