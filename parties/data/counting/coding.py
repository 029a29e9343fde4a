"""From a table's values to the domain's integer codes, block by block, for one column.

The rules are the study's (`synth/domain/`, `docs/reference/study-file.md`), so that all custodians code alike
whatever the format of their table: the same value gives the same code from CSV text, from Parquet and from a
database.

    codes        integers 0..size-1; also as text, or as floats without a fraction (what pandas makes of integers with gaps)
    numeric      the bin of the number, after clamping to low..high; an integral column holds integers only. integer: likewise
    date         the bin of the day, written 2019-12-31, after clamping; datetime: of the time 2019-12-31T23:59, without a zone
    categorical  the value's text equals a declared value's exactly: spaces and capitals count, nothing is trimmed. A declared
                 number also matches every plain decimal writing of itself (1, 1.0, 01), true and false their usual spellings.
                 What is not listed gets the code of `other`, where the study declares it. ordinal: likewise
    boolean      true and false, t and f, yes and no, y and n, 1 and 0, in any case
    missing      an absent value, an empty text or a NaN: the last code where the study declares it, a misfit elsewhere

Everything works on whole arrays; Python itself sees each distinct text of a block once.

Privacy: a misfit says where and why, never what. How many numbers were clamped and values were missing are
functions of the private data: they are counted here for the custodian's own log only
(`docs/design/privacy.md` 8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mpc_protocols.process.later import np
from parties.data.files.arrow import entries, present, truths
from parties.data.libraries import pa, pc
from synth.domain import Column, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Codes = NDArray[np.int32]
    Faults = list[tuple[NDArray[np.bool_], str]]

_CODE = re.compile(r"-?[0-9]{1,18}(\.0*)?")
_NUMBER = r"\A[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\z"  # no "nan", no "inf", no blanks

_COMMA = r"\A[+-]?[0-9]*,[0-9]+\z"
_ELSEWHERE = "; of data that is no CSV file an sql under [harmonise] makes plain digits"
COMMA = (
    ', for it has a comma: if that is the decimal mark, say decimal = "," under [csv] of the private file, '
    f'if it groups digits, thousands = ","{_ELSEWHERE}'
)
_GROUPS = r"\A[+-]?[0-9]{1,3}([,. '\x{2019}\x{a0}\x{202f}][0-9]{3})+([.,][0-9]*)?\z"
GROUPS = (
    ", for its digits stand in groups: say by what, as thousands under [csv] of the private file" + _ELSEWHERE
)


@dataclass(frozen=True)
class Misfit:
    """A value that the domain does not hold. row: its place in the block, from 0; None: the whole column.
    rows: all such rows of the block, for the owner's eyes only."""

    row: int | None
    reason: str
    rows: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)


class Coder:
    """Codes one column. clamped, absent, unlisted: how many numbers lay outside low..high, how many values
    were missing and how many were counted as `other`, so far."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.clamped = 0
        self.absent = 0
        self.unlisted = 0

    def code(self, values: pa.Array) -> tuple[Codes, list[Misfit]]:
        """The codes of a block, int32 in 0..size-1, and the first row of each kind of misfit (these rows get
        code 0)."""
        values = plain(values)
        if unfit := _unfit(values.type, self.column):
            return np.zeros(len(values), np.int32), [Misfit(None, unfit)]
        distinct = Distinct(values) if _text(values.type) or self.column.textual else None
        absent = _absent(values, distinct)
        codes, faults = self._present(values, distinct)
        if absent.any():
            self.absent += int(np.count_nonzero(absent))
            codes[absent] = self.column.size - 1 if self.column.missing else 0
            faults = [(bad & ~absent, reason) for bad, reason in faults]
            if not self.column.missing:
                faults.append(
                    (
                        absent,
                        "the value is missing, and the study does not declare missing = true for this column",
                    )
                )
        misfits = []
        for bad, reason in faults:
            if bad.any():
                codes[bad] = 0
                misfits.append(Misfit(int(bad.argmax()), reason, np.flatnonzero(bad)))
        return codes, misfits

    def _present(self, values: pa.Array, distinct: Distinct | None) -> tuple[Codes, Faults]:
        """Codes and faults of the values that are there; anything where one is missing."""

        column = self.column
        if not column.textual:
            if not column.binned:
                given, bad = _codes(values, distinct, column.size)
                return given, [(bad, column.unread)]
            dated = column.dated and distinct is not None
            return self._bins(_moments(distinct, column) if dated else _numbers(values, distinct), distinct)
        assert distinct is not None
        texts = [written(value) for value in distinct.values.to_pylist()]
        codes = distinct.lookup([column.read(text) for text in texts], np.int32(-1))
        if column.unlisted >= 0:
            self.unlisted += int(
                np.count_nonzero((codes < 0) & distinct.lookup([bool(text) for text in texts], False))
            )
            codes[codes < 0] = column.unlisted
        return codes, [(codes < 0, column.unread)]

    def _bins(self, numbers: NDArray[np.float64], distinct: Distinct | None) -> tuple[Codes, Faults]:

        column = self.column
        outside = (numbers < column.low) | (numbers > column.high)
        nothing = (numbers == 0) if column.zero else np.zeros(len(numbers), np.bool_)
        self.clamped += int(np.count_nonzero(outside & ~nothing))
        faults = _unread(column, ~np.isfinite(numbers), distinct)
        if column.integral:
            with np.errstate(invalid="ignore"):
                broken = np.isfinite(numbers) & (numbers != np.floor(numbers))
            faults.append(
                (
                    broken,
                    f"the number is not an integer, and the study declares {column.integral_by} for this column",
                )
            )
        codes = np.searchsorted(self._interior, numbers, side="right").astype(np.int32)
        if column.zero:
            codes += codes >= column.zero_code
            codes[nothing] = column.zero_code
        return codes, faults

    @cached_property
    def _interior(self) -> NDArray[np.float64]:

        return np.asarray(self.column.edges()[1:-1], dtype=np.float64)


class Distinct:
    """A block's values as Arrow's dictionary has them: each once, and every row's place among them."""

    def __init__(self, array: pa.Array) -> None:
        if len(array) == array.null_count:  # an array of type null cannot be encoded
            self.values, self._places = array.slice(0, 0), np.zeros(len(array), np.int32)
            return
        encoded = pc.dictionary_encode(array)
        self.values = encoded.dictionary
        # one past the end stands for a value that is not there
        self._places = np.where(
            present(encoded.indices), entries(encoded.indices, np.int32), len(self.values)
        )

    @property
    def places(self) -> pa.Array:
        """Every row's place among the values; one past the end where there is none."""
        return pa.Array.from_buffers(
            pa.int32(), len(self._places), [None, pa.py_buffer(self._places.astype("int32").tobytes())]
        )

    def lookup(self, table: Sequence[Any] | NDArray[Any], otherwise: Any) -> NDArray[Any]:
        """What the table has for each row's value, `otherwise` where there is none."""
        return np.append(np.asarray(table, dtype=np.asarray(otherwise).dtype), otherwise)[self._places]


def plain(values: pa.Array) -> pa.Array:
    """Without a dictionary; dates and the like as text."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if (
        pa.types.is_string_view(kind)
        or pa.types.is_date(kind)
        or pa.types.is_time(kind)
        or pa.types.is_timestamp(kind)
    ):
        values = pc.cast(values, pa.string())
    return values


def _absent(values: pa.Array, distinct: Distinct | None) -> NDArray[np.bool_]:
    """Where a value is null, an empty text or a NaN."""
    if _text(values.type):
        assert distinct is not None
        lengths = pc.binary_length(distinct.values)
        return distinct.lookup(entries(lengths, str(lengths.type)) == 0, True)
    absent = ~present(values)
    if pa.types.is_floating(values.type):
        absent |= np.isnan(entries(pc.cast(values, pa.float64()), np.float64))
    return absent


def _text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _unfit(kind: pa.DataType, column: Column) -> str | None:
    """Why a column of this type can never be coded so, or None."""
    countable = (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )
    if column.dated and countable and not pa.types.is_null(kind):
        return f"data of type {kind} hold numbers; a {column.example} is expected"
    if countable or _text(kind):
        return None
    if pa.types.is_boolean(kind):
        return (
            None
            if column.textual
            else "the data hold true and false; declare the column boolean, or categorical with these values"
        )
    return f"data of type {kind} cannot be coded; convert them to text or numbers"


def _codes(values: pa.Array, distinct: Distinct | None, size: int) -> tuple[Codes, NDArray[np.bool_]]:
    """Codes that were given, and where they are none."""

    if distinct is not None:
        texts = distinct.values.to_pylist()
        given = distinct.lookup(
            [int(text.partition(".")[0]) if _CODE.fullmatch(text) else -1 for text in texts], -1
        )
    elif pa.types.is_integer(values.type):
        given = entries(values, str(values.type))
    else:
        given = _numbers(values, None)
    bad = (given < 0) | (given >= size)
    if given.dtype.kind == "f":
        bad |= ~(given == np.floor(given))
        given = np.where(bad, 0, given)
    return given.astype(np.int32), bad


def _numbers(values: pa.Array, distinct: Distinct | None) -> NDArray[np.float64]:
    """float64, NaN where a value is missing or is no number."""
    if distinct is None:
        if pa.types.is_decimal(values.type):  # Arrow multiplies by 0.1: 0.3 would not be the 0.3 of a text
            values = pc.cast(values, pa.string())
        numbers = pc.cast(
            values, pa.float64(), safe=False
        )  # an integer beyond 2^53 rounds: far outside, or in a wide bin
        return np.where(present(numbers), entries(numbers, np.float64), np.nan)
    plain = pc.match_substring_regex(distinct.values, _NUMBER)
    parsed = np.full(len(plain), np.nan)
    parsed[truths(plain)] = entries(pc.cast(pc.filter(distinct.values, plain), pa.float64()), np.float64)
    return distinct.lookup(parsed, np.nan)


def _unread(column: Column, bad: NDArray[np.bool_], distinct: Distinct | None) -> Faults:
    """The fault of values that are none; texts that a mark may keep from being numbers have one of
    their own."""

    if distinct is None or not column.quantity or not bad.any():
        return [(bad, column.unread)]
    comma = distinct.lookup(truths(pc.match_substring_regex(distinct.values, _COMMA)), False)
    groups = ~comma & distinct.lookup(truths(pc.match_substring_regex(distinct.values, _GROUPS)), False)
    return [
        (bad & ~comma & ~groups, column.unread),
        (bad & comma, column.unread + COMMA),
        (bad & groups, column.unread + GROUPS),
    ]


def _moments(distinct: Distinct | None, column: Column) -> NDArray[np.float64]:
    """float64 numbers of days or times, NaN where a value is missing or is none."""

    assert distinct is not None
    found = [column.number_of(text) for text in distinct.values.to_pylist()]
    return distinct.lookup([np.nan if number is None else float(number) for number in found], np.nan)


def written(value: Value | Decimal) -> str:
    """The text of a value as a table without types would show it: no point behind a number without a
    fraction."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e40:
        return str(int(value))
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
