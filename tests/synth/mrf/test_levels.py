"""Levels: impossible cells stay impossible, and the model with them is the model one would write down by
hand."""

from __future__ import annotations

import itertools
import json
import math
import zipfile
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Level
from synth.mrf import Measurement, Model, fit
from synth.mrf.factor import Factor
from synth.mrf.junction_tree import junction_tree
from synth.mrf.levels import Chains, bins_within
from synth.mrf.propagation import Propagation
from synth.mrf.storage import from_bytes

SIZES = {"age": 7, "sex": 2, "work": 5}
LEVELS = {
    level.name: level
    for level in (
        Level("age/4", "age", (0, 0, 1, 1, 2, 3, 3)),
        Level("age/2", "age", (0, 0, 0, 0, 1, 1, 1)),
        Level("work/2", "work", (0, 1, 1, 0, 1)),
        Level("work/3", "work", (0, 1, 2, 0, 1)),
    )
}
CLIQUES = [("age",), ("sex",), ("work",), ("age/4", "sex"), ("age/2", "sex", "work/2"), ("age/4", "work/2")]


def _measurements(seed: int, noise: float = 5.0) -> list[Measurement]:
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, size, 2000) ** 2 // size for size in SIZES.values()], axis=1)
    rows[:, 2] = (rows[:, 0] + rows[:, 1] + rows[:, 2]) % 5
    codes = dict(zip(SIZES, rows.T, strict=True)) | {
        name: np.array(level.bins)[rows[:, list(SIZES).index(level.column)]] for name, level in LEVELS.items()
    }
    size = SIZES | {name: level.size for name, level in LEVELS.items()}
    found = []
    for clique in CLIQUES:
        table = np.zeros([size[name] for name in clique])
        np.add.at(table, tuple(codes[name] for name in clique), 1.0)
        found.append(Measurement(clique, table.reshape(-1) + rng.normal(0, noise, table.size), noise**2))
    return found


def _brute(model: Model) -> np.ndarray:
    """The joint distribution over the domain's columns, from the potentials alone."""
    joint = np.zeros(tuple(SIZES.values()))
    for cell in itertools.product(*map(range, SIZES.values())):
        value = dict(zip(SIZES, cell, strict=True))
        value |= {name: level.bins[value[level.column]] for name, level in LEVELS.items()}
        size = SIZES | {name: level.size for name, level in LEVELS.items()}
        for clique, potential in model.potentials.items():
            place = np.ravel_multi_index([value[n] for n in clique], [size[n] for n in clique])
            joint[cell] += potential[place]
    joint = np.exp(joint - joint.max())
    return joint * model.total / joint.sum()


MODEL = fit(SIZES, _measurements(0), levels=LEVELS, tolerance=0, iterations=1000)


def test_impossible_cells_have_no_mass_after_a_thousand_iterations() -> None:
    """Summing a fine marginal over the other bins of its level is all there could be; and no table has such a
    cell."""
    for table in MODEL._conditionals:
        assert np.isfinite(table).all()
    for node in MODEL.tree.nodes:
        assert len({MODEL._chains.column[name] for name in node}) == len(node)
    rows = MODEL.sample(3000, np.random.default_rng(3))
    for level in LEVELS.values():
        fine = MODEL.marginal((level.column,))
        coarse = np.bincount(level.bins, fine)
        np.testing.assert_allclose(MODEL.marginal((level.name,)), coarse, rtol=1e-9, atol=1e-30)
    assert rows.shape == (3000, 3)
    with pytest.raises(ValueError, match="each once"):
        MODEL.marginal(("age", "age/2"))


def test_a_coarse_marginal_is_the_sum_of_the_fine_one() -> None:
    fine = MODEL.marginal(("age", "sex", "work")).reshape(7, 2, 5)
    coarse = np.zeros((4, 2, 2))
    age, work = (np.array(LEVELS[name].bins) for name in ("age/4", "work/2"))
    np.add.at(coarse, (age[:, None, None], np.arange(2)[:, None], work), fine)
    np.testing.assert_allclose(MODEL.marginal(("age/4", "sex", "work/2")), coarse.reshape(-1), rtol=1e-9)


@pytest.mark.parametrize(
    "clique", [c for k in (1, 2, 3) for c in itertools.permutations(SIZES, k)], ids=",".join
)
def test_marginals_are_those_of_the_product_of_the_potentials(clique: tuple[str, ...]) -> None:
    joint = _brute(MODEL)
    kept = [list(SIZES).index(name) for name in clique]
    summed = joint.sum(axis=tuple(set(range(3)) - set(kept)))
    expected = summed.transpose(np.argsort(np.argsort(kept))).reshape(-1)
    np.testing.assert_allclose(MODEL.marginal(clique), expected, rtol=1e-8, atol=1e-9)


@st.composite
def layered(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, Level], list[tuple[str, ...]]]:
    """A domain of up to six columns, nested levels of some, and cliques that name columns at random levels."""
    sizes = {f"c{j}": draw(st.integers(1, 5)) for j in range(draw(st.integers(2, 6)))}
    levels: dict[str, Level] = {}
    names: dict[str, list[str]] = {column: [column] for column in sizes}
    for column, size in sizes.items():
        bins = list(range(size))
        for number in range(draw(st.integers(0, 2))):
            merged = [draw(st.integers(0, max(bins))) for _ in range(max(bins) + 1)]
            dense = {bin: place for place, bin in enumerate(dict.fromkeys(merged))}
            bins = [dense[merged[bin]] for bin in bins]
            if max(bins) + 1 > 1:
                name = f"{column}/{number}"
                levels[name] = Level(name, column, tuple(bins))
                names[column].append(name)
    chains = Chains(sizes, levels)
    cliques = []
    for _ in range(draw(st.integers(1, 7))):
        columns = draw(st.lists(st.sampled_from(list(sizes)), min_size=1, max_size=3, unique=True))
        clique = tuple(draw(st.sampled_from(names[c])) for c in columns if sizes[c] > 1)
        if clique:
            cliques.append(tuple(sorted(clique, key=chains.rank.__getitem__)))
    return sizes, levels, sorted(set(cliques))


@given(layered(), st.integers(0, 2**32 - 1))
def test_a_random_model_answers_at_every_level_as_its_joint_distribution(
    problem: tuple[dict[str, int], dict[str, Level], list[tuple[str, ...]]], seed: int
) -> None:
    sizes, levels, cliques = problem
    rng = np.random.default_rng(seed)
    chains = Chains(sizes, levels)
    potentials = {c: rng.normal(0, 2, math.prod(chains.sizes[n] for n in c)) for c in cliques}
    model = Model(sizes, 100.0, potentials, levels)
    fine = tuple(sizes)
    cells = {c: chains.cells_of(c, fine) for c in potentials}
    logs = sum((v[cells[c]] for c, v in potentials.items()), np.zeros(math.prod(sizes.values())))
    joint = np.exp(logs - logs.max())
    joint *= 100 / joint.sum()
    names = {c: [c, *(n for n, level in levels.items() if level.column == c)] for c in sizes}
    asked = [
        clique
        for count in (1, 2, 3)
        for columns in itertools.combinations(sizes, count)
        for clique in itertools.product(*(names[c] for c in columns))
    ]
    for clique, found in zip(asked, model.marginals(asked), strict=True):
        expected = np.bincount(chains.cells_of(clique, fine), joint, len(found))
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@given(layered(), st.integers(0, 2**32 - 1))
def test_steps_of_a_random_model_give_the_marginals_of_its_joint_distribution(
    problem: tuple[dict[str, int], dict[str, Level], list[tuple[str, ...]]], seed: int
) -> None:
    sizes, levels, cliques = problem
    rng = np.random.default_rng(seed)
    chains = Chains.used(sizes, levels, cliques)
    work = Propagation(junction_tree(chains.sizes, cliques, chains.coarser), chains, cliques, 50.0)
    theta = rng.normal(0, 1, work.marginals.size)
    work.start([Factor(layout, view) for layout, view in zip(work.layouts, work.views(theta), strict=True)])
    for _ in range(int(rng.integers(3))):
        step = rng.normal(0, 1, theta.size).clip(-work.bound, work.bound)
        work.evaluate(step)
        work.accept()
        theta += step
    logs = sum(
        (
            view.reshape(-1)[chains.cells_of(layout, tuple(sizes))]
            for layout, view in zip(work.layouts, work.views(theta), strict=True)
        ),
        np.zeros(math.prod(sizes.values())),
    )
    joint = np.exp(logs - logs.max())
    joint *= 50 / joint.sum()
    for layout, view in zip(work.layouts, work.views(work.marginals), strict=True):
        expected = np.bincount(chains.cells_of(layout, tuple(sizes)), joint, view.size)
        np.testing.assert_allclose(view.reshape(-1), expected, rtol=1e-7, atol=1e-9)


def test_a_fit_without_noise_finds_its_measurements() -> None:
    measured = _measurements(1, noise=1e-6)
    model = fit(SIZES, measured, levels=LEVELS, tolerance=0, iterations=5000)
    for m in measured:
        np.testing.assert_allclose(model.marginal(m.clique), m.values, atol=0.5)


def test_rows_have_the_columns_of_the_domain_and_its_marginals() -> None:
    table = MODEL.sample(2000, np.random.default_rng(0))
    assert table.shape == (2000, 3)
    for place, name in enumerate(SIZES):
        counts = np.bincount(table[:, place], minlength=SIZES[name])
        assert np.abs(counts - MODEL.marginal((name,)) * 2000 / MODEL.total).max() < 3


def test_a_model_with_levels_survives_the_round_trip() -> None:
    again = Model.from_bytes(MODEL.to_bytes())
    assert again.to_bytes() == MODEL.to_bytes()
    np.testing.assert_allclose(again.marginal(tuple(SIZES)), MODEL.marginal(tuple(SIZES)), rtol=1e-9)


@pytest.mark.parametrize(
    "bins",
    [
        [0, 0, 1, 1, 2, 3, 9],
        [0, 0, 1, 1, 2, 3],
        [0, 1, 2, 0, 1, 2, 3],
        ["0", 0, 1, 1, 2, 3, 3],
        "0011233",
        None,
    ],
)
def test_a_file_with_other_levels_is_refused(bins: object) -> None:
    with zipfile.ZipFile(BytesIO(MODEL.to_bytes())) as archive:
        members = {name: np.load(BytesIO(archive.read(name))) for name in archive.namelist()}
    header = json.loads(members["header.npy"].tobytes())
    assert header["levels"][0][:2] == ["age/4", "age"]
    assert "work/3" not in [level[0] for level in header["levels"]], "no clique names it"
    header["levels"][0][2] = bins
    stream = BytesIO()
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(stream, header=text, potentials=members["potentials.npy"])
    with pytest.raises(ProtocolAborted):
        from_bytes(stream.getvalue())


def test_levels_that_do_not_fit_are_refused() -> None:
    coarse, fine = Level("a/2", "age", (0, 1, 1)), Level("a/3", "age", (0, 0, 1))
    with pytest.raises(ValueError, match="not nested"):
        bins_within(coarse, fine)
    with pytest.raises(ValueError, match="does not fit"):
        fit(SIZES, [Measurement(("x",), np.zeros(2), 1.0)], levels={"x": Level("x", "sex", (0, 1, 1))})
