"""What waves know together: of one measured twice the inverse-variance mean, of several the sums."""

from __future__ import annotations

from fractions import Fraction

import pytest

from synth.prior.later_wave import Known, Wave

A = ("a",)


def test_what_a_wave_has_measured_twice_counts_by_its_noise() -> None:
    wave = Wave.of([(A, [0, 12], Fraction(1)), (A, [4, 0], Fraction(3))], 12.0)
    assert wave.known[A].values == pytest.approx((1.0, 9.0))
    assert 0 <= wave.known[A].sigma2 - Fraction(3, 4) < Fraction(1, 1 << 35)


def test_waves_are_added_with_their_noise_and_only_if_they_measured_the_same() -> None:
    one, other = (
        Wave({A: Known((1.0, 2.0), Fraction(1))}, 3.0),
        Wave({A: Known((4.0, 0.0), Fraction(2))}, 4.0),
    )
    assert one.plus(other) == Wave({A: Known((5.0, 2.0), Fraction(3))}, 7.0)
    with pytest.raises(ValueError, match="measure the same marginals"):
        one.plus(Wave({}, 4.0))
