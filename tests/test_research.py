"""What only research uses lies under a roof of its own: registries find it, and nothing else in the product
knows it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpc_protocols.psu.method import METHODS
from synth.algorithm import ALGORITHMS
from synth.algorithms.flaim.variants import VARIANTS
from synth.algorithms.vertimrf.encoding import ENCODINGS
from tests.runner.processes import ROOT
from tests.runner.studies import write_study
from tests.source_files import parsed

PACKAGES = ("mpc_protocols", "synth", "parties", "runner", "cosynth")
REGISTERS = {"Registry", "modules_of"}
"""What takes the name of a roof: everything there is found by these."""
DESCRIPTORS = ("algorithm", "method", "backend", "encoding", "variant", "comparison", "protocol")


def is_research(module: str) -> bool:
    """Whether a module or file lies under a roof."""
    return "research" in module.replace("/", ".").split(".")


def product() -> Iterator[Path]:
    """Every module of the product that lies under no roof."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not is_research(str(path.relative_to(ROOT).with_suffix(""))):
                yield path


def imported(tree: ast.Module) -> Iterator[str]:
    """All modules that a file may import, inside functions and for types too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def named(tree: ast.Module) -> Iterator[str]:
    """All texts of a file that name a module, but for docstrings and what a registry is made with."""
    free = {
        id(leaf)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REGISTERS)
        for leaf in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in free:
            yield node.value


@pytest.mark.parametrize("package", PACKAGES)
def test_the_product_imports_research_through_a_registry_only(package: str) -> None:
    for path in product():
        if path.relative_to(ROOT).parts[0] != package:
            continue
        tree = parsed(path)
        assert not [module for module in imported(tree) if is_research(module)], path
        roofs = [text for text in named(tree) if any(f"{top}.research" in text for top in PACKAGES)]
        assert not roofs, f"{path} names {roofs}"


def test_the_rule_sees_imports_wherever_they_stand() -> None:
    tree = ast.parse("def f():\n    from synth.research.florist import plan\n    g('synth.research.florist')")
    assert [is_research(module) for module in imported(tree)] == [True]
    assert list(named(tree)) == ["synth.research.florist"]
    assert list(named(ast.parse("'a page on synth.research'\nR = Registry(research='synth.research')"))) == []
    assert not is_research("runner.researcher.page")


def test_registries_find_what_lies_under_the_roofs() -> None:
    assert [name for name in ALGORITHMS.names if is_research(type(ALGORITHMS[name]).__module__)] == [
        "vertigan",
        "florist",
    ]
    assert [method.name for method in METHODS if is_research(type(method).__module__)] == ["florist"]
    assert ENCODINGS.names == ("fo", "fm")
    assert [name for name, variant in VARIANTS.items() if not variant.private] == ["oracle"]


def test_whatever_lies_under_the_roof_needs_the_switch() -> None:
    for name in ALGORITHMS.names:
        if is_research(type(ALGORITHMS[name]).__module__):
            assert ALGORITHMS[name].alternative(ALGORITHMS[name].config()) is not None


def test_a_study_that_names_no_research_loads_descriptors_at_most(tmp_path: Path) -> None:
    """Checked and planned in a process of its own, which then tells which modules it has."""
    script = (
        "import json, sys\n"
        "from runner.study import load\n"
        "from runner.party.synthesis import plan_of\n"
        "plan_of(load(sys.argv[1]))\n"
        "print(json.dumps([name for name in sys.modules if '.research' in name]))\n"
    )
    study = write_study(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", script, str(study)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = json.loads(done.stdout)
    works = [
        name
        for name in loaded
        if not (ROOT / name.replace(".", "/")).is_dir()
        and not name.rpartition(".")[2].endswith((*DESCRIPTORS, "config", "encoded", "calibrate"))
    ]
    assert not works
