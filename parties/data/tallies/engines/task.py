"""What a worker of somebody else's engine runs: count some files, and hand back bytes.

Nothing is raised, since engines log what is raised, and a library's error may quote a record: a refusal comes back as its
sentence, anything else as the name of its kind.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import CosynthError, DataRefused
from parties.data.source import open_source
from parties.data.tallies.counting import Counting, count_partition, place_of
from parties.data.tallies.total import Total

if TYPE_CHECKING:
    from parties.data.source import Location

COUNTED, REFUSED = b"+", b"-"


@dataclass(frozen=True)
class FoundFile:
    """A part as a worker sees it. rows: of a Parquet file; None of any other."""

    path: str
    bytes: int
    rows: int | None


def software() -> str:
    """The version that is installed here; "" where Cosynth was not installed but put on the path."""
    try:
        return version("cosynth")
    except PackageNotFoundError:
        return ""


def find_files(pattern: str) -> list[FoundFile]:
    """The files of a pattern, by name. One that cannot be looked into is there, too: who counts it says why."""
    found = []
    for path in sorted(glob.glob(pattern, recursive=True)):
        rows = _parquet_rows(path) if path.lower().endswith(".parquet") else None
        found.append(FoundFile(path, Path(path).stat().st_size, rows))
    return found


def count_files(files: Sequence[Location], counting: Counting, asked_by: str) -> bytes:
    """`COUNTED` and the counts of all these files, or ranges of their rows, as one part; or `REFUSED` and a sentence.

    asked_by: `software()` of who asks.
    """
    label = files[0].label
    try:
        if software() != asked_by:
            raise DataRefused(
                f"{label} was to be counted by version {software() or 'unknown'} of Cosynth, and the study is run by "
                f"{asked_by or 'unknown'}; install the same on all workers."
            )
        return COUNTED + _counted(files, counting)
    except CosynthError as error:
        return REFUSED + error.sentence.encode()
    except Exception as error:  # its text may quote a record
        return REFUSED + f"{label} could not be counted by a worker ({type(error).__name__}).".encode()


def _counted(files: Sequence[Location], counting: Counting) -> bytes:
    places, total = [], Total(counting, files[0].label)
    for file in files:
        with open_source(file) as source:
            assert file.path is not None
            place = place_of(file.path, file.rows)
            part = count_partition(source, counting, place)
            source.check_unchanged()
        if len(files) == 1:
            return part.to_bytes()
        total.add(part, file.label)
        places.append(place)
    where, which = (hashlib.sha256(b"".join(one)).digest() for one in zip(*places, strict=True))
    return total.part((where, which)).to_bytes()


def _parquet_rows(path: str) -> int | None:
    from pyarrow import ArrowInvalid, parquet

    try:
        return int(parquet.read_metadata(path).num_rows)
    except (OSError, ArrowInvalid):
        return None
