"""What `examples/` and the how-to pages show runs as they say."""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mpc_protocols.functionality import Adjacency, unobserved
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member
from mpc_protocols.psu.identifiers.normalise import Identifiers
from mpc_protocols.psu.randomness import system
from mpc_protocols.wire import Wire
from runner.bench import benches, registry
from synth.budget.accounting import Accountant
from synth.judgement.metrics import marginal
from synth.workload import Workload
from tests.runner import processes
from tests.synth.oracles import chain, ideal
from tests.worlds.ports import free_ports

ROOT = processes.ROOT
EXAMPLES = ROOT / "examples"
TABLES = runpy.run_path(str(EXAMPLES / "make_tables.py"))


def copied(name: str, to: Path) -> Path:
    """An example's study beside its tables, with ports that are free here."""
    shutil.copytree(EXAMPLES / name, to)
    study = to / "study.toml"
    text = study.read_text(encoding="utf-8")
    for number, port in enumerate(free_ports(3), 7101):
        text = text.replace(f":{number}", f":{port}")
    study.write_text(text, encoding="utf-8")
    return study


def written(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.csv")}


def test_the_tables_are_those_that_the_script_writes(tmp_path: Path) -> None:
    for name in ("three_custodians", "two_owners"):
        (tmp_path / name).mkdir()
        TABLES[name](tmp_path / name)
        assert written(tmp_path / name) == written(EXAMPLES / name) != {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["three_custodians", "two_owners"])
def test_an_example_ends_with_its_table(name: str, tmp_path: Path) -> None:
    study, out = copied(name, tmp_path / name), tmp_path / "out"
    end = processes.run(
        "run", study, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch"
    )
    assert end.code == 0, end.complaint
    run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    with (out / "synthetic.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == run["rows"] > 100
    assert {row["work"] for row in rows} <= set(TABLES["WORK"])
    assert (out / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_the_two_owners_run_without_a_third_as_the_page_says(tmp_path: Path) -> None:
    study, out = copied("two_owners", tmp_path / "two"), tmp_path / "out"
    text = study.read_text(encoding="utf-8")
    alone = text[: text.rindex("[[party]]")].replace('backend = "replicated"', 'backend = "pair"')
    study.write_text(alone, encoding="utf-8")
    end = processes.run(
        "run", study, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch"
    )
    assert end.code == 0, end.complaint
    run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert run["backend"] == "pair" and run["rows"] > 100


@pytest.mark.slow
def test_the_python_example_prints_what_came_of_it(tmp_path: Path) -> None:
    pytest.importorskip("cosynth")
    study = copied("three_custodians", tmp_path / "study")
    ended = subprocess.run(
        [sys.executable, EXAMPLES / "from_python.py", study, tmp_path / "out"],
        cwd=tmp_path,
        env={**os.environ, "COSYNTH_LEDGER": str(tmp_path / "ledger.db"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stderr
    assert "synthetic rows; epsilon 2" in ended.stdout and "self-employed" in ended.stdout
    assert (tmp_path / "out" / "report.html").exists()


def test_every_cell_of_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a kernel would run them, one after the other; what a cell shows has the form that a notebook asks
    for."""
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    shutil.copytree(EXAMPLES / "three_custodians", tmp_path / "examples" / "three_custodians")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    names: dict[str, Any] = {}
    shown = []
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == []  # nothing of somebody's run is kept
        if cell["cell_type"] == "code":
            body = ast.parse("".join(cell["source"])).body
            if isinstance(last := body[-1], ast.Expr):
                shows = ast.Assign([ast.Name("shown", ast.Store())], last.value)
                body[-1] = ast.fix_missing_locations(ast.copy_location(shows, last))
            exec(compile(ast.Module(body, []), "cell", "exec"), names)
            shown.append(names.pop("shown", None))
    assert "epsilon 2" in shown[2]._repr_html_() and "iframe" in shown[3]._repr_html_()
    assert shown[5] == "not measured together"
    assert len(shown[-1]) == 5


def python_blocks(page: str) -> list[str]:
    """The programs that a page shows."""
    text = (ROOT / "docs" / "howto" / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_benchmark_of_the_how_to_page_is_found_and_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = python_blocks("add-a-benchmark.md")
    (tmp_path / "how_to_ring.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(benches, "__path__", [*benches.__path__, str(tmp_path)])
    try:
        ring = registry.load()["ring"]
    finally:
        sys.modules.pop(f"{benches.__name__}.how_to_ring", None)
    assert isinstance(ring, registry.Kernel)

    def party(wire: Wire) -> None:
        task = ring.prepare(wire, {"cells": 1000})
        task.check(task.run())

    network = MemoryNetwork(3)
    network.run([party] * 3)
    assert [network.traffic(number).bytes_sent for number in range(3)] == [1000] * 3


def module_of(source: str, name: str) -> ModuleType:
    """A module with this source, which is not one that can be imported by others."""
    module = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_algorithm_of_the_how_to_page_spends_its_budget(adjacency: Adjacency) -> None:
    pytest.importorskip("synth.algorithm")
    algorithm = module_of(python_blocks("add-an-algorithm.md")[0], "how_to_independent").ALGORITHM
    domain, codes = chain(5000, np.random.default_rng(3))
    plan = algorithm.plan(
        domain,
        Workload(domain, (domain.names[:2],)),
        algorithm.config(),
        epsilon=1.0,
        delta=1e-9,
        adjacency=adjacency,
    )
    guard = Accountant(plan.budget)
    made = algorithm.run(ideal(codes, domain, guard, adjacency), plan, unobserved)
    assert [event.what for event in guard.events] == ["measure"]
    assert plan.budget.rho_cap * Fraction(99, 100) <= guard.rho <= plan.budget.rho_cap
    assert guard.beta <= plan.budget.beta_cap
    first = made.model.marginal(domain.names[:1])
    assert np.abs(first - marginal(codes, domain, domain.names[:1])).sum() < 500


def test_the_alignment_of_the_how_to_page_gives_both_owners_the_same_rows() -> None:
    pytest.importorskip("mpc_protocols.psu.method")
    from mpc_protocols.psu.method import METHODS

    method = module_of(python_blocks("add-an-alignment.md")[0], "how_to_shown").METHOD
    lists = [
        Identifiers(entries, np.arange(len(entries)), ())
        for entries in ([b"\0a", b"\0b", b"\0c"], [b"\0b", b"\0d"])
    ]
    members = tuple(Member(f"owner{i}", bytes([i]) * 32, i) for i in (0, 1))
    context = Context(bytes(32), members, computing=members)

    def owner(wire: Wire) -> Alignment:
        made: Alignment = method.align(wire, lists[wire.me], spec, context, system)
        return made

    with METHODS.registered(method):
        spec = AlignmentSpec(method.name, min_size=1)
        first, second = MemoryNetwork(2, computing=2).run([owner, owner])
    assert first.n_rows == second.n_rows == 4 and first.digest == second.digest
    rows = [
        dict(zip(own.entries, made.rows.tolist(), strict=True))
        for own, made in zip(lists, (first, second), strict=True)
    ]
    assert rows[0][b"\0b"] == rows[1][b"\0b"]
    assert len({*rows[0].values(), *rows[1].values()}) == 4
