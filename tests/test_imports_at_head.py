"""Imports stand at the head of a file. What must be loaded later is reached at few seams, each of which says why.

A library or a part of the project that is loaded at its first use is a `Later` (`mpc_protocols.process.later`),
which a descriptor or `parties.data.libraries` declares at its head; a command is carried out by a file of its own. An
import inside a function is left for an extra that may not be installed, and where `SEAMS` says so.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.source_files import parsed

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("mpc_protocols", "synth", "parties", "runner", "cosynth")
EXTRAS = {
    *("dask", "distributed", "dp_accounting", "formulaic", "llvmlite", "matplotlib", "openpyxl", "psycopg"),
    *("shtab", "sklearn", "torch"),
}
"""Libraries that an installation may lack: imported where they are used, with a sentence if they are not there."""
MAX_EXTRAS = 20
SEAMS = {
    "the face of a package, whose names are fetched when they are asked for": {"runner/__init__.py": 1},
    "`--help`, and a command that reads no table, end without it": {
        "runner/__main__.py": 1,
        "runner/commands/cli.py": 1,
    },
    "40 ms of the standard library, for who lacks an extra or has plug-ins": {
        "mpc_protocols/process/installation.py": 1,
        "mpc_protocols/process/plug_ins.py": 1,
    },
    "loaded ahead, where nobody waits or no limit counts it": {
        "parties/data/engines/duckdb_view_process.py": 2,
        "runner/report/__init__.py": 1,
    },
    "MPyC reads the command line when it is imported, and not twice": {
        "parties/session/mpyc_runtime.py": 1,
        "parties/session/session.py": 1,
    },
    "SciPy: 0.4 s of CPU, for one figure": {
        "runner/review/evaluation/linked.py": 2,
        "synth/inference/coupled.py": 2,
        "synth/inference/intervals.py": 1,
        "synth/inference/strength.py": 1,
        "synth/judgement/metrics/prediction.py": 1,
        "synth/prior/drift.py": 1,
    },
    "only a vertical run aligns and reads records": {
        "mpc_protocols/backends/replicated/engine.py": 1,
        "parties/data/records.py": 1,
        "runner/party/alignment.py": 1,
        "runner/party/custodian.py": 1,
        "runner/study/sections/prior.py": 1,
    },
    "behind an extra": {
        "runner/api/plot.py": 1,
        "runner/api/spark.py": 1,
        "runner/party/own_counts.py": 1,
    },
    "not at every party of every benchmark": {
        "runner/bench/benches/end_to_end.py": 2,
        "runner/bench/benches/fit.py": 1,
    },
    "a bar on a terminal (rich)": {"runner/party/record/progress.py": 1},
    "who reads a study computes with no model": {
        "synth/algorithms/vertimrf/algorithm.py": 1,
        "synth/domain/domain.py": 1,
        "synth/prior/later_wave.py": 1,
        "synth/research/vertimrf/encoded.py": 1,
    },
    "two modules have functions of one name, and one is for linked tables": {
        "runner/api/run.py": 1,
        "runner/commands/judging/evaluate.py": 1,
    },
    "what comes before it is told first": {"runner/check/run.py": 1, "runner/check/vertical.py": 1},
}
MAX_SEAMS = 38


def modules() -> dict[str, Path]:
    """The product's modules, by name."""
    files = (path for package in PRODUCT for path in sorted((ROOT / package).rglob("*.py")))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }


MODULES = modules()


def imports(node: ast.AST, inside: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Those that are carried out, with whether a function does it; not what is under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # holds no statement
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from imports(other, inside)
        else:
            yield from imports(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def targets(statement: ast.Import | ast.ImportFrom) -> set[str]:
    """What it names: modules."""
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names}
    full = {f"{statement.module}.{alias.name}" for alias in statement.names}
    return {name if name in MODULES else str(statement.module) for name in full}


def test_imports_stand_at_the_head_but_at_the_seams() -> None:
    extras, found = 0, Counter[str]()
    for path in MODULES.values():
        for statement, inside in imports(parsed(path)):
            if inside and {name.partition(".")[0] for name in targets(statement)} <= EXTRAS:
                extras += 1
            elif inside:
                found[path.relative_to(ROOT).as_posix()] += 1
    allowed = {name: most for seam in SEAMS.values() for name, most in seam.items()}
    assert {name: count for name, count in found.items() if count > allowed.get(name, 0)} == {}
    assert {name: most for name, most in allowed.items() if most > found[name]} == {}, "lower the bound"
    assert found.total() <= MAX_SEAMS and extras <= MAX_EXTRAS


def test_what_an_extra_is_can_be_missing() -> None:
    """None of them is among what every installation has."""
    [required] = re.findall(r"install_requires=\[(.*?)\]", (ROOT / "setup.py").read_text(), re.DOTALL)
    assert not {name for name in EXTRAS if f'"{name}' in required}


def graph(functions: bool) -> dict[str, set[str]]:
    """Which module imports which at its head, or also in functions."""
    return {
        name: {
            target
            for statement, inside in imports(parsed(path))
            if functions or not inside
            for target in targets(statement)
            if target in MODULES and target != name
        }
        for name, path in MODULES.items()
    }


def circles(edges: dict[str, set[str]]) -> list[frozenset[str]]:
    """The sets of modules that import each other, of two or more (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    made: list[frozenset[str]] = []
    for root in edges:
        if root in number:
            continue
        work = [(root, iter(sorted(edges[root])))]
        number[root] = low[root] = len(number)
        stack.append(root)
        while work:
            at, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    work.append((other, iter(sorted(edges[other]))))
                    break
                if other in stack:
                    low[at] = min(low[at], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == number[at]:
                    place = stack.index(at)
                    if len(stack) - place > 1:
                        made.append(frozenset(stack[place:]))
                    del stack[place:]
    return made


def test_circles_are_seen() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert set(circles(edges)) == {frozenset("abc"), frozenset("de")}


def test_no_module_imports_itself_on_a_way_round() -> None:
    assert circles(graph(functions=False)) == []


def test_no_circle_is_closed_inside_a_function() -> None:
    """What a type annotation names, or a `Later`, may lie in one: it is loaded when all are there."""
    assert circles(graph(functions=True)) == []


def assigned_later(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names at the head of a module, and the module that each is once it is used."""
    for branch in tree.body:
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING":
            for node in branch.orelse:
                if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Later("):
                    assert isinstance(node.value, ast.Call)
                    yield ast.unparse(node.targets[0]), ast.literal_eval(node.value.args[0])


def typed_as(tree: ast.Module) -> dict[str, str]:
    """What type checkers take a name under TYPE_CHECKING for."""
    types: dict[str, str] = {}
    for branch in tree.body:
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING":
            for node in branch.body:
                if isinstance(node, ast.ImportFrom):
                    types |= {
                        alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
                    }
                elif isinstance(node, ast.Import):
                    types |= {alias.asname or alias.name: alias.name for alias in node.names}
    return types


def test_what_is_loaded_later_closes_one_circle() -> None:
    """`Study.read` is told of by the model of a study, and reads one; with a prior, that of a finished run, too."""
    edges = graph(functions=True)
    for name, path in MODULES.items():
        edges[name] |= {module for _, module in assigned_later(parsed(path)) if module in MODULES}
    [only] = circles(edges)
    assert only >= {"runner.study.model", "runner.study.read"} and all(
        name.startswith(("runner.study.", "runner.results.finished_run", "runner.report.files"))
        for name in only
    )


def test_what_is_loaded_later_is_what_its_types_say() -> None:
    """A function that a package shows under the name of its module would be called as a module."""
    for name, path in MODULES.items():
        tree = parsed(path)
        types = typed_as(tree)
        for later, module in assigned_later(tree):
            assert types[later] == module, (name, later)
            package, _, own = module.rpartition(".")
            if package in MODULES:
                shown = [node for node in parsed(MODULES[package]).body if isinstance(node, ast.ImportFrom)]
                assert own not in {alias.name for node in shown for alias in node.names}, (name, later)
