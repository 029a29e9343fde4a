"""The products of rows on the grid {0, 1, inf}^v, which determine a polynomial of degree 2 in each of v
variables.

2^v rows of bits x_r are the values on the cube of a multilinear X(u) = sum_r eq_r(u) x_r. A linear functional
L of the product P(u) = L(X(u) Y(u)) has degree 2 in each variable, so it is known from its values where each
variable is 0, 1 or infinity (there: the coefficient of u^2). Those are products of sums of rows: x_0, x_1 and
x_0 + x_1 in each variable (Karatsuba), 3^v in all.

    P(u) = (1 + u) P(0) + u P(1) + (u^2 + u) P(inf)         in one variable; tensor products in several

Points of the grid are numbered with the first variable as the highest digit; so are rows by their bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products.functional import Functional
from mpc_protocols.backends.replicated.proof.field import ONE, Blocks, multiply
from mpc_protocols.backends.replicated.proof.kernel.layout import VARIABLES
from mpc_protocols.backends.replicated.proof.kernel.library import kernel
from mpc_protocols.engine.bitwise.bitslice import Words

_OUTER = 3
"""Variables that are expanded first, so that what is expanded at a time stays in cache."""
_SUMMED = ((0,), (1,), (0, 1))
"""In one variable, at each of its points."""


class Grid:
    """Products at all points of the grid of v variables, with the memory that this takes."""

    def __init__(self, variables: int, entries: int, words: int) -> None:
        """For rows of so many entries and words; narrower ones use a part of the memory."""
        self.variables = variables
        self._outer = max(0, variables - _OUTER)
        self._inner = variables - self._outer
        self._size = entries * words
        self._wide = np.empty((2, 3**self._outer << self._inner, self._size), np.uint64)
        self._narrow = np.empty((2, 3**self._inner, self._size), np.uint64)

    def add_products(self, x: Words, y: Words, functional: Functional, into: Blocks) -> None:
        """Add L(X Y) at all points to `into`, (3^v, 16). x, y: rows (2^v, entries, words), products summed
        over entries."""
        if self.variables == VARIABLES and (compiled := kernel(x.size)):
            compiled.add_products(x, y, compiled.powers(functional.point, x.shape[2]), into)
            return
        _, entries, words = x.shape
        width, block = entries * words, 3**self._inner
        wide = self._wide.reshape(2, -1)[:, : (3**self._outer << self._inner) * width]
        narrow = self._narrow.reshape(2, -1)[:, : block * width]
        xs, ys = (
            _expand(of.reshape(*(2,) * self._outer, -1, entries, words), self._outer, room)
            for of, room in zip((x, y), wide, strict=True)
        )
        for number, (left, right) in enumerate(zip(xs, ys, strict=True)):
            both, other = (
                _expand(of.reshape(*(2,) * self._inner, entries, words), self._inner, room)
                for of, room in zip((left, right), narrow, strict=True)
            )
            both &= other
            if entries > 1:
                both = np.bitwise_xor.reduce(both.reshape(block, entries, words), axis=1)
            into[number * block : (number + 1) * block] ^= functional.of(both)


def _expand(rows: Words, variables: int, room: Words) -> Words:
    """Rows (2, .., 2, ..) at all points of the grid, (3^v, values of a row), in the memory given."""
    points = room.reshape(*(3,) * variables, *rows.shape[variables:])
    points[(slice(2),) * variables] = rows
    for axis in range(variables):
        low, high, both = (
            points[tuple([slice(3)] * axis + [at] + [slice(2)] * (variables - axis - 1))] for at in range(3)
        )
        np.bitwise_xor(low, high, out=both)
    return points.reshape(3**variables, -1)


def cube(variables: int) -> NDArray[np.intp]:
    """The points of the grid that are points of the cube, in the order of the rows."""
    points = np.zeros(1, np.intp)
    for _ in range(variables):
        points = (3 * points[:, np.newaxis] + np.arange(2)).reshape(-1)
    return points


def members(variables: int) -> list[list[int]]:
    """Of every point of the grid, the rows whose sum is there: one in the cube, several outside."""
    points = [[0]]
    for _ in range(variables):
        points = [[2 * row + bit for row in rows for bit in bits] for rows in points for bits in _SUMMED]
    return points


def grid_weights(point: list[int]) -> list[int]:
    """What each value on the grid contributes to that at a point of the field, 3^v elements."""
    weights = [ONE]
    for u in point:
        longer = []
        for weight in weights:
            once = multiply(weight, u)
            longer += [weight ^ once, once, multiply(once, u) ^ once]
        weights = longer
    return weights


def cube_weights(point: list[int]) -> list[int]:
    """eq_r(point) of every row, 2^v elements."""
    weights = [ONE]
    for u in point:
        weights = [part for weight in weights for part in _divided(weight, u)]
    return weights


def _divided(weight: int, u: int) -> tuple[int, int]:
    """(1 + u) and u times a weight."""
    times = multiply(weight, u)
    return weight ^ times, times
