"""The Galois ring GR(2^K, d) = Z_2^K[z] / (f), f monic and irreducible modulo 2 of degree d: what GF(2^d) is
to GF(2). K is 16.

An element is a row of d coefficients of z^0 .. z^(d-1), uint16, which wrap. Lifts, the elements with
coefficients 0 and 1, are one of each class modulo 2, so they differ pairwise by units. What holds for
polynomials over a field holds here for points among the lifts: a polynomial that is not zero, of total degree
D, vanishes at a uniform point of lifts with probability at most D / 2^d. For divide it by the largest power
2^e of two that divides all coefficients: where the original vanishes, the quotient is 0 modulo 2^(K-e), so
modulo 2, and there it is a polynomial over GF(2^d) that is not zero.

Everything long is a product of matrices of floats that is exact: elements have K bits, lifts and what they
multiply with few (`combine`), and of two full elements the sums over ROWS rows stay below 2^53 (`Products`).
Local; running times depend on sizes only.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.prg import Reader

RING: Final = np.uint16
"""Z_2^K: of coefficients, and of the matrices whose products are proved."""
_BITS: Final = 16
_TAPS = {8: (0, 1, 3, 4), 64: (0, 1, 3, 4)}
"""f = z^d + the sum of z^j over these: irreducible modulo 2 for both degrees."""
ROWS = 512
"""Rows converted to floats at a time: four such arrays stay in the second-level cache."""
_EXACT, _EXACT_SINGLE = 53, 24
"""Integers up to 2^53 are exact in float64, up to 2^24 in float32."""
Small = NDArray[np.int64]
"""Coefficients as small signed integers."""


class GaloisRing:
    """Elements of degree d over Z_2^16."""

    def __init__(self, degree: int) -> None:
        """degree: 64, or 8 to see in tests how often a forgery passes."""
        if degree not in _TAPS:
            raise ValueError(f"No Galois ring of degree {degree} is known here.")
        self.degree = degree
        self._powers: Small = np.zeros((2 * degree - 1, degree), np.int64)  # z^0 .. z^(2d-2)
        self._powers[:degree] = np.eye(degree, dtype=np.int64)
        for k in range(degree, 2 * degree - 1):
            self._powers[k, 1:] = self._powers[k - 1, :-1]
            self._powers[k, list(_TAPS[degree])] -= self._powers[k - 1, -1]

    def lifts(self, stream: Reader, count: int) -> Small:
        """The next uniform lifts of a stream: (count, d), 0 and 1."""
        drawn = stream.draw((count, self.degree // 8), np.uint8)
        lifts: Small = np.unpackbits(drawn, axis=1).astype(np.int64)
        return lifts

    def unit_lift(self, stream: Reader) -> Small:
        """The next lift of a stream that is not 0: (d,)."""
        while True:
            [lift] = self.lifts(stream, 1)
            if lift.any():
                found: Small = lift
                return found

    def times(self, element: NDArray[np.integer]) -> Small:
        """Multiplication by an element as a matrix: row j is z^j times it. Small if the element is a lift."""
        degree = self.degree
        shifted = np.zeros((degree, 2 * degree), np.int64)
        shifted[:, :degree] = element
        found: Small = _skewed(shifted) @ self._powers
        return found

    def scaled(self, elements: Elements, factor: NDArray[np.integer]) -> Elements:
        """A few elements (.., d) times any element."""
        matrix = self.times(factor).astype(np.uint64)
        found: Elements = (elements.astype(np.uint64) @ matrix).astype(RING)
        return found

    def combine(
        self, values: Elements, factors: NDArray[np.integer], out: Elements | None = None
    ) -> Elements:
        """values @ factors modulo 2^K: (n, w) of ring integers and (w, d) of small ones to (n, d). out: where
        to put it."""
        bound = int(np.abs(factors).sum(axis=0).max(initial=0)) << _BITS - 1
        if bound > 1 << _EXACT:
            raise ValueError(f"Products of up to {bound} are too large to be exact in floats.")
        floating, whole = (np.float32, np.int32) if bound <= 1 << _EXACT_SINGLE else (np.float64, np.int64)
        found = np.empty((len(values), factors.shape[1]), RING) if out is None else out
        floats, signed = factors.astype(floating), values.view(np.int16)
        rows = min(ROWS, len(values))
        converted, multiplied = (np.empty((rows, width), floating) for width in factors.shape)
        for start in range(0, len(values), ROWS):
            piece = signed[start : start + ROWS]
            converted[: len(piece)] = piece
            of = np.matmul(converted[: len(piece)], floats, out=multiplied[: len(piece)])
            found[start : start + ROWS] = of.astype(whole)
        return found

    def plus_times(self, x: Elements, y: Elements, lift: Small) -> Elements:
        """x + y times a lift, (n, d) each."""
        found = self.combine(y, self.times(lift))
        found += x
        return found

    def reduced(self, gram: NDArray[np.integer]) -> Elements:
        """From the matrix of x^T y, coefficient by coefficient, to the sum of the products: (.., d, d) to
        (.., d)."""
        degree = self.degree
        padded = np.zeros((*gram.shape[:-1], 2 * degree), np.uint64)
        padded[..., :degree] = gram
        coefficients = _skewed(padded).sum(axis=-2, dtype=np.uint64)
        found: Elements = (coefficients @ self._powers.astype(np.uint64)).astype(RING)
        return found


def _skewed(rows: NDArray[np.integer]) -> NDArray[np.integer]:
    """(.., d, 2d) to (.., d, 2d - 1) with row j moved j places to the right; the second half of each row is
    0."""
    *more, degree, width = rows.shape
    flat = rows.reshape(*more, degree * width)[..., : degree * (width - 1)]
    return flat.reshape(*more, degree, width - 1)


class Products:
    """Sums of products of elements, in memory of its own that is used again."""

    def __init__(self, ring: GaloisRing) -> None:
        self._ring = ring
        self._x, self._y = np.empty((2, ROWS, ring.degree), np.float64)

    def gram(self, x: Elements, y: Elements) -> NDArray[np.uint64]:
        """x^T y modulo 2^64 of up to `ROWS` elements each: (n, d) twice to (d, d). Right modulo 2^K."""
        left, right = self._x[: len(x)], self._y[: len(y)]
        left[...], right[...] = x.view(np.int16), y.view(np.int16)
        found: NDArray[np.uint64] = (left.T @ right).astype(np.int64).view(np.uint64)
        return found

    def dot(self, x: Elements, y: Elements) -> Elements:
        """The sum of x_r y_r: (n, d) twice to (d,)."""
        total = np.zeros((self._ring.degree, self._ring.degree), np.uint64)
        for start in range(0, len(x), ROWS):
            total += self.gram(x[start : start + ROWS], y[start : start + ROWS])
        return self._ring.reduced(total)
