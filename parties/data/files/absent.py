"""The sentence about a file that is not there: what its folder has that may have been meant."""

from __future__ import annotations

import difflib
import itertools
import os
from contextlib import suppress
from pathlib import Path

MAX_NAMES = 10_000
"""Of a folder that are looked at."""


def absent(path: Path) -> str:
    """`PATH does not exist`, and a hint where there is one."""
    return f"{path} does not exist{meant_beside(path)}"


def meant_beside(path: Path) -> str:
    """A hint, with a blank before it, at what a name that leads nowhere may have meant; empty if there is none."""
    if "\\" in path.name:
        return " (folders are separated by / here)"
    by_letters: dict[str, str] = {}
    with suppress(OSError), os.scandir(path.parent) as entries:
        by_letters = {entry.name.casefold(): entry.name for entry in itertools.islice(entries, MAX_NAMES)}
    close = difflib.get_close_matches(path.name.casefold(), list(by_letters), 1, 0.75)
    return f' (did you mean "{by_letters[close[0]]}"?)' if close else ""
