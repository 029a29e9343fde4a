"""Values as the fields of a CSV file, a column at a time: each different value is written once.

What a field looks like is the csv module's word (RFC 4180: quotes only where they are needed), which is asked
about every different text; whole numbers, and numbers that are drawn, need none. Days and times are as ISO
8601 has them, a missing value is an empty field.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_SPAN = 1 << 16
"""Whole numbers that lie within so many are looked up in a table of texts."""
_BESIDE = ",0\n"
"""Another field behind the one that is asked for: alone an empty one would be quoted."""


class Fields:
    """Fields of one file. change: what is made of a value before it is written."""

    def __init__(self, change: Callable[[Any], Any] | None = None) -> None:
        self._change = change
        self._buffer = io.StringIO(newline="")
        self._writer = csv.writer(self._buffer, lineterminator="\n")
        self._texts: dict[str, str] = {}

    def of(self, column: NDArray[Any]) -> list[str]:
        """The fields of a column's values, (rows,), in order."""
        if column.dtype.kind in "iu" and len(column):
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
