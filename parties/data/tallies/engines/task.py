"""What a worker of somebody else's engine runs: count some files, and hand back bytes.

Nothing is raised, since engines log what is raised, and a library's error may quote a record: a refusal comes
back as its sentence, anything else as the name of its kind.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import ArrowInvalid, parquet

from mpc_protocols.errors import CosynthError, DataRefused
from parties.data.engines.duckdb_engine import numbered
from parties.data.linked.opening import open_source
from parties.data.tallies.counting import Counting, count_partition, place_of
from parties.data.tallies.total import Total

if TYPE_CHECKING:
    from parties.data.location import Location

COUNTED, REFUSED = b"+", b"-"


@dataclass(frozen=True)
class FoundFile:
    """A part as a worker sees it. mtime_ns: when it was written. rows: of a Parquet file; None of any other.

    divisible: whether its rows can be read in ranges. place: the file itself, whatever it is called. Another
    machine numbers its devices differently: two states of a part are compared without device and number.
    """

    path: str
    bytes: int
    mtime_ns: int
    rows: int | None
    divisible: bool
    place: str
    device: int = field(compare=False)
    number: int = field(compare=False)

    @property
    def identities(self) -> list[object]:
        """Another name of this file, found by the same process, shares one of these."""
        return [self.place, *([(self.device, self.number)] if self.number else [])]


def software() -> str:
    """The version that is installed here; "" where Cosynth was not installed but put on the path."""
    try:
        return version("cosynth")
    except PackageNotFoundError:
        return ""


def check_software(label: str, asked_by: str) -> None:
    """Raise `DataRefused` if this is another version than that of who asks."""
    if software() != asked_by:
        raise DataRefused(
            f"{label} was to be counted by version {software() or 'unknown'} of Cosynth, and the study is run by "
            f"{asked_by or 'unknown'}; install the same on all workers."
        )


def find_files(pattern: str) -> list[FoundFile]:
    """The files of a pattern, by name. One that cannot be looked into is there, too: who counts it says why."""
    found = []
    for path in sorted(glob.glob(pattern, recursive=True)):
        state = Path(path).stat()
        rows, divisible = _parquet_rows(path) if path.lower().endswith(".parquet") else (None, False)
        found.append(
            FoundFile(
                path,
                state.st_size,
                state.st_mtime_ns,
                rows,
                divisible,
                os.path.realpath(path),
                state.st_dev,
                state.st_ino,
            )
        )
    return found


def count_files(files: Sequence[Location], counting: Counting, asked_by: str) -> bytes:
    """`COUNTED` and the counts of all these files, or ranges of their rows, as one part; or `REFUSED` and a
    sentence.

    asked_by: `software()` of who asks.
    """
    label = files[0].label
    try:
        check_software(label, asked_by)
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


def _parquet_rows(path: str) -> tuple[int | None, bool]:
    """How many, and whether they can be read in ranges."""
    try:
        file = parquet.read_metadata(path)
    except (OSError, ArrowInvalid):
        return None, False
    columns = (file.schema.column(number).path for number in range(len(file.schema)))
    return int(file.num_rows), not numbered(column.partition(".")[0] for column in columns)
