"""The released model as networkx graphs and GraphML: what is connected, how strongly, and the junction tree's
properties."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from cosynth import Run
from runner.__main__ import main
from runner.results.finished_run import open_run
from runner.results.outdir import GRAPH, TREE, install
from tests.runner import small


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on the ideal backend."""
    directory = tmp_path_factory.mktemp("graph")
    trial = small.write(directory / "study", changes=[('"replicated"', '"ideal"')])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COSYNTH_LEDGER", str(directory / "ledger.db"))
        assert main(["run", str(trial.path), "--out", str(directory / "out")]) == 0
    return directory / "out"


def run_of(out: Path) -> Run:
    return Run(out, json.loads((out / "run.json").read_text()))


def test_columns_measured_together_are_connected(out: Path) -> None:
    graph, run = run_of(out).graph(), open_run(out)
    assert list(graph.nodes) == list(small.COLUMNS)
    assert {name: values for name, values in graph.nodes(data="values")} == small.SIZES
    assert graph.nodes["work"]["kind"] == "categorical" and graph.nodes["grade"]["kind"] == "codes"
    together = {frozenset(pair) for clique in run.model.cliques for pair in combinations(clique, 2)}
    assert {frozenset(edge) for edge in graph.edges} == together and len(together) >= 1
    selected = {frozenset(clique) for clique in run.facts["selected"] if len(clique) == 2}
    assert selected <= together
    assert graph.graph == {
        "study": "trial",
        "session": run.facts["session"],
        "rows": pytest.approx(run.model.total),
    }


def test_the_strength_of_an_edge_is_the_mutual_information_of_the_model(out: Path) -> None:
    """By the entropies of the model's marginals, an expression that shares no code with the product."""
    graph, model = run_of(out).graph(), open_run(out).model

    def entropy(*columns: str) -> float:
        share = model.marginal(columns) / model.total
        return float(-(share[share > 0] * np.log(share[share > 0])).sum())

    for one, other, strength in graph.edges(data="mutual_information"):
        assert strength == pytest.approx(entropy(one) + entropy(other) - entropy(one, other), abs=1e-9)
        assert strength >= 0
    assert max(strength for *_, strength in graph.edges(data="mutual_information")) > 0.01


def test_the_junction_tree_is_one(out: Path) -> None:
    """A tree; every measured clique in a node; the nodes that hold a column hang together (running
    intersection)."""
    tree, model = run_of(out).junction_tree(), open_run(out).model
    assert nx.is_tree(tree)
    held = {name: set(name.split(" x ")) for name in tree.nodes}
    assert set().union(*held.values()) == set(small.COLUMNS)
    for clique in model.cliques:
        assert any(set(clique) <= columns for columns in held.values())
    for column in small.COLUMNS:
        assert nx.is_connected(tree.subgraph([name for name in held if column in held[name]]))
    for one, other, facts in tree.edges(data=True):
        shared = held[one] & held[other]
        assert set(filter(None, facts["separator"].split(" x "))) == shared and facts["columns"] == len(
            shared
        )
        assert facts["cells"] == np.prod([small.SIZES[name] for name in shared], initial=1)
    assert tree.graph["cells"] == sum(cells for _, cells in tree.nodes(data="cells"))


@pytest.mark.parametrize(("options", "name"), [((), GRAPH), (("--tree",), TREE)])
def test_graphml_beside_the_report_reads_back(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], name: str
) -> None:
    expected = run_of(out).junction_tree() if options else run_of(out).graph()
    for target in (out / name, tmp_path / "own.graphml"):
        more = () if target.parent == out else ("--out", str(target))
        capsys.readouterr()
        assert main(["graph", str(out), *options, *more]) == 0
        assert capsys.readouterr().out == f"{target}\n"
        read = nx.read_graphml(target)
        assert dict(read.nodes(data=True)) == dict(expected.nodes(data=True))
        assert nx.utils.graphs_equal(nx.Graph(read.edges(data=True)), nx.Graph(expected.edges(data=True)))
        assert read.graph["session"] == expected.graph["session"]
    assert not [entry for entry in out.iterdir() if entry.name.endswith(".part")]


def test_a_graph_does_not_outlive_its_run(out: Path, tmp_path: Path) -> None:
    for name in (GRAPH, TREE):
        (tmp_path / name).write_text("an earlier run's")
    install(out, tmp_path, json.loads((out / "run.json").read_text()))
    assert (tmp_path / "run.json").exists() and not list(tmp_path.glob("*.graphml"))


def test_what_cannot_be_written_is_said(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["graph", str(out), "--out", str(tmp_path / "no" / "g.graphml")]) == 2
    assert "cannot be written (no such file or directory)" in capsys.readouterr().err
    assert main(["graph", str(tmp_path)]) == 2


def test_a_study_with_a_hostile_name_writes_sound_xml_and_no_lines_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    name = r'name = "a\u001b[2J\u202eb\nall is well"'
    changes = [('"replicated"', '"ideal"'), ('name = "trial"', name)]
    trial = small.write(tmp_path / "study", changes=changes)
    out = tmp_path / "out"
    assert main(["run", str(trial.path), "--out", str(out)]) == 0
    assert main(["ledger", "show", "--all"]) == 0 and main(["graph", str(out)]) == 0
    told = "".join(capsys.readouterr())
    assert not any(line.startswith("all is well") for line in told.splitlines())
    assert all(letter.isprintable() for letter in told.replace("\n", ""))
    assert nx.read_graphml(out / GRAPH).graph["study"] == r"a\x1b[2J\u202eb\x0aall is well"
