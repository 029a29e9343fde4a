"""Counts of one part of a custodian's table, and the bytes they are kept and travel as.

    magic           "cosynth-tally-1\\n"
    length, header  4 bytes, little endian; JSON: the fields of `PartitionCounts`
    tables          for each of the layout's: number of filled cells, 4 bytes; then their numbers and counts, 4 bytes each, in
                    two columns. Where a third of the cells or more are filled, 2^32 - 1 instead, and the counts of all cells
    SHA-256         of everything before, 32 bytes

Private: raw counts, for the custodian's own disks and processes. Whoever reads such bytes believes neither
sizes nor numbers: everything is bounded by the public layout and checked against the part's own number of
rows. The hash is there against damage; who may write these files may as well write the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.errors import DataRefused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.backends.bundles.layout import Layout

MAGIC = b"cosynth-tally-1\n"
HASH = 32
MAX_HEADER = 1 << 22
MAX_COUNT = (1 << 32) - 1
_DENSE = 0xFFFFFFFF
_SPARSE_SHARE = 3
"""Cells are listed where fewer than one of so many is filled."""


@dataclass(frozen=True)
class CellCounts:
    """One table of a part: the counts of all its cells, or of the filled ones. cells: their numbers, rising;
    None: all.

    uint32 both.
    """

    cells: NDArray[np.uint32] | None = field(repr=False)
    counts: NDArray[np.uint32] = field(repr=False)

    def add_to(self, table: NDArray[np.uint32]) -> None:
        """table: counters of all its cells."""
        if self.cells is None:
            table += self.counts
        else:
            table[self.cells] += self.counts


@dataclass(frozen=True)
class UnitRange:
    """The lowest and the highest hash of a part's identifiers, 32 bytes each; of a part without one, both
    empty."""

    low: bytes = b""
    high: bytes = b""


@dataclass(frozen=True)
class PartitionCounts:
    """What the rows of one part come to; private.

    study: its digest. layout: hash of the tables' layout. rules: digest of the private file's rules it was
    read by; "": none. place, partition: SHA-256 of where the part is, and of what tells it from others,
    whatever it is called. rows: that count. clamped, absent: by column. filtered, unnamed: rows left out.
    broken: rows that break each of the study's constraints, in order. ignored: columns that the study does
    not use. units: where its identifiers lie; None of a study whose unit is a row. tables: in the order of
    the layout.
    """

    study: bytes
    layout: bytes
    rules: str
    place: bytes
    partition: bytes
    rows: int = field(repr=False)
    clamped: Mapping[str, int] = field(repr=False)
    absent: Mapping[str, int] = field(repr=False)
    filtered: int = field(repr=False)
    unnamed: int = field(repr=False)
    broken: tuple[int, ...] = field(repr=False)
    ignored: tuple[str, ...]
    units: UnitRange | None = field(repr=False)
    tables: tuple[CellCounts, ...] = field(repr=False)

    def to_bytes(self) -> bytes:
        """As a file or a message has it."""
        header = {
            "study": self.study.hex(),
            "layout": self.layout.hex(),
            "rules": self.rules,
            "place": self.place.hex(),
            "partition": self.partition.hex(),
            "rows": self.rows,
            "clamped": dict(self.clamped),
            "absent": dict(self.absent),
            "filtered": self.filtered,
            "unnamed": self.unnamed,
            "broken": list(self.broken),
            "ignored": list(self.ignored),
            "units": None if self.units is None else [self.units.low.hex(), self.units.high.hex()],
        }
        text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
        if len(text) > MAX_HEADER:
            header["ignored"] = []  # for the log only, and as many as the data likes
            text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
        pieces = [MAGIC, len(text).to_bytes(4, "little"), text]
        for table in self.tables:
            number = _DENSE if table.cells is None else len(table.counts)
            pieces.append(number.to_bytes(4, "little"))
            if table.cells is not None:
                pieces.append(table.cells.astype("<u4").tobytes())
            pieces.append(table.counts.astype("<u4").tobytes())
        content = b"".join(pieces)
        return content + hashlib.sha256(content).digest()


def cell_counts(table: NDArray[np.uint32]) -> CellCounts:
    """Counters of all cells of a table, each at most `MAX_COUNT`, in the shorter of the two forms."""
    filled = np.flatnonzero(table)
    if _SPARSE_SHARE * len(filled) < len(table):
        return CellCounts(filled.astype(np.uint32), table[filled].astype(np.uint32))
    return CellCounts(None, table.astype(np.uint32))


def max_bytes(layout: Layout) -> int:
    """The longest that the counts of a part can be."""
    return len(MAGIC) + 4 + MAX_HEADER + 4 * len(layout.cliques) + 4 * layout.cells + HASH


def parse(content: bytes, layout: Layout, constraints: int, label: str, study: bytes) -> PartitionCounts:
    """What `to_bytes` has written of a part of this study. constraints: how many the study has.

    Raises `DataRefused`: not whole, of another study or version, or not the counts of any rows.
    """
    damaged = f"{label} is no tally, or is damaged or cut short; count its part of the table again."
    whole = len(MAGIC) + 4 + HASH <= len(content) <= max_bytes(layout) and content.startswith(MAGIC)
    if not whole or hashlib.sha256(content[:-HASH]).digest() != content[-HASH:]:
        raise DataRefused(damaged)
    try:
        reader = _Reader(content[:-HASH], len(MAGIC))
        header = json.loads(reader.take(reader.number(MAX_HEADER)))
        found = bytes.fromhex(header["study"]), bytes.fromhex(header["layout"])
        if found != (study, layout.hash):
            raise DataRefused(
                f"{label} was counted for another study, or by another version of the program; count its part again."
            )
        part = _part(header, constraints, reader.tables(layout))
        reader.end()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataRefused(damaged) from None
    if any(int(table.counts.sum(dtype="uint64")) != part.rows for table in part.tables):
        raise DataRefused(damaged)
    return part


def _part(header: Mapping[str, Any], constraints: int, tables: Iterable[CellCounts]) -> PartitionCounts:
    """Raises ValueError, KeyError or TypeError."""
    broken = tuple(_count(one) for one in header["broken"])
    ignored = tuple(header["ignored"])
    if len(broken) != constraints or not all(isinstance(name, str) for name in ignored):
        raise ValueError("a header of another form")
    units = header["units"]
    return PartitionCounts(
        bytes.fromhex(header["study"]),
        bytes.fromhex(header["layout"]),
        _text(header["rules"]),
        _hash(header["place"]),
        _hash(header["partition"]),
        _count(header["rows"]),
        {_text(name): _count(value) for name, value in header["clamped"].items()},
        {_text(name): _count(value) for name, value in header["absent"].items()},
        _count(header["filtered"]),
        _count(header["unnamed"]),
        broken,
        ignored,
        None if units is None else _range(units),
        tuple(tables),
    )


def _range(pair: Any) -> UnitRange:
    low, high = pair
    if low == high == "":
        return UnitRange()
    if _hash(low) > _hash(high):
        raise ValueError("a range that ends before it begins")
    return UnitRange(_hash(low), _hash(high))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text was expected")
    return value


def _hash(value: Any) -> bytes:
    found = bytes.fromhex(value)
    if len(found) != HASH:
        raise ValueError("a hash was expected")
    return found


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise ValueError("a count was expected")
    return value


class _Reader:
    """Reads on in bytes whose sizes nobody vouches for. Raises ValueError."""

    def __init__(self, content: bytes, begin: int) -> None:
        self._content, self._place = content, begin

    def take(self, size: int) -> bytes:
        end = self._place + size
        if end > len(self._content):
            raise ValueError("cut short")
        piece, self._place = self._content[self._place : end], end
        return piece

    def number(self, most: int) -> int:
        found = int.from_bytes(self.take(4), "little")
        if found > most:
            raise ValueError("too large")
        return found

    def column(self, size: int) -> NDArray[np.uint32]:
        return np.frombuffer(self.take(4 * size), "<u4")

    def tables(self, layout: Layout) -> list[CellCounts]:
        """Of each table, checked: cells that exist, each once, and filled where they are listed."""
        return [self._table(place.stop - place.start) for _, place in layout.places()]

    def _table(self, size: int) -> CellCounts:
        number = self.number(_DENSE)
        if number == _DENSE:
            return CellCounts(None, self.column(size))
        if number > size // _SPARSE_SHARE:
            raise ValueError("too many cells")
        cells, counts = self.column(number), self.column(number)
        if number and (cells[-1] >= size or not (cells[1:] > cells[:-1]).all() or not counts.all()):
            raise ValueError("cells that a table does not have")
        return CellCounts(cells, counts)

    def end(self) -> None:
        if self._place != len(self._content):
            raise ValueError("something follows")
