"""Parts of a table, added up: each once, all of one study and read by the same rules, and nobody in two of
them.

Refused here (`DataRefused`, exit 30), before anything is sent: a part that comes twice, parts that were read
by other rules than the private file has, more rows in all than max_rows, none at all, fewer or more parts
than the custodian has declared, and identifiers in ranges that overlap.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections import Counter
from itertools import pairwise
from pathlib import Path

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import LocalTable
from parties.data.tallies.counting import Counting, layout_of
from parties.data.tallies.partition import PartitionCounts, UnitRange, cell_counts, max_bytes, parse

log = logging.getLogger("cosynth.custodian.tallies")  # below the logger whose lines are private


class Total:
    """Sums of the parts that have been added. label: what sentences call all of them together. layout: of
    each part's tables."""

    def __init__(self, counting: Counting, label: str) -> None:
        self._counting, self._label = counting, label
        self._counters = counting.counters()
        self.layout = layout_of(self._counters, counting.domain)
        self._rows = self._filtered = self._unnamed = 0
        self._clamped, self._absent = Counter[str](), Counter[str]()
        self._broken = [0] * len(counting.domain.constraints)
        self._ignored: dict[str, None] = {}
        self._names: dict[bytes, str] = {}
        self._partitions: dict[bytes, str] = {}
        self._ranges: list[tuple[UnitRange, str]] = []

    @property
    def parts(self) -> int:
        """How many have been added."""
        return len(self._names)

    def parse(self, content: bytes, label: str) -> PartitionCounts:
        """A part's bytes. Raises `DataRefused`."""
        constraints = len(self._counting.domain.constraints)
        return parse(content, self.layout, constraints, label, self._counting.study)

    def read(self, path: Path) -> PartitionCounts:
        """A part's file, which nobody else may have written. Raises `DataRefused`."""
        most = max_bytes(self.layout)
        try:
            with open(path, "rb", opener=_at_once) as file:
                state = os.fstat(file.fileno())
                own = stat.S_ISREG(state.st_mode) and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
                if not own or (hasattr(os, "geteuid") and state.st_uid != os.geteuid()):
                    raise DataRefused(
                        f"{path} must be a file that this user owns and nobody else may write (mode 0600); see who has written "
                        "it, and count its part again."
                    )
                content = file.read(most + 1)
        except OSError:
            raise DataRefused(f"{path} cannot be read; this user must own it (mode 0600).") from None
        return self.parse(content, str(path))

    def add(self, part: PartitionCounts, label: str) -> None:
        """label: what sentences call it. Raises `DataRefused`."""
        for known, one in ((self._names, part.place), (self._partitions, part.partition)):
            if (first := known.get(one)) is not None:
                raise DataRefused(
                    f"{label} and {first} are counts of the same part of the table, which would count twice; remove one of them."
                )
        self._names[part.place] = self._partitions[part.partition] = label
        if part.rules != self._counting.rules:
            raise DataRefused(
                f"{label} was counted by other rules ([harmonise]) than the private file has; count its part again by these."
            )
        unit = self._counting.unit
        if (part.units is None) != (unit is None):
            raise DataRefused(f"{label} was counted for another unit of privacy; count its part again.")
        self._rows += part.rows
        if self._rows > self._counting.max_rows:
            raise DataRefused(
                f"{self._label} has more rows than the study's max_rows = {self._counting.max_rows}; "
                "the parties must agree on a larger one."
            )
        for table, more in zip(self._counters.tables.values(), part.tables, strict=True):
            more.add_to(table)
        self._filtered += part.filtered
        self._unnamed += part.unnamed
        self._clamped.update(part.clamped)
        self._absent.update(part.absent)
        self._broken = [one + other for one, other in zip(self._broken, part.broken, strict=True)]
        self._ignored.update(dict.fromkeys(part.ignored))
        if part.units is not None and part.units.high:
            self._ranges.append((part.units, label))

    def table(self, *, allow_empty: bool, expected: int | None = None) -> LocalTable:
        """The whole table's counts. expected: how many parts there should be. Raises `DataRefused`."""
        if expected is not None and self.parts != expected:
            raise DataRefused(
                f"{self._label} has {self.parts} parts, and data.parts says {expected}; count what is missing, remove what "
                "is too much, or correct data.parts."
            )
        for (one, first), (other, second) in pairwise(sorted(self._ranges, key=lambda entry: entry[0].low)):
            if other.low <= one.high:
                raise DataRefused(
                    f"{first} and {second} hold identifiers from ranges that overlap, so that a person's rows may be in both; "
                    "cut the table by ranges of the hash of the unit's id (docs/howto/large-tables.md)."
                )
        if self._rows == 0 and not allow_empty:
            raise DataRefused(
                f"{self._label} has no rows; if that is right, set allow_empty = true in the private file."
            )
        names, constraints = self._counting.domain.names, self._counting.domain.constraints
        log.info(
            "own data: %d parts, digest %s; rows left out by the filter %d, without an identifier %d; breaking constraints %s",
            self.parts,
            self.digest.hex(),
            self._filtered,
            self._unnamed,
            {one.text: count for one, count in zip(constraints, self._broken, strict=True)},
        )
        return LocalTable(
            self._rows,
            self._counters,
            {name: self._clamped[name] for name in names},
            {name: self._absent[name] for name in names},
            tuple(self._ignored),
        )

    def part(self, place: tuple[bytes, bytes]) -> PartitionCounts:
        """What has been added, as one larger part. place: as `counting.place_of` has it. Of a study whose
        unit is a row."""
        counting = self._counting
        return PartitionCounts(
            counting.study,
            self.layout.hash,
            counting.rules,
            *place,
            self._rows,
            dict(self._clamped),
            dict(self._absent),
            self._filtered,
            self._unnamed,
            tuple(self._broken),
            tuple(self._ignored),
            None,
            tuple(map(cell_counts, self._counters.tables.values())),
        )

    @property
    def digest(self) -> bytes:
        """32 bytes: which parts there are, in which state, in any order."""
        return hashlib.sha256(b"".join(sorted(self._partitions))).digest()


def _at_once(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes to is not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
