"""The examples of docs/howto are complete, and do what their kind promises."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from runner.review.conformance import Check, check_algorithm, check_alignment

HOWTO = Path(__file__).resolve().parents[2] / "docs" / "howto"


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
