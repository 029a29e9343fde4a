"""One part of a table is counted: a file, or a range of its rows.

By the scan, coder and counters that a whole table meets, so that the same is refused in the same words, and
parts add up to the whole. Whether there are rows at all, and too many, is for the sum to say (`total.py`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.backends.bundles.layout import Layout
from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import Clique
from parties.data.counting.counters import Counters
from parties.data.counting.local_marginals import count_into
from parties.data.counting.scan import Unit, inspect
from parties.data.source import BLOCK_ROWS, Source
from parties.data.tallies.partition import MAX_COUNT, PartitionCounts, cell_counts
from parties.data.tallies.unit_range import UnitRangeReader

if TYPE_CHECKING:
    from synth.domain import Domain


@dataclass(frozen=True)
class Counting:
    """What a study asks of each part; public but `rules`, which is the private file's.

    study, name: its digest and its name. cliques: what is counted. max_rows: of the whole table. unit: as
    `count` has it. rules: digest of what the private file says of the table, "" for nothing.
    """

    study: bytes
    name: str
    domain: Domain
    cliques: Sequence[Clique]
    max_rows: int
    unit: Unit | None = None
    rules: str = ""

    def counters(self) -> Counters:
        """Empty ones."""
        return Counters(self.domain, self.cliques)


def layout_of(counters: Counters, domain: Domain) -> Layout:
    """Of the counters' tables, in their order."""
    return Layout(tuple(counters.tables), dict(domain.sizes))


def place_of(path: Path, rows: tuple[int, int] | None = None) -> tuple[bytes, bytes]:
    """(where a part is, which one it is): 32 bytes each. rows: of the file, if the part is a range of them.

    Two states of one file are one place. Two names of one file (a hard link, another mount, one that was
    renamed) are one part: of one number in its file system, one size and one time.
    """
    stat, where, span = path.stat(), os.path.realpath(path), () if rows is None else rows
    state = [stat.st_ino or where, *span, stat.st_size, stat.st_mtime_ns]
    digests = (
        hashlib.sha256(repr(one).encode("utf-8", "surrogateescape")).digest()
        for one in ([where, *span], state)
    )
    place, part = digests
    return place, part


def count_partition(
    source: Source, counting: Counting, place: tuple[bytes, bytes], block_rows: int = BLOCK_ROWS
) -> PartitionCounts:
    """Read the part once. place: as `place_of` has it. Raises `DataRefused` at the first thing that does not
    fit."""
    domain, unit = counting.domain, counting.unit
    counters = counting.counters()
    reader = None if unit is None else UnitRangeReader(counting.name, unit[0], source.leaves_out)
    scan = count_into(
        counters,
        source,
        domain,
        max_rows=min(counting.max_rows, MAX_COUNT),
        unit=unit,
        keys=reader,
        allow_empty=True,
        block_rows=block_rows,
    )
    left_out = source.left_out, scan.left_out
    if max(left_out) > MAX_COUNT:
        raise DataRefused(f"{source.label} has more than 2^32 rows; cut it into more parts.")
    return PartitionCounts(
        counting.study,
        layout_of(counters, domain).hash,
        counting.rules,
        *place,
        scan.rows,
        {name: coder.clamped for name, coder in scan.coders.items()},
        {name: coder.absent for name, coder in scan.coders.items()},
        *left_out,
        tuple(scan.broken.values()),
        inspect(source, domain, unit).ignored,
        None if reader is None else reader.range,
        tuple(map(cell_counts, counters.tables.values())),
    )
