"""Shared matrices with a row per row of the common table: input by any owner, products by element and by row.

A matrix is shared as in `sharing.ring`, but a component that is zero for everybody is not stored: an owner
that computes inputs its one-hot columns A as

    A_p = F(k_p)  (known to p - 1 too)      A_{p+1} = A - F(k_p), sent to p + 1      A_{p+2} = 0

so that A^T B of two computing owners costs one local product at each party, though both are ordinary shares
that serve any other product too. An owner that does not compute (contributor, index j among them, k = j mod
3) deals all three components: seeds of A_k to k - 1 and k and of A_{k+1} to k and k + 1, and A - A_k -
A_{k+1} to k + 1 and k + 2. So nobody but the owner holds more than two components, and what a party receives
is masked by a stream it does not know.

    input       1 round; n u elements from a computing owner to one party, from a contributor to two
    multiply    1 round; one element of the RESULT from each party: row by row, every column of x with every column of y
    product     A^T B: this party's part of the result, no message; `ring.reshare` makes a sharing of it

Threat model, masking and assumption: `trio`. Numbers of rows and columns are public; nothing is opened.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.copies import Copy
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.prg import CONTRIBUTION, KeyStream, derive
from mpc_protocols.vertical.blas import transposed_product
from mpc_protocols.wire import Wire

ROWS = 4096
"""Rows of one local product."""


@dataclass(frozen=True)
class Matrix:
    """One party's components of a shared matrix of shape `shape`; None: zero. plain: at the owner, the matrix
    itself (0/1)."""

    shape: tuple[int, int]
    own: Elements | None
    next: Elements | None
    plain: Elements | None = None

    def columns(self, first: int, width: int) -> Matrix:
        """Consecutive columns."""
        if first == 0 and width == self.shape[1]:
            return self
        where = slice(first, first + width)
        return Matrix(
            (self.shape[0], width),
            _columns(self.own, where),
            _columns(self.next, where),
            _columns(self.plain, where),
        )

    def local_sum(self, dtype: UInt) -> Elements:
        """The sum of this party's two components."""
        if self.plain is not None:
            return self.plain
        both = _sum(self.own, self.next)
        return np.zeros(self.shape, dtype) if both is None else both


def ring_of(element: int) -> UInt:
    """The ring whose elements have 2 or 4 bytes."""
    return np.uint16 if element == 2 else np.uint32


def side_by_side(matrices: Sequence[Matrix], dtype: UInt) -> Matrix:
    """Columns of several matrices of as many rows."""
    if len(matrices) == 1:
        return matrices[0]
    rows = matrices[0].shape[0]

    def joined(parts: Sequence[Elements | None]) -> Elements | None:
        if all(part is None for part in parts):
            return None
        return np.concatenate(
            [
                np.zeros(matrix.shape, dtype) if part is None else part
                for matrix, part in zip(matrices, parts, strict=True)
            ],
            axis=1,
        )

    plain = [matrix.plain for matrix in matrices]
    return Matrix(
        (rows, sum(matrix.shape[1] for matrix in matrices)),
        joined([matrix.own for matrix in matrices]),
        joined([matrix.next for matrix in matrices]),
        None if any(part is None for part in plain) else joined(plain),
    )


class MaskStreams:
    """The streams with which one contributor deals one sharing; `holder` is k, the party that gets seeds
    only.

    Every seed and every block goes to two parties, which compare what they got before use (`seed_copies`,
    `block_copies`).
    """

    def __init__(self, wire: Wire, holder: int, seeds: tuple[bytes | None, bytes | None]) -> None:
        """seeds: of components k and k + 1, None if this party does not know it."""
        self.holder = holder
        self.seeds = seeds
        self._number = 0
        self._streams = [
            None
            if seed is None
            else KeyStream(derive(seed, CONTRIBUTION, wire.session_id, b"rows", bytes([which])))
            for which, seed in enumerate(seeds)
        ]

    def masks(self, shape: tuple[int, int], dtype: UInt) -> list[Elements | None]:
        """Components k and k + 1 of the next block, those that are known here."""
        self._number += 1
        return [
            None if stream is None else stream.draw(shape, dtype, self._number) for stream in self._streams
        ]


def holder_of(wire: Wire, contributor: int) -> int:
    """The computing party that learns the two seeds of a contributor."""
    return list(wire.contributors).index(contributor) % 3


def send_mask_seeds(wire: Wire) -> MaskStreams:
    """At a contributor: choose and send the seeds."""
    k = holder_of(wire, wire.me)
    first, second = secrets.token_bytes(SEED_BYTES), secrets.token_bytes(SEED_BYTES)
    wire.send(k, first + second)
    wire.send((k + 1) % 3, second)
    wire.send((k + 2) % 3, first)
    return MaskStreams(wire, k, (first, second))


def receive_mask_seeds(wire: Wire, contributor: int) -> MaskStreams:
    """At a computing party: the seeds of a contributor that are due here. Blocks."""
    k = holder_of(wire, contributor)
    if wire.me == k:
        both = bytes(wire.receive(contributor, 2 * SEED_BYTES))
        return MaskStreams(wire, k, (both[:SEED_BYTES], both[SEED_BYTES:]))
    seed = bytes(wire.receive(contributor, SEED_BYTES))
    return MaskStreams(wire, k, (None, seed) if wire.me == (k + 1) % 3 else (seed, None))


def deal_block(wire: Wire, streams: MaskStreams, block: Elements) -> None:
    """At a contributor: deal its next block, which it must not use again (it is masked in place)."""
    for mask in streams.masks((block.shape[0], block.shape[1]), block.dtype.type):
        block -= _present(mask)
    payload = np.ascontiguousarray(block).reshape(-1).view(np.uint8).data
    for offset in (1, 2):
        wire.send((streams.holder + offset) % 3, payload)


def receive_block(
    trio: Trio, streams: MaskStreams, contributor: int, shape: tuple[int, int], dtype: UInt
) -> Matrix:
    """At a computing party: its components of a contributor's next block. Blocks."""
    first, second = streams.masks(shape, dtype)
    if trio.me == streams.holder:
        return Matrix(shape, first, second)
    rest = trio.receive(contributor, shape, dtype)
    return Matrix(shape, second, rest) if trio.me == (streams.holder + 1) % 3 else Matrix(shape, rest, first)


def seed_copies(trio: Trio, streams: MaskStreams, contributor: int) -> list[Copy]:
    """At a computing party: the seeds that another one was to be sent as well."""
    k = streams.holder
    first, second = streams.seeds
    return [
        Copy(contributor, other if trio.me == k else k, np.frombuffer(seed, np.uint8))
        for seed, other in ((second, (k + 1) % 3), (first, (k + 2) % 3))
        if seed is not None
    ]


def block_copies(trio: Trio, streams: MaskStreams, contributor: int, block: Matrix) -> list[Copy]:
    """At a computing party: what of a contributor's block another one was to be sent as well."""
    k = streams.holder
    if trio.me == k:
        return []
    rest = block.next if trio.me == (k + 1) % 3 else block.own
    return [Copy(contributor, (2 * k - trio.me) % 3, _present(rest))]


def input_rows(
    trio: Trio, blocks: Sequence[tuple[int, tuple[int, int], Elements | None]], dtype: UInt
) -> list[Matrix]:
    """Blocks of computing owners (owner, shape, the block at the owner): their sharings. 1 round for all
    together."""
    matrices: list[Matrix | None] = []
    for owner, shape, block in blocks:
        operation = trio.operation()
        matrix: Matrix | None = None
        if trio.me == owner:
            plain = _present(block)
            mask = trio.own_mask(shape, dtype, operation)
            rest = plain - mask
            trio.send(trio.right, rest)
            matrix = Matrix(shape, mask, rest, plain)
        elif trio.right == owner:
            matrix = Matrix(shape, None, trio.next_mask(shape, dtype, operation))
        matrices.append(matrix)
    trio.turn()
    return [
        Matrix(shape, trio.receive(owner, shape, dtype), None) if matrix is None else matrix
        for (owner, shape, _), matrix in zip(blocks, matrices, strict=True)
    ]


def multiply(trio: Trio, pairs: Sequence[tuple[Matrix, Matrix]], dtype: UInt) -> list[Matrix]:
    """Row by row, every column of x times every column of y (x's slower): shapes (n, a), (n, b) to (n, a b).
    1 round for all."""
    shapes = [(x.shape[0], x.shape[1] * y.shape[1]) for x, y in pairs]
    ends = np.cumsum([rows * width for rows, width in shapes])
    parts = trio.zero_ring(int(ends[-1]), dtype)
    for end, shape, (x, y) in zip(ends, shapes, pairs, strict=True):
        target = parts[int(end) - shape[0] * shape[1] : int(end)].reshape(shape[0], x.shape[1], y.shape[1])
        if x.own is not None:
            target += x.own[:, :, np.newaxis] * y.local_sum(dtype)[:, np.newaxis, :]
        if x.next is not None and y.own is not None:
            target += x.next[:, :, np.newaxis] * y.own[:, np.newaxis, :]
    received = trio.pass_left(parts)
    return [
        Matrix(
            shape,
            *(array[int(end) - shape[0] * shape[1] : int(end)].reshape(shape) for array in (parts, received)),
        )
        for end, shape in zip(ends, shapes, strict=True)
    ]


def product(a: Matrix, b: Matrix, dtype: UInt) -> Elements:
    """This party's part of A^T B, shape (columns of a, columns of b); the parts of all three sum to it. No
    message.

    z_i = A_i^T (B_i + B_{i+1}) + A_{i+1}^T B_i, or the same terms grouped around a matrix that this party
    knows.
    """
    if a.plain is not None:
        terms = [(a.plain, b.own), (a.own, b.next)]
    elif b.plain is not None:
        terms = [(a.own, b.plain), (a.next, b.own)]
    else:
        terms = [(a.own, _sum(b.own, b.next) if a.own is not None else None), (a.next, b.own)]
    parts = np.zeros((a.shape[1], b.shape[1]), dtype)
    for start in range(0, a.shape[0], ROWS):
        rows = slice(start, start + ROWS)
        for left, right in terms:
            if left is None or right is None:
                continue
            if left is a.plain:  # 0/1: the cheaper side of `transposed_product`
                parts += transposed_product(right[rows], left[rows], 1).T
            else:
                parts += transposed_product(left[rows], right[rows], 1 if right is b.plain else None)
    return parts


def _columns(values: Elements | None, where: slice) -> Elements | None:
    return None if values is None else values[:, where]


def _sum(x: NDArray[Any] | None, y: NDArray[Any] | None) -> Elements | None:
    if x is None or y is None:
        return x if y is None else y
    total: Elements = x + y
    return total


def _present(values: Elements | None) -> Elements:
    if values is None:
        raise ValueError("An owner must bring the rows it inputs.")
    return values
