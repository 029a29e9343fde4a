"""A fact stands once: limits, defaults and judgements that several parts need are defined in one place, and
named alike."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpc_protocols.public import begun
from synth.algorithm import ALGORITHMS
from synth.config import MAX_ROUNDS
from tests.source_files import nodes, parsed

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("mpc_protocols", "synth", "parties", "runner", "cosynth")
HOMES = {
    "is_loopback": "parties/addresses.py",
    "MAX_ROUNDS": "synth/config.py",
    "MAX_CELLS": "mpc_protocols/functionality.py",
    "MAX_OWNERS": "mpc_protocols/vertical/partition.py",
    "domain_of": "runner/results/finished_run.py",
    "check_dates": "parties/session/admission/identity.py",
    "check_private": "parties/certificates.py",
    "AllowAll": "mpc_protocols/in_memory/presumed.py",
    "unobserved": "mpc_protocols/functionality.py",
    "alone": "mpc_protocols/engine/interleave.py",
    "Measured": "synth/synthesis.py",
    "Measurement": "synth/mrf/fit.py",
}
"""Of what once had two, or a second one under another name."""


def modules(packages: tuple[str, ...] = PACKAGES) -> Iterator[tuple[Path, ast.Module]]:
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path, parsed(path)


def defined(module: ast.Module) -> Iterator[str]:
    """Names that a module defines at its top: functions, classes, constants."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name))


def test_what_once_had_two_homes_has_one() -> None:
    found: dict[str, list[str]] = {name: [] for name in HOMES}
    for path, module in modules():
        for name in defined(module):
            if name in found:
                found[name].append(str(path.relative_to(ROOT)))
    assert found == {name: [home] for name, home in HOMES.items()}


def test_threads_of_a_party_are_started_in_one_place() -> None:
    """Which ends where one cannot begin. A simulation's and those of programs that are no party have no peers
    who would wait."""
    others = {
        "mpc_protocols/in_memory/memory_wire.py",
        "mpc_protocols/process/threads.py",
        "runner/report/watch/server.py",
    }
    others |= {"runner/launch/launcher.py", "runner/bench/running/party.py"}
    found = {
        str(path.relative_to(ROOT))
        for path, _ in modules()
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("threading.Thread", "Thread")
    }
    assert found == others


def test_limits_are_called_max_or_min() -> None:
    other = re.compile(r"_?(MOST|LONGEST|SHORTEST|WIDEST|LARGEST|SMALLEST|BIGGEST|LEAST|FEWEST|FEW)(_|$)")
    wrong = [f"{path}: {name}" for path, module in modules() for name in defined(module) if other.match(name)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("algorithm", [*ALGORITHMS], ids=lambda algorithm: str(algorithm.name))
def test_every_algorithm_allows_the_same_number_of_rounds(algorithm: object) -> None:
    rounds = algorithm.config.options().get("rounds")  # type: ignore[attr-defined]
    assert rounds is None or rounds.high == MAX_ROUNDS


def test_what_follows_from_a_step_is_frozen_and_nothing_is_recognised_by_identity() -> None:
    classes = [cls for name, cls in inspect.getmembers(begun, inspect.isclass) if name.startswith("Begun")]
    assert len(classes) == 6
    for cls in classes:
        assert dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen, cls  # type: ignore[attr-defined]
    types = {"int", "str", "ValueError", "MISSING", "uint32", "uint64"}
    for path, _ in modules(("mpc_protocols/public", "mpc_protocols/engine")):
        for node in nodes(path):
            if isinstance(node, ast.Compare):
                for operator, side in zip(node.ops, node.comparators, strict=True):
                    if isinstance(operator, ast.Is | ast.IsNot) and not isinstance(side, ast.Constant):
                        name = side.attr if isinstance(side, ast.Attribute) else getattr(side, "id", "")
                        assert name in types, f"{path}:{node.lineno}: {ast.unparse(node)}"


def test_the_readme_says_between_which_tables_the_promise_holds() -> None:
    words = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "The promise holds between tables that fit the study" in words
    assert "the others learn that it refused and not why" in words and "that much no epsilon covers" in words
