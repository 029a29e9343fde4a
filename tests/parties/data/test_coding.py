"""Coding against the domain's own definition, value by value, and the same codes from every type a value may
come in."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parties.data.counting.coding import Coder, Misfit
from synth.domain import Boolean, Categorical, Codes, Column, Date, DateTime, Edged, Integer, Numeric, Ordinal
from tests.parties.data.tables import CANARY


def coded(column: Column, values: list[object], kind: pa.DataType | None = None) -> list[int]:
    codes, misfits = Coder(column).code(pa.array(values, kind))
    assert misfits == [] and codes.dtype == "int32"
    return list(map(int, codes))


def misfits(column: Column, values: list[object], kind: pa.DataType | None = None) -> list[Misfit]:
    codes, found = Coder(column).code(pa.array(values, kind))
    assert all(0 <= code < column.size for code in codes)
    assert all(CANARY not in misfit.reason for misfit in found)
    return found


def test_a_decimal_is_the_double_that_its_text_is() -> None:
    """Arrow's own conversion multiplies 3 by 0.1."""
    column = Edged((0, 0.1, 0.3, 0.35, 0.57, 0.6, 0.7, 1.2, 9))
    numbers: list[object] = list(map(Decimal, ["0.10", "0.30", "0.35", "0.57", "0.60", "0.70", "1.20"]))
    expected = [column.bin_of(float(str(number))) for number in numbers]
    assert (
        coded(column, numbers, pa.decimal128(9, 2))
        == expected
        == coded(column, [str(number) for number in numbers])
    )
    cents: list[object] = [Decimal(number).scaleb(-2) for number in range(0, 30_000, 100)]
    assert coded(Integer(0, 299), cents, pa.decimal128(9, 2)) == list(range(300))


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.uint8(),
        pa.int64(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(9, 2),
        pa.dictionary(pa.int8(), pa.int64()),
    ],
)
def test_codes_in_any_type_of_number(kind: pa.DataType) -> None:
    assert coded(Codes(4), [0, 3, 1], kind) == [0, 3, 1]
    assert misfits(Codes(4), [0, 4, 5], kind) == [Misfit(1, "the value is not an integer from 0 to 3")]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_codes_as_text(kind: pa.DataType) -> None:
    assert coded(Codes(12), ["0", "11", "3.0", "07", "2."], kind) == [0, 11, 3, 7, 2]
    for bad in ("12", "-1", "1.5", " 1", "1 ", "1e0", "nan", "٣", "9" * 30, CANARY):
        assert [m.row for m in misfits(Codes(12), ["1", bad], kind)] == [1], bad


def test_codes_that_are_not_integers() -> None:
    for bad in (-1.0, 0.5, math.inf, 1e300):
        assert [m.row for m in misfits(Codes(4), [1.0, 2.0, bad])] == [2], bad
    assert [m.row for m in misfits(Codes(4), [2**63, -1], pa.decimal128(30, 0))] == [0]
    assert [m.row for m in misfits(Codes(4), [2**64 - 1], pa.uint64())] == [0]
    (whole,) = misfits(Codes(2), [True, False])
    assert whole.row is None and "categorical" in whole.reason


NUMERIC = Numeric(low=-2.5, high=10, bins=7, missing=True)


FLOATS = st.one_of(
    st.none(), st.floats(allow_nan=True, allow_infinity=False), st.sampled_from(NUMERIC.edges())
)


@given(st.lists(FLOATS, max_size=30))
def test_numbers_fall_in_the_bins_of_the_domain(values: list[float | None]) -> None:
    expected = [7 if value is None or math.isnan(value) else NUMERIC.bin_of(value) for value in values]
    coder = Coder(NUMERIC)
    codes, found = coder.code(pa.array(values, pa.float64()))
    assert list(codes) == expected and found == []
    present = [value for value in values if value is not None and not math.isnan(value)]
    assert (coder.clamped, coder.absent) == (
        sum(value < -2.5 or value > 10 for value in present),
        len(values) - len(present),
    )
    text = [None if value is None or math.isnan(value) else repr(value) for value in values]
    assert coded(NUMERIC, list(text), pa.string()) == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 105), max_size=30))
def test_integers_fall_in_the_same_bins_from_every_type(values: list[int]) -> None:
    column = Numeric(low=0, high=100, bins=13, integral=True)
    expected = [column.bin_of(value) for value in values]
    assert coded(column, list(values), pa.int64()) == expected
    assert coded(column, [str(value) for value in values], pa.string()) == expected
    assert coded(column, [Decimal(value) for value in values], pa.decimal128(38, 0)) == expected


def test_what_is_a_number() -> None:
    column = Numeric(low=0, high=10, bins=10)
    assert coded(column, ["3", "+3.5", "3.", ".5", "1e0", "-7", "1E+1"]) == [3, 3, 3, 0, 1, 0, 9]
    for bad in ("nan", "inf", "-Infinity", " 1", "1,5", "1_0", "0x1", "1e999", "1e", CANARY):
        assert [m.row for m in misfits(column, ["1", bad])] == [1], bad
    assert [m.row for m in misfits(column, [1.0, math.inf])] == [1]
    integral = Numeric(low=0, high=10, bins=10, integral=True)
    assert coded(integral, ["3.0", "1e1"]) == [3, 9]
    assert "integral" in misfits(integral, [1.0, 2.5])[0].reason
    for values in ([True], [datetime.date(2020, 1, 1)], [[1]], [b"1"], [datetime.timedelta(1)]):
        assert len(misfits(integral, values)) == 1  # type: ignore[arg-type]


def test_categories_match_exactly() -> None:
    column = Categorical(("north", "South ", "1", "true"), missing=True)
    assert coded(column, ["north", "South ", "1", "true", None, ""]) == [0, 1, 2, 3, 4, 4]
    assert coded(column, [1, None], pa.int64()) == [2, 4]
    assert coded(column, [1.0, None, math.nan], pa.float64()) == [2, 4, 4]
    assert coded(column, [True, None]) == [3, 4]
    assert coded(column, ["north", None, "1"], pa.dictionary(pa.int8(), pa.string())) == [0, 4, 2]
    for bad in ("North", "South", " north", "1.0", "True", "missing", CANARY):
        assert [m.row for m in misfits(column, ["north", None, bad])] == [2], bad


def test_declared_numbers_and_booleans_match_their_spellings() -> None:
    numbers = Categorical((1, 2.5, -3, 0.1))
    assert coded(numbers, ["1", "1.0", "01", "2.5", "2.50", "-3", "0.1"]) == [0, 0, 0, 1, 1, 2, 3]
    assert coded(numbers, [1.0, 2.5, -3.0, 0.1]) == [0, 1, 2, 3]
    assert coded(numbers, [1, -3], pa.int16()) == [0, 2]
    assert coded(numbers, [Decimal("2.50"), Decimal("1.00")], pa.decimal128(9, 2)) == [1, 0]
    for bad in ("1e0", " 1", "one", "1e999999999", CANARY):
        assert [m.row for m in misfits(numbers, ["1", bad])] == [1], bad
    flags = Categorical((False, True))
    assert coded(flags, ["true", "True", "FALSE"]) == [1, 1, 0]
    assert coded(flags, [True, False]) == [1, 0]
    assert [m.row for m in misfits(flags, [0, 1])] == [0]  # not the same thing: 0 may mean anything


def test_dates_match_their_iso_text() -> None:
    assert coded(Categorical(("2020-01-01", "2020-01-02")), [datetime.date(2020, 1, 2)]) == [1]


@pytest.mark.parametrize("column", [Codes(3), Numeric(low=0, high=1, bins=2), Categorical(("a",))])
def test_a_missing_value_needs_a_code(column: Column) -> None:
    for kind in (pa.string(), pa.null(), pa.float64()):
        (misfit,) = misfits(column, [None, None], kind)
        assert misfit.row == 0 and "missing = true" in misfit.reason
    assert [m.row for m in misfits(column, ["a" if column.kind == "categorical" else "1", ""])] == [1]
    assert coded(column, [], pa.string()) == []


def test_each_kind_of_misfit_is_reported_once_with_its_first_row() -> None:
    column = Numeric(low=0, high=9, bins=3, integral=True)
    found = misfits(column, ["1", CANARY, None, "2.5", "x", "", "3.5"])
    assert sorted((m.row, m.reason.split(",")[0]) for m in found) == [
        (1, "the value is not a finite number in plain digits"),
        (2, "the value is missing"),
        (3, "the number is not an integer"),
    ]


def test_a_decimal_comma_is_told_from_what_is_no_number() -> None:
    for column in (Numeric(low=0, high=9, bins=3), Integer(0, 9, missing=True)):
        found = misfits(column, ["1", "-2,5", CANARY, "1,2,3", "3,0"])
        assert [(m.row, 'decimal = ","' in m.reason) for m in found] == [(2, False), (1, True)]
        assert all(m.reason.startswith("the value is not a finite number in plain digits") for m in found)


@given(st.lists(st.one_of(st.integers(-3, 12), st.just(0)), max_size=20))
def test_a_zero_of_its_own_is_coded_as_the_domain_says(values: list[int]) -> None:
    for column in (
        Integer(0, 9, zero=True),
        Numeric(1, 10, 3, scale="log", zero=True),
        Edged((-2, 0, 5), integral=True, zero=True),
    ):
        coder = Coder(column)
        codes, found = coder.code(pa.array(values, pa.int64()))
        assert found == [] and codes.tolist() == [column.bin_of(value) for value in values]
        outside = [v for v in values if not column.low <= v <= column.high and v != 0]
        assert coder.clamped == len(outside)
        assert coded(column, [str(value) for value in values], pa.string()) == codes.tolist()


DAY, TIME = datetime.date(2020, 2, 29), datetime.datetime(2020, 2, 29, 13, 30)


def test_days_and_times_from_text_and_from_types() -> None:
    days = Date(datetime.date(2020, 1, 1), datetime.date(2020, 12, 31), "month", missing=True)
    for value, kind in (
        (DAY, pa.date32()),
        (DAY, pa.date64()),
        (datetime.datetime(2020, 2, 29), pa.timestamp("ns")),
        ("2020-02-29", pa.string()),
    ):
        assert coded(days, [value, None], kind) == [1, 12]
    assert coded(days, ["1999-01-01", "2030-01-01", ""]) == [0, 11, 12]  # clamped, and missing
    hours = DateTime(datetime.datetime(2020, 2, 29), datetime.datetime(2020, 3, 1), "hour")
    for value, kind in (
        (TIME, pa.timestamp("us")),
        ("2020-02-29 13:30", pa.string()),
        ("2020-02-29T13:30:59", pa.string()),
    ):
        assert coded(hours, [value], kind) == [13]
    for bad in ("29.02.2020", "2020-02-30", "2020-02-29T10:00", "20200229", "2020-2-9", CANARY):
        assert [m.row for m in misfits(days, ["2020-01-01", bad])] == [1], bad
    for zoned in ("2020-02-29T10:00:00Z", "2020-02-29+02:00", "2020-02-29-05:00"):
        assert [m.row for m in misfits(hours, [zoned])] == [0], zoned
    (whole,) = misfits(days, [1, 2], pa.int64())
    assert whole.row is None and "2019-12-31" in whole.reason


def test_booleans_in_their_spellings() -> None:
    column = Boolean(missing=True)
    assert coded(column, ["true", "F", "Yes", "n", "1", "0", "TRUE", ""]) == [1, 0, 1, 0, 1, 0, 1, 2]
    assert coded(column, [True, False, None], pa.bool_()) == [1, 0, 2]
    assert coded(column, [1, 0], pa.int8()) == [1, 0] and coded(column, [1.0, 0.0]) == [1, 0]
    assert coded(column, ["1.0", "0.00"]) == [1, 0]
    assert coded(column, [Decimal("1.00"), Decimal("0.00")], pa.decimal128(5, 2)) == [1, 0]
    for bad in ("2", "ja", " true", CANARY):
        assert [m.row for m in misfits(column, ["true", bad])] == [1], bad


def test_what_is_not_listed_is_collected() -> None:
    numbers = Categorical((0, 10**16, "other"), other="other")
    assert coded(numbers, [Decimal(0), Decimal(3)], pa.decimal128(20, 8)) == [0, 2]
    assert coded(numbers, [1e16, 0.0, 5.5]) == [1, 0, 2] and coded(numbers, ["0.00000000", "x"]) == [0, 2]
    column = Categorical(("a", "b", "other"), missing=True, other="other")
    assert coded(column, ["a", "c", CANARY, "", "other"]) == [0, 2, 2, 3, 2]
    assert coded(Ordinal(("low", "mid", "high")), ["high", "low"]) == [2, 0]
    assert [m.row for m in misfits(Ordinal(("low", "high")), ["low", "mid"])] == [1]
