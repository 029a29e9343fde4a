"""Source files as the tests that look at them read them: each is parsed once in a process, and gone through once."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree, which nobody changes."""
    collecting = gc.isenabled()
    gc.disable()  # nothing of it is or will be garbage: looking for some takes three times as long as the rest
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of its tree, in the order of `ast.walk`."""
    found = tuple(ast.walk(parsed(path)))
    gc.freeze()
    return found
