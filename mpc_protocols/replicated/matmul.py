"""Products A^T B of shared matrices, and of two parties' own matrices with a helper (`engine.md` 2).

Counts of a cross-owner table are A^T B of one-hot columns with a row per record. A sum of products costs its OUTPUT only, so
what travels is independent of the number of rows once the operands are shared:

    matmul         fully shared A, B:    A_i^T (B_i + B_{i+1}) + A_{i+1}^T B_i, one zero-masked reshare. 1 round, u v elements
                   a party; two local products.
    owned_matmul   A known to one party, B to another, the third helps: A = R_A + E, B = R_B + F with R_A from the key of A's
                   owner and the helper, R_B from that of B's owner and the helper; the owners exchange E and F:

                       A^T B  =  R_A^T F  (A's owner)  +  E^T B  (B's owner)  +  R_A^T R_B  (helper)

                   then one zero-masked reshare: one local product each, n u and n v elements between the owners, nothing from
                   or to the helper but the result. Input sharing included.

Rows are streamed: WAVE bytes of masked rows travel and are consumed before the next are made, so memory does not grow with
the number of rows. Rounds: one a wave, and the reshare.

Threat model, masking and assumption: `trio`. E is uniform to B's owner, who lacks the key of A's owner and the helper, and F to
A's owner likewise; the helper sees parts of the result only. The number of rows and columns is public. Nothing is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.replicated.blas import transposed_product
from mpc_protocols.replicated.prg import Reader
from mpc_protocols.replicated.ring import RingShare, reshare
from mpc_protocols.replicated.trio import Trio, UInt

WAVE = 1 << 24
"""Bytes of masked rows of either owner that are under way together."""
ROWS = 4096
"""Rows of one message, and of one local product."""


def matmul(trio: Trio, a: RingShare, b: RingShare) -> RingShare:
    """A^T B modulo 2^K of shares of shapes (n, u) and (n, v): a share of (u, v). 1 round, u v elements a party."""
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[0] or a.dtype is not b.dtype:
        raise ValueError(f"A^T B takes two matrices of one ring and as many rows, got {a.shape} and {b.shape}")
    parts = np.zeros((a.shape[1], b.shape[1]), a.dtype)
    for start in range(0, len(a), ROWS):
        rows = slice(start, start + ROWS)
        parts += transposed_product(a.own[rows], b.own[rows] + b.next[rows])
        parts += transposed_product(a.next[rows], b.own[rows])
    return reshare(trio, parts)


def waves(rows: int, columns: int, itemsize: int) -> Iterator[list[slice]]:
    """Blocks of rows, wave by wave; `columns` of the wider matrix."""
    step = ROWS * max(1, WAVE // (ROWS * max(1, columns) * itemsize))
    for start in range(0, rows, step):
        end = min(start + step, rows)
        yield [slice(first, min(first + ROWS, end)) for first in range(start, end, ROWS)]


def owned_matmul(trio: Trio, owners: tuple[int, int], mine: NDArray[Any] | None, rows: int, columns: tuple[int, int],
                 dtype: UInt, b_bits: int | None = None) -> RingShare:
    """A^T B modulo 2^K of two parties' own matrices: a share of shape `columns`.

    owners: the parties that know A and B. mine: this owner's unsigned integers of shape (rows, its columns), any unsigned or bool
    dtype (blocks of rows are converted as they are used, so a memory map will do); None at the helper. b_bits: public
    bound, B's entries are below 2^b_bits (one-hot: 1), which saves B's owner work. Raises `ValueError` for another shape.
    """
    first, second = owners
    if first == second or not {first, second} <= {0, 1, 2}:
        raise ValueError(f"two of the parties 0, 1, 2 own the matrices, got {owners}")
    role = owners.index(trio.me) if trio.me in owners else 2
    if role < 2 and (mine is None or mine.shape != (rows, columns[role]) or mine.dtype.kind not in "bu"):
        raise ValueError(f"the owner's matrix must hold unsigned integers of shape {(rows, columns[role])}")
    helper = 3 - first - second
    operation = trio.operation()
    masks = [_stream(trio, owner if trio.me == helper else helper, operation) if trio.me in (owner, helper) else None
             for owner in owners]
    parts = np.zeros(columns, dtype)
    for wave in waves(rows, max(columns), np.dtype(dtype).itemsize):
        if role < 2:
            parts += _owner_wave(trio, role, owners[1 - role], mine, masks[role], columns, wave, dtype, b_bits)
        else:
            trio.turn()
            for block in wave:
                drawn = [_draw(reader, block, width, dtype) for reader, width in zip(masks, columns, strict=True)]
                parts += transposed_product(drawn[0], drawn[1])
    return reshare(trio, parts)


def _owner_wave(trio: Trio, role: int, peer: int, mine: NDArray[Any] | None, masks: Reader | None, columns: tuple[int, int],
                wave: list[slice], dtype: UInt, b_bits: int | None) -> NDArray[Any]:
    """An owner's part over the rows of one wave: R_A^T F, or E^T B."""
    assert mine is not None
    drawn = [_draw(masks, block, columns[role], dtype) for block in wave]
    for block, mask in zip(wave, drawn, strict=True):
        trio.send(peer, mine[block].astype(dtype) - mask)
    trio.turn()
    parts = np.zeros(columns, dtype)
    for block, mask in zip(wave, drawn, strict=True):
        received = trio.receive(peer, (block.stop - block.start, columns[1 - role]), dtype)
        if role == 0:
            parts += transposed_product(mask, received)
        else:
            parts += transposed_product(received, mine[block].astype(dtype), b_bits)
    return parts


def _draw(reader: Reader | None, block: slice, width: int, dtype: UInt) -> NDArray[Any]:
    """The next rows of a mask matrix."""
    assert reader is not None
    mask = np.empty((block.stop - block.start, width), dtype)
    reader.fill(mask)
    return mask


def _stream(trio: Trio, peer: int, operation: int) -> Reader:
    """The operation's stream that this party shares with `peer`."""
    return trio.own_reader(operation) if peer == trio.left else trio.next_reader(operation)
