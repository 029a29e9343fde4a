"""A CSV file as Python reads it: its header, its text in UTF-8, and on which lines of it records stand.

The records are DuckDB's to read (`duckdb_engine`). A file is read by RFC 4180 with a comma, a header line
and UTF-8, or with the delimiter and encoding that its custodian's private file says, whatever its first
thousand lines look like.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from mpc_protocols.errors import DataRefused
from parties.data.harmony.rules import RFC
from parties.data.location import Location
from parties.data.read_errors import attempt

_MAX_LINE = 1 << 20  # characters read of a header before it is refused


def _opened(location: Location) -> Any:
    """A CSV file as text; what is no text of its encoding becomes surrogates."""
    assert location.path is not None
    errors = "surrogateescape" if location.dialect.encoding == RFC.encoding else "strict"
    return location.path.open(encoding=location.dialect.codec, errors=errors, newline="")


def transcoded(location: Location, copy: Path) -> Path:
    """The file in UTF-8, in this process's private folder: DuckDB reads few encodings. Raises UnicodeError."""
    with _opened(location) as file, copy.open("w", encoding="utf-8", newline="") as out:
        while block := file.read(_MAX_LINE):
            out.write(block)
    return copy


def header(location: Location) -> tuple[str, ...]:
    """The names in a CSV's first line. Raises `DataRefused`."""
    dialect = location.dialect
    sentence = (
        f"{location.label}: line 1 must be a header line of column names in {dialect.encoding.upper()}, separated by "
        f"{dialect.words}."
    )
    with _opened(location) as file:
        lines = iter(lambda: file.readline(_MAX_LINE), "")
        names: list[str] = attempt(
            lambda: next(csv.reader(lines, delimiter=dialect.delimiter, strict=True), []),
            lambda _: _other_format(location) or sentence,
        )
    if not names or any(
        "\ud800" <= letter <= "\udfff" or letter == "\0" for name in names for letter in name
    ):
        raise DataRefused(_other_format(location) or sentence)
    return tuple(names)


_OTHERS = (
    (b"PK\x03\x04", "is a workbook, not CSV; name it .xlsx"),
    (b"PAR1", "is Parquet, not CSV; name it .parquet"),
    (b"\xff\xfe", 'is UTF-16; write encoding = "utf-16" under [csv] of the private file'),
    (b"\xfe\xff", 'is UTF-16; write encoding = "utf-16" under [csv] of the private file'),
)
"""How files begin that are no CSV in UTF-8, and what to do."""


def _other_format(location: Location) -> str:
    """The sentence about a file that is empty or plainly of another format; else an empty text."""
    assert location.path is not None
    with location.path.open("rb") as file:
        start = file.read(4)
    if not start.strip():
        return f"{location.label} is empty; a table has at least a header line of column names."
    return next((f"{location.label} {what}." for mark, what in _OTHERS if start.startswith(mark)), "")


def first_lines(location: Location, records: set[int], columns: int) -> dict[int, str]:
    """The first physical line of each wanted record. Blank lines are no records, except in a table of one
    column."""
    lines: dict[int, str] = {}
    record, start = -1, 1  # record -1 is the header
    with _opened(location) as file:
        reader = csv.reader(file, delimiter=location.dialect.delimiter)
        try:
            for fields in reader:
                if fields or columns == 1:
                    if record in records:
                        lines[record] = f"line {start}"
                        if len(lines) == len(records):
                            break
                    record += 1
                start = reader.line_num + 1
        except csv.Error:  # Python and DuckDB disagree about the file: the record's number must do
            pass
    return lines
