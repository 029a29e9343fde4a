"""G64: the one public table of the discrete Gumbel noise that every selection uses
(`docs/design/mechanisms.md` 1.2, 1.3).

Problem: the exponential mechanism as "arg max of score plus Gumbel noise", with noise that parties can sample
from shared uniform bits by comparing them with public thresholds. The table is the same for every epsilon,
sensitivity and data set: scale enters by the dither (`selection`).

    F(k) = P(K <= k) = exp(-exp(-gamma k)), gamma = 1/64          t_k = round(2^80 F(k)),  k = -250 .. 3194
    K = -250 + #{k : U >= t_k},  U uniform on 80 bits, so K lies in -250 .. 3195

Statement. The distribution of K is within total variation 2^-70 of the discrete Gumbel distribution on all
integers (2^-70.08, computed by `tests/mpc_protocols/mechanisms/test_gumbel.py`). Proof: half the sum of the
rounding errors of consecutive thresholds, plus F(-251) and 1 - F(3195), the mass folded into the two ends.
Every candidate of a selection is charged `BETA`.

Threat model: the table is public. U, K are secret and exist as shares only (in `ideal`: in the clear).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final

from mpc_protocols.mechanisms.interval import enclose, exp_minus, exp_plus, product, rounded
from mpc_protocols.process.later import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOW: Final = -250
"""Least value of K."""
HIGH: Final = 3195
"""Greatest value of K."""
BITS: Final = 80
"""Uniform bits of one draw."""
GAMMA: Final = Fraction(1, 64)
BETA: Final = Fraction(1, 2**70)
"""Bound on the total variation distance of one K from the discrete Gumbel distribution."""
SHA256: Final = "8c298b4a218de191e3e775318356f508c6142740863dc78f9085803fc0c5ee83"
"""Of the thresholds, ten big-endian bytes each: part of what the parties agree on."""

THRESHOLDS: tuple[int, ...]
"""The 3,445 thresholds t_k, strictly increasing, computed at first use (about 50 ms)."""

_WORKING_BITS = 192


@cache
def _thresholds() -> tuple[int, ...]:
    bits = _WORKING_BITS
    step = exp_minus(enclose(GAMMA, bits), bits)
    rate = exp_plus(enclose(-LOW * GAMMA, bits), bits)  # exp(-gamma k) at k = LOW
    table = []
    for _ in range(LOW, HIGH):
        threshold = rounded(exp_minus(rate, bits), bits, BITS)
        if threshold is None:
            raise ArithmeticError("192 bits do not settle a threshold of the Gumbel table.")
        table.append(threshold)
        rate = product(rate, step, bits)
    digest = hashlib.sha256(b"".join(t.to_bytes(BITS // 8, "big") for t in table)).hexdigest()
    if digest != SHA256:
        raise ArithmeticError(
            f"The Gumbel table computed here has SHA-256 {digest}, not the published {SHA256}."
        )
    return tuple(table)


def __getattr__(name: str) -> tuple[int, ...]:
    if name == "THRESHOLDS":
        return _thresholds()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def invert(uniform: int) -> int:
    """K for one draw of `BITS` uniform bits: the reference that the shared table search must equal."""
    return LOW + bisect_right(_thresholds(), uniform)


@cache
def _high_parts() -> NDArray[np.uint64]:
    """The upper 64 bits of every threshold."""
    return np.array([threshold >> BITS - 64 for threshold in _thresholds()], np.uint64)


def invert_all(draws: bytes) -> NDArray[np.int64]:
    """`invert` of many draws, each of `BITS` // 8 big-endian bytes, in the clear; int64, one for each.

    The upper 64 bits decide but where they are those of a threshold.
    """
    raw = np.frombuffer(draws, np.uint8).reshape(-1, BITS // 8)
    upper = np.ascontiguousarray(raw[:, :8]).view(">u8")[:, 0].astype(np.uint64)
    table = _high_parts()
    below = np.searchsorted(table, upper, side="left")
    for place in np.flatnonzero(table.take(below, mode="clip") == upper).tolist():
        below[place] = bisect_right(_thresholds(), int.from_bytes(raw[place].tobytes(), "big"))
    return below.astype(np.int64) + LOW
