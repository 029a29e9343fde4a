"""The order of a person's children, by a column of theirs: numbers, days and times, or the listed values of
an ordinal column."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused
from parties.data.counting.coding import plain
from synth.domain.categorical import shown_as

if TYPE_CHECKING:
    from parties.data.source import Source
    from synth.linked.tables import ChildTable

ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?$"
"""Days and times whose order as text is their order in time."""


def ranks(source: Source, child: ChildTable, column: pa.Array) -> NDArray[np.int64]:
    """Of each child its place in the order, ties alike; one order for all people.

    Raises `DataRefused` for a child without a value, and for values that are neither numbers nor days, all of
    them, nor listed.
    """
    assert child.order is not None
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    absent = np.asarray(column.is_null(nan_is_null=True)) | (
        np.asarray(pc.equal(column, "").fill_null(False)) if text else False
    )
    if absent.any():
        row = int(np.argmax(absent))
        raise DataRefused(
            f'{source.label}, column "{child.order}", {source.places({row})[row]}: a row has no value, so its place '
            f"in the order is "
            "not known."
        )
    listed = () if child.ordered_by is None else child.domain.columns[child.ordered_by].listed
    if listed:
        places = {shown_as(value): place for place, value in enumerate(listed)}
        texts = [
            shown_as(value) if isinstance(value, int | float) else str(value) for value in column.to_pylist()
        ]
        return np.array([places.get(one, len(places)) for one in texts], dtype=np.int64)
    if text:
        column = _of_texts(source, child.order, column)
    with suppress(pa.ArrowException):  # its text may quote a value
        return np.asarray(pc.rank(column, tiebreaker="dense"), dtype=np.int64)
    raise DataRefused(
        f'{source.label}, column "{child.order}": data of type {column.type} have no order; make them numbers, days or times.'
    )


def form_of_texts(child: ChildTable, column: pa.Array) -> str:
    """How an order that has passed `ranks` is written, where it is texts: "numbers" or "days"; "" where it is
    none, or empty. Parts of a table are compared by it: each alone is ordered either way."""
    column = plain(column)
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    listed = child.ordered_by is not None and child.domain.columns[child.ordered_by].listed
    if not text or listed or not len(column):
        return ""
    return "days" if pc.match_substring_regex(column, ISO)[0].as_py() else "numbers"


def _of_texts(source: Source, name: str, column: pa.Array) -> pa.Array:
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:  # its text quotes a value
        odd = ~np.asarray(pc.match_substring_regex(column, ISO))
        if not odd.any():
            return pc.replace_substring(column, "T", " ")
    else:
        odd = np.asarray(pc.is_nan(numbers))  # "nan" is a number to Arrow alone
        if not odd.any():
            return numbers
    row = int(np.argmax(odd))
    raise DataRefused(
        f'{source.label}, column "{name}", {source.places({row})[row]}: the order of a person\'s rows needs '
        f"numbers, or days and times "
        "as 2024-01-31 or 2024-01-31 10:30, in all rows."
    )
