"""Public systematic rounding of the model's answers (`mechanisms.md` 2.1).

Problem: scores are sums of |M - c| over integers, but a model's answer is fractional. Rounding to nearest shifts the score of a
wide candidate by a fifth; systematic rounding keeps every expected L1 distance exact:

    c[i] = floor(C_i + theta) - floor(C_{i-1} + theta),  C = cumulative answer,  theta in [0, 1) from a public seed

Proof. Over theta, c[i] is floor or ceil of the answer with the answer as mean, and as M is an integer |M - c| is linear between
floor and ceil. Totals are kept to within one. Rounding costs no privacy: answer and theta are public.
c is floating point before it is rounded, so one party rounds and everybody agrees on the hash of the integers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import floor, isfinite

import numpy as np
from numpy.typing import NDArray


def theta_of(session: bytes, step: int) -> float:
    """The public offset of one step, in [0, 1): 53 bits of SHA-256 of the session's id and the step's number."""
    digest = hashlib.sha256(b"cosynth systematic rounding\0" + step.to_bytes(8, "big") + session).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2.0**53


def systematic(answers: NDArray[np.float64], theta: float, row_bound: int) -> NDArray[np.int64]:
    """Integers between floor and ceil of the answers, clipped to [0, row_bound]; int64, same shape (n,).

    A zero answer gives a zero. Raises `ValueError` for answers that are not finite.
    """
    clipped = np.clip(np.asarray(answers, dtype=np.float64), 0.0, float(row_bound))
    np.cumsum(clipped, out=clipped)
    if clipped.size and not isfinite(clipped[-1]):
        raise ValueError("the model's answers hold a value that is not finite")
    clipped += theta
    steps = clipped.astype(np.int64)  # towards zero, which is the floor here
    rounded = steps.copy()
    rounded[1:] -= steps[:-1]
    # differences of floating-point sums may pass a bound that the answers themselves keep
    return np.minimum(rounded, row_bound, out=rounded)


def sum_bound(answers: NDArray[np.float64], row_bound: int) -> int:
    """An integer that the sum of `systematic(answers, ., row_bound)` does not exceed, without rounding cell by cell.

    One for theta, one for the order of summation (relative error below 2^-28 for 2^24 cells, added besides).
    Raises `ValueError` for answers that are not finite.
    """
    total = float(np.clip(np.asarray(answers, dtype=np.float64), 0.0, float(row_bound)).sum())
    if not isfinite(total):
        raise ValueError("the model's answers hold a value that is not finite")
    return floor(total * (1.0 + 2.0**-28)) + 2


def digest(rounded: Sequence[NDArray[np.int64]]) -> bytes:
    """SHA-256 of rounded answers in their order, lengths included: what the parties agree on before a selection."""
    hashed = hashlib.sha256(len(rounded).to_bytes(8, "big"))
    for cells in rounded:
        hashed.update(len(cells).to_bytes(8, "big"))
        hashed.update(np.ascontiguousarray(cells, dtype="<i8").data)
    return hashed.digest()
