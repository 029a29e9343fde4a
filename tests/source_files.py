"""Source files as the tests that look at them read them: each is parsed once in a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree, which nobody changes."""
    return ast.parse(path.read_text(encoding="utf-8"))
