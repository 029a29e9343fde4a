"""A noisy column of ordered values without the part of it that is only noise: wavelet thresholding.

Neighbouring values of an ordered column have similar counts, and its noise is independent from cell to cell.
The translation invariant Haar transform (Coifman-Donoho 1995: the mean over all shifts of the decimated one)
tells the two apart: coefficients below `DEVIATIONS` of the noise's standard deviation are set to 0. Spikes
stay, for their coefficients are large; ends are reflected; the sum is kept. What has been released stays as
it is: this is what the model is fitted to, post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DEVIATIONS = 2.5
SMALL_VALUES = 8
"""Values of a column from which on a small table's is smoothed."""


def smoothed(values: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """The counts of ordered values, each measured with noise of this standard deviation; float64 of the same
    length."""
    length = 1 << (2 * len(values) - 1).bit_length()
    coarse = np.pad(values, (0, length - len(values)), mode="symmetric")
    details, step = [], 1
    while step < length:  # of each level, the coefficients of all shifts: memory n log n
        next_one = np.roll(coarse, -step)
        detail = (coarse - next_one) / np.sqrt(2)
        details.append(np.where(np.abs(detail) > DEVIATIONS * sigma, detail, 0.0))
        coarse = (coarse + next_one) / np.sqrt(2)
        step *= 2
    for detail in reversed(details):
        step //= 2
        coarse = (coarse + detail + np.roll(coarse - detail, step)) / np.sqrt(8)
    found: NDArray[np.float64] = coarse[: len(values)].copy()
    found += (values.sum() - found.sum()) / len(values)
    return found
