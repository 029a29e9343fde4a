"""Public systematic rounding of the model's answers (`docs/design/mechanisms.md` 2.1).

Problem: scores are sums of |M - c| over integers, but a model's answer is fractional. Rounding to nearest
shifts the score of a wide candidate by a fifth; systematic rounding keeps every expected L1 distance exact:

    c[i] = floor(C_i + theta) - floor(C_{i-1} + theta),  C = cumulative answer,  theta in [0, 1) from a public seed

Proof. Over theta, c[i] is floor or ceil of the answer with the answer as mean, and as M is an integer |M - c|
is linear between floor and ceil. Totals are kept to within one. Rounding costs no privacy: answer and theta
are public. c is floating point before it is rounded, so one party rounds and everybody agrees on the hash of
the integers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def theta_of(session: bytes, step: int) -> float:
    """The public offset of one step, in [0, 1): 53 bits of SHA-256 of the session's id and the step's number."""
    digest = hashlib.sha256(b"cosynth systematic rounding\0" + step.to_bytes(8, "big") + session).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2.0**53


def sum_bounds(answers: Sequence[NDArray[np.float64]], row_bound: int) -> list[int]:
    """Integers that the sums of `systematic` do not exceed, without rounding cell by cell.

    One for theta, one for the order of summation (relative error below 2^-28 for 2^24 cells, added besides).
    Raises `ValueError` for answers that are not finite (a positive infinity is clipped).
    """
    cells, lengths = _clipped(answers, row_bound)
    totals, filled = np.zeros(len(answers)), lengths > 0
    if filled.any():
        totals[filled] = np.add.reduceat(cells, (np.cumsum(lengths) - lengths)[filled])
    if not np.isfinite(totals).all():
        raise ValueError("The model's answers hold a value that is not finite.")
    bounds: list[int] = (np.floor(totals * (1.0 + 2.0**-28)).astype(np.int64) + 2).tolist()
    return bounds


def systematic(
    answers: Sequence[NDArray[np.float64]], row_bound: int, theta: float
) -> list[NDArray[np.int64]]:
    """Integers between floor and ceil of finite answers, each array rounded by itself, at most row_bound.

    The arrays are parts of one. A zero answer gives a zero.
    """
    ends = np.cumsum([len(answer) for answer in answers])
    return np.split(systematic_together(answers, row_bound, theta), ends[:-1]) if answers else []


def systematic_together(
    answers: Sequence[NDArray[np.float64]], row_bound: int, theta: float
) -> NDArray[np.int64]:
    """`systematic`, one array after the other: a selection has thousands."""
    cells, lengths = _clipped(answers, row_bound)
    starts = np.cumsum(lengths) - lengths
    for length in np.unique(
        lengths
    ).tolist():  # each array by itself, in its order; those of one length at once
        of_length = starts[lengths == length]
        where = slice(of_length[0], of_length[0] + length)
        if len(of_length) > 1:
            where = of_length[:, None] + np.arange(length)
        cells[where] = np.add.accumulate(cells[where], axis=-1)
    cells += theta
    np.floor(cells, out=cells)
    rounded = np.empty(len(cells), np.int64)
    np.subtract(cells[1:], cells[:-1], out=rounded[1:], casting="unsafe")  # integers below 2^53: exact
    starts = starts[lengths > 0]
    rounded[starts] = cells[starts]
    # differences of floating-point sums may pass a bound that the answers themselves keep
    np.minimum(rounded, row_bound, out=rounded)
    return rounded


def _clipped(
    answers: Sequence[NDArray[np.float64]], row_bound: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The answers clipped to [0, row_bound], one after the other, and how many cells each has."""
    cells = np.concatenate([np.empty(0), *answers], dtype=np.float64)
    np.clip(cells, 0.0, float(row_bound), out=cells)
    return cells, np.fromiter(map(len, answers), np.intp, len(answers))


def digest(counts: Sequence[NDArray[np.int64]]) -> bytes:
    """SHA-256 of counts in their order, lengths included: what the parties agree on before a selection.

    Hashed with 4 bytes a count if all fit, else with 8; which of both is hashed, too.
    """
    flat = np.concatenate(counts) if counts else np.zeros(0, np.int64)
    narrow = flat.astype("<i4")
    whole, width = (narrow, 4) if np.array_equal(narrow, flat) else (flat.astype("<i8"), 8)
    hashed = hashlib.sha256(
        b"".join(number.to_bytes(8, "big") for number in (width, len(counts), *map(len, counts)))
    )
    hashed.update(whole.data)
    return hashed.digest()
