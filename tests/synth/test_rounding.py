"""How a bound is shown."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from synth.budget.rounding import rounded_up

BOUNDS = st.floats(1e-300, 1e300)
DIGITS = st.integers(1, 9)


@given(BOUNDS, DIGITS)
def test_a_bound_is_not_shown_as_less_than_it_is(bound: float, digits: int) -> None:
    shown = rounded_up(bound, digits)
    assert shown >= bound * (1 - 1e-9)
    assert float(f"{shown:.{digits}g}") == shown


@given(BOUNDS, DIGITS)
def test_nor_as_more_than_the_digits_need(bound: float, digits: int) -> None:
    step = 10.0 ** (math.floor(math.log10(bound)) - digits + 1)
    assert rounded_up(bound, digits) <= bound + step * (1 + 1e-6)


def test_known_values() -> None:
    assert rounded_up(2.344) == 2.344
    assert rounded_up(2.3441) == 2.345
    assert rounded_up(0.99951, 3) == 1
    assert rounded_up(4.000000001) == 4
    assert rounded_up(3.9999999) == 4
    assert rounded_up(0) == 0
    assert rounded_up(math.inf) == math.inf
