"""`mosaic` from the study file to the files of a run: whole runs with real processes, and what people and
programs read of them.

A marginal over bins must be the sum of the true counts over those bins, so what is measured is held against
tables counted by plain Python. Statistical assertions state their false-alarm rate; together they are below
1e-6 per execution of this file.
"""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from cosynth import Run
from mpc_protocols.errors import UsageError
from runner.__main__ import main
from runner.report import render
from runner.report.drawings.resolutions import resolutions
from runner.report.files import load
from runner.results.finished_run import open_run
from tests.runner import small, split
from tests.runner.processes import CONTRACT_FILES, events, parties, run

SIZES = small.SIZES | {"age": 60, "income": 41}
WIDE = [('algorithm = "aim"', 'algorithm = "mosaic"'), ("bins = 6", "bins = 60"), ("bins = 4", "bins = 40")]
ADAPTIVE, FIXED = ("[aim]\nrounds = 3", "[mosaic]"), ("[aim]\nrounds = 3", "[mosaic]\nrounds = 6")


def code(name: str, text: str) -> int:
    """The code of one field, one value at a time."""
    if name == "age":
        return min(max(int(text) - 20, 0), 59)
    if name == "income":
        return 40 if text == "" else min(max(math.floor(float(text) * 4), 0), 39)
    return small.code(name, text)


class Finished:
    """A run that succeeded: its files, read as anybody would."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.run: dict[str, Any] = json.loads((out / "run.json").read_text())
        self.measurements: dict[str, Any] = json.loads((out / "measurements.json").read_text())
        self.levels: dict[str, Any] = self.measurements.get("levels", {})
        self.events = events(out / "events.jsonl")

    def table(self, entry: dict[str, Any], rows: list[small.Row]) -> list[int]:
        """True counts of a measurement's cells."""
        bins = []
        for name, asked in zip(entry["clique"], entry.get("resolution", entry["clique"]), strict=True):
            own = self.levels[asked]["bins"] if asked in self.levels else list(range(SIZES[name]))
            assert asked == name or self.levels[asked]["column"] == name
            bins.append(own)
        found = Counter(
            tuple(own[code(name, row[name])] for name, own in zip(entry["clique"], bins, strict=True))
            for row in rows
        )
        return [found[cell] for cell in product(*(range(max(own) + 1) for own in bins))]


def carry_out(directory: Path, trial: small.Trial | split.Trial) -> Finished:
    out = directory / "out"
    end = run("run", trial.path, "--out", out, ledger=directory / "ledger.db", scratch=directory / "scratch")
    assert end.code == 0 and end.complaint == "", end
    assert not parties(directory)
    return Finished(out)


class World:
    """A finished run with its study."""

    def __init__(self, directory: Path, *changes: tuple[str, str], **more: Any) -> None:
        self.trial = small.write(directory / "study", changes=[*WIDE, *changes], **more)
        self.finished = carry_out(directory, self.trial)


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Three computing parties and a contributor, adaptive."""
    return World(tmp_path_factory.mktemp("replicated"), ADAPTIVE, parties=4)


@pytest.fixture(scope="module")
def ideal(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Replace adjacency, a fixed number of picks."""
    changes = [FIXED, ('"replicated"', '"ideal"'), ('"add-remove"', '"replace"')]
    return World(tmp_path_factory.mktemp("ideal"), *changes)


@pytest.fixture(params=["replicated", "ideal"])
def world(request: pytest.FixtureRequest) -> World:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, World)
    return found


def test_the_files_of_the_contract(world: World) -> None:
    finished, run_json = world.finished, world.finished.run
    assert {entry.name for entry in finished.out.iterdir()} >= CONTRACT_FILES
    assert run_json["algorithm"] == "mosaic" and run_json["rows"] > 0
    selected, bins = run_json["selected"], run_json["resolutions"]
    assert selected and all(set(clique) <= set(SIZES) for clique in selected)
    assert len(bins) == len(selected)
    for clique, sizes in zip(selected, bins, strict=True):
        assert all(name in clique and 2 <= size < SIZES[name] for name, size in sizes.items())
    assert any(bins)
    lines = [line for line in finished.events if line["event"] == "selected" and "clique" in line]
    assert [(line["round"], line["clique"], line["bins"]) for line in lines] == [
        (number, clique, sizes) for number, (clique, sizes) in enumerate(zip(selected, bins, strict=True), 1)
    ]
    for entry in finished.measurements["measurements"]:  # round i measures what was picked i-th
        if 1 <= (number := entry["round"]) <= len(selected):
            assert entry["clique"] == selected[number - 1]
            names = entry.get("resolution", entry["clique"])
            assert {
                finished.levels[name]["column"]: max(finished.levels[name]["bins"]) + 1
                for name in names
                if name in finished.levels
            } == bins[number - 1]


def test_the_budget(world: World) -> None:
    """The sum of rho stays below the cap; every selection event has what it came to, and picks of a batch are
    told apart."""
    privacy = world.finished.run["privacy"]
    spent = math.fsum(event["rho"] for event in privacy["events"])
    assert 0.94 * privacy["rho"] <= spent <= privacy["rho"] * (1 + 1e-12)
    selections = [event for event in privacy["events"] if event["what"] == "select"]
    assert [e["clique"] for e in selections if e["clique"]] == world.finished.run["selected"]
    assert [e.get("bins", {}) for e in selections if e["clique"]] == world.finished.run["resolutions"]
    batches = max(event.get("picks", 1) for event in selections)
    if privacy["adjacency"] == "replace":  # the fixed one
        assert batches == 4
    else:  # of fewer than twelve columns; the last batch may take more, up to twice as many
        assert 2 <= batches <= 4


def test_what_was_measured_is_true_of_the_data(world: World) -> None:
    """The noise of all cells, fine and coarse, has the stated variance: chi-square, two-sided, false alarms
    2e-7."""
    finished, deviations = world.finished, []
    for entry in finished.measurements["measurements"]:
        sigma, true = math.sqrt(Fraction(entry["sigma2"])), finished.table(entry, world.trial.pooled)
        assert len(true) == len(entry["values"])
        deviations += [(noisy - count) / sigma for noisy, count in zip(entry["values"], true, strict=True)]
    z = np.array(deviations)
    assert 1e-7 < stats.chi2.cdf(float((z * z).sum()), len(z)) < 1 - 1e-7


def test_all_parties_have_the_same_results(replicated: World, tmp_path: Path) -> None:
    """The contributor as well, which has only the leader's word."""
    from parties.budget.ledger import Ledger

    entries = Ledger(replicated.finished.out.parent / "ledger.db").entries()
    spent = math.fsum(event["rho"] for event in replicated.finished.run["privacy"]["events"])
    assert len(entries) == 4 and all(float(entry.spent.rho) == pytest.approx(spent) for entry in entries)
    results = {
        path.read_bytes() for path in replicated.finished.out.rglob("measurements.json") if path.is_file()
    }
    assert len(results) == 1


def test_more_rows_marginals_and_graphs_cost_nothing(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it is about the columns as they are, whatever the model measured coarsely."""
    out = world.finished.out
    capsys.readouterr()
    assert main(["sample", str(out), "--rows", "40"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 41
    assert main(["query", str(out), "age", "income", "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)
    assert len(cells["cells"]) == 60 * 41
    total = sum(cell["count"] for cell in cells["cells"])
    assert total == pytest.approx(cells["total"], rel=0.01)
    of = Run(out, world.finished.run)
    graph, tree, model = of.graph(), of.junction_tree(), open_run(out).model
    assert list(graph.nodes) == list(SIZES)
    measured = [entry for entry in world.finished.measurements["measurements"] if len(entry["clique"]) > 1]
    together = {frozenset(pair) for entry in measured for pair in product(entry["clique"], repeat=2)}
    assert {frozenset(edge) for edge in graph.edges} == {pair for pair in together if len(pair) == 2}
    for one, other, facts in graph.edges(data=True):
        assert 4 <= facts["cells"] <= SIZES[one] * SIZES[other] and facts["mutual_information"] >= 0
    assert nx.is_tree(tree) and all(held >= 1 for _, held in tree.nodes(data="measured"))
    assert tree.graph["cells"] * 8 / 2**20 == pytest.approx(model.size_mb)


def test_the_report_shows_what_was_asked_at_which_resolution(world: World) -> None:
    out = world.finished.out
    page, found = (out / "report.html").read_text(), resolutions(load(out))
    assert "How finely it was asked" in page and "bins)" in page
    assert set(found) == {
        world.finished.levels[name]["column"]
        for entry in world.finished.measurements["measurements"]
        for name in entry.get("resolution", [])
        if name in world.finished.levels
    }
    for name, asked in found.items():
        assert f"{name}: numbers of bins asked for" in page
        assert sum(one.times for one in asked) == sum(
            name in entry["clique"] and (len(entry["clique"]) > 1 or "resolution" in entry)
            for entry in world.finished.measurements["measurements"]
        )
        assert [one.size for one in asked] == sorted(one.size for one in asked)


DAMAGE: list[tuple[str, Callable[[dict[str, Any], dict[str, Any]], object]]] = [
    ("bins of another column", lambda told, run: next(iter(told["levels"].values())).update(column="sick")),
    ("a bin left out", lambda told, run: next(iter(told["levels"].values()))["bins"].pop()),
    ("no levels", lambda told, run: told.pop("levels")),
    ("fewer resolutions", lambda told, run: run["resolutions"].pop()),
    (
        "bins of a column that was not asked",
        lambda told, run: run["resolutions"].__setitem__(0, {"nobody": 2}),
    ),
]


@pytest.mark.parametrize(("what", "change"), DAMAGE)
def test_a_report_of_damaged_files_is_refused(
    ideal: World, tmp_path: Path, what: str, change: Callable[[dict[str, Any], dict[str, Any]], object]
) -> None:
    shutil.copytree(ideal.finished.out, tmp_path / "out")
    told, run_json = json.loads(json.dumps([ideal.finished.measurements, ideal.finished.run]))
    change(told, run_json)
    (tmp_path / "out" / "measurements.json").write_text(json.dumps(told))
    (tmp_path / "out" / "run.json").write_text(json.dumps(run_json))
    with pytest.raises(UsageError):
        render(tmp_path / "out")


def test_a_small_table_falls_back_and_everybody_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    changes = [*WIDE, ADAPTIVE, ('"replicated"', '"ideal"'), ("epsilon = 4.0", "epsilon = 0.3")]
    trial = small.write(tmp_path / "study", changes=changes)
    assert main(["plan", str(trial.path)]) == 0
    assert "no relations will be kept" in capsys.readouterr().out
    assert main(["run", str(trial.path), "--out", str(tmp_path / "out")]) == 0
    assert "independent of each other" in capsys.readouterr().out
    finished = Finished(tmp_path / "out")
    assert finished.run["selected"] == [] and "resolutions" not in finished.run
    assert "independent of each other" in finished.run["fallback"]
    assert "independent of each other" in (tmp_path / "out" / "report.html").read_text()
    spent = math.fsum(event["rho"] for event in finished.run["privacy"]["events"])
    assert 0.99 * finished.run["privacy"]["rho"] <= spent <= finished.run["privacy"]["rho"]


def test_check_and_plan(replicated: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(replicated.trial.path)]) == 0
    assert main(["plan", str(replicated.trial.path), "--json"]) == 0
    text = capsys.readouterr().out
    plan = json.loads(text[text.index("\n{") :])
    assert "several at a time" in plan["questions"]["asked"] and not plan["questions"]["falls_back"]
    low, high = plan["range"]["rounds"]
    assert all(low <= party["rounds"] <= high for party in replicated.finished.run["parties"][:3])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["replicated", "pair"])
def test_columns_of_two_owners(tmp_path: Path, backend: str) -> None:
    """Vertical, with the same files; by three parties or by two."""
    by_two = [('"replicated"', '"pair"'), ("merge3", "dh2")] if backend == "pair" else []
    changes = [*WIDE, ADAPTIVE, *by_two]
    trial = split.write(tmp_path / "study", count=900, changes=changes, parties=2 if backend == "pair" else 3)
    finished = carry_out(tmp_path, trial)
    privacy = finished.run["privacy"]
    assert finished.run["backend"] == backend and finished.run["partition"] == "vertical"
    assert any(finished.run["resolutions"]) and finished.levels
    assert math.fsum(event["rho"] for event in privacy["events"]) <= privacy["rho"] * (1 + 1e-12)


@pytest.mark.slow
def test_a_unit_of_several_rows_between_two_parties(tmp_path: Path) -> None:
    """Horizontal on the pair backend; a person has two rows: twice the sensitivity."""
    unit = ("max_rows = 4096", 'max_rows = 4096\nunit = { id = "person", max_rows = 2, max_custodians = 1 }')
    rows = {
        name: [row | {"person": f"{name}{number // 2}"} for number, row in enumerate(small.rows(seed, 800))]
        for seed, name in enumerate(small.NAMES[:2], 1)
    }
    changes = [FIXED, unit, ('"replicated"', '"pair"'), ("epsilon = 4.0", "epsilon = 8.0")]
    world = World(tmp_path, *changes, parties=2, data=rows)
    first = world.finished.run["privacy"]["events"][0]
    noise = [float(Fraction(sigma2)) for sigma2 in first["sigma2"]]
    assert first["rho"] == pytest.approx(sum(2**2 / (2 * sigma2) for sigma2 in noise), rel=1e-6)
    test_what_was_measured_is_true_of_the_data(world)
