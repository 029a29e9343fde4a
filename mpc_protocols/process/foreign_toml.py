"""TOML that somebody else has written, a study above all, is parsed in time that follows its length. Standard library only."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MAX_PARTS, MAX_DIGITS = 64, 4000
"""Of a dotted key, which costs the parser their square, and of a number; Python itself reads few more."""
_LONG_KEY = re.compile(
    r"""(?:^|[\[{,])[ \t]*+(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){"""
    + str(MAX_PARTS)
    + "}",
    re.ASCII | re.MULTILINE,
)
_LONG_NUMBER = re.compile(
    r"(?<![\w-])[+-]?(?:0[box])?[0-9a-f_]{" + str(MAX_DIGITS) + "}", re.ASCII | re.IGNORECASE
)


def parse_toml(text: str) -> dict[str, Any]:
    """`tomllib.loads`, in time that follows the text's length. Raises `tomllib.TOMLDecodeError`, also for a
    larger one."""
    for pattern, what in (
        (_LONG_KEY, f"A key of more than {MAX_PARTS} parts"),
        (_LONG_NUMBER, f"A number of more than {MAX_DIGITS:,} digits"),
    ):
        if found := pattern.search(text):
            before = text[: found.start()]
            line, column = before.count("\n") + 1, found.start() - before.rfind("\n")
            raise tomllib.TOMLDecodeError(f"{what} (at line {line}, column {column})")
    return tomllib.loads(text)
