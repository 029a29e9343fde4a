"""Values as the fields of a CSV file, a column at a time: each different value is written once.

What a field looks like is the csv module's word (RFC 4180: quotes only where they are needed), which is asked
about every different text; whole numbers, and numbers that are drawn, need none. Days and times are as ISO
8601 has them, a missing value is an empty field.

Lines end with a line feed, and every end of a line within a field is in quotes. The csv module of Python 3.11 quotes a
carriage return only where lines end with one, and readers and spreadsheets take it for the end of a line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from datetime import date
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import _csv

    from numpy.typing import NDArray

_MAX_SPAN = 1 << 16
"""Whole numbers that lie within so many are looked up in a table of texts."""
_BESIDE = ",0\n"
"""Another field behind the one that is asked for: alone an empty one would be quoted."""
_END = "\r\n"
"""With which the csv module ends a line: what it quotes both characters for."""


class Written(Protocol):
    """A file of text, opened with newline=""."""

    def write(self, text: str, /) -> object:
        """Write it."""


class _LineFeeds:
    """A file of lines that end with a line feed alone; `write` gets one with each call, as the csv module calls it."""

    def __init__(self, file: Written) -> None:
        self._file = file

    def write(self, line: str) -> object:
        return self._file.write(line.removesuffix(_END) + "\n")


def row_writer(file: Written) -> _csv.Writer:
    """A writer of the csv module that writes such lines."""
    return csv.writer(_LineFeeds(file), lineterminator=_END)


class Fields:
    """Fields of one file. change: what is made of a value before it is written."""

    def __init__(self, change: Callable[[Any], Any] | None = None) -> None:
        self._change = change
        self._buffer = io.StringIO(newline="")
        self._writer = row_writer(self._buffer)
        self._texts: dict[str, str] = {}

    def of(self, column: NDArray[Any]) -> list[str]:
        """The fields of a column's values, (rows,), in order."""
        if column.dtype == np.int64 and len(column):  # a difference of narrower ones may not fit them
            low, high = int(column.min()), int(column.max())
            if high - low < _MAX_SPAN:
                texts = np.array([str(number) for number in range(low, high + 1)], dtype=object)
                found: list[str] = texts[column - low].tolist()
                return found
        return self.of_each(column.tolist())

    def of_each(self, values: Iterable[Any]) -> list[str]:
        """The fields of these values, in order."""
        values = list(values)  # as long as they are here, no two of them have one identity
        places = list(map(id, values))
        texts = {place: self._field(value) for place, value in dict(zip(places, values, strict=True)).items()}
        return list(map(texts.__getitem__, places))

    def _field(self, value: Any) -> str:
        if self._change is not None:
            value = self._change(value)
        if value is None:
            return ""
        if type(value) is float or type(value) is int:
            return repr(value)
        text = value.isoformat() if isinstance(value, date) else str(value)
        if (known := self._texts.get(text)) is None:
            self._buffer.seek(0)
            self._buffer.truncate()
            self._writer.writerow((text, 0))
            known = self._texts[text] = self._buffer.getvalue().removesuffix(_BESIDE)
        return known
