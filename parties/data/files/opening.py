"""One table of a custodian's, opened as its private file has it: a workbook's first sheet as text, columns harmonised."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import DataRefused
from mpc_protocols.process.later import Later
from parties.data.files.absent import absent
from parties.data.files.excel import as_csv
from parties.data.location import Location
from parties.data.scratch import Spill
from parties.data.source import Source

if TYPE_CHECKING:
    from parties.data.harmony import source
else:
    source = Later("parties.data.harmony.source")


def open_table(location: Location) -> Source:
    """Open it read-only and learn its column names; reads no row. Linked tables are not looked at. Raises `DataRefused`."""
    check_file(location)
    if location.kind == "xlsx":
        return of_copy(lambda folder: as_csv(location, folder))
    return _opened(location)


def check_file(location: Location) -> None:
    """Raise `DataRefused` if it is a file that is not there, or not this user's to read."""
    path = location.path
    if path is None:
        return
    if not os.path.exists(path):  # nor for a name that is too long
        raise DataRefused(
            f"{absent(path)}; check the path (a relative `data` starts where the file that names it is)."
        )
    if not path.is_file() or not os.access(path, os.R_OK):
        raise DataRefused(f"{path} is not a file that this user may read.")


def of_copy(write: Callable[[Path], Location]) -> Source:
    """Of a copy that is written into a folder which nobody else may enter, and is removed when the source is closed."""
    copy = Spill()
    try:
        opened = _opened(write(copy.path))
    except BaseException:
        copy.close()
        raise
    opened.keep(copy)
    return opened


def _opened(location: Location) -> Source:
    if location.recipe is not None:
        return source.Harmonised(location, location.recipe)
    return Source(location)
