"""What a custodian may want to know of its own table before a run: column by column, for its own eyes.

Everything here but `problems` is private: numbers that no error, log line or peer gets to know
(`docs/design/privacy.md` 8). `runner/check/own_table.py` shows them to whoever runs `check` as this party, on
that terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parties.data.counting.scan import Scan
    from parties.data.identifiers import IdentifierReader
    from parties.data.source import Source

SHOWN_SHAPES = 5


@dataclass(frozen=True)
class RefusedRows:
    """Rows of one column that do not fit the study for one reason: how many, and where the first of them are."""

    reason: str
    count: int = field(repr=False)
    places: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class ColumnSurvey:
    """One column of the study in this table, in numbers of rows; all private.

    clamped: outside low..high. missing: absent, of which `marked` by a marker of the private file. mapped:
    changed by its map. other: not listed, and counted as `other`. refused: by reason.
    """

    name: str
    clamped: int = field(repr=False)
    missing: int = field(repr=False)
    marked: int = field(repr=False)
    mapped: int = field(repr=False)
    other: int = field(repr=False)
    refused: tuple[RefusedRows, ...] = field(repr=False)


@dataclass(frozen=True)
class Survey:
    """problems: what a run would refuse, without a value; empty: all fits. The rest is private, and there
    once rows were read.

    rows: those that count. filtered: left out by the private file's filter. unnamed: left out for want of an
    identifier. broken: by the study's constraints, the rows that break it. shapes: of each identifier column,
    the commonest shapes after normalising and how many rows have each.
    """

    problems: tuple[str, ...]
    rows: int = field(default=0, repr=False)
    filtered: int = field(default=0, repr=False)
    unnamed: int = field(default=0, repr=False)
    columns: tuple[ColumnSurvey, ...] = field(default=(), repr=False)
    broken: Mapping[str, int] = field(default_factory=dict, repr=False)
    shapes: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict, repr=False)


def survey(
    source: Source,
    scan: Scan,
    block_rows: int,
    before: Sequence[str] = (),
    reader: IdentifierReader | None = None,
) -> Survey:
    """Read every row. before: problems that were found in the names. Raises `DataRefused` if the table cannot
    be read."""
    for _ in scan.blocks(block_rows, stop=False):
        pass
    changes = source.changes
    rows = {row for one in scan.refusals.values() for row in one.rows}
    places = source.places(rows)
    columns = []
    for name, coder in scan.coders.items():
        change = changes.get(name)
        refused = tuple(
            RefusedRows(
                reason, scan.rows if one.row is None else one.count, tuple(places[row] for row in one.rows)
            )
            for (column, reason), one in scan.refusals.items()
            if column == name
        )
        columns.append(
            ColumnSurvey(
                name,
                coder.clamped,
                coder.absent,
                change.marked if change else 0,
                change.mapped if change else 0,
                coder.unlisted,
                refused,
            )
        )
    shapes = reader.shapes if reader is not None and reader.shapes is not None else {}
    return Survey(
        (*before, *scan.problems()),
        scan.rows,
        source.left_out,
        scan.left_out,
        tuple(columns),
        dict(scan.broken),
        {name: counter.most_common(SHOWN_SHAPES) for name, counter in shapes.items()},
    )
