"""No test decides by a clock: what is slow on a busy machine is not wrong. Lower bounds hold everywhere;
upper ones only where somebody says that the machine is quiet (`--quiet-machine`)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.source_files import nodes

TESTS = Path(__file__).parent
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}
CLOCK = re.compile("|".join(CLOCKS))
"""In no other file need anybody look."""


def reads_clock(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is made of a clock's reading."""
    return any(
        (isinstance(leaf, ast.Call) and ast.unparse(leaf.func).rpartition(".")[2] in CLOCKS)
        or (isinstance(leaf, ast.Name) and leaf.id in names)
        for leaf in ast.walk(node)
    )


def judged(function: ast.FunctionDef) -> list[int]:
    """Lines that assert an upper bound of a time."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and reads_clock(node.value, names):
            names |= {
                leaf.id for target in node.targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)
            }
    return [
        node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Assert)
        for compared in ast.walk(node.test)
        if isinstance(compared, ast.Compare)
        for left, operator in zip([compared.left, *compared.comparators], compared.ops, strict=False)
        if isinstance(operator, ast.Lt | ast.LtE) and reads_clock(left, names)
    ]


def test_no_test_decides_by_a_clock() -> None:
    wrong = []
    reading = [path for path in sorted(TESTS.rglob("test_*.py")) if CLOCK.search(path.read_text("utf-8"))]
    assert reading
    for path in reading:
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                quiet = any(argument.arg == "quiet_machine" for argument in node.args.args)
                wrong += [f"{path.relative_to(TESTS)}:{line}" for line in judged(node) if not quiet]
    assert not wrong, wrong


def test_a_judgement_by_the_clock_would_be_found() -> None:
    body = "def test():\n    began = time.monotonic()\n    took = time.monotonic() - began\n    "
    for line, found in (("assert took < 1", 1), ("assert 0 < took <= 5", 1), ("assert took >= 0.1", 0)):
        [function] = ast.parse(body + line).body
        assert isinstance(function, ast.FunctionDef) and len(judged(function)) == found, line
