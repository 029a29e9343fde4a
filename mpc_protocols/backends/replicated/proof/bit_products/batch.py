"""The values of a batch's polynomials, as a prover computes them and as verifiers hold shares of them
(`products`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from mpc_protocols.backends.replicated.proof.bit_products.basis import Challenge
from mpc_protocols.backends.replicated.proof.bit_products.folding import segment, summed
from mpc_protocols.backends.replicated.proof.bit_products.form import Form, ProofSizes
from mpc_protocols.backends.replicated.proof.bit_products.functional import PIECE, Functional, pieces
from mpc_protocols.backends.replicated.proof.bit_products.grid import Grid, cube, members
from mpc_protocols.backends.replicated.proof.bit_products.lookups import Combined, completed, weights_at
from mpc_protocols.backends.replicated.proof.field import BLOCK, Blocks, dots, multiply
from mpc_protocols.backends.replicated.proof.tags import Pairs
from mpc_protocols.backends.replicated.proof.transcript import Lookup, Rows, Statements
from mpc_protocols.engine.prg import Reader


@dataclass(frozen=True)
class Part:
    """One party's part of one prover's statements, cut into rows."""

    gates: list[Rows]
    lookups: list[Lookup]
    sizes: ProofSizes

    @classmethod
    def of(cls, statements: Statements, variables: int, form: Form) -> Part:
        """Rows of segments, as the form of the proof has them."""
        return cls(statements.rows(1 << variables, form.segments), statements.lookups, statements.sizes())

    @property
    def pairs(self) -> Pairs:
        """x and y of the gates."""
        return [(block.x, block.y) for block in self.gates]


@dataclass(frozen=True)
class FirstValues:
    """The prover's first message: arrays of elements. gates: (segments, points outside the cube, 16).
    lookups: of each number of outer bits, the grid but its first point. once, square: of the masked products
    and of the masks, on the grid, if at once."""

    gates: Blocks
    lookups: list[Blocks]
    once: Blocks
    square: Blocks

    def together(self) -> Blocks:
        """As one array (elements, 16)."""
        return np.concatenate([self.gates.reshape(-1, BLOCK), *self.lookups, self.once, self.square])


Weights = dict[int, int]
"""Of lookups, by the bits of their outer index (`lookups.weights_of`)."""
Grids = dict[tuple[int, int], Grid]
"""Memory for products, by entries and words of a piece."""


class Batch:
    """One prover's statements, in one party's role, once the first coin is known."""

    def __init__(
        self, part: Part, seed: bytes, variables: int, form: Form, combined: Combined, grids: Grids
    ) -> None:
        """combined: of the lookups, which have all three provers. grids: shared by all that run one after the
        other."""
        self.part, self.variables, self.form = part, variables, form
        self._grids = grids
        self._shapes = [(block.x.shape[1], block.x.shape[2] // form.segments) for block in part.gates]
        self._shapes += [(1, of.x.shape[1]) for of in part.lookups]
        self._gates = len(part.gates)
        self._functionals: list[list[tuple[Functional, slice]]] = []
        place = 0
        for entries, words in self._shapes:
            of_block = []
            for piece in pieces(words, entries):
                of_block.append((Functional(seed, place, piece.stop - piece.start), piece))
                place += 1
            self._functionals.append(of_block)
        self._combined = combined
        self._outer_bits = part.sizes.outer_bits
        self._free = np.ones(3**variables, np.bool_)
        self._free[cube(variables)] = False

    # -- the prover
    # ----------------------------------------------------------------------------------------------------------

    def first(self, masks: Pairs | None) -> FirstValues:
        """masks: D and E if the proof is made at once."""
        segments = [self._products(self._segments([number])) for number in range(self.form.segments)]
        lookups = []
        for outer_bits in self._outer_bits:
            total = np.zeros((3**outer_bits, BLOCK), np.uint8)
            for number, of in enumerate(self.part.lookups):
                if of.outer_bits == outer_bits:
                    total ^= self._combined.values(number, of, self._functionals[self._gates + number])
            lookups.append(total[1:])
        nothing = np.zeros((0, BLOCK), np.uint8)
        once = nothing if masks is None else self._products(_added(self.part.pairs, masks))
        square = nothing if masks is None else self._products(masks)
        return FirstValues(np.stack(segments)[:, self._free], lookups, once, square)

    def second(self, whole: Pairs, masks: Pairs, point: Challenge) -> list[int]:
        """Values of G outside the cube at t = 0, in the cube at t = 1, and L(D E). whole: columns of lookups."""
        of_gates, of_lookups = masks[: self._gates], masks[self._gates :]
        arrays = [self._products(self._segments(of)) for of in members(self.form.halvings) if len(of) > 1]
        lookups = self._products(_added(whole, of_lookups), self._gates)
        arrays += [
            self._products(_added(self._segments([number]), of_gates)) ^ lookups
            for number in range(self.form.segments)
        ]
        arrays.append(self._products(masks))
        return dots(point.weights, np.stack(arrays))

    # -- everybody
    # -----------------------------------------------------------------------------------------------------------

    def whole(self, point: Challenge, weights: Weights) -> Pairs:
        """The columns of lookups at a challenge, with their weights."""
        return [
            self._combined.columns(number, of, point, weights[of.outer_bits])
            for number, of in enumerate(self.part.lookups)
        ]

    def masks(self, reader: Reader) -> Pairs:
        """The random rows D, E of the columns of every block."""
        shapes = [(1 << self.variables, entries, words) for entries, words in self._shapes]
        return [(reader.draw(shape, np.uint64), reader.draw(shape, np.uint64)) for shape in shapes]

    # -- a verifier
    # ----------------------------------------------------------------------------------------------------------

    def split(self, message: Blocks) -> FirstValues:
        """A verifier's share of a first message."""
        free = int(np.count_nonzero(self._free))
        ends = list(accumulate(self.part.sizes.first_parts(self.form, self.variables)))
        gates, *lookups, once, square = np.split(message, ends[:-1])
        return FirstValues(gates.reshape(self.form.segments, free, BLOCK), lookups, once, square)

    def at_point(
        self, shares: FirstValues, point: Challenge, weights: Weights
    ) -> tuple[list[int], list[int]]:
        """A verifier's shares of G in the cube at t = 0; in it at t = 1 and L(D E), if at once.

        Of P it puts L of its own share of W on the cube, its share of the prover's values elsewhere.
        """
        values = np.zeros((self.form.segments, 3**self.variables, BLOCK), np.uint8)
        values[:, self._free] = shares.gates
        for number in range(self.form.segments):
            of_rows = np.zeros((1 << self.variables, BLOCK), np.uint8)
            for block, of_block in zip(self.part.gates, self._functionals, strict=False):
                own = segment(block.w, number, self.form.segments)
                for functional, piece in of_block:
                    of_rows ^= functional.of(np.ascontiguousarray(own[:, piece]))
            values[number, ~self._free] = of_rows
        if not self.form.in_stages:
            values = np.concatenate([values, shares.once[np.newaxis], shares.square[np.newaxis]])
        found, of_lookups = dots(point.weights, values), 0
        for outer_bits, share in zip(self._outer_bits, shares.lookups, strict=True):
            claimed = 0
            for number, of in enumerate(self.part.lookups):
                if of.outer_bits == outer_bits:
                    claimed ^= self._combined.claimed(number, of.w, self._functionals[self._gates + number])
            of_grid = completed(claimed, share, outer_bits)
            [at_point] = dots(weights_at(point, outer_bits), of_grid[np.newaxis])
            of_lookups ^= multiply(weights[outer_bits], at_point)
        in_cube = [value ^ of_lookups for value in found[: self.form.segments]]
        return in_cube, found[self.form.segments :]

    def product(self, columns: Pairs, point: Challenge) -> int:
        """<A, B>: of all columns, as they are opened."""
        return dots(point.weights, self._products(columns)[np.newaxis])[0]

    # -- L of products at the points of {0, 1, inf}^v
    # ------------------------------------------------------------------------

    def _products(self, pairs: Pairs, first: int = 0) -> Blocks:
        """Of all blocks and pieces together. first: the number of the first of these blocks."""
        total = np.zeros((3**self.variables, BLOCK), np.uint8)
        for number, (x, y) in enumerate(pairs, first):
            entries, words = self._shapes[number]
            shape = entries, min(words, max(1, PIECE // entries))
            if shape not in self._grids:
                self._grids[shape] = Grid(self.variables, *shape)
            for functional, piece in self._functionals[number]:
                self._grids[shape].add_products(x[..., piece], y[..., piece], functional, total)
        return total

    def _segments(self, members: Sequence[int]) -> Pairs:
        """Sums of some segments of the gates."""
        count = self.form.segments
        return [(summed(x, members, count), summed(y, members, count)) for x, y in self.part.pairs]


def _added(pairs: Pairs, masks: Pairs) -> Pairs:
    return [(x ^ d, y ^ e) for (x, y), (d, e) in zip(pairs, masks, strict=True)]
