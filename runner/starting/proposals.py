"""What the columns of a custodian's table look like: kinds, values and limits, as the tables of a domain.

A domain is public and must not come from the data (`docs/design/privacy.md` 6): the smallest number is
somebody's, and a value that one row has is that row's. So what is found here is private, like the table, and
is written to a file of its own, every line of it that was read off rows marked so (`init --from`). Limits are
rounded outwards, which hides little; edges of bins are round numbers, as a code book has them. A person
confirms or replaces them by what everybody knows, and only then they become part of a study.
"""

from __future__ import annotations

import codecs
import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mpc_protocols.errors import DataRefused
from parties.data.counting.coding import Distinct, plain, written
from parties.data.harmony.grouping import MARKS, Grouping
from parties.data.harmony.rules import DECIMALS, DELIMITERS, RFC, Dialect
from parties.data.linked.opening import open_source
from parties.data.location import Location, locate
from synth.domain import Categorical, Value
from synth.domain.categorical import SPELLINGS

if TYPE_CHECKING:
    import pandas as pd

MAX_LISTED = 60
"""Values of a column that are listed at most: a longer list is hardly public."""
MAX_DISTINCT = 1 << 16
"""Values of a column that are kept at most while it is read."""
BINS = 20
MARKERS = frozenset(
    {"na", "n/a", "nan", "null", "none", "-", "?", ".", "unknown", "-9", "-99", "-999", "9999"}
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SPELLED = re.compile(r"[0-9]{1,4}([./-])[0-9]{1,2}\1[0-9]{2,4}")
_SPELLINGS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?")


Keys = tuple[tuple[str, object], ...]
"""Of a column's table, with their values."""


@dataclass(frozen=True)
class Proposal:
    """One column: what to write into its table, or why it is left out (`advice`). markers: of missing values,
    as it seems.

    spellings: of days that are not written 2019-12-31, as strptime has them; several if all of them read
    every value.
    """

    name: str
    keys: Keys = field(default=(), repr=False)
    advice: str = ""
    markers: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()


def dialect_of(path: Path) -> Dialect:
    """How a CSV file seems to be written: its first line's separators, UTF-8, UTF-16 with a mark or else
    windows-1252, decimal commas, groups of digits."""
    raw = path.read_bytes()[: 1 << 20]
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text, encoding = raw.decode("utf-16", errors="replace"), "utf-16"
    else:
        try:
            text, encoding = raw[: raw.rfind(b"\n") + 1 or None].decode("utf-8-sig"), "utf-8"
        except UnicodeDecodeError:
            text, encoding = raw.decode("cp1252", errors="replace"), "windows-1252"
    lines = text.splitlines()
    delimiter = max(DELIMITERS, key=lambda mark: lines[0].count(mark)) if lines else ","
    fields = [field for line in list(csv.reader(lines[1:500], delimiter=delimiter)) for field in line]
    grouped = {decimal: _grouped(fields, decimal) for decimal in DECIMALS}
    commas = sum(bool(_COMMA.fullmatch(one)) for one in fields) + grouped[","].total()
    points = sum("." in one and bool(_NUMBER.fullmatch(one)) for one in fields) + grouped["."].total()
    decimal = "," if delimiter != "," and commas > points else "."
    thousands = next((mark for mark, _ in grouped[decimal].most_common(1)), None)
    return Dialect(delimiter, decimal, encoding, thousands)


def _grouped(fields: Sequence[str], decimal: str) -> Counter[str]:
    """How many of them are numbers whose digits stand in groups, by the mark between these; with a fraction,
    since 1,204 may be one itself."""
    marks = [Grouping(mark, decimal) for mark in MARKS if mark != decimal]
    return Counter(one.thousands for one in marks for text in fields if decimal in text and one.holds(text))


def place_of(path: Path) -> Location:
    """A table's file, and how it seems to be written. Raises `DataRefused`."""
    place = locate(path)
    if place.kind == "csv" and path.is_file():
        return replace(place, dialect=dialect_of(path))
    return place


@dataclass(frozen=True)
class Texts:
    """What one table holds: of each column its texts and how often each is there, in so many rows. Private."""

    rows: int
    columns: Mapping[str, Counter[str]] = field(repr=False)

    @property
    def proposals(self) -> list[Proposal]:
        """One for each column, in order."""
        return [proposal(name, texts, self.rows) for name, texts in self.columns.items()]


def texts_of(location: Location) -> Texts:
    """Of a table that lies somewhere; every row is read, numbers as the run reads them. Raises `DataRefused`."""
    with open_source(location) as source:
        names = list(source.columns)
        twice = next((number for number, name in enumerate(names) if name in names[:number]), 0)
        if twice:  # by number: without a header line the names are somebody's values
            first = names.index(names[twice])
            raise DataRefused(
                f"{location.label}: columns {first + 1} and {twice + 1} have the same name; rename one."
            )
        texts = _texts(names, source.batches(names))
    if not texts.rows:
        raise DataRefused(f"{location.label} has no rows, from which columns could be proposed.")
    return Texts(
        texts.rows, {name: _plain(column, location.dialect) for name, column in texts.columns.items()}
    )


def texts_of_frame(frame: pd.DataFrame) -> Texts:
    """Of a pandas DataFrame. Raises `DataRefused` for columns that no table can have, and without rows."""
    table = table_of(frame)
    if not table.num_rows:
        raise DataRefused("The frame has no rows, from which columns could be proposed.")
    return _texts(table.column_names, table.to_batches())


def table_of(frame: pd.DataFrame) -> pa.Table:
    """A pandas DataFrame with its columns' names as text. Raises `DataRefused` for columns that no table can
    have."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise DataRefused("Two columns of the frame have the same name; rename one.")
    try:
        return pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise DataRefused("A column of the frame mixes kinds of values; make it texts or numbers.") from None


def _texts(names: list[str], batches: Iterable[pa.RecordBatch]) -> Texts:
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        for name, column in zip(names, batch.columns, strict=True):
            if len(counts[name]) <= MAX_DISTINCT:
                distinct = Distinct(plain(column))
                texts = [written(value) for value in distinct.values.to_pylist()]
                places = distinct.lookup(range(len(texts)), -1)
                times = np.bincount(places[places >= 0], minlength=len(texts))
                counts[name].update(
                    {text: int(n) for text, n in zip(texts, times, strict=True) if text and n}
                )
    return Texts(rows, counts)


def _plain(values: Counter[str], dialect: Dialect) -> Counter[str]:
    """Of one column, as the run reads its numbers."""
    if dialect.thousands is not None:
        groups = Grouping(dialect.thousands, dialect.decimal)
        if any(groups.holds(text) for text in values):
            values = _written(values, groups.without)
    if dialect.decimal == RFC.decimal or not any(_COMMA.fullmatch(text) for text in values):
        return values
    return _written(values, lambda text: text.replace(",", "."))


def _written(values: Counter[str], how: Callable[[str], str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for text, count in values.items():
        found[how(text)] += count
    return found


def proposal(name: str, values: Counter[str], rows: int) -> Proposal:
    """Of one column with these texts, each so often, in so many rows."""
    if not values:
        return Proposal(name, advice="it holds no value")
    markers = _markers(values)
    kept = Counter({text: count for text, count in values.items() if text not in markers})
    spellings = _spellings(kept)
    days = Counter(day(text, spellings[0]) for text in kept) if spellings else kept
    found = next((keys for guess in GUESSES if (keys := guess(days, rows))), None)
    if found is None:  # among texts they may be values
        markers, kept = (), values
        found = _listed(kept)
    unlike = len(kept) > 100 and len(kept) > 0.9 * rows
    if found is None or (unlike and found[0][1] in ("integer", "categorical")):
        what = "an identifier" if unlike else "free text, or a list too long to be public"
        return Proposal(name, advice=f"it looks like {what}, which cannot be synthesised: leave it out")
    missing = sum(kept.values()) < rows
    return Proposal(
        name, (*found, *((("missing", True),) if missing else ())), markers=markers, spellings=spellings
    )


def _markers(values: Counter[str]) -> tuple[str, ...]:
    """Texts that seem to stand for a missing value; a number only if it lies outside what the others span."""
    found = [text for text in values if text.casefold() in MARKERS]
    try:
        others = [float(text) for text in values if text not in found]
    except ValueError:
        return tuple(text for text in found if not _NUMBER.fullmatch(text))
    low, high = min(others, default=0.0), max(others, default=0.0)
    return tuple(text for text in found if not _NUMBER.fullmatch(text) or not low <= float(text) <= high)


def _numeric(values: Counter[str], rows: int) -> Keys | None:
    if not values or not all(_NUMBER.fullmatch(text) for text in values):
        return None
    if set(values) <= {"0", "1"}:
        return (("kind", "boolean"),)
    numbers = [float(text) for text in values]
    zero = 10 * values["0"] > rows
    if all(_INTEGER.fullmatch(text) for text in values):
        low, high = _outwards(min(numbers), max(numbers))
        whole: list[tuple[str, object]] = [
            ("kind", "integer"),
            ("low", int(low)),
            ("high", int(max(high, low + 1))),
        ]
        if high - low > 2 * BINS:
            whole.append(("bins", _bins(low, high)))
        if zero and low == 0 and high > 2 * BINS:
            whole.append(("zero", True))
        return tuple(whole)
    low, high = _outwards(min(numbers), max(numbers))
    if low == high:
        high = low + 1
    zeros = (("zero", True),) if zero and low >= 0 else ()
    positive = [number for number in numbers if number > 0]
    if len(positive) + bool(zeros) >= len(numbers) and max(positive) > 1000 * min(positive):
        least = 10.0 ** math.floor(math.log10(min(positive)))
        return (("kind", "numeric"), ("low", least), ("high", high), ("bins", BINS), ("scale", "log"), *zeros)
    return (("kind", "numeric"), ("low", low), ("high", high), ("bins", _bins(low, high)), *zeros)


def _bins(low: float, high: float) -> int:
    """At most BINS, each 1, 2 or 5 wide, or a power of ten times that: edges as a code book has them."""
    power = 10.0 ** math.floor(math.log10(high - low) - 2)
    widths = (factor * float(10**more) * power for more in range(4) for factor in (1, 2, 5))
    width = next(width for width in widths if high - low <= BINS * width * (1 + 1e-9))
    return round((high - low) / width)


def _outwards(low: float, high: float) -> tuple[float, float]:
    """Rounded away from each other, to a digit."""
    step = 10.0 ** math.floor(math.log10(max(high - low, abs(high) / 1000, 1e-9)))
    return math.floor(low / step) * step, math.ceil(high / step) * step


def _spellings(values: Counter[str]) -> tuple[str, ...]:
    """Those by which every value is a day."""
    if not values or not all(_SPELLED.fullmatch(text) for text in values):
        return ()
    return tuple(spelling for spelling in _SPELLINGS if all(day(text, spelling) for text in values))


def day(text: str, spelling: str) -> str:
    """The day as 2019-12-31; an empty text if it is not spelled so."""
    try:
        return datetime.strptime(text, spelling).date().isoformat()
    except ValueError:
        return ""


def _calendar(values: Counter[str], rows: int) -> Keys | None:
    try:
        if values and all(_DAY.fullmatch(text) for text in values):
            days = [date.fromisoformat(text) for text in values]
            years = min(days).year, max(days).year
            step = "month" if years[1] - years[0] < 10 else "year"
            return (
                ("kind", "date"),
                ("low", date(years[0], 1, 1)),
                ("high", date(years[1], 12, 31)),
                ("step", step),
            )
        if values and all(_TIME.fullmatch(text) for text in values):
            times = [datetime.fromisoformat(text) for text in values]
            first, last = datetime(min(times).year, 1, 1), datetime(max(times).year, 12, 31, 23, 59, 59)
            return (("kind", "datetime"), ("low", first), ("high", last), ("step", "month"))
    except ValueError:
        pass
    return None


GUESSES: list[Callable[[Counter[str], int], Keys | None]] = [_numeric, _calendar]
"""Of a column's texts without markers of missing values, each so often, in so many rows: the keys of the kind that
they seem to be. The first that knows; what none knows is listed, or left out."""


def _listed(values: Counter[str]) -> Keys | None:
    if {text.lower() for text in values} <= {text for spellings in SPELLINGS for text in spellings}:
        return (("kind", "boolean"),)
    if len(values) > MAX_LISTED:
        return None
    listed: tuple[Value, ...] = tuple(sorted(values))
    return (("kind", "categorical"), ("values", Categorical(listed).values))
