"""A point at which folding costs nothing, and multiplication by a field element in its coordinates.

At a point rho of GF(2^n)^v, n = 2^v, at which the n weights eq_r(rho) are a basis of GF(2^n) over GF(2), the
n rows of a batch ARE the coordinates of the folded vector sum_r eq_r(rho) x_r: column by column, one element
each. A random point is such a one with probability 0.29; others are drawn anew. Times t is then a matrix of n
x n bits, applied to all columns at once by the method of the Four Russians: 36 XORs and copies a bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products.functional import PIECE, pieces
from mpc_protocols.backends.replicated.proof.bit_products.grid import cube_weights, grid_weights
from mpc_protocols.backends.replicated.proof.field import coordinates, independent, multiply, subfield
from mpc_protocols.backends.replicated.proof.kernel.layout import ROWS
from mpc_protocols.backends.replicated.proof.kernel.library import kernel
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import Reader

_TOGETHER = 4  # rows whose sums are tabulated


@dataclass(frozen=True)
class Challenge:
    """A point rho and a factor t that is not zero, with what follows from them.

    rows: the basis eq_r(rho). weights: of the grid at rho. times_factor: multiplication by t in the
    coordinates of rho.
    """

    point: list[int]
    rows: list[int]
    factor: int
    weights: list[int]
    times_factor: NDArray[np.bool_]


def challenge(stream: Reader, variables: int) -> Challenge:
    """The challenge that a coin's stream gives, alike at all parties."""
    while True:
        point = [random_element(stream, variables) for _ in range(variables)]
        rows = cube_weights(point)
        if independent(rows):
            break
    factor = random_factor(stream, variables)
    return Challenge(point, rows, factor, grid_weights(point), multiplication(rows, factor))


def random_element(stream: Reader, variables: int) -> int:
    """A uniform element of the field with 2^v coordinates."""
    degree = 1 << variables
    return subfield(degree).element(int(stream.draw(1, np.uint64)[0]) & (1 << degree) - 1)


def random_factor(stream: Reader, variables: int) -> int:
    """A uniform element that is not zero."""
    while not (factor := random_element(stream, variables)):
        pass
    return factor


def multiplication(rows: list[int], factor: int) -> NDArray[np.bool_]:
    """Multiplication by an element in the coordinates of a basis: row q holds those of the factor times the
    basis' element q."""
    return coordinates(rows, [multiply(factor, row) for row in rows])


def plus_times(rows: Words, matrix: NDArray[np.bool_], factors: Words) -> Words:
    """Rows plus factors times an element given as `Challenge.times_factor`, all (n, entries, words): row r of
    the product is the sum over q of matrix[q, r] factors[q]."""
    count = len(rows)
    if count == ROWS and (compiled := kernel(factors.size)):
        total: Words = rows.copy()
        compiled.add_times(factors.reshape(count, -1), matrix, total.reshape(count, -1))
        return total
    group = min(_TOGETHER, count)
    chosen: NDArray[np.intp] = np.zeros((count // group, count), np.intp)
    for b in range(group):
        chosen |= matrix[b::group].astype(np.intp) << b
    result: Words = rows.copy()
    flat, out = factors.reshape(count, -1), result.reshape(count, -1)
    width = min(PIECE, flat.shape[1])
    room, places = np.zeros((1 << group, width), np.uint64), np.empty((count, width), np.uint64)
    for piece in pieces(flat.shape[1]):
        sums, picked = room[:, : piece.stop - piece.start], places[:, : piece.stop - piece.start]
        for number, picks in enumerate(chosen):
            for b in range(group):
                np.bitwise_xor(sums[: 1 << b], flat[number * group + b, piece], out=sums[1 << b : 2 << b])
            if picked.shape == places.shape:
                out[:, piece] ^= sums.take(picks, axis=0, out=picked, mode="clip")
            else:
                out[:, piece] ^= sums[picks]
    return result
