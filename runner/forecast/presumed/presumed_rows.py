"""How many rows a forecast assumes. The true number is private: tables on this machine are told of to whoever
runs `plan` there, and to nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow
from pyarrow import parquet

from runner.study import Study, VerticalStudy


def presumed_rows(study: Study, given: int | None) -> tuple[int, str]:
    """A guess at the number of rows of all custodians together (vertical: of each owner), and where it is
    from."""
    if given is not None:
        return given, "--rows"
    if study.contributors is not None:
        return study.contributors.expected_rows, "expected_rows in the study"
    if study.config.synthetic_rows is not None:
        return study.config.synthetic_rows, "synthetic_rows in the study"
    tables = [
        party.data.path for party in study.parties if party.data is not None and party.data.path is not None
    ]
    here = [count for path in tables if path.is_file() and (count := _count(path)) is not None]
    if here and sum(here):
        total = sum(here) * (1 if isinstance(study, VerticalStudy) else len(tables)) / len(here)
        step = 10 ** max(0, len(str(int(total))) - 2)
        return max(1, round(total / step) * step), "the tables on this machine, rounded; for your eyes only"
    return study.privacy.max_rows, "max_rows in the study, an upper bound; --rows gives a better guess"


def _count(path: Path) -> int | None:
    """Rows of a table, roughly: lines of a CSV but its header, what a Parquet file says; None if it cannot be
    read."""
    if path.suffix.lower() == ".parquet":
        try:
            return int(parquet.read_metadata(path).num_rows)
        except (OSError, pyarrow.ArrowInvalid):
            return None
    try:
        return max(0, sum(block.count(b"\n") for block in _blocks(path)) - 1)
    except OSError:
        return None


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
