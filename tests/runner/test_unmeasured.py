"""How far pairs that were not measured can be: that holds on generated tables, `infer` says it, and nothing
where nothing is known."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from cosynth import Run, Synthesizer, load
from runner.commands.cli import main
from runner.results.finished_run import open_run
from runner.results.outdir import RUN
from runner.results.replay import WatchedOracle
from synth.domain import Codes, Domain
from synth.inference.unmeasured import bounds, most_distance, widest
from synth.judgement.metrics import marginal
from synth.mrf import Model
from tests.acceptance.coverage import release, study_of
from tests.acceptance.coverage_populations import Population


def domain(columns: int) -> Domain:
    return Domain(tuple(f"c{i}" for i in range(columns)), tuple(Codes(2) for _ in range(columns)))


DOMAIN = domain(10)
NOTHING = "would have to be measured."


def people(rows: int, rng: np.random.Generator, columns: int = 10) -> NDArray[np.int64]:
    """A chain: each column follows the one before it in six cases of ten."""
    table = np.zeros((rows, columns), np.int64)
    table[:, 0] = rng.random(rows) < 0.5
    for i in range(1, columns):
        table[:, i] = np.where(rng.random(rows) < 0.6, table[:, i - 1] ^ i % 2, rng.random(rows) < 0.4)
    return table


def off(table: NDArray[np.int64], pair: tuple[str, ...], model: Model) -> float:
    """By how much at most the share of rows in a set of cells is off the model's."""
    difference = marginal(table, domain(table.shape[1]), pair) - model.marginal(pair)
    return float(np.abs(difference).sum() + abs(difference.sum())) / 2 / float(model.total)


@pytest.mark.parametrize(
    ("algorithm", "columns", "rows", "least"),
    [("mosaic", 10, 3000, 0.0), ("aim", 10, 3000, 0.0), ("mst", 10, 3000, 0.0), ("mwem", 12, 20_000, 0.9)],
)
def test_the_bound_holds(algorithm: str, columns: int, rows: int, least: float) -> None:
    """Three runs each. least: of the truth by the bound, where that has little to spare: some columns that
    MWEM did not pick are far from its model."""
    of = domain(columns)
    cells, weights = np.zeros((1, columns), np.int64), np.ones(1)
    population = Population(of, lambda rows, rng: people(rows, rng, columns), cells, weights)
    ratios = []
    for seed in range(3):
        oracles: list[WatchedOracle] = []

        def oracle_of(*given: Any, kept: list[WatchedOracle] = oracles, **named: Any) -> WatchedOracle:
            kept.append(WatchedOracle(*given, **named))
            return kept[0]

        table = population.draw(rows, np.random.default_rng(seed))
        study = study_of(population, algorithm, 1.0, (), 0.0)
        made = release(population, table, study, bytes([seed]) * 16, oracle_of)
        known = bounds(oracles[0].picks, made.measurements, made.model, of.names)
        ratios += [off(table, pair, made.model) / bound for pair, bound in known.items()]
    assert len(ratios) > 30 and least < max(ratios) < 1


@pytest.mark.parametrize(("cells", "distance"), [(4, 0.0), (4, 200.0), (40, 0.0), (40, 1000.0)])
def test_a_distance_is_at_most_what_is_seen_says(cells: int, distance: float) -> None:
    rng, chance, runs = np.random.default_rng(3), 0.2, 100
    true = rng.normal(size=cells)
    true *= distance / np.abs(true).sum()
    beyond = sum(
        most_distance(true + rng.normal(0, 10, cells), np.zeros(cells), 100.0, chance) < distance
        for _ in range(runs)
    )
    assert beyond / runs < chance + 3 * math.sqrt(chance / runs)


def run_of(folder: Path, algorithm: str, rows: int) -> tuple[Run, NDArray[np.int64]]:
    """On one machine, in the clear."""
    table = people(rows, np.random.default_rng(7))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSYNTH_LEDGER", str(folder / "ledger.db"))
        synthesizer = Synthesizer(
            dict(DOMAIN.sizes), epsilon=1.0, delta=1e-6, algorithm=algorithm, privacy={"max_rows": 8192}
        )
        fitted = synthesizer.fit(pd.DataFrame(table, columns=list(DOMAIN.names)))
    shutil.copytree(fitted.run.directory, folder / "out", ignore=shutil.ignore_patterns("parties"))
    return load(folder / "out"), table


PAIRS = list(itertools.combinations(DOMAIN.names, 2))
QUESTIONS = [f"share({a} == 1 & {b} == 0)" for a, b in PAIRS]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, NDArray[np.int64]]:
    return run_of(tmp_path_factory.mktemp("made"), "mosaic", 5000)


def test_a_refusal_says_how_far_the_pair_can_be(
    made: tuple[Run, NDArray[np.int64]], capsys: pytest.CaptureFixture[str]
) -> None:
    run, table = made
    found = run.infer(*QUESTIONS)
    model = open_run(run.directory).model
    refused = 0
    for pair, answer in zip(PAIRS, found.itertuples(), strict=True):
        if answer.licence == "measured":
            assert math.isnan(answer.unmeasured_bound) and "instead" not in answer.reason
            continue
        refused += 1
        assert math.isnan(answer.low) and NOTHING in answer.reason
        assert off(table, pair, model) < answer.unmeasured_bound < widest(model, pair) / 2
        assert f"any values of {pair[0]} x {pair[1]} is at most" in answer.reason
    assert refused > 10
    question = QUESTIONS[[*found["licence"]].index("not measured")]
    capsys.readouterr()
    assert main(["infer", str(run.directory), question, "--json"]) == 0
    [told] = json.loads(capsys.readouterr().out)["answers"]
    assert 0 < told["unmeasured_bound"] < 0.1 and told["low"] is None and told["licence"] == "not measured"
    assert main(["infer", str(run.directory), question]) == 0
    assert told["reason"] in capsys.readouterr().out.splitlines()
    [three] = run.infer("share(c0 == 1 & c5 == 1 & c9 == 1)").itertuples()
    assert math.isnan(three.unmeasured_bound) and three.reason.endswith(NOTHING)


@pytest.mark.parametrize(
    "change",
    [
        lambda form: form["selected"].reverse(),
        lambda form: form["selected"].pop(),
        lambda form: form["privacy"]["events"].pop(),
        lambda form: form["privacy"]["events"][0].update(rho=0.5),
        lambda form: form["agreed"]["privacy"].update(epsilon=2.0),
        lambda form: form.update(agreed={}),
        lambda form: form.pop("agreed"),
        lambda form: next(p for p in form["phases"] if p["name"] == "fit").update(wall_s=1e4),
        lambda form: form.update(phases=[]),
        lambda form: form.update(phases=None),
        lambda form: form.update(phases=[{"name": "fit"}]),
        lambda form: form.update(phases=[{"name": "fit", "wall_s": "soon"}]),
        lambda form: form.update(phases=[{"name": "fit", "wall_s": -5.0}]),
        lambda form: form["agreed"]["domain"]["columns"].append({"name": "more", "kind": "codes", "size": 2}),
    ],
)
def test_of_a_run_that_cannot_be_repeated_nothing_more_is_said(
    change: Callable[[dict[str, Any]], Any], made: tuple[Run, NDArray[np.int64]], tmp_path: Path
) -> None:
    out = Path(shutil.copytree(made[0].directory, tmp_path / "out"))
    form = json.loads((out / RUN).read_text())
    change(form)
    (out / RUN).write_text(json.dumps(form))
    found = load(out).infer(*QUESTIONS)
    refused = found[found["licence"] == "not measured"]
    assert len(refused) > 10 and refused["unmeasured_bound"].isna().all()
    assert all(reason.endswith(NOTHING) for reason in refused["reason"])


@pytest.mark.parametrize(
    "change",
    [
        {"selected": None},
        {"selected": [["c0", 5]]},
        {"public_study": 5},
        {"privacy": {"events": [1]}},
        {"privacy": None},
        {"privacy": {"events": [], "all_events": None}},
        {"contributors": "x"},
        {"public_study": {"inference": {"queries": [1]}}},
        {"public_study": {"inference": {"queries": "mean(c0)"}}},
        {"public_study": {"inference": 7}},
    ],
)
def test_a_run_that_tells_nonsense_of_itself_is_one_sentence(
    change: dict[str, Any],
    made: tuple[Run, NDArray[np.int64]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = Path(shutil.copytree(made[0].directory, tmp_path / "out"))
    form = json.loads((out / RUN).read_text())
    (out / RUN).write_text(json.dumps(form | change))
    asked = [["infer", str(out), "share(c0 == 1)"], ["infer", str(out)]]
    for words in (
        *asked,
        ["sample", str(out), "-n", "5", "--replicates", "2", "-o", str(tmp_path / "made.csv")],
    ):
        assert main(words) == 2
        assert "run.json is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("algorithm", ["mst", "privmrf"])
def test_a_selection_that_bounds_nothing_or_is_not_released_adds_nothing(
    algorithm: str, tmp_path: Path
) -> None:
    """A tree's selections are of pairs that join parts, at little budget; PrivMRF's distances are in no file."""
    run, _ = run_of(tmp_path, algorithm, 1000)
    found = run.infer(*QUESTIONS)
    refused = found[found["licence"] == "not measured"]
    assert len(refused) > 3 and refused["unmeasured_bound"].isna().all()
    assert all(reason.endswith(NOTHING) for reason in refused["reason"])
