"""Code books: the values that a column may have, as whoever defined them published them. Public, unlike a
table.

JSON    a list of values, or an object of values and their meanings
CSV     a header line, then a value in the first field of each line; what follows is its meaning
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

from mpc_protocols.errors import StudyInvalid, UsageError
from runner.failures import reason
from synth.domain import Categorical, Value


def read(path: Path) -> tuple[Value, ...]:
    """The values, in the file's order. Raises `UsageError`: a file that cannot be read, or is no code book."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        found = _json(text) if path.suffix.lower() == ".json" else _csv(text)
        return Categorical(found).values
    except OSError as error:
        raise UsageError(
            f"--codes {path}: cannot be read ({reason(error)}); name a .csv or .json file."
        ) from None
    except StudyInvalid as error:
        raise UsageError(f"--codes {path}: {error.sentence}") from None
    except (ValueError, RecursionError, csv.Error):
        raise UsageError(
            f"--codes {path} is no code book: expected is a JSON list or object of values, or a CSV with a header line and a "
            "value first in each line, in UTF-8."
        ) from None


def _json(text: str) -> tuple[Value, ...]:
    given = json.loads(text)
    if not isinstance(given, list | dict):
        raise ValueError
    return tuple(given)


def _csv(text: str) -> tuple[Value, ...]:
    lines = text.splitlines()
    delimiter = max(",;\t", key=lines[0].count) if lines else ","
    return tuple(line[0].strip() for line in list(csv.reader(lines, delimiter=delimiter))[1:] if line)
