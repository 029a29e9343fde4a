"""Halving a sum of products of field elements: what stands in the segments of a row becomes one segment.

Segments x_q, q in {0,1}^h, of columns of field elements are the values on the cube of X(w) = sum_q eq_q(w)
x_q. With a bilinear form L(X Y) of columns, alike for all segments, and masks D and E that do not depend on
w,

    G(w, t) = L((X(w) + t D) (Y(w) + t E))
            = sum_g c_g(w) L(X(g) Y(g))  +  t sum_q eq_q(w) L(x_q E + D y_q)  +  t^2 L(D E)          g in {0, 1, inf}^h

(`grid`). A prover says it by its values at t = 1 in the cube, at t = 0 outside, and the last coefficient: 3^h
+ 1 elements beside those on the cube at t = 0, which the verifiers have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products.basis import (
    Challenge,
    multiplication,
    plus_times,
    random_element,
    random_factor,
)
from mpc_protocols.backends.replicated.proof.bit_products.grid import cube, cube_weights, grid_weights
from mpc_protocols.backends.replicated.proof.field import multiply
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import Reader


@dataclass(frozen=True)
class Fold:
    """A point of the segments' variables and a factor t that is not zero, with their multiplications as
    matrices."""

    point: list[int]
    factor: int
    matrices: list[NDArray[np.bool_]]
    times_factor: NDArray[np.bool_]

    @classmethod
    def at_once(cls, challenge: Challenge) -> Fold:
        """Of one segment, with the factor of the challenge."""
        return cls([], challenge.factor, [], challenge.times_factor)

    @classmethod
    def draw(cls, stream: Reader, challenge: Challenge, halvings: int) -> Fold:
        """As a coin's stream gives it, in the coordinates of the challenge."""
        variables = len(challenge.point)
        point = [random_element(stream, variables) for _ in range(halvings)]
        factor = random_factor(stream, variables)
        rows = challenge.rows
        return cls(point, factor, [multiplication(rows, u) for u in point], multiplication(rows, factor))

    def value_of(self, in_cube: list[int], others: list[int]) -> int:
        """G at the point and t. in_cube: at t = 0. others: outside the cube at t = 0, in it at t = 1, and L(D
        E)."""
        halvings = len(self.point)
        inside, at_zero = set(cube(halvings).tolist()), 0
        *once, square = others[3**halvings - len(in_cube) :]
        of_cube, of_beyond = iter(in_cube), iter(others)
        for place, weight in enumerate(grid_weights(self.point)):
            at_zero ^= multiply(weight, next(of_cube if place in inside else of_beyond))
        mixed = 0
        for weight, zero, one in zip(cube_weights(self.point), in_cube, once, strict=True):
            mixed ^= multiply(weight, zero ^ one ^ square)
        return at_zero ^ multiply(self.factor, mixed ^ multiply(self.factor, square))


def segment(rows: Words, number: int, segments: int) -> Words:
    """One segment of rows (.., words): a view."""
    width = rows.shape[-1] // segments
    return rows[..., number * width : (number + 1) * width]


def summed(rows: Words, members: Sequence[int], segments: int) -> Words:
    """The sum of some segments of rows; of a single one a view."""
    total = segment(rows, members[0], segments)
    for number in members[1:]:
        total = total ^ segment(rows, number, segments)
    return total


def folded(rows: Words, matrices: Sequence[NDArray[np.bool_]]) -> Words:
    """Rows (n, entries, 2^h words) at a point of h variables given as multiplications: (n, entries, words).

    The first variable is that of the halves, and so on: each time low + u (low + high).
    """
    for matrix in matrices:
        low, high = segment(rows, 0, 2), segment(rows, 1, 2)
        rows = plus_times(low, matrix, low ^ high)
    return rows
