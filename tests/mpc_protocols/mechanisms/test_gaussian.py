"""The integer Gaussian tables: against an independent CDF, the exact distance, exact hockey-stick
divergences, references."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.mechanisms import gaussian
from mpc_protocols.mechanisms.gaussian import (
    HalfTable,
    Sampler,
    half_table,
    reference,
    reference_array,
    sampler,
)

PRECISION = 500
SIGMA2 = [
    Fraction(1, 64),
    Fraction(1, 4),
    Fraction(1),
    Fraction(10, 3),
    Fraction(100),
    Fraction(317, 10) ** 2,
    Fraction(10000),
]


def mp(x: Fraction | int) -> mpmath.mpf:
    x = Fraction(x)
    return mpmath.mpf(x.numerator) / x.denominator


def ideal_half_law(sigma2: Fraction, upto: int) -> list[mpmath.mpf]:
    """P(|X| = j), j = 0 .. upto, of the discrete Gaussian; the normaliser by the theta function of mpmath,
    not by summing."""
    q = mpmath.exp(-1 / (2 * mp(sigma2)))
    normaliser = mpmath.jtheta(3, 0, q)
    return [(1 if j == 0 else 2) * q ** (j * j) / normaliser for j in range(upto + 1)]


def table_law(table: HalfTable) -> dict[int, Fraction]:
    """Exact law of the signed draw of one table."""
    edges = [0, *table.thresholds, 1 << 64]
    half = [Fraction(b - a, 1 << 64) for a, b in pairwise(edges)]
    return {0: half[0]} | {s * j: half[j] / 2 for j in range(1, len(half)) for s in (1, -1)}


def sampler_law(of: Sampler) -> dict[int, Fraction]:
    """Exact law of a sampler by convolving its parts' integer tables."""
    laws = [{m * x: p for x, p in table_law(t).items()} for m, t in of.parts]
    out = laws[0]
    for other in laws[1:]:
        combined: dict[int, Fraction] = {}
        scale = 1 << 65
        left = [(x, int(p * scale)) for x, p in out.items()]
        right = [(x, int(p * scale)) for x, p in other.items()]
        sums: dict[int, int] = {}
        for x, p in left:
            for y, r in right:
                sums[x + y] = sums.get(x + y, 0) + p * r
        combined = {x: Fraction(p, scale * scale) for x, p in sums.items()}
        out = combined
    return out


@pytest.mark.parametrize("sigma2", SIGMA2)
def test_table_is_the_rounded_cdf(sigma2: Fraction) -> None:
    """t_j = round(2^64 P(|X| <= j)), no value within 2^-200 of a rounding boundary, and B the least with tail
    <= 2^-64."""
    table = half_table(sigma2)
    with mpmath.workprec(PRECISION):
        law = ideal_half_law(sigma2, table.bound)
        total = mpmath.mpf(0)
        for j, threshold in enumerate(table.thresholds):
            total += law[j]
            scaled = total * mpmath.mpf(2) ** 64
            assert mpmath.floor(scaled + 0.5) == threshold
            assert abs(scaled - mpmath.floor(scaled) - 0.5) > mpmath.mpf(2) ** -200
        tail_before_last = 1 - total
        assert tail_before_last > mpmath.mpf(2) ** -64 >= tail_before_last - law[table.bound]
    assert max(table.thresholds) < 1 << 64


@pytest.mark.parametrize(
    ("sigma", "entries", "lg_tv"),
    [
        (Fraction("0.5"), 5, -63.8),
        (Fraction(1), 10, -64.2),
        (Fraction(10), 93, -59.9),
        (Fraction("31.7"), 291, -58.5),
        (Fraction(100), 917, -56.8),
    ],
)
def test_figures_of_the_specification(sigma: Fraction, entries: int, lg_tv: float) -> None:
    """The table of `docs/design/mechanisms.md` 3.1."""
    table = half_table(sigma**2)
    assert table.bound + 1 == entries
    assert float(mpmath.log(mp(table.tv), 2)) == pytest.approx(lg_tv, abs=0.06)


@pytest.mark.parametrize("sigma2", SIGMA2)
def test_charged_distance_is_the_exact_distance_rounded_up(sigma2: Fraction) -> None:
    table = half_table(sigma2)
    edges = [0, *table.thresholds, 1 << 64]
    with mpmath.workprec(PRECISION):
        law = ideal_half_law(sigma2, table.bound)
        doubled = 1 - mpmath.fsum(law)
        for j in range(table.bound + 1):
            doubled += abs(mp(Fraction(edges[j + 1] - edges[j], 1 << 64)) - law[j])
        exact = doubled / 2
        assert exact <= mp(table.tv) <= exact + mpmath.mpf(2) ** -127


@pytest.mark.parametrize("sigma2", [Fraction(10001), Fraction(128**2), Fraction(400**2, 3)])
def test_charged_distance_of_a_wide_sampler_bounds_the_exact_one(sigma2: Fraction) -> None:
    """Both tables convolved exactly, compared with the ideal law at every point."""
    of = sampler(sigma2)
    assert len(of.parts) == 2
    law = sampler_law(of)
    assert sum(law.values()) == 1 and max(law) == of.bound == -min(law)
    with mpmath.workprec(200):
        half = ideal_half_law(sigma2, of.bound)
        doubled = 1 - mpmath.fsum(half)
        for j in range(of.bound + 1):
            doubled += abs(mp(law.get(j, Fraction(0))) * (1 if j == 0 else 2) - half[j])
        assert doubled / 2 <= mp(of.tv) < 20 * doubled  # an upper bound, and no wasteful one


@pytest.mark.parametrize("sigma2", [Fraction(10001), Fraction(128**2), Fraction(10**6)])
def test_convolution_of_ideal_laws_deviates_by_at_most_kap(sigma2: Fraction) -> None:
    """`docs/design/mechanisms.md` 3.3: the ratio of the ideal convolution to the discrete Gaussian, before
    any table is rounded."""
    of = sampler(sigma2)
    (_, narrow), (multiplier, wide) = of.parts
    assert narrow.sigma2 + multiplier**2 * wide.sigma2 == sigma2
    assert narrow.sigma2 == Fraction(256, 100) * multiplier**2
    with mpmath.workprec(300):
        kap_bound = mp(gaussian._convolution_distance(narrow.sigma2, wide.sigma2, sigma2))
        s2 = mp(narrow.sigma2 * wide.sigma2 / sigma2)  # (s / K)^2
        kap = 2 * mpmath.exp(-2 * mpmath.pi**2 * s2)
        assert kap < kap_bound < kap * mpmath.mpf("1.001")
        # charged is the sum of all three; the exact distance of the convolution would not show a missing one
        assert mp(of.tv - narrow.tv - wide.tv) > kap / (1 - kap)
        assert mpmath.log(kap, 2) < (-71 if sigma2 >= 128**2 else -70)
        reach = 14 * int(wide.bound / 9 + 1)

        def ratio(x: int) -> mpmath.mpf:
            def weight(j: int) -> mpmath.mpf:
                return mpmath.exp(
                    -mp((x - multiplier * j) ** 2 / (2 * narrow.sigma2) + j * j / (2 * wide.sigma2))
                )

            return mpmath.fsum(weight(j) for j in range(-reach, reach + 1)) * mpmath.exp(
                mp(x * x / (2 * sigma2))
            )

        ratios = [ratio(x) for x in [*range(multiplier + 1), 100, 333, 1001]]
        assert max(ratios) / min(ratios) <= (1 + kap_bound) / (1 - kap_bound)
        # the deviation is really there: a bound that is never reached would hide an error in the formula
        assert max(ratios) / min(ratios) - 1 > kap


@pytest.mark.parametrize("sigma2", [Fraction(1, 4), Fraction(1), Fraction(9, 4), Fraction(9), Fraction(100)])
def test_hockey_stick_of_neighbours_exceeds_the_ideal_by_at_most_the_charge(sigma2: Fraction) -> None:
    """Exact delta of the table's law and its shift by one: within (1 + e^eps) tv of the ideal one, at most
    3e-18 above it."""
    table = half_table(sigma2)
    law = table_law(table)
    with mpmath.workprec(200):
        half = ideal_half_law(sigma2, table.bound + 60)
        ideal = {0: half[0]} | {s * j: half[j] / 2 for j in range(1, len(half)) for s in (1, -1)}
        for eps in (Fraction(1, 2), 1, 2, 4, 6):
            factor = mpmath.exp(mp(eps))

            def delta(p: dict[int, mpmath.mpf], factor: mpmath.mpf = factor) -> mpmath.mpf:
                return mpmath.fsum(
                    max(mpmath.mpf(0), v - factor * p.get(x - 1, mpmath.mpf(0))) for x, v in p.items()
                )

            excess = delta({x: mp(v) for x, v in law.items()}) - delta(ideal)
            assert excess <= (1 + factor) * mp(table.tv)
            assert excess <= mpmath.mpf("3e-18")


@pytest.mark.parametrize("sigma2", [Fraction(1), Fraction(10), Fraction(100)])
def test_renyi_divergence_of_the_ideal_law_is_the_charge(sigma2: Fraction) -> None:
    """D_alpha of a shift by s is at most alpha s^2 / (2 sigma^2) (discrete Gaussian; the charge of
    `measurement`)."""
    with mpmath.workprec(200):
        half = ideal_half_law(sigma2, 60 * int(sigma2 ** Fraction(1, 2) + 1) + 60)
        law = {0: half[0]} | {sign * j: half[j] / 2 for j in range(1, len(half)) for sign in (1, -1)}
        for alpha in (2, 5, 10):
            for shift in (1, 2):
                total = mpmath.fsum(
                    p**alpha * law[x - shift] ** (1 - alpha) for x, p in law.items() if x - shift in law
                )
                divergence = mpmath.log(total) / (alpha - 1)
                assert divergence <= alpha * mp(Fraction(shift**2) / (2 * sigma2)) * (1 + mpmath.mpf("1e-40"))


def test_signed_draw_by_flipping_every_bit() -> None:
    """x = (1 - 2 s) k = sum_j 2^j (k_j xor s) - (2^t - 1) s, the form the secure sampler opens into a ring."""
    t = 10
    for s in (0, 1):
        for k in range(1 << t):
            flipped = sum(((k >> j & 1) ^ s) << j for j in range(t))
            assert (1 - 2 * s) * k == flipped - ((1 << t) - 1) * s


@given(st.data())
def test_array_reference_equals_the_reference(data: st.DataObject) -> None:
    """Also at thresholds, one below, 0 and 2^64 - 1."""
    of = sampler(data.draw(st.sampled_from([Fraction(1, 64), Fraction(1), Fraction(100), Fraction(20000)])))
    n = data.draw(st.integers(0, 12))
    uniforms, signs = [], []
    for _, table in of.parts:
        special = st.sampled_from([0, (1 << 64) - 1, *table.thresholds, *(t - 1 for t in table.thresholds)])
        uniforms.append(data.draw(st.lists(special | st.integers(0, (1 << 64) - 1), min_size=n, max_size=n)))
        signs.append(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    parts = len(of.parts)
    uniform_array = np.array(uniforms, dtype=np.uint64).reshape(parts, n)
    got = reference_array(of, uniform_array, np.array(signs, dtype=np.uint8).reshape(parts, n))
    expected = [reference(of, [u[i] for u in uniforms], [s[i] for s in signs]) for i in range(n)]
    assert got.dtype == np.int64 and got.tolist() == expected
    for i in range(n):
        by_hand = 0
        for (multiplier, table), uniform, sign in zip(of.parts, uniforms, signs, strict=True):
            by_hand += multiplier * (-1) ** sign[i] * bisect_right(table.thresholds, uniform[i])
        assert expected[i] == by_hand


def test_array_reference_refuses_other_shapes() -> None:
    with pytest.raises(ValueError, match="Expected 2 rows"):
        reference_array(sampler(Fraction(20000)), np.zeros((1, 3), np.uint64), np.zeros((1, 3), np.uint8))


@pytest.mark.parametrize("sigma2", [Fraction(0), Fraction(1, 65), Fraction(2**40 + 1), Fraction(-1)])
def test_variances_outside_the_range_are_refused(sigma2: Fraction) -> None:
    with pytest.raises(StudyInvalid, match="noise variance"):
        sampler(sigma2)


def test_digest_covers_every_threshold_and_multiplier() -> None:
    digests = {sampler(Fraction(s)).digest for s in (1, 2, 100, 10000, 10001, 20000)}
    assert len(digests) == 6
    a = sampler(Fraction(20000))
    changed = Sampler(a.sigma2, ((1, a.parts[0][1]), (16, a.parts[1][1])), a.tv, a.bound)
    assert changed.digest != a.digest


@given(st.fractions(min_value=Fraction(10001), max_value=Fraction(2**40), max_denominator=1000))
def test_convolution_multiplier_is_the_rounded_logarithm(sigma2: Fraction) -> None:
    with mpmath.workprec(200):
        exponent = mpmath.log(mpmath.sqrt(mpmath.sqrt(mp(sigma2)) / mpmath.mpf("1.6")), 2)
        assert gaussian._convolution_multiplier(sigma2) == 2 ** int(
            mpmath.floor(exponent + mpmath.mpf("0.5"))
        )
