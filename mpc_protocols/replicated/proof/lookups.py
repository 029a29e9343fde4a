"""Lookups as one statement: sums over draws of a bilinear form of two vectors of bits, with a coefficient for every draw.

Problem. In draw c, sum_hl o_h(c) i_l(c) T_b(h, l) = w_b(c) for every output bit b of a public table T; h has v bits. After the
coin, with mu_b in GF(2^64), M(h, l) = sum_b mu_b T_b(h, l) and a functional L of rows of draws,

    X(u) = sum_h eq_h(u) o_h        Y(u) = sum_h eq_h(u) sum_l M(h, l) i_l        P(u) = L(X(u) Y(u))
    sum_h P(h) = sum_b mu_b L(w_b)                                                  if all outputs of all draws are right

so the prover says P on {0, 1, inf}^v but at 0, which the sum gives. At a point rho, the entries o_h ARE the coordinates of
X(rho) (`basis`; entries that are missing are rows of zeros), and Y(rho) = sum_l m_l i_l with public m_l: one product of elements
a draw is left, where multiplied out there are 2^t bits.

What the prover says of P in the cube is held by its sum alone. So P and X(rho) Y(rho) are multiplied by gamma, the challenge's
factor, which in stages nothing else is: without it what is said here could make up for wrong products of gates, two of one column
in each segment. It is drawn after P is said, so gates' part and gamma times this one add up to the truth for all gamma but one.

Soundness. Let a bit be wrong. L of that output's errors is 0 only with the probability of `functional`, and if it is not, the sum
over b is 0 only with 2^-64. Each draw has a coefficient of its own in L, so errors that are alike in two draws do not cancel, and
each output one in mu. P is that of all lookups whose h has v bits, with functionals of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import Reader
from mpc_protocols.replicated.proof.basis import Challenge, multiplication
from mpc_protocols.replicated.proof.field import BITS, BLOCK, ONE, Blocks, dots, multiply, subfield, write
from mpc_protocols.replicated.proof.functional import Functional
from mpc_protocols.replicated.proof.grid import cube, grid_weights
from mpc_protocols.replicated.proof.transcript import Lookup

Matrix = NDArray[np.float32]
"""Of zeros and ones. Sums of fewer than 2^24 of them are exact, whatever their order."""
Pieces = Sequence[tuple[Functional, slice]]
"""The functional of every piece of a row of draws."""


class Combined:
    """The tables of a batch's lookups with one coefficient for every output."""

    def __init__(self, lookups: Sequence[Lookup], stream: Reader, variables: int) -> None:
        """stream: of the coin that follows the messages of the lookups, alike at all parties."""
        degree = 1 << variables
        self._powers = subfield(degree).powers
        self._tables: list[tuple[list[int], Matrix]] = []
        """Of every lookup: mu, and the coordinates of M, (degree, outer, inner)."""
        for of in lookups:
            outer, inner, outputs = of.table.shape
            drawn = np.empty((outputs, degree // 8), np.uint8)
            stream.fill(drawn)
            bits = np.unpackbits(drawn, axis=1, bitorder="little").astype(np.float32)
            factors = [subfield(degree).element(_integer(row)) for row in drawn]
            combined = _odd(bits.T @ of.table.reshape(-1, outputs).T.astype(np.float32))
            self._tables.append((factors, combined.reshape(degree, outer, inner)))

    def claimed(self, number: int, outputs: Words, functionals: Pieces) -> int:
        """sum_b mu_b L(w_b) of a lookup."""
        found = np.zeros((len(outputs), BLOCK), np.uint8)
        for functional, piece in functionals:
            found ^= functional.of(np.ascontiguousarray(outputs[:, piece]))
        return dots(self._tables[number][0], found[np.newaxis])[0]

    def values(self, number: int, of: Lookup, functionals: Pieces) -> Blocks:
        """P of a lookup on the grid, (3^v, 16)."""
        points, inner = 3**of.outer_bits, len(of.y)
        tables = _expanded(self._tables[number][1].swapaxes(0, 1), of.outer_bits)  # (points, degree, inner)
        found = np.zeros((points, inner, BLOCK), np.uint8)
        for functional, piece in functionals:
            entries, draws = of.x[:, piece], np.ascontiguousarray(of.y[:, piece])
            room = np.empty_like(draws)
            for point, members in enumerate(_members(of.outer_bits)):
                row = np.bitwise_xor.reduce(entries[members], axis=0)
                found[point] ^= functional.of(np.bitwise_and(draws, row, out=room))
        of_power = _odd(tables @ np.unpackbits(found, axis=2).astype(np.float32))
        return _weighted(self._powers, np.packbits(of_power.astype(np.uint8), axis=2))

    def columns(self, number: int, of: Lookup, point: Challenge) -> tuple[Words, Words]:
        """X and gamma Y at a challenge, (rows, 1, words) each; of shares, the shares."""
        rows, (outer, words) = len(point.rows), of.x.shape
        x = np.zeros((rows, 1, words), np.uint64)
        x[:outer, 0] = of.x
        # element (h, k) of `products`: gamma eq_h(rho) times the power k of the subfield's generator, in coordinates
        generator = multiplication(point.rows, self._powers[1]).astype(np.float32)
        power, products = point.times_factor.astype(np.float32), []
        for _ in self._powers:
            products.append(power[:outer])
            power = _odd(power @ generator)
        table = self._tables[number][1]
        coordinates = (
            _odd(table.reshape(-1, table.shape[2]).T @ np.concatenate(products)) > 0
        )  # (inner, rows)
        y = np.zeros_like(x)
        for row in range(rows):
            y[row, 0] = np.bitwise_xor.reduce(of.y[coordinates[:, row]], axis=0)
        return x, y


def completed(claimed: int, values: Blocks, outer_bits: int) -> Blocks:
    """P on the grid from its values but the first, and what those in the cube sum up to; of shares, the shares."""
    others = np.bitwise_xor.reduce(values[cube(outer_bits)[1:] - 1], axis=0)
    first = others ^ np.frombuffer(write(claimed), np.uint8)
    return np.concatenate([first[np.newaxis], values])


def weights_at(challenge: Challenge, outer_bits: int) -> list[int]:
    """What each value on the grid of v variables contributes to gamma P at the challenge, whose first variables h lacks."""
    missing = len(challenge.point) - outer_bits
    scale = challenge.factor
    for u in challenge.point[:missing]:
        scale = multiply(scale, multiply(ONE ^ u, ONE ^ u))
    return [multiply(scale, weight) for weight in grid_weights(challenge.point[missing:])]


def _integer(row: NDArray[np.uint8]) -> int:
    return int.from_bytes(row.tobytes(), "little")


def _odd(sums: Matrix) -> Matrix:
    """Sums of zeros and ones modulo 2."""
    return (sums.astype(np.int32) & 1).astype(np.float32)


def _members(variables: int) -> Iterator[list[int]]:
    """Of every point of the grid, the entries whose sum is there."""
    points = [[0]]
    for _ in range(variables):
        points = [
            [2 * entry + bit for entry in entries for bit in bits]
            for entries in points
            for bits in ((0,), (1,), (0, 1))
        ]
    return iter(points)


def _expanded(table: Matrix, variables: int) -> Matrix:
    """Bits (2^v, ..) at all points of the grid."""
    return np.stack([_odd(table[members].sum(axis=0)) for members in _members(variables)])


def _weighted(elements: Sequence[int], blocks: Blocks) -> Blocks:
    """Sums of elements times blocks, (n, elements, 16) to (n, 16): as `dots`, for many n."""
    bits = np.frombuffer(b"".join(of.to_bytes(BITS, "little") for of in elements), np.bool_).reshape(-1, BITS)
    words = np.ascontiguousarray(blocks.swapaxes(0, 1)).view(np.uint64)
    total = np.zeros((blocks.shape[0], 2 * BITS), np.uint8)
    for place in range(BITS):
        chosen = np.bitwise_xor.reduce(words[bits[:, place]], axis=0)
        total[:, place : place + BITS] ^= np.unpackbits(chosen.view(np.uint8), axis=1)
    for _ in range(2):  # x^128 = x^7 + x^2 + x + 1
        high = total[:, BITS:].copy()
        total[:, BITS:] = 0
        for tap in (0, 1, 2, 7):
            total[:, tap : tap + BITS] ^= high
    return np.packbits(total[:, :BITS], axis=1)
