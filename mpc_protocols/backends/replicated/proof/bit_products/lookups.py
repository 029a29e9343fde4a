"""Lookups as one statement: sums over draws of a bilinear form of two vectors of bits, with a coefficient for
every draw.

Problem. In draw c, sum_hl o_h(c) i_l(c) T_b(h, l) = w_b(c) for every output bit b of a public table T; h has
v bits. After the coin, with mu_b in GF(2^64), M(h, l) = sum_b mu_b T_b(h, l) and a functional L of rows of
draws,

    X(u) = sum_h eq_h(u) o_h        Y(u) = sum_h eq_h(u) sum_l M(h, l) i_l        P(u) = L(X(u) Y(u))
    sum_h P(h) = sum_b mu_b L(w_b)                                                  if all outputs of all draws are right

so the prover says P on {0, 1, inf}^v but at 0, which the sum gives. At a point rho, the entries o_h ARE the
coordinates of X(rho) (`basis`; entries that are missing are rows of zeros), and Y(rho) = sum_l m_l i_l with
public m_l: one product of elements a draw is left, where multiplied out there are 2^t bits.

P is not added to that of the gates before a second coin has drawn its weight: a prover could shift an error
of the gates to values of P that sum up to 0 in the cube.

Soundness. Let a bit be wrong. L of that output's errors is 0 only with the probability of `functional`, and
if it is not, the sum over b is 0 only with 2^-64. Each draw has a coefficient of its own in L, so errors that
are alike in two draws do not cancel, and each output one in mu. P is that of all lookups whose h has v bits,
with functionals of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.bit_products.basis import (
    Challenge,
    multiplication,
    random_element,
)
from mpc_protocols.backends.replicated.proof.bit_products.functional import Functional
from mpc_protocols.backends.replicated.proof.bit_products.grid import cube, grid_weights, members
from mpc_protocols.backends.replicated.proof.field import (
    BLOCK,
    ONE,
    Blocks,
    dots,
    multiply,
    subfield,
    write,
    write_all,
)
from mpc_protocols.backends.replicated.proof.transcript import Lookup
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import Reader

_ONE = np.uint64(1)
Pieces = Sequence[tuple[Functional, slice]]
"""The functional of every piece of a row of draws."""


class Combined:
    """The tables of a batch's lookups with one coefficient for every output, alike at all parties."""

    def __init__(self, tables: Sequence[NDArray[np.uint8]], stream: Reader, variables: int) -> None:
        """tables: as in `Lookup`. stream: of the coin that follows the messages of the lookups."""
        self._field = subfield(1 << variables)
        self._factors: list[Words] = []
        """Of every lookup mu, coordinates over the powers of the field's generator as one word each."""
        self._tables: list[Words] = []
        """M, likewise: (outer, inner)."""
        self._public: dict[int, NDArray[np.bool_]] = {}
        for table in tables:
            factors = stream.draw(table.shape[2], np.uint64)
            factors &= np.uint64((1 << self._field.degree) - 1)
            combined = np.zeros(table.shape[:2], np.uint64)
            for output, factor in enumerate(factors):
                combined ^= table[:, :, output] * factor
            self._factors.append(factors)
            self._tables.append(combined)

    def claimed(self, number: int, outputs: Words, functionals: Pieces) -> int:
        """sum_b mu_b L(w_b) of a lookup."""
        found = np.zeros((len(outputs), BLOCK), np.uint8)
        for functional, piece in functionals:
            found ^= functional.of(np.ascontiguousarray(outputs[:, piece]))
        factors = [self._field.element(int(factor)) for factor in self._factors[number]]
        return dots(factors, found[np.newaxis])[0]

    def values(self, number: int, of: Lookup, functionals: Pieces) -> Blocks:
        """P of a lookup on the grid, (3^v, 16)."""
        points, table = members(of.outer_bits), self._tables[number]
        factors = np.stack([np.bitwise_xor.reduce(table[entries], axis=0) for entries in points])
        found = np.zeros((len(points), len(of.y), BLOCK), np.uint8)
        for functional, piece in functionals:
            outer, draws = of.x[:, piece], np.ascontiguousarray(of.y[:, piece])
            room = np.empty_like(draws)
            for point, entries in enumerate(points):
                row = np.bitwise_xor.reduce(outer[entries], axis=0)
                found[point] ^= functional.of(np.bitwise_and(draws, row, out=room))
        words, room = found.view(np.uint64), np.empty((len(points), len(of.y), 2), np.uint64)
        of_powers = np.empty((len(points), self._field.degree, 2), np.uint64)
        for power in range(self._field.degree):
            np.multiply(words, (factors >> np.uint64(power) & _ONE)[..., np.newaxis], out=room)
            np.bitwise_xor.reduce(room, axis=1, out=of_powers[:, power])
        return write_all(dots(self._field.powers, of_powers.view(np.uint8)))

    def columns(self, number: int, of: Lookup, point: Challenge, weight: int) -> tuple[Words, Words]:
        """X, and Y times a weight, at a challenge, (rows, 1, words) each; of shares, the shares. Challenge
        and weight of a lookup are the same whenever it is called."""
        rows, (outer, words) = len(point.rows), of.x.shape
        x, y = (np.zeros((rows, 1, words), np.uint64) for _ in range(2))
        x[:outer, 0] = of.x
        if number not in self._public:
            self._public[number] = self._coordinates(number, point, weight)
        for row, chosen in enumerate(self._public[number].T):
            y[row, 0] = np.bitwise_xor.reduce(of.y[chosen], axis=0)
        return x, y

    def _coordinates(self, number: int, point: Challenge, weight: int) -> NDArray[np.bool_]:
        """Those of m_l = weight sum_h eq_h(rho) M(h, l): (inner, rows)."""
        table, rows = self._tables[number], len(point.rows)
        generator = multiplication(point.rows, self._field.powers[1]).astype(np.uint8)
        power: NDArray[np.uint8] = multiplication(point.rows, weight).astype(np.uint8)
        total = np.zeros((table.shape[1], rows), np.uint8)
        for number_of_power in range(self._field.degree):  # weight eq_h(rho) times a power of the generator
            has = (table >> np.uint64(number_of_power) & _ONE).astype(np.uint8)
            total ^= has.T @ power[: len(table)] & np.uint8(1)
            power = power @ generator & np.uint8(1)
        return total.astype(np.bool_)


def completed(claimed: int, values: Blocks, outer_bits: int) -> Blocks:
    """P on the grid from its values but the first, and what those in the cube sum up to; of shares, the
    shares."""
    others = np.bitwise_xor.reduce(values[cube(outer_bits)[1:] - 1], axis=0)
    first = others ^ np.frombuffer(write(claimed), np.uint8)
    return np.concatenate([first[np.newaxis], values])


def weights_of(stream: Reader, outer_bits: Iterable[int], variables: int) -> dict[int, int]:
    """The weight of P of each number of bits of h, from a coin that follows all values of P."""
    return {of: random_element(stream, variables) for of in sorted(outer_bits)}


def weights_at(challenge: Challenge, outer_bits: int) -> list[int]:
    """What each value on the grid of v variables contributes to P at the challenge, whose first variables h
    lacks."""
    missing = len(challenge.point) - outer_bits
    scale = ONE
    for u in challenge.point[:missing]:
        scale = multiply(scale, multiply(ONE ^ u, ONE ^ u))
    return [multiply(scale, weight) for weight in grid_weights(challenge.point[missing:])]
