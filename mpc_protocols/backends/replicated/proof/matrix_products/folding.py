"""Inner products of 2^v rows of ring elements as a polynomial in v variables, and rows folded at a point.

With rows x_r, y_r of m elements, r in {0,1}^v (the first variable is the highest bit of r), and

    X(u) = sum_r eq_r(u) x_r        C(u) = <X(u), Y(u)>        eq_r(u) = prod_j (u_j r_j + (1 - u_j)(1 - r_j))

C has degree 2 in each variable and is determined by its values on {0, 1, inf}^v, infinity being the
coefficient of the square: p(u) = p(0) + u (p(1) - p(0)) + (u^2 - u) p(inf). These are inner products of sums
and differences of rows, 3^v of them, which take (3/2)^v as many products of elements as the rows have.
Source: Boneh et al. 2019; grids with infinity: Toom, Karatsuba.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mpc_protocols.backends.replicated.proof.matrix_products.galois import RING, ROWS, GaloisRing, Small
from mpc_protocols.engine.bitwise.bitslice import Elements

MAX_VARIABLES = 4
"""At 100 Mbit/s one more costs more time for products than it saves for bytes."""


def grid(x: Elements, y: Elements) -> Iterator[tuple[Elements, Elements]]:
    """X(u) and Y(u) at the points of {0, 1, inf}^v in order; each pair until the next is asked for. x, y:
    (2^v, m, d)."""
    rooms: list[tuple[Elements, Elements]] = []
    while len(x) >> len(rooms) > 1:
        half = len(x) >> len(rooms) + 1
        rooms.append((np.empty_like(x[:half]), np.empty_like(y[:half])))
    return _grid(x, y, rooms)


def _grid(
    x: Elements, y: Elements, rooms: Sequence[tuple[Elements, Elements]]
) -> Iterator[tuple[Elements, Elements]]:
    if len(x) == 1:
        yield x[0], y[0]
        return
    half = len(x) // 2
    yield from _grid(x[:half], y[:half], rooms[1:])
    yield from _grid(x[half:], y[half:], rooms[1:])
    differences = [
        np.subtract(of[half:], of[:half], out=room) for of, room in zip((x, y), rooms[0], strict=True)
    ]
    yield from _grid(differences[0], differences[1], rooms[1:])


def folded(ring: GaloisRing, rows: Elements, point: Sequence[Small]) -> Elements:
    """X(u) at a point of lifts: (2^v, m, d) to (m, d)."""
    width = rows.shape[1]
    found = np.empty((width, ring.degree), RING)
    factors = [ring.times(u) for u in point]
    step = max(1, 2 * ROWS // len(rows))
    for start in range(0, width, step):
        piece = rows[:, start : start + step]
        for factor in factors:
            low, high = np.split(piece, 2)
            change = ring.combine((high - low).reshape(-1, ring.degree), factor)
            piece = low + change.reshape(low.shape)
        found[start : start + step] = piece[0]
    return found


def at(ring: GaloisRing, values: Elements, point: Sequence[Small]) -> Elements:
    """A polynomial of degree 2 in each variable at a point of lifts, from its values on the grid: (3^v, d) to
    (d,)."""
    for u in point:
        zero, one, infinity = values.reshape(3, -1, ring.degree)
        square = u @ ring.times(u)
        values = zero + ring.scaled(one - zero, u) + ring.scaled(infinity, square - u)
    found: Elements = values.reshape(ring.degree)
    return found


def multilinear_at(ring: GaloisRing, values: Elements, point: Sequence[Small]) -> Elements:
    """A polynomial of degree 1 in each variable at a point, from its values on the cube: (2^v, d) to (d,)."""
    for u in point:
        zero, one = values.reshape(2, -1, ring.degree)
        values = zero + ring.scaled(one - zero, u)
    found: Elements = values.reshape(ring.degree)
    return found
