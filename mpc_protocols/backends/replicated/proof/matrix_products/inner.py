"""The proof of matrix products: a batch of them becomes ONE inner product over GR(2^16, 64), which is proved.

Problem and argument: `docs/design/malicious.md` 4.8. The three messages travel with those of the proof of
gates, after the same coins (`products.prove`):

    coin     uniform lifts, by which X and Y of all products become X' and Y' and all of W one w (`statement`). What is claimed is
             one long inner product, over the rows of all products, sum_r X'_r Y'_r = w
    prover   P on the grid for u_1 .. u_v (`folding`) and a factor T: P(u, T) = <X'(u) + T D, Y'(u) + T E>, masked by a stream of
             prover and left verifier, to the right one. That sum_r P(r, 0) over the cube is what is claimed is not the prover's
             to say: the verifiers complete their shares by it
    coin     a point rho of lifts, a lift T that is not 0
    right    a = x'_right(rho) + T D, b likewise, and its share of P(rho, T), to the left verifier
    prover   a tag on A = X'(rho) + T D and B = Y'(rho) + T E, to the left verifier, under a key of the two
    left     A = x'_left(rho) + a and B as the tag says?  <A, B> = P(rho, T)?

D and E, m = N / 2^v elements each for N rows in all, are a stream of prover and right verifier. Soundness
error below (2 + max(2v, 2)) / (2^64 - 1) < 2^-60. Bytes of a party: 64 elements for each of 2 m + 3^v + 2^v +
1, and the tag.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.replicated.proof.bit_products.functional import message_tag
from mpc_protocols.backends.replicated.proof.bit_products.grid import cube
from mpc_protocols.backends.replicated.proof.coins import stream
from mpc_protocols.backends.replicated.proof.field import BLOCK
from mpc_protocols.backends.replicated.proof.matrix_products.folding import (
    MAX_VARIABLES,
    at,
    folded,
    grid,
    multilinear_at,
)
from mpc_protocols.backends.replicated.proof.matrix_products.galois import RING, ROWS, GaloisRing, Products
from mpc_protocols.backends.replicated.proof.matrix_products.statement import (
    Coefficients,
    Combined,
    Statement,
)
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.prg import Reader

DEGREE = 64
_PURPOSE = RING.__name__.encode()
"""In the names of the coins' streams."""
Pair = tuple[Elements, Elements]


def elements_sent(rows: int, variables: int) -> tuple[int, int]:
    """Ring elements that a prover sends, and that a right verifier does, besides one for its share."""
    return 3**variables + 2**variables, 2 * -(-rows // (1 << variables))


def variables_for(rows: int) -> int:
    """Variables with which the fewest elements travel, for so many rows in all."""
    return min(range(MAX_VARIABLES + 1), key=lambda variables: sum(elements_sent(rows, variables)))


class InnerMessages(ABC):
    """One party's three roles in the proof of a batch of products, as messages: of what shapes they are
    follows from the number of rows. The calls follow `products.converse`."""

    def __init__(self, trio: Trio, rows: int, degree: int) -> None:
        """degree: fewer than 64 only to see in tests that the bound is about right."""
        self._trio, self._degree = trio, degree
        self.variables = variables_for(rows)
        self._width = -(-rows // (1 << self.variables))
        self._sharing, self._masking, self._tagging = (trio.operation() for _ in range(3))

    def send_values(self, coin: bytes) -> None:
        """After the first coin."""
        values = self._values(coin)
        masks = self._trio.own_mask(values.shape, RING, self._sharing)
        self._trio.send(self._trio.right, values + masks)

    def receive_values(self) -> None:
        """From the left neighbour, to this party as its right verifier."""
        self._from_prover = self._trio.receive(self._trio.left, self._values_shape, RING)

    def send_opening(self, coin: bytes) -> None:
        """After the coin that follows the values: as the right verifier to the left one, and as the prover a
        tag."""
        trio = self._trio
        for of in self._hidden(coin):
            trio.send(trio.right, of)
        trio.send(trio.right, self._share_of_right())
        trio.wire.send(trio.left, self._tag())

    def verdicts(self) -> tuple[bool, bool]:
        """As the left verifier: whether the tag fits, and whether the equation holds."""
        trio, shape = self._trio, (self._width, self._degree)
        hidden = [trio.receive(trio.left, shape, RING) for _ in "xy"]
        claimed = trio.receive(trio.left, self._degree, RING)
        return self._judged(hidden, claimed, bytes(trio.wire.receive(trio.right, BLOCK)))

    @property
    def _values_shape(self) -> tuple[int, int]:
        return elements_sent(0, self.variables)[0], self._degree

    @abstractmethod
    def _values(self, coin: bytes) -> Elements:
        """What the prover sends."""

    @abstractmethod
    def _hidden(self, coin: bytes) -> Sequence[Elements]:
        """a and b, as the right verifier."""

    @abstractmethod
    def _share_of_right(self) -> Elements:
        """Of P(rho, T), as the right verifier."""

    @abstractmethod
    def _tag(self) -> bytes:
        """As the prover."""

    @abstractmethod
    def _judged(self, hidden: Sequence[Elements], claimed: Elements, tag: bytes) -> tuple[bool, bool]:
        """See `verdicts`."""


class InnerProduct(InnerMessages):
    """What these messages say."""

    def __init__(self, trio: Trio, statements: Sequence[Statement], degree: int) -> None:
        super().__init__(trio, sum(statement.rows for statement in statements), degree)
        self._statements, self._ring = statements, GaloisRing(degree)
        self.public = repr((_PURPOSE, degree, [of.public for of in statements])).encode()

    def _values(self, coin: bytes) -> Elements:
        lifts = stream(coin, b"columns " + _PURPOSE)
        drawn = [of.draw(self._ring, lifts) for of in self._statements]
        self._own, self._next = self._combined(drawn)
        self._claims = self._claimed(drawn)
        self._masks = self._read_masks(self._trio.next_reader(self._masking))
        return self._on_grid()

    def _hidden(self, coin: bytes) -> Sequence[Elements]:
        ring = self._ring
        point = stream(coin, b"ring point " + _PURPOSE)
        self._rho = list(ring.lifts(point, self.variables))
        self._factor = ring.unit_lift(point)
        self._own_folded, self._next_folded = (
            [folded(ring, of, self._rho) for of in side] for side in (self._own, self._next)
        )
        del self._own, self._next
        masks = self._read_masks(self._trio.own_reader(self._masking))
        return [
            ring.plus_times(x, mask, self._factor) for x, mask in zip(self._own_folded, masks, strict=True)
        ]

    def _share_of_right(self) -> Elements:
        return self._share(self._from_prover, self._claims[1])

    def _tag(self) -> bytes:
        hidden = [
            self._ring.plus_times(x + y, mask, self._factor)
            for x, y, mask in zip(self._own_folded, self._next_folded, self._masks, strict=True)
        ]
        return message_tag(self._trio.own_mask(BLOCK, np.uint8, self._tagging).tobytes(), hidden)

    def _judged(self, hidden: Sequence[Elements], claimed: Elements, tag: bytes) -> tuple[bool, bool]:
        seen = [x + of for x, of in zip(self._next_folded, hidden, strict=True)]
        key = self._trio.next_mask(BLOCK, np.uint8, self._tagging).tobytes()
        masks = self._trio.next_mask(self._values_shape, RING, self._sharing)
        expected = claimed + self._share(-masks, self._claims[0])
        return tag == message_tag(key, seen), bool((Products(self._ring).dot(*seen) == expected).all())

    def _combined(self, drawn: Sequence[Coefficients]) -> tuple[Pair, Pair]:
        """X' and Y' of this party's two components, cut into rows (2^v, m, d); what is left over is 0."""
        ring, total, start = self._ring, self._width << self.variables, 0
        whole = Combined(*(np.zeros((total, ring.degree), RING) for _ in range(4)))
        for statement, coefficients in zip(self._statements, drawn, strict=True):
            stop = start + statement.rows
            statement.combine(ring, coefficients, Combined(*(of[start:stop] for of in whole)))
            start = stop
        own_x, own_y, next_x, next_y = (
            of.reshape(1 << self.variables, self._width, ring.degree) for of in whole
        )
        return (own_x, own_y), (next_x, next_y)

    def _claimed(self, drawn: Sequence[Coefficients]) -> tuple[Elements, Elements]:
        """This party's share of what is claimed, as the left and as the right verifier."""
        ring = self._ring
        left = np.zeros(ring.degree, RING)
        x, y = (of.reshape(-1, ring.degree) for of in self._own)
        right = Products(ring).dot(x, y)
        for statement, coefficients in zip(self._statements, drawn, strict=True):
            left += statement.claim(ring, coefficients, statement.left)
            right += statement.claim(ring, coefficients, statement.right)
        return left, right

    def _read_masks(self, reader: Reader) -> Pair:
        """D and E."""
        shape = self._width, self._ring.degree
        return reader.draw(shape, RING), reader.draw(shape, RING)

    def _on_grid(self) -> Elements:
        """What the prover sends, (3^v + 2^v, d): <X'(u), Y'(u)> on the grid but for its first point, the
        factor of T on the cube, <D, E>."""
        ring, products = self._ring, Products(self._ring)
        degree, corners, points = ring.degree, 1 << self.variables, 3**self.variables
        grams = np.zeros((points + corners + 1, degree, degree), np.uint64)
        for start in range(0, self._width, ROWS):
            piece = slice(start, start + ROWS)
            x, y = (a[:, piece] + b[:, piece] for a, b in zip(self._own, self._next, strict=True))
            d, e = (of[piece] for of in self._masks)
            for number, pair in enumerate(grid(x, y)):
                grams[number] += products.gram(*pair)
            x += d
            y += e
            for number in range(corners):
                grams[points + number] += products.gram(x[number], y[number])
            grams[-1] += products.gram(d, e)
        values = ring.reduced(grams)
        values[points:-1] -= values[cube(self.variables)] + values[-1]
        return values[1:]

    def _share(self, values: Elements, claim: Elements) -> Elements:
        """A verifier's share of P(rho, T) from its shares of the prover's values and of what is claimed."""
        ring, points, factor = self._ring, 3**self.variables, self._factor
        on_grid = np.concatenate([claim[np.newaxis], values[: points - 1]])
        on_grid[0] -= on_grid[cube(self.variables)[1:]].sum(axis=0, dtype=RING)
        mixed = multilinear_at(ring, values[points - 1 : -1], self._rho)
        later = mixed + ring.scaled(values[-1], factor)
        result: Elements = at(ring, on_grid, self._rho) + ring.scaled(later, factor)
        return result
