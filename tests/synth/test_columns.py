"""The kinds of column: every code has its values, every value its code, and what cannot be meant is refused."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from synth.domain import (
    Binned,
    Boolean,
    Calendar,
    Categorical,
    Column,
    Date,
    DateTime,
    Domain,
    Edged,
    Integer,
    Numeric,
    Ordinal,
    column_from_spec,
)

DAYS = st.dates(date(1890, 1, 1), date(2100, 1, 1))


@st.composite
def columns(draw: st.DrawFn) -> Column:
    missing, zero = draw(st.booleans()), draw(st.booleans())
    match draw(st.sampled_from(["log", "edges", "integer", "date", "datetime"])):
        case "log":
            low = draw(st.floats(1e-3, 1e3))
            return Numeric(
                low, low * draw(st.floats(2, 1e6)), draw(st.integers(1, 40)), False, missing, "log", zero
            )
        case "edges":
            given = sorted(draw(st.sets(st.integers(-1000, 1000), min_size=2, max_size=30)) | {0})
            return Edged(tuple(given), draw(st.booleans()), missing, zero)
        case "integer":
            low, width = draw(st.integers(-50, 0)), draw(st.integers(2, 100))
            low = 0 if zero else low
            return Integer(low, low + width, draw(st.integers(0, width)), missing, zero)
        case "date":
            begin = draw(DAYS)
            step = draw(st.sampled_from(["day", "week", "month", "quarter", "year"]))
            return Date(begin, begin + timedelta(draw(st.integers(1, 900))), step, missing)
    begin = datetime.combine(draw(DAYS), datetime.min.time()) + timedelta(seconds=draw(st.integers(0, 86399)))
    step = draw(st.sampled_from(["hour", "day", "month", "year"]))
    return DateTime(begin, begin + timedelta(hours=draw(st.integers(1, 900))), step, missing)


@given(columns(), st.integers(0, 2**32))
def test_what_a_code_gives_has_that_code(column: Binned, seed: int) -> None:
    codes = np.repeat(np.arange(column.size), 3)
    values = column.decode(codes, np.random.default_rng(seed)).tolist()
    for code, value in zip(codes.tolist(), values, strict=True):
        if column.missing and code == column.size - 1:
            assert value is None
            continue
        number = column.number_of(value.isoformat()) if isinstance(column, Calendar) else value
        assert (number is not None and column.low <= number <= column.high) or number == 0
        if column.bin_of(number) != code:  # then no whole number lies in the bin
            place = column.bin(code)
            assert column.integral and place is not None
            left, right = column.edges()[place], column.edges()[place + 1]
            inside = [n for n in range(math.ceil(left), math.ceil(right)) if not (column.zero and n == 0)]
            assert not inside


@given(columns())
def test_the_canonical_form_gives_the_same_column(column: Column) -> None:
    again = Domain.from_spec(Domain(("a",), (column,)).to_spec())["a"]
    assert again.to_spec() == column.to_spec() and again.size == column.size
    assert isinstance(again, Binned) and isinstance(column, Binned) and again.edges() == column.edges()


@given(columns())
def test_every_code_has_a_label_of_its_own_and_bins_rise(column: Binned) -> None:
    edges = column.edges()
    assert all(left < right for left, right in pairwise(edges))
    assert len(edges) == column.bins + 1
    if isinstance(column, Date | Integer):
        assert len({column.label(code) for code in range(column.size)}) == column.size


def test_log_edges_are_correctly_rounded() -> None:
    column = Numeric(1, 1000, 3, scale="log")
    assert column.edges() == (1.0, 10.0, 100.0, 1000.0)
    for i, edge in enumerate(Numeric(0.5, 7e5, 13, scale="log").edges()):
        exact = Fraction(1, 2) ** (13 - i) * Fraction(700000) ** i  # its 13th power
        below, above = Fraction(math.nextafter(edge, 0)) ** 13, Fraction(math.nextafter(edge, 1e9)) ** 13
        assert below < exact < above


def test_a_third_of_the_rows_at_zero() -> None:
    column = Integer(0, 799, 8, zero=True)
    assert column.size == 9 and column.zero_code == 0 and column.label(0) == "0"
    assert [column.bin_of(n) for n in (0, 1, 99, 100, 799, 5000)] == [0, 1, 1, 2, 8, 8]
    assert column.label(1) == "1 to 99" and column.label(8) == "700 to 799"
    assert Numeric(1, 1e6, 6, scale="log", zero=True).bin_of(0) == 0
    assert Numeric(1, 1e6, 6, scale="log", zero=True).bin_of(0.5) == 1
    assert Numeric(-10, 10, 4, zero=True).label(2) == "0"
    values = Numeric(0, 1, 2, zero=True).decode(np.ones(4000, np.int64), np.random.default_rng(1))
    assert values.min() > 0


def test_months_and_quarters_are_the_calendars() -> None:
    months = Date(date(2020, 1, 15), date(2020, 4, 2), "month")
    labels = [months.label(code) for code in range(months.size)]
    assert labels == [
        "2020-01-15 to 2020-01-31",
        "2020-02-01 to 2020-02-29",
        "2020-03-01 to 2020-03-31",
        "2020-04-01 to 2020-04-02",
    ]
    quarters = Date(date(2019, 5, 1), date(2020, 1, 1), "quarter")
    assert [quarters.label(code)[:10] for code in range(quarters.size)] == [
        "2019-05-01",
        "2019-07-01",
        "2019-10-01",
        "2020-01-01",
    ]
    hours = DateTime(datetime(2020, 1, 1), datetime(2020, 1, 2), "hour")
    assert hours.size == 24 and hours.bin_of(hours.number_of("2020-01-01T23:59:59") or 0) == 23
    assert Date(date(2000, 1, 1), date(2000, 3, 1)).number_of("2000-02-30") is None


def test_listed_values() -> None:
    assert Categorical(("a", "b", "rest"), other="rest").unlisted == 2
    assert Categorical(("a", "b")).unlisted == -1
    assert Ordinal(("low", "high")).ordered and not Categorical(("low", "high")).ordered
    assert Boolean(missing=True).decode(np.array([0, 1, 2]), np.random.default_rng(0)).tolist() == [
        False,
        True,
        None,
    ]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"kind": "identifier"}, "cannot be synthesised"),
        ({"kind": "text"}, "free text"),
        ({"kind": "numeric", "low": 0, "high": 9, "bins": 3, "scale": "log"}, "low above 0"),
        ({"kind": "numeric", "low": 0, "high": 9, "bins": 3, "scale": "sqrt"}, "scale"),
        ({"kind": "numeric", "low": -1, "high": 2, "bins": 2, "zero": True}, "0 to be an edge"),
        ({"kind": "numeric", "edges": [0, 2, 1]}, "rise"),
        ({"kind": "numeric", "edges": [1]}, "at least two"),
        ({"kind": "numeric", "edges": [0, 1], "bins": 2}, "leave out bins"),
        ({"kind": "numeric", "edges": "0,1"}, "edges must be a list"),
        ({"kind": "integer", "low": 0, "high": 5, "bins": 9}, "from 1 to 6"),
        ({"kind": "integer", "low": 0.5, "high": 5}, "low must be an integer"),
        ({"kind": "integer", "low": 0, "high": 10**9}, "one for each number"),
        ({"kind": "date", "low": "2020-01-01", "high": "2019-01-01"}, "before high"),
        ({"kind": "date", "low": "2020-01-01", "high": "2021-13-01"}, "high must be a day"),
        (
            {"kind": "date", "low": "2020-01-01", "high": "2021-01-01", "step": "hour"},
            "step must be one of day",
        ),
        (
            {"kind": "datetime", "low": "2020-01-01T00:00:00Z", "high": "2021-01-01T00:00:00"},
            "without a zone",
        ),
        (
            {
                "kind": "datetime",
                "low": "0001-01-01T00:00:00",
                "high": "9999-01-01T00:00:00",
                "step": "minute",
            },
            "longer step",
        ),
        ({"kind": "integer", "low": -5, "high": 5, "zero": True}, "both sides of 0"),
        ({"kind": "categorical", "values": [1, 1.0]}, "twice"),
        ({"kind": "categorical", "values": [True, "true"]}, "twice"),
        ({"kind": "categorical", "values": ["a"], "other": "b"}, "stands for all values not listed"),
        ({"kind": "ordinal", "values": ["a"], "other": "a"}, "unknown key other"),
        ({"kind": "boolean", "values": [False, True]}, "unknown key values"),
    ],
)
def test_a_column_that_cannot_be_meant(spec: dict[str, object], named: str) -> None:
    with pytest.raises(StudyInvalid) as caught:
        column_from_spec(spec, "[domain.columns] a")
    assert named in caught.value.sentence and "[domain.columns] a" in caught.value.sentence
