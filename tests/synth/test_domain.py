"""Coding and decoding are inverse to one another, and a domain that cannot be meant is refused with the key
that is wrong."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from synth.domain import Categorical, Codes, Domain, Numeric


@st.composite
def numerics(draw: st.DrawFn, integral: bool) -> Numeric:
    low = draw(st.integers(-(10**6), 10**6) if draw(st.booleans()) else st.floats(-1e6, 1e6))
    width = draw(st.integers(1, 10**4) if draw(st.booleans()) else st.floats(1.0, 1e5))
    return Numeric(
        low, low + width, draw(st.integers(1, 200)), integral=integral, missing=draw(st.booleans())
    )


def holds_an_integer(column: Numeric, code: int) -> bool:
    edges = column.edges()
    return any(
        column.bin_of(n) == code
        for n in range(math.floor(edges[code]), math.floor(edges[code]) + 2)
        if column.low <= n <= column.high
    )


@given(numerics(integral=False), st.integers(0, 2**32))
def test_decoded_numbers_lie_in_their_bin(column: Numeric, seed: int) -> None:
    codes = np.repeat(np.arange(column.bins), 5)
    values = column.decode(codes, np.random.default_rng(seed))
    assert values.dtype == np.float64
    assert [column.bin_of(v) for v in values] == codes.tolist()
    assert column.low <= values.min() and values.max() <= column.high


@given(numerics(integral=True), st.integers(0, 2**32))
def test_decoded_integers_lie_in_their_bin_whenever_it_holds_one(column: Numeric, seed: int) -> None:
    codes = np.repeat(np.arange(column.bins), 5)
    values = column.decode(codes, np.random.default_rng(seed))
    assert values.dtype == np.int64
    assert math.ceil(column.low) <= values.min() and values.max() <= math.floor(column.high)
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        assert column.bin_of(value) == code or not holds_an_integer(column, code)


@given(numerics(integral=True))
def test_searchsorted_on_the_interior_edges_is_the_rule(column: Numeric) -> None:
    # what a vectorised coder does (parties/coding): it must agree with the reference on edges, between them
    # and outside
    edges = np.array(column.edges())
    values = np.concatenate(
        [edges, np.nextafter(edges, -math.inf), np.nextafter(edges, math.inf), [-1e300, 1e300]]
    )
    assert np.searchsorted(edges[1:-1], values, side="right").tolist() == [column.bin_of(v) for v in values]


def test_bins_are_closed_on_the_left_and_the_last_on_both_sides() -> None:
    column = Numeric(0, 10, 4)
    assert column.edges() == (0.0, 2.5, 5.0, 7.5, 10.0)
    assert [column.bin_of(v) for v in (-3, 0, 2.4999, 2.5, 7.5, 10, 11, math.inf)] == [0, 0, 0, 1, 3, 3, 3, 3]
    with pytest.raises(ValueError, match="NaN"):
        column.bin_of(math.nan)


def test_bins_without_an_integer_decode_to_the_nearest_integer() -> None:
    column = Numeric(0, 2, 8, integral=True)  # width 1/4: only bins 0, 4 and the last hold 0, 1 and 2
    values = column.decode(np.arange(8), np.random.default_rng(1))
    assert values.tolist() == [0, 0, 1, 1, 1, 1, 2, 2]
    assert column.label(4) == "1" and column.label(7) == "2" and column.label(1) == "[0.25, 0.5)"


def test_integers_are_uniform_within_the_bin_including_high() -> None:
    column = Numeric(0, 9, 2, integral=True)  # 0..4 and 5..9
    values = column.decode(np.repeat([0, 1], 50_000), np.random.default_rng(7))
    seen = np.bincount(values, minlength=10)
    chi2 = float(((seen - 10_000) ** 2 / 10_000).sum())
    assert (
        seen[:5].sum() == 50_000 and chi2 < 44
    )  # 8 degrees of freedom: false alarm 6e-7 (and the seed is fixed)


def test_missing_is_the_last_code_and_decodes_to_nothing() -> None:
    rng = np.random.default_rng(3)
    assert Numeric(0, 4, 4, missing=True).decode(np.array([4, 0]), rng)[0] is None
    assert Numeric(0, 4, 4, missing=True).size == 5
    column = Categorical(("a", "b"), missing=True)
    assert column.decode(np.array([2, 1, 0]), rng).tolist() == [None, "b", "a"]
    assert column.size == 3 and column.label(2) == "missing"
    integers = Numeric(1, 3, 3, integral=True, missing=True).decode(np.array([0, 3]), rng)
    assert integers.tolist() == [1, None]


def test_categories_come_back_as_given() -> None:
    values = Categorical(("x", 3, 2.5, True)).decode(np.array([3, 2, 1, 0]), np.random.default_rng(0))
    assert values.tolist() == [True, 2.5, 3, "x"] and type(values[0]) is bool and type(values[2]) is int


SPEC = {
    "columns": {
        "age": {"kind": "numeric", "low": 17, "high": 90, "bins": 32, "integral": True},
        "work": {"kind": "categorical", "values": ["Private", "Gov"], "missing": True},
        "code": {"kind": "codes", "size": 7},
        "short": 4,
    }
}


def test_a_domain_survives_its_canonical_form_in_order() -> None:
    domain = Domain.from_spec(SPEC)
    assert domain.names == ("age", "work", "code", "short")
    assert domain.sizes == {"age": 32, "work": 3, "code": 7, "short": 4}
    assert domain.cells(("work", "short")) == 12
    assert domain.subset(["short", "age"]).names == ("age", "short")
    assert Domain.from_spec(json.loads(json.dumps(domain.to_spec(), sort_keys=True))) == domain
    assert Domain.from_spec({"file": {"b": 2, "a": 3}}).names == ("b", "a")
    assert hash(domain) == hash(Domain.from_spec(SPEC))


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({}, "file or columns"),
        ({"file": {}, "columns": {}}, "only one"),
        ({"file": {"a": 2}, "extra": 1}, "extra"),
        ({"file": {}}, "at least one column"),
        ({"file": [1]}, "map each column"),
        ({"file": {"a": 0}}, "domain file's a"),
        ({"file": {"a": True}}, "domain file's a"),
        ({"file": {"a": 2**24 + 1}}, "domain file's a"),
        ({"file": {"a\n": 2}}, "printable"),
        ({"columns": {"a": {"size": 3}}}, "domain.columns.a.kind"),
        ({"columns": {"a": {"kind": "numeric", "low": 1, "high": 2}}}, "bins"),
        ({"columns": {"a": {"kind": "numeric", "low": 1, "high": 2, "bins": 2, "colour": 1}}}, "colour"),
        ({"columns": {"a": {"kind": "numeric", "low": 2, "high": 2, "bins": 2}}}, "low must be smaller"),
        (
            {"columns": {"a": {"kind": "numeric", "low": "1", "high": 2, "bins": 2}}},
            "low must be a finite number",
        ),
        (
            {"columns": {"a": {"kind": "numeric", "low": 1, "high": math.inf, "bins": 2}}},
            "high must be a finite number",
        ),
        (
            {"columns": {"a": {"kind": "numeric", "low": 0.2, "high": 0.8, "bins": 2, "integral": True}}},
            "needs an integer",
        ),
        (
            {"columns": {"a": {"kind": "numeric", "low": 2**60, "high": 2**60 + 512, "bins": 4}}},
            "double precision",
        ),
        (
            {"columns": {"a": {"kind": "numeric", "low": 0, "high": 1, "bins": 2, "integral": 1}}},
            "integral must be true or false",
        ),
        ({"columns": {"a": {"kind": "categorical", "values": []}}}, "at least one value"),
        (
            {"columns": {"a": {"kind": "categorical", "values": "xy"}}},
            "domain.columns.a.values must be a list",
        ),
        ({"columns": {"a": {"kind": "categorical", "values": ["x", "x"]}}}, "'x' twice"),
        ({"columns": {"a": {"kind": "categorical", "values": [1, "1"]}}}, "twice"),
        ({"columns": {"a": {"kind": "categorical", "values": ["x", ""]}}}, "missing = true"),
        ({"columns": {"a": {"kind": "categorical", "values": [["x"]]}}}, "texts, numbers"),
    ],
)
def test_a_wrong_domain_is_refused_by_name(spec: dict[str, object], named: str) -> None:
    with pytest.raises(StudyInvalid) as caught:
        Domain.from_spec(spec)
    assert named in caught.value.sentence and caught.value.exit_code == 10


def test_reading_a_study_loads_the_standard_library_only() -> None:
    code = (
        "import sys, synth.domain, synth.workload, synth.budget.accounting\n"
        "import synth.algorithms.aim, synth.algorithms.mwem, synth.algorithms.mst\n"
        "print(sorted({'numpy', 'scipy', 'networkx', 'mpmath', 'pandas', 'mpyc'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@settings(max_examples=20)
@given(st.integers(1, 30), st.integers(0, 2**32))
def test_codes_mean_themselves(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, size, 50).astype(np.uint8)
    decoded = Codes(size).decode(codes, rng)
    assert decoded.dtype == np.int64 and decoded.tolist() == codes.tolist()
