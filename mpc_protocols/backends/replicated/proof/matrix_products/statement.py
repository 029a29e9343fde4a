"""Products of shared matrices as one party holds them until they are proved, and what coins make of them.

A sent product is X Y = W in one of two forms, where the two verifiers hold additive shares of X, Y and W:

    table    W = X^T Y                      one cell for each pair of columns          (n, a), (n, b) to (a, b)
    rows     W_r,jk = X_rj Y_rk             the same in every row by itself            (n, a), (n, b) to (n, a b)

With uniform lifts s and t (`galois`) both become sum_r X'_r Y'_r = w for elements X'_r, Y'_r of the Galois
ring:

    table    X'_r = sum_j s_j X_rj          Y'_r = sum_k t_k Y_rk         w = sum_jk s_j t_k W_jk
    rows     X'_r = sum_j s_rj X_rj         Y'_r = sum_k t_k Y_rk         w = sum_rjk s_rj t_k W_r,jk

Were any cell of W wrong, the difference of both sides would be a polynomial in s and t that is not zero, of
degree 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.matrix_products.galois import (
    RING,
    ROWS,
    GaloisRing,
    Products,
    Small,
)
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.prg import Reader
from mpc_protocols.vertical.blas import transposed_product


class Combined(NamedTuple):
    """X' and Y' of a party's two components, (rows, d) each."""

    own_x: Elements
    own_y: Elements
    next_x: Elements
    next_y: Elements


@dataclass(frozen=True)
class Coefficients:
    """What a coin says of one statement. x: see `Statement.draw`; y: the lifts t, (b, d)."""

    x: NDArray[np.integer]
    y: Small


@dataclass(frozen=True)
class Statement(ABC):
    """One message of each party, as this party holds it in its three roles.

    blocks: its shares of X and Y, rows by rows. left, right: its share of W as the left and as the right
    verifier, the latter without the product of its own components, which follows from X' and Y'.
    """

    blocks: Sequence[tuple[RingShare, RingShare]]
    left: Elements
    right: Elements

    @property
    def rows(self) -> int:
        """n."""
        return sum(len(x) for x, _ in self.blocks)

    @property
    def columns(self) -> tuple[int, int]:
        """a and b."""
        x, y = self.blocks[0]
        return x.shape[1], y.shape[1]

    @property
    def public(self) -> str:
        """Its form and sizes."""
        return f"{type(self).__name__} {self.rows} {self.columns}"

    @abstractmethod
    def draw(self, ring: GaloisRing, stream: Reader) -> Coefficients:
        """Coefficients from a coin's stream."""

    @abstractmethod
    def combine(self, ring: GaloisRing, coefficients: Coefficients, out: Combined) -> None:
        """Write X' and Y', of the rows of this statement."""

    @abstractmethod
    def claim(self, ring: GaloisRing, coefficients: Coefficients, share: Elements) -> Elements:
        """w of a share of W: (d,)."""

    def _pieces(self) -> Iterator[tuple[slice, RingShare, RingShare]]:
        """The blocks and their places."""
        start = 0
        for x, y in self.blocks:
            yield slice(start, start + len(x)), x, y
            start += len(x)


class Table(Statement):
    """W = X^T Y."""

    def draw(self, ring: GaloisRing, stream: Reader) -> Coefficients:
        """x: the lifts s, (a, d)."""
        a, b = self.columns
        return Coefficients(ring.lifts(stream, a), ring.lifts(stream, b))

    def combine(self, ring: GaloisRing, coefficients: Coefficients, out: Combined) -> None:
        for piece, x, y in self._pieces():
            ring.combine(x.own, coefficients.x, out.own_x[piece])
            ring.combine(y.own, coefficients.y, out.own_y[piece])
            ring.combine(x.next, coefficients.x, out.next_x[piece])
            ring.combine(y.next, coefficients.y, out.next_y[piece])

    def claim(self, ring: GaloisRing, coefficients: Coefficients, share: Elements) -> Elements:
        return Products(ring).dot(ring.combine(share, coefficients.y), coefficients.x.astype(RING))


class Rows(Statement):
    """W_r,jk = X_rj Y_rk."""

    def draw(self, ring: GaloisRing, stream: Reader) -> Coefficients:
        """x: the lifts s_rj, 8 coefficients a byte, (n, a, d / 8): coefficient 0 is the highest bit of the
        first."""
        a, b = self.columns
        drawn = stream.draw((self.rows, a, ring.degree // 8), np.uint8)
        return Coefficients(drawn, ring.lifts(stream, b))

    def combine(self, ring: GaloisRing, coefficients: Coefficients, out: Combined) -> None:
        for piece, x, y in self._pieces():
            ring.combine(y.own, coefficients.y, out.own_y[piece])
            ring.combine(y.next, coefficients.y, out.next_y[piece])
            for into, of in ((out.own_x, x.own), (out.next_x, x.next)):
                for start in range(0, len(of), ROWS):
                    values = of[start : start + ROWS]
                    places = slice(piece.start + start, piece.start + start + len(values))
                    for j, lifts in enumerate(_lifts(ring, coefficients.x[places]).swapaxes(0, 1)):
                        into[places] += lifts * values[:, j, np.newaxis]

    def claim(self, ring: GaloisRing, coefficients: Coefficients, share: Elements) -> Elements:
        b = self.columns[1]
        total = np.zeros((b, ring.degree), RING)
        for start in range(0, len(share), ROWS):
            piece = slice(start, start + ROWS)
            lifts = _lifts(ring, coefficients.x[piece]).reshape(-1, ring.degree)
            total += transposed_product(share[piece].reshape(-1, b), lifts, 1)
        return Products(ring).dot(total, coefficients.y.astype(RING))


def _lifts(ring: GaloisRing, packed: NDArray[np.integer]) -> Elements:
    """(.., d / 8) bytes to (.., d) coefficients."""
    return np.unpackbits(packed.astype(np.uint8, copy=False), axis=-1).astype(RING)
