"""Tally files: the counts of a part of a table each, made by `cosynth tally` wherever the part is, and added
here.

Whatever can run a command on a part of a table (a batch queue, Airflow, a Kubernetes job, Ray) can so count a
table of any size. The files are private (0600) and stay inside the custodian's machine room.
"""

from __future__ import annotations

import glob
from pathlib import Path

from mpc_protocols.errors import DataRefused
from mpc_protocols.process.installation import program
from parties.data.counting.local_marginals import LocalTable
from parties.data.tallies.counting import Counting
from parties.data.tallies.places import TallyFiles
from parties.data.tallies.total import Total


def add_files(files: TallyFiles, counting: Counting, *, allow_empty: bool) -> LocalTable:
    """The whole table's counts. Raises `DataRefused`, at the first file that does not fit, by name."""
    paths = sorted(glob.glob(files.pattern, recursive=True))
    if not paths:
        raise DataRefused(
            f"{files.pattern} names no file; count the parts of the table with `{program()} tally`, or correct data.tallies."
        )
    total = Total(counting, files.pattern)
    for path in paths:
        total.add(total.read(Path(path)), path)
    return total.table(allow_empty=allow_empty, expected=files.parts)
