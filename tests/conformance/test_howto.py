"""The examples of docs/howto are complete, and do what their kind promises."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from runner.bench.registry import Kernel
from runner.review.conformance import Check, check_algorithm, check_alignment

ROOT = Path(__file__).resolve().parents[2]
HOWTO = ROOT / "docs" / "howto"


def example(page: str) -> ModuleType:
    """The page's first block of Python, as a module."""
    found = re.search(r"```python\n(.*?)```", (HOWTO / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"{page} shows no code"
    module = ModuleType(f"howto_{page.removesuffix('.md').replace('-', '_')}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(found[1], page, "exec"), module.__dict__)
    return module


CHECKS = [
    *check_algorithm(example("add-an-algorithm.md").ALGORITHM),
    *check_alignment(example("add-an-alignment.md").METHOD),
]


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_example(check: Check) -> None:
    check()


def test_the_example_of_a_benchmark_runs_and_checks_its_result() -> None:
    bench = example("add-a-benchmark.md").BENCH
    assert isinstance(bench, Kernel)

    def part(wire: Any) -> int:
        task = bench.prepare(wire, {"cells": 100})
        task.check(task.run())
        with pytest.raises(ProtocolAborted, match="not those that were sent"):
            task.check(bytes([wire.me]) * 100)
        return int(wire.traffic().bytes_sent)

    assert MemoryNetwork(3).run([part] * 3) == [100, 100, 100]


@pytest.mark.parametrize("page", ["add-an-algorithm.md", "add-an-alignment.md", "add-a-benchmark.md"])
def test_examples_of_modules_in_the_tree_import_at_their_head(page: str) -> None:
    """As `tests/test_imports_at_head.py` asks of the tree."""
    found = re.search(r"```python\n(.*?)```", (HOWTO / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found
    for function in ast.walk(ast.parse(found[1])):
        if isinstance(function, ast.FunctionDef):
            assert not [
                inner for inner in ast.walk(function) if isinstance(inner, ast.Import | ast.ImportFrom)
            ]


def bare(node: ast.AST) -> str:
    """Code without annotations, docstrings and subscripts of types."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef):
            inner.returns = None
            for argument in inner.args.args:
                argument.annotation = None
    return ast.dump(node)


def test_the_backend_that_the_page_shows_is_the_toy_that_is_tried() -> None:
    """`tests/runner/test_dealt_backend.py` runs it as a plug-in, in processes, planned and audited."""
    page = (HOWTO / "add-a-backend.md").read_text(encoding="utf-8")
    shown = re.search(r"```python\n(class DealtEngine.*?)```", page, re.DOTALL)
    toy = ast.parse((ROOT / "tests" / "toys" / "dealt_backend.py").read_text(encoding="utf-8"))
    real = {bare(node) for node in ast.walk(toy)}
    assert shown
    parts = [
        part
        for node in ast.parse(shown[1]).body
        for part in (node.body if isinstance(node, ast.ClassDef) else [node])
    ]
    assert len(parts) == 5 and all(bare(part) in real for part in parts)
    assert all(base in page for base in ("DealtEngine(ArrayEngine[DealtGates])", "Dealt(EngineBackend)"))
