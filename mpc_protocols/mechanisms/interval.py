"""Certified exponentials in integers: every table and every constant of the mechanisms rests on these bounds.

Problem: all parties must hold the same thresholds bit for bit, and what is charged must be an upper bound, so
neither may depend on a machine's floating point. A real x is held as a pair of integers (low, high) with `low
<= 2^bits x <= high`; every operation rounds the low end down and the high end up, so the enclosure is a
proof.

Proof note. exp of a non-negative argument is a series of non-negative terms: truncating each product
downwards bounds it from below. From above every term is rounded up, and with y < 2^-8 the terms after one
that has shrunk to a unit sum to less than a unit. Argument halving is undone by squaring, which is monotone.
exp(-x) is the reciprocal, bounds swapped.

No private value comes near this file.
"""

from __future__ import annotations

from fractions import Fraction

Interval = tuple[int, int]


def _halvings(x: int, bits: int) -> int:
    """How often to halve x (units of 2^-bits) for it to fall below 2^-8."""
    return max(0, x.bit_length() - bits + 8)


def _exp_below(x: int, bits: int) -> int:
    """A lower bound of 2^bits exp(x / 2^bits), x >= 0."""
    halvings = _halvings(x, bits)
    y = x >> halvings
    term = total = 1 << bits
    i = 1
    while term := (term * y >> bits) // i:
        total += term
        i += 1
    for _ in range(halvings):
        total = total * total >> bits
    return total


def _exp_above(x: int, bits: int) -> int:
    """An upper bound of 2^bits exp(x / 2^bits), x >= 0."""
    halvings = _halvings(x, bits)
    y = -(-x >> halvings)
    term = total = 1 << bits
    i = 1
    while term > 1:
        term = -((-(term * y) >> bits) // i)
        total += term
        i += 1
    total += 1
    for _ in range(halvings):
        total = -(-(total * total) >> bits)
    return total


def enclose(x: Fraction, bits: int) -> Interval:
    """The tightest interval of `bits` fractional bits around a rational."""
    scaled = x.numerator << bits
    return scaled // x.denominator, -(-scaled // x.denominator)


def exp_minus(x: Interval, bits: int) -> Interval:
    """Bounds of exp(-x) for a non-negative x."""
    low, high = x
    if low < 0:
        raise ValueError(f"exp_minus needs a non-negative argument, got a lower bound of {low} / 2^{bits}.")
    one = 1 << 2 * bits
    return one // _exp_above(high, bits), -(-one // _exp_below(low, bits))


def exp_plus(x: Interval, bits: int) -> Interval:
    """Bounds of exp(x) for a non-negative x."""
    low, high = x
    if low < 0:
        raise ValueError(f"exp_plus needs a non-negative argument, got a lower bound of {low} / 2^{bits}.")
    return _exp_below(low, bits), _exp_above(high, bits)


def product(x: Interval, y: Interval, bits: int) -> Interval:
    """Bounds of x y for non-negative x and y."""
    return x[0] * y[0] >> bits, -(-(x[1] * y[1]) >> bits)


def quotient(x: Interval, y: Interval, bits: int) -> Interval:
    """Bounds of x / y for non-negative x and positive y."""
    return (x[0] << bits) // y[1], -(-(x[1] << bits) // y[0])


def rounded(x: Interval, bits: int, places: int) -> int | None:
    """2^places x rounded to the nearest integer, or None if the interval does not settle it (then compute
    with more bits)."""
    half = 1 << bits - places - 1
    low, high = (x[0] + half) >> bits - places, (x[1] + half) >> bits - places
    return low if low == high else None


def round_up(x: Fraction, places: int) -> Fraction:
    """The least multiple of 2^-places that is at least x: keeps public numbers short without ever charging
    too little."""
    return Fraction(-(-(x.numerator << places) // x.denominator), 1 << places)
