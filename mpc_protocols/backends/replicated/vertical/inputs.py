"""What owners input of a plan, as a computing party takes it: seeds, and blocks of rows, of all owners
together.

Messages, and who learns what: `matrices`. What a contributor sent to two parties is compared by them before
it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mpc_protocols.backends.replicated.sharing.copies import same_copies
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.backends.replicated.vertical.matrices import (
    MaskStreams,
    Matrix,
    block_copies,
    input_rows,
    receive_block,
    receive_mask_seeds,
    seed_copies,
)
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt


def receive_streams(trio: Trio, contributors: Iterable[int]) -> dict[int, MaskStreams]:
    """The streams with which these deal. 1 round, if there are any. Raises `ProtocolAborted`."""
    streams = {owner: receive_mask_seeds(trio.wire, owner) for owner in contributors}
    if streams:
        same_copies(trio, [copy for owner, of in streams.items() for copy in seed_copies(trio, of, owner)])
    return streams


def receive_blocks(
    trio: Trio, streams: Mapping[int, MaskStreams], shapes: Mapping[int, tuple[int, int]], dtype: UInt
) -> dict[int, Matrix]:
    """Contributors' next blocks, by owner. 1 round, if there are any. Raises `ProtocolAborted`."""
    blocks = {
        owner: receive_block(trio, streams[owner], owner, shape, dtype) for owner, shape in shapes.items()
    }
    if blocks:
        same_copies(
            trio,
            [
                copy
                for owner, block in blocks.items()
                for copy in block_copies(trio, streams[owner], owner, block)
            ],
        )
    return blocks


def input_blocks(
    trio: Trio,
    streams: Mapping[int, MaskStreams],
    shapes: Mapping[int, tuple[int, int]],
    own: Elements | None,
    dtype: UInt,
) -> dict[int, Matrix]:
    """Everybody's blocks of the same rows, by owner. own: this party's, if it is among these owners.

    1 round, 2 with contributors. Raises `ProtocolAborted`.
    """
    computing = [owner for owner in shapes if owner < trio.wire.computing]
    blocks = [(owner, shapes[owner], own if owner == trio.me else None) for owner in computing]
    matrices = dict(zip(computing, input_rows(trio, blocks, dtype), strict=True))
    contributed = {owner: shape for owner, shape in shapes.items() if owner not in matrices}
    return matrices | receive_blocks(trio, streams, contributed, dtype)


def cut(matrix: Matrix, widths: Sequence[int]) -> list[Matrix]:
    """Columns that stand side by side."""
    ends = [sum(widths[:place]) for place in range(1, len(widths) + 1)]
    return [matrix.columns(end - width, width) for end, width in zip(ends, widths, strict=True)]
