"""Products of shared matrices, of which every message is noted to be proved: row by row, and A^T B.

As for every product, party i sends z_i = x_i (y_i + y_{i+1}) + x_{i+1} y_i + F(k_i) - F(k_{i+1}) to i-1,
modulo 2^K, and

    (x_i + x_{i+1}) (y_i + y_{i+1})  =  [z_i - F(k_i)]  +  [x_{i+1} y_{i+1} + F(k_{i+1})]
            X Y                         left's share of W   right's share of W

the left verifier i-1 holds x_i, y_i and the first bracket, the right one i+1 x_{i+1}, y_{i+1} and the second,
the prover i all of it. A message is such products and nothing else: what is computed from their cells is
computed from the shares of the result.

Threat model: `proof.bit_products.products`; until the batch is proved, nothing may be opened that depends on
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from mpc_protocols.backends.replicated.proof.matrix_products.galois import RING
from mpc_protocols.backends.replicated.proof.matrix_products.statement import Rows, Statement, Table
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.vertical.blas import transposed_product

if TYPE_CHECKING:
    from mpc_protocols.backends.replicated.proof.transcript import Transcript

MAX_COLUMNS: Final = 1 << 20
"""Of a matrix: a proof combines its columns exactly in floats."""
Blocks = Sequence[tuple[RingShare, RingShare]]


class ProductSum:
    """This party's part of one product A^T B, summed up block by block of rows."""

    def __init__(self, shape: tuple[int, int]) -> None:
        """shape: columns of A and of B. Raises ValueError for too many."""
        _check_columns(shape)
        nothing = [np.zeros((0, columns), RING) for columns in shape]
        self.blocks = [(RingShare(nothing[0], nothing[0]), RingShare(nothing[1], nothing[1]))]
        self.part: Elements = np.zeros(shape, RING)

    def add(self, x: RingShare, y: RingShare) -> None:
        """The next rows of A and B, (n, a) and (n, b). They are kept until they are proved: nobody may write
        to them."""
        expected = tuple((len(x), columns) for columns in self.part.shape)
        if (x.shape, y.shape) != expected or not x.dtype == y.dtype == RING:
            raise ValueError(
                f"Rows {x.dtype.__name__}{x.shape} and {y.dtype.__name__}{y.shape} do not belong to a product of "
                f"{RING.__name__}, {self.part.shape}."
            )
        self.blocks.append((x, y))
        self.part += transposed_product(x.own, y.own + y.next)
        self.part += transposed_product(x.next, y.own)


def reshare_sums(trio: Trio, transcript: Transcript, sums: Sequence[ProductSum]) -> list[RingShare]:
    """Shares of the products, of shapes (a, b), noted. 1 round for all, one element of each RESULT from each
    party.

    The sums are spent then.
    """
    return _sent(trio, transcript, [(Table, of.blocks, of.part) for of in sums])


def multiply_rows(
    trio: Trio, transcript: Transcript, pairs: Sequence[tuple[RingShare, RingShare]]
) -> list[RingShare]:
    """Row by row, every column of x times every column of y (x's slower), noted: (n, a), (n, b) to (n, a b).
    1 round for all.

    The shares are kept until they are proved, not copied: nobody may write to them. x is to be the narrower
    one.
    """
    products: list[tuple[type[Statement], Blocks, Elements]] = []
    for x, y in pairs:
        _check_columns((x.shape[1], y.shape[1]), x.dtype)
        part = x.own[:, :, np.newaxis] * (y.own + y.next)[:, np.newaxis, :]
        part += x.next[:, :, np.newaxis] * y.own[:, np.newaxis, :]
        products.append((Rows, [(x, y)], part.reshape(len(x), x.shape[1] * y.shape[1])))
    return _sent(trio, transcript, products)


def _sent(
    trio: Trio, transcript: Transcript, products: Sequence[tuple[type[Statement], Blocks, Elements]]
) -> list[RingShare]:
    """Mask, send and note parts of products."""
    masks = []
    for _, _, part in products:
        operation = trio.operation()
        own, following = (mask(part.shape, RING, operation) for mask in (trio.own_mask, trio.next_mask))
        part += own
        part -= following
        trio.send(trio.left, part)
        masks.append((own, following))
    trio.turn()
    shares = []
    for (form, blocks, part), (own, following) in zip(products, masks, strict=True):
        received = trio.receive(trio.right, part.shape, RING)
        transcript.matrices.append(form(blocks, received - following, own))
        shares.append(RingShare(part, received))
    return shares


def _check_columns(shape: tuple[int, int], ring: UInt = RING) -> None:
    if ring is not RING or not all(0 < columns <= MAX_COLUMNS for columns in shape):
        raise ValueError(
            f"A proved product takes 1 to 2^20 columns of {RING.__name__} on both sides, not {shape} of {ring.__name__}."
        )
