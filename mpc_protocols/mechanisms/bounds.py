"""Public bounds: on the number of rows, on the planes of a sign, on the rings (`docs/design/mechanisms.md`
5).

Problem: every width in the protocol must hold for the private counts, yet may be derived from public numbers
only. Under add-remove the number of rows N is itself private, so no party may size anything by it. Until
something is released the study's `row_cap` holds (each custodian refuses locally above its own part).
Afterwards

    n' = floor(N^ + 9 sigma_N) + 1,  N^ = inverse-variance mean of the noisy totals,  sigma_N^2 = 1 / sum_j 1 / (n_j sigma_j^2)

Statement. P(N > n') <= exp(-40.5) < 3e-18, whatever N is. Proof: N^ - N is a weighted sum of independent
discrete Gaussians, each subgaussian with its own sigma (Canonne, Kamath, Steinke 2020), so it is subgaussian
with sigma_N; Chernoff at 9 sigma_N. This event looks at every cell of the marginals summed, so the release
that fixes the bound is charged `BETA` and the total variation of all its cells (`measurement`).

Overflow in a selection is a matter of privacy (a wrong sign breaks the sensitivity): `selection` asserts the
ring rules from public integers and refuses. In a measurement it is not: (M + X) mod 2^32 is post-processing
of M + X. Everything here is exact integer and rational arithmetic, so that all parties get the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Final

from mpc_protocols.errors import StudyInvalid

CELL_BITS: Final = 32
"""Cells are shared modulo 2^32."""
DEVIATIONS: Final = 9
BETA: Final = Fraction(3, 10**18)
"""Bound on exp(-9^2 / 2): the row bound is below the number of rows."""


@dataclass(frozen=True)
class RowBound:
    """A bound on the number of rows from the first noisy totals.

    estimate: N^ (may be negative or a fraction). variance: sigma_N^2. rows: n', between 1 and the study's row
    cap.
    """

    estimate: Fraction
    variance: Fraction
    rows: int

    @classmethod
    def from_totals(
        cls, totals: Sequence[int], cells: Sequence[int], variances: Sequence[Fraction], row_cap: int
    ) -> RowBound:
        """From noisy totals of one batch: totals[j] is a sum of cells[j] counts, each with noise of variance
        variances[j].

        Raises `ValueError` for an empty batch, a non-positive number of cells or variance.
        """
        if not totals or min(cells) < 1 or min(variances) <= 0:
            raise ValueError(
                "A row bound needs at least one noisy total of at least one cell and a positive variance."
            )
        precisions = [1 / (n * sigma2) for n, sigma2 in zip(cells, variances, strict=True)]
        variance = 1 / sum(precisions, Fraction(0))
        weighted = (total * precision for total, precision in zip(totals, precisions, strict=True))
        estimate = sum(weighted, Fraction(0)) * variance
        rows = min(row_cap, _floor_of_sum(estimate, DEVIATIONS**2 * variance) + 1)
        return cls(estimate, variance, max(1, rows))


def _floor_of_sum(x: Fraction, y: Fraction) -> int:
    """floor(x + sqrt(y)) for y >= 0."""
    m = x.numerator // x.denominator + isqrt(y.numerator // y.denominator) + 1  # the answer or one more
    while m > x and (m - x) ** 2 > y:
        m -= 1
    return m


def sign_bits(row_bound: int) -> int:
    """Planes k that hold every difference in [-n', n'] in two's complement: bitlength(n') + 1.

    Raises `StudyInvalid` when they do not fit a cell's 32 bits.
    """
    planes = row_bound.bit_length() + 1
    if planes > CELL_BITS:
        raise StudyInvalid(
            f"{row_bound} rows need {planes} bits for the sign of a difference of counts, but cells are shared modulo "
            f"2^{CELL_BITS}; lower max_rows below {2 ** (CELL_BITS - 1)} over all custodians."
        )
    return planes


def check_measurement(row_bound: int, noise_bound: int) -> None:
    """Refuse a noise so wide that an opened cell could not be read back from 32 bits
    (`docs/design/mechanisms.md` 3.4).

    Raises `StudyInvalid` naming both numbers.
    """
    if row_bound + noise_bound >= 1 << CELL_BITS - 1:
        raise StudyInvalid(
            f"Up to {row_bound} rows plus noise of up to {noise_bound} do not fit a cell of {CELL_BITS} bits; "
            "lower max_rows or raise epsilon."
        )
