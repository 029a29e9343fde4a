"""The kernel as this machine runs it: compiled in some 80 ms, import of llvmlite included, when an extension has
made so many transfers that NumPy would take as long for as many again; None where it cannot be.

It needs what any compiled code here does (`mpc_protocols.process.compiled`). Without it NumPy computes the same,
bit for bit: nobody can tell from a message which of the two a party has.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.transfers.kernel.layout import LEVELS, SWAPS, WIDTH
from mpc_protocols.process.compiled.library import ADDRESS, WORD, CompiledOnce, address, functions
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from mpc_protocols.backends.pair.transfers.kernel import code
else:
    code = Later("mpc_protocols.backends.pair.transfers.kernel.code")

Words = NDArray[np.uint64]

WORTH_COMPILING = 1 << 14
"""Words of 64 transfers."""
_ROWS = 2 * SWAPS[0][0]
_SIGNATURES = {
    "fold": (ADDRESS, WORD, WORD, ADDRESS, WORD, WORD, ADDRESS),
    "transpose": (ADDRESS, WORD, WORD, ADDRESS),
}


class Kernel:
    """The compiled functions. Threads may use it at the same time."""

    def __init__(self) -> None:
        self._call = functions(code.module(LEVELS), _SIGNATURES)

    def folds(self, streams: Words) -> bool:
        """Whether `fold` is for streams of this shape."""
        return bool(streams.shape[1] == 1 << LEVELS and streams.shape[2] >= WIDTH)

    def fold(self, streams: Words, rows: Words) -> Words:
        """As `ot_extension._fold`, of what it `folds`. The words of a stream lie one behind the other."""
        blocks, _, words = streams.shape
        total = np.empty((blocks, words), np.uint64)
        _, pitch, _ = streams.strides
        _, row, step = rows.strides
        for block in range(blocks):
            self._call["fold"](
                *(address(streams[block]), pitch // 8, words),
                *(address(rows[block]), row // 8, step // 8, address(total[block])),
            )
        return total

    def transpose(self, matrix: Words) -> int:
        """Transpose as many columns as fill whole vectors, in place, and return their number. matrix:
        C-contiguous, of shape (64, words)."""
        words = int(matrix.shape[1])
        room = np.empty(_ROWS * WIDTH, np.uint64)
        self._call["transpose"](address(matrix), words, words // WIDTH, address(room))
        return words // WIDTH * WIDTH


def _agrees(kernel: Kernel) -> bool:
    """Whether it computes what the definitions say, of words that fill no whole vector."""
    words = 2 * WIDTH + 3

    def random(*shape: int) -> Words:
        return np.frombuffer(os.urandom(8 * int(np.prod(shape))), np.uint64).reshape(shape).copy()

    streams, rows = random(2, 1 << LEVELS, words), np.zeros((2, words, LEVELS), np.uint64).swapaxes(1, 2)
    total = kernel.fold(streams, rows)
    number = np.arange(1 << LEVELS)
    sums = [np.bitwise_xor.reduce(streams[:, number >> bit & 1 == 1], axis=1) for bit in range(LEVELS)]
    folded = (rows == np.stack(sums, axis=1)).all() and (
        total == np.bitwise_xor.reduce(streams, axis=1)
    ).all()
    matrix = random(_ROWS, words)
    before = matrix.copy()
    done = kernel.transpose(matrix)
    bits, bits_before = (
        np.unpackbits(of.view(np.uint8).reshape(_ROWS, words, 8), axis=2, bitorder="little")
        for of in (matrix, before)
    )
    turned = (bits[:, :done] == bits_before[:, :done].transpose(2, 1, 0)).all()
    return bool(folded and turned and (matrix[:, done:] == before[:, done:]).all())


kernel = CompiledOnce(Kernel, _agrees, WORTH_COMPILING)
"""The kernel for who has made so many words of transfers, if this process can have one and that is worth while;
for 0 words, if it has one."""
