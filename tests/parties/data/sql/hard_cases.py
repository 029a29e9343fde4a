"""Columns whose values databases, drivers and coders like to see differently, and how each database stores
them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import cycle, islice
from typing import Any

from parties.data.harmony.rules import ColumnRule
from synth.domain import Boolean, Categorical, Codes, Column, Date, DateTime, Edged, Integer, Numeric, Ordinal

TYPES: Mapping[str, Mapping[str, str]] = {
    "duckdb": {},
    "sqlite": {"char(4)": "char(4)", "double precision": "double", "numeric(12, 2)": "real"},
    "postgres": {"double": "double precision"},
    "mariadb": {
        "text": "varchar(300)",
        "real": "float",
        "double precision": "double",
        "timestamp": "datetime(6)",
    },
}
"""What a type of `HARD` is called there, where it is not the same."""

TEXTS = [
    "a",
    "A",
    "a ",
    " a",
    "ä",
    "Ä",
    "a\u0308",
    "é",
    "e",
    "ß",
    "ss",
    "007",
    "7",
    "7.0",
    "+7",
    "07.",
    "7\n",
    "-7",
    "7!",
    "0",
    "-0",
    "00.000",
    "0.10",
    ".1",
    "0.1",
    "1e1",
    "10",
    "",
    None,
    "NA",
    "it's",
    'q"q',
    "back\\slash",
    "100%",
    "%s",
    ":x",
    "$1",
    "?",
    "日本",
    "😀",
    "'; DROP TABLE people; --",
    "\t",
    "a\tb",
]
"""For columns of text."""

HUGE = [2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)]


@dataclass(frozen=True)
class Hard:
    """A column of the study, its type in a database, and values. rule: of the private file. without:
    databases that lack it."""

    column: Column
    kind: str
    values: Sequence[Any]
    rule: ColumnRule = field(default_factory=ColumnRule)
    without: frozenset[str] = frozenset()

    def rows(self, count: int) -> list[Any]:
        """The values over and over."""
        return list(islice(cycle(self.values), count))


def _every(*values: Any) -> list[Any]:
    return [*values, None]


FORMED = frozenset({"padded", "single", "single_class", "money"})
"""Columns of `HARD` whose type changes what is written into them."""
_EDGES = (0.1, 0.3, 0.7, 1.1, 2.675)
_NEAR = [value for edge in _EDGES for value in (math.nextafter(edge, -9), edge, math.nextafter(edge, 9))]
_SINGLE = [0.1, 0.3, 0.5, 0.7, -0.0, 3.0]
_FLOATS = [*_NEAR, 0.0, -0.0, -5.5, 9e99, 1.5, 1.0, 2.0]
_SPECIAL = frozenset({"sqlite", "mariadb"})  # what has no NaN

HARD: Mapping[str, Hard] = {
    "listed": Hard(
        Categorical(
            tuple(text for text in TEXTS if text and text not in ("7", "ss")), missing=True, other="a"
        ),
        "text",
        TEXTS,
    ),
    "numbers": Hard(Categorical((7, 0.1, 0, -7, "other", "A"), missing=True, other="other"), "text", TEXTS),
    "padded": Hard(
        Categorical(("a", "A", "abcd", "b"), missing=True, other="b"),
        "char(4)",
        ["a", "A", "abcd", "a   ", "a", None],
    ),
    "level": Hard(Ordinal(("low", "Low ", "HIGH")), "text", ["low", "Low ", "HIGH", "low"]),
    "spelled": Hard(
        Boolean(missing=True),
        "text",
        _every("yes", "NO", "TrUe", "f", "1", "0.0", "1.", "1.000", "Y", "FALSE", ""),
    ),
    "mapped": Hard(
        Categorical(("Male", "Female"), missing=True),
        "text",
        _every("M", "F", "Male", "1", "01", "-9", "-9.0", "NA", "", "02"),
        ColumnRule(missing=("-9", "NA"), values={"M": "Male", "F": "Female", "1": "Male", "2": "Female"}),
    ),
    "truth": Hard(
        Boolean(missing=True), "boolean", _every(True, False, True), without=frozenset({"sqlite", "mariadb"})
    ),
    "tiny": Hard(Boolean(missing=True), "smallint", _every(1, 0, 1)),
    "codes": Hard(Codes(5), "integer", [0, 4, 2, 1, 1]),
    "whole": Hard(Codes(3), "double precision", [0.0, -0.0, 2.0, 1.0]),
    "chosen": Hard(
        Categorical((1, 2, 30, "x"), missing=True, other="x"), "integer", _every(1, 2, 3, 30, -30)
    ),
    "floats": Hard(
        Categorical((0.1, 0.3, 1, -5.5, "rest"), missing=True, other="rest"),
        "double precision",
        _every(*_FLOATS),
    ),
    "money": Hard(
        Categorical((0.1, "1.50", 2, "rest"), missing=True, other="rest"),
        "numeric(12, 2)",
        [Decimal(text) for text in ("0.10", "1.50", "2.00", "1.51", "-0.10")],
    ),
    "age": Hard(
        Numeric(low=18, high=90, bins=6, integral=True, missing=True),
        "integer",
        _every(17, 18, 30, 89, 90, 91, -1),
    ),
    "huge": Hard(Edged((-1e18, -(2.0**53), 2.0**53, 2.0**53 + 2, 2.0**62, 1e19)), "bigint", [*HUGE, 0, 1]),
    "near": Hard(Edged(_EDGES, missing=True), "double precision", _every(*_FLOATS)),
    "marked": Hard(
        Edged(_EDGES, missing=True),
        "double precision",
        _every(*_FLOATS, -9.0, 999.0),
        ColumnRule(missing=("-9", "999")),
    ),
    "nans": Hard(
        Edged(_EDGES, missing=True), "double precision", [math.nan, 0.3, None, math.nan], without=_SPECIAL
    ),
    "nan_class": Hard(
        Categorical((0.3, "rest"), missing=True, other="rest"),
        "double precision",
        [math.nan, 0.3, 1e300, None],
        without=_SPECIAL,
    ),
    "infinite": Hard(
        Categorical((0.3, "rest"), other="rest"),
        "double precision",
        [math.inf, 0.3, -math.inf],
        without=frozenset({"mariadb"}),
    ),
    "single": Hard(Edged(_EDGES, missing=True), "real", _every(*_SINGLE)),
    "single_class": Hard(Categorical((0.1, 0.5, "rest"), other="rest"), "real", _SINGLE),
    "zero": Hard(
        Numeric(low=0, high=800, bins=5, scale="linear", zero=True, missing=True),
        "double precision",
        _every(0.0, -0.0, 5e-324, -1.0, 160.0, 800.0, 801.0),
    ),
    "price": Hard(
        Edged((0, 0.1, 0.3, 0.57, 1.1, 2.67), missing=True),
        "numeric(12, 2)",
        [
            Decimal(text)
            for text in ("0.10", "0.09", "0.30", "0.29", "0.57", "0.56", "1.10", "2.67", "-1.00", "99.99")
        ],
    ),
    "pieces": Hard(
        Integer(low=0, high=60, count=7),
        "numeric(12, 2)",
        [Decimal(text) for text in ("57.00", "0.00", "35.00", "99.00")],
    ),
    "born": Hard(
        Date(date(1990, 1, 1), date(1999, 12, 31), "year", missing=True),
        "date",
        _every(
            date(1990, 1, 1),
            date(1989, 12, 31),
            date(1999, 12, 31),
            date(2000, 1, 1),
            date(1995, 6, 1),
            date(1, 1, 1),
            date(9999, 12, 31),
        ),
        without=frozenset({"sqlite"}),
    ),
    "seen": Hard(
        DateTime(datetime(2020, 1, 1), datetime(2020, 1, 2, 12), "hour", missing=True),
        "timestamp",
        _every(
            datetime(2020, 1, 1),
            datetime(2020, 1, 1, 0, 59, 59, 999999),
            datetime(2020, 1, 1, 1),
            datetime(2020, 1, 2, 12, 0, 0, 999999),
            datetime(2020, 1, 2, 12, 0, 1),
            datetime(2019, 12, 31, 23, 59, 59),
        ),
        without=frozenset({"sqlite"}),
    ),
    "midnights": Hard(
        Date(date(2020, 1, 1), date(2020, 3, 1), "week"),
        "timestamp",
        [datetime(2020, 1, 1), datetime(2020, 2, 29)],
        without=frozenset({"sqlite"}),
    ),
    "noon": Hard(
        DateTime(datetime(2020, 1, 1), datetime(2020, 1, 9), "day"),
        "date",
        [date(2020, 1, 1), date(2020, 1, 8), date(2020, 1, 9)],
        without=frozenset({"sqlite"}),
    ),
    "holiday": Hard(
        Categorical(("2020-12-25", "2020-01-01", "none"), missing=True, other="none"),
        "date",
        _every(date(2020, 12, 25), date(2020, 1, 1), date(2020, 1, 2)),
        without=frozenset({"sqlite"}),
    ),
}
"""Values that fit the study, after the private file's rules."""

REFUSED: Mapping[str, Hard] = {
    "lower": Hard(Categorical(("A", "B")), "text", ["A", "B", "a"]),
    "blank": Hard(Categorical(("A", "B")), "text", ["A", "B", "A "]),
    "absent": Hard(Categorical(("A", "B")), "text", ["A", ""]),
    "null": Hard(Codes(3), "integer", [1, None]),
    "above": Hard(Codes(3), "integer", [1, 3]),
    "below": Hard(Codes(3), "integer", [1, -1]),
    "half": Hard(Codes(3), "double precision", [1.0, 0.5]),
    "part": Hard(Numeric(low=0, high=9, bins=3, integral=True), "double precision", [1.0, 8.5]),
    "coin": Hard(Integer(low=0, high=9), "numeric(12, 2)", [Decimal("1.00"), Decimal("1.01")]),
    "endless": Hard(
        Numeric(low=0, high=9, bins=3), "double precision", [1.0, math.inf], without=frozenset({"mariadb"})
    ),
    "nanmap": Hard(
        Edged(_EDGES, missing=True),
        "double precision",
        [math.nan, 0.3],
        ColumnRule(values={"5": 0.3}),
        without=_SPECIAL,
    ),
    "two": Hard(Boolean(), "smallint", [1, 2]),
    "early": Hard(
        Date(date(2020, 1, 1), date(2020, 3, 1)),
        "timestamp",
        [datetime(2020, 1, 1, 0, 0, 1)],
        without=frozenset({"sqlite"}),
    ),
    "newline": Hard(Categorical((7, 8)), "text", ["7", "8\n"]),
}
"""Values of which at least one does not fit."""
