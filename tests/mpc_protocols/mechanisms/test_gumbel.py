"""G64: the published vector, an independent recomputation, and the distance from the discrete Gumbel law."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import mpmath

import mpc_protocols
from mpc_protocols.mechanisms import gumbel


def test_published_vector() -> None:
    table = gumbel.THRESHOLDS
    assert len(table) == 3445 and gumbel.HIGH - gumbel.LOW == 3445
    assert all(a < b for a, b in pairwise(table))
    assert table[0] > 0 and table[-1] < 2**80
    at = {k: table[k - gumbel.LOW] for k in (0, 64, 640)}
    assert at == {0: 0x5E2D58D8B3BCDF1ABADF, 64: 0xB1340F719EF2953281DB, 640: 0xFFFD06553670A21CAC88}
    digest = hashlib.sha256(b"".join(t.to_bytes(10, "big") for t in table)).hexdigest()
    assert digest == "8c298b4a218de191e3e775318356f508c6142740863dc78f9085803fc0c5ee83"


def test_thresholds_equal_an_independent_computation() -> None:
    """mpmath at 300 bits, which shares no code with `interval`; no value is near a rounding boundary."""
    with mpmath.workprec(300):
        for k, threshold in enumerate(gumbel.THRESHOLDS, start=gumbel.LOW):
            exact = mpmath.exp(-mpmath.exp(mpmath.mpf(-k) / 64)) * mpmath.mpf(2) ** 80
            assert abs(exact - threshold) < mpmath.mpf("0.4999")


def test_distance_from_the_discrete_gumbel_law_is_within_beta() -> None:
    with mpmath.workprec(300):

        def cdf(k: int) -> mpmath.mpf:
            return mpmath.exp(-mpmath.exp(mpmath.mpf(-k) / 64))

        edges = [
            mpmath.mpf(0),
            *(mpmath.mpf(t) / mpmath.mpf(2) ** 80 for t in gumbel.THRESHOLDS),
            mpmath.mpf(1),
        ]
        doubled = cdf(gumbel.LOW - 1) + (1 - cdf(gumbel.HIGH))  # ideal mass outside the table
        for i, k in enumerate(range(gumbel.LOW, gumbel.HIGH + 1)):
            doubled += abs((edges[i + 1] - edges[i]) - (cdf(k) - cdf(k - 1)))
        distance = doubled / 2
        assert distance <= mpmath.mpf(gumbel.BETA.numerator) / gumbel.BETA.denominator
        assert -70.09 < mpmath.log(distance, 2) < -70.07  # the figure of `docs/design/mechanisms.md` 1.2


def test_inversion_at_every_boundary() -> None:
    assert gumbel.invert(0) == gumbel.LOW
    assert gumbel.invert(2**80 - 1) == gumbel.HIGH
    for k, threshold in enumerate(gumbel.THRESHOLDS, start=gumbel.LOW):
        assert gumbel.invert(threshold - 1) == k
        assert gumbel.invert(threshold) == k + 1


def test_the_table_is_made_at_first_use_only() -> None:
    """Importing the mechanism must not cost a party its start-up time, nor pull in NumPy."""
    code = (
        "import sys\n"
        "from mpc_protocols.mechanisms import gumbel\n"
        "assert gumbel._thresholds.cache_info().currsize == 0\n"
        "assert 'numpy' not in sys.modules and 'mpmath' not in sys.modules\n"
        "assert gumbel.THRESHOLDS is gumbel.THRESHOLDS and len(gumbel.THRESHOLDS) == 3445\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(mpc_protocols.__path__[0]).parent)


def test_beta_is_a_rational() -> None:
    assert isinstance(gumbel.BETA, Fraction) and Fraction(1, 2**70) == gumbel.BETA


def test_many_draws_are_inverted_as_each_is_by_itself() -> None:
    near = [t + step for t in gumbel.THRESHOLDS for step in (-(1 << 16), -1, 0, 1, 1 << 16)]
    uniforms = [0, 1, 2**80 - 1, *(u for u in near if 0 <= u < 2**80)]
    found = gumbel.invert_all(b"".join(u.to_bytes(10, "big") for u in uniforms))
    assert found.tolist() == [gumbel.invert(u) for u in uniforms]
