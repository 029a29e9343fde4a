"""The keys by which linked tables belong together, as texts: equal where they are written alike, whatever the
type of the column (`docs/howto/linked.md`).

A column of floating point numbers, as pandas makes of whole numbers with gaps, is written as whole numbers
are: 1.0 is the key 1. Above 2^53 (a single: 2^24) several whole numbers are one such number, so that two
people would be one person, whose row both move: these are refused.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpc_protocols.errors import DataRefused
from parties.data.counting.coding import plain

if TYPE_CHECKING:
    from parties.data.source import Source

MAX_WHOLE: Final = {"double": 1 << 53, "float": 1 << 24, "halffloat": 1 << 11}
"""By Arrow's type: below it a whole number and its neighbours are different numbers."""


def inexact(label: str, key: str, where: str, most: int) -> str:
    """The sentence about a key that may be several. where: ", row 3" or the like."""
    return (
        f'{label}, column "{key}"{where}: a floating point number of {most:,} or more may stand for several keys, which '
        "would be one person; store the keys as whole numbers or texts."
    )


def keys_of(source: Source, table: dict[str, pa.Array], key: str) -> pa.Array:
    """The keys as text. Raises `DataRefused` for a row without, and for a number that may be several keys."""
    column = plain(table[key])
    floating = pa.types.is_floating(column.type)
    texts = _of_floats(source, key, column) if floating else as_texts(source, key, column)
    absent = pc.or_kleene(pc.is_null(column, nan_is_null=True), pc.equal(texts, "")).fill_null(True)
    if pc.any(absent).as_py():
        row = int(np.argmax(np.asarray(absent)))
        raise DataRefused(
            f'{source.label}, column "{key}", {place_of_row(source, row)}: a row has no key, so its person is not known.'
        )
    return texts


def _of_floats(source: Source, key: str, column: pa.Array) -> pa.Array:
    """Whole numbers as such; the others as Arrow writes them."""
    most = MAX_WHOLE[str(column.type)]
    numbers = np.asarray(column.cast(pa.float64()).fill_null(np.nan), dtype=np.float64)
    large = np.abs(numbers) >= most
    if large.any():
        row = int(np.argmax(large))
        raise DataRefused(inexact(source.label, key, f", {place_of_row(source, row)}", most))
    whole = numbers == np.floor(numbers)
    wholes = pa.array(np.where(whole, numbers, 0).astype(np.int64)).cast(pa.string())
    return pc.if_else(pa.array(whole), wholes, column.cast(pa.string()))


def as_texts(source: Source, name: str, column: pa.Array) -> pa.Array:
    """Raises `DataRefused` for values that have no text of their own, as lists."""
    column = plain(column)
    with suppress(pa.ArrowException):  # its text may quote a value
        return column if pa.types.is_string(column.type) else column.cast(pa.string())
    raise DataRefused(
        f'{source.label}, column "{name}": data of type {column.type} cannot be compared; convert them to text or numbers.'
    )


def people_keys(source: Source, table: dict[str, pa.Array], key: str) -> pa.Array:
    """Those of a parent table. Raises `DataRefused` also for a person who is there twice."""
    keys = keys_of(source, table, key)
    if (repeated := _first_repeat(keys)) is not None:
        raise DataRefused(
            f'{source.label}, column "{key}", {place_of_row(source, repeated)}: this key is there already, and it names one '
            "row of this table."
        )
    return keys


def _first_repeat(keys: pa.Array) -> int | None:
    """The first row whose key stands in an earlier one."""
    codes = np.asarray(pc.dictionary_encode(keys).indices, dtype=np.int64)
    _, first = np.unique(codes, return_index=True)
    if len(first) == len(codes):
        return None
    again = np.ones(len(codes), dtype=bool)
    again[first] = False
    return int(np.argmax(again))


def place_of_row(source: Source, row: int) -> str:
    """Where a person finds it: "line 17"."""
    return source.places({row})[row]
