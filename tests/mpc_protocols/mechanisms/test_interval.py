"""Certified exponentials against mpmath at much higher precision."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.mechanisms.interval import (
    enclose,
    exp_minus,
    exp_plus,
    product,
    quotient,
    round_up,
    rounded,
)

rationals = st.fractions(min_value=0, max_value=60, max_denominator=10**12)


def _mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


@given(rationals, st.sampled_from([64, 192, 320]))
def test_exponentials_are_enclosed_tightly(x: Fraction, bits: int) -> None:
    with mpmath.workprec(bits + 400):
        argument = enclose(x, bits)
        for bounds, exact in (
            (exp_minus(argument, bits), mpmath.exp(-_mp(x))),
            (exp_plus(argument, bits), mpmath.exp(_mp(x))),
        ):
            scaled = exact * mpmath.mpf(2) ** bits
            assert bounds[0] <= scaled <= bounds[1]
            # relative width: 40 rounded operations, doubled by each of at most 14 squarings
            assert bounds[1] - bounds[0] <= 2 + scaled * mpmath.mpf(2) ** (22 - bits)


@given(rationals, rationals.filter(bool))
def test_products_and_quotients_enclose(x: Fraction, y: Fraction) -> None:
    bits = 200
    a, b = enclose(x, bits), enclose(y, bits)
    assert product(a, b, bits)[0] <= x * y * 2**bits <= product(a, b, bits)[1]
    assert quotient(a, b, bits)[0] <= x / y * 2**bits <= quotient(a, b, bits)[1]


@given(st.fractions(min_value=0, max_value=10**6), st.integers(1, 200))
def test_round_up_is_the_least_multiple_above(x: Fraction, places: int) -> None:
    up = round_up(x, places)
    assert up >= x > up - Fraction(1, 1 << places)
    assert (up * (1 << places)).denominator == 1


def test_rounding_refuses_an_interval_across_a_boundary() -> None:
    half = 1 << 63  # of a unit with 64 of 128 fractional bits dropped
    assert rounded((half - 1, half - 1), 128, 64) == 0
    assert rounded((half, half), 128, 64) == 1
    assert rounded((half - 1, half), 128, 64) is None


@pytest.mark.parametrize("function", [exp_minus, exp_plus])
def test_negative_arguments_are_refused(function: Callable[[tuple[int, int], int], tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="non-negative"):
        function((-1, 3), 64)
