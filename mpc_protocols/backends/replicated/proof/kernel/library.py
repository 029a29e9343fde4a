"""The kernel as this machine runs it: compiled when it is first asked for, in a tenth of a second; None where
it cannot be.

It needs what any compiled code here does (`mpc_protocols.process.compiled`) and a processor of the x86-64 kind
with carry-less products. Where anything is missing, NumPy computes the same, bit for bit: nobody can tell from
a message which of the two a party has.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proof.field import BLOCK, Blocks, dots, multiply, read
from mpc_protocols.backends.replicated.proof.kernel.layout import (
    GROUP,
    INNER,
    LANES,
    OUTER,
    ROWS,
    TABULATED,
    VARIABLES,
    VECTORS,
    plan,
)
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.process.compiled.library import ADDRESS, WORD, CompiledOnce, address, functions
from mpc_protocols.process.later import Later

if TYPE_CHECKING:
    from llvmlite import binding

    from mpc_protocols.backends.replicated.proof.kernel import code
else:
    binding = Later("llvmlite.binding")
    code = Later("mpc_protocols.backends.replicated.proof.kernel.code")

_SIGNATURES = {
    "products": (ADDRESS, WORD, ADDRESS, WORD, ADDRESS, WORD, ADDRESS, WORD, ADDRESS, ADDRESS),
    "reduced": (ADDRESS, ADDRESS),
    "powers": (ADDRESS, WORD, ADDRESS),
    "times": (ADDRESS, WORD, ADDRESS, ADDRESS, ADDRESS, WORD, WORD),
}
WORTH_COMPILING = 1 << 15
"""Words: NumPy takes about as long for a proof of these as compiling does."""
_POINTS, _BLOCK = OUTER * INNER, VECTORS * LANES


class Kernel:
    """The compiled functions. Threads may use it at the same time."""

    def __init__(self, features: dict[str, bool]) -> None:
        """features: of this processor, by LLVM's names; `pclmul` is among them."""
        wide = features.get("vpclmulqdq")
        bits = 512 if wide and features.get("avx512f") else 256 if wide and features.get("avx2") else 128
        self._call = functions(code.module(bits), _SIGNATURES)
        self._plan, self._steps = plan()

    def powers(self, point: bytes, words: int) -> Words:
        """What words of a row are multiplied by: powers of H, a block of 16 bytes, then zeros to the next
        column."""
        count, turned = -(-words // 2), np.frombuffer(point, np.uint64).byteswap()
        found = np.zeros(2 * count + LANES, np.uint64)
        self._call["powers"](address(turned), count, address(found))
        found[2 * count :] = 0
        return found

    def add_products(self, x: Words, y: Words, powers: Words, into: Blocks) -> None:
        """See `grid.Grid.add_products`; 64 rows. powers: of rows of so many words."""
        _, entries, words = x.shape
        x, y = _whole_columns(x), _whole_columns(y)
        room = np.empty(2 * OUTER * GROUP * _BLOCK, np.uint64)
        sums = np.zeros(_POINTS * 3 * LANES, np.uint64)
        fixed = (address(self._plan), self._steps, address(room), address(sums))
        call, at_x, at_y, at_powers = self._call["products"], address(x), address(y), address(powers)
        (of_row_x, of_entry_x, _), (of_row_y, of_entry_y, _) = x.strides, y.strides
        for entry in range(entries):
            for start in range(0, words, _BLOCK):
                columns = -(-min(_BLOCK, words - start) // LANES)
                left, right = (
                    at + entry * stride + 8 * start for at, stride in ((at_x, of_entry_x), (at_y, of_entry_y))
                )
                call(left, of_row_x // 8, right, of_row_y // 8, at_powers + 8 * start, columns, *fixed)
        self._call["reduced"](address(sums), address(into))

    def add_times(self, rows: Words, matrix: NDArray[np.bool_], into: Words) -> None:
        """Add to rows `into` the matrix times rows, (64, words) each: see `basis.plus_times`. into:
        contiguous rows."""
        if rows.strides[1] != 8:
            rows = np.ascontiguousarray(rows)
        words = rows.shape[1]
        groups = ROWS // TABULATED
        picks: NDArray[np.uint64] = np.zeros((ROWS, groups), np.uint64)
        for b in range(TABULATED):
            picks |= matrix[b::TABULATED].T.astype(np.uint64) << np.uint64(b)
        picks *= np.uint64(LANES)
        picks += np.arange(groups, dtype=np.uint64) * np.uint64(LANES << TABULATED)
        room = np.empty(groups * LANES << TABULATED, np.uint64)
        columns = words // LANES
        if columns:
            self._times(rows, picks, room, into, columns)
        if words % LANES:
            rest = np.zeros((2, ROWS, LANES), np.uint64)
            last = slice(columns * LANES, words)
            rest[0, :, : words % LANES], rest[1, :, : words % LANES] = rows[:, last], into[:, last]
            self._times(rest[0], picks, room, rest[1], 1)
            into[:, last] = rest[1, :, : words % LANES]

    def _times(self, rows: Words, picks: NDArray[np.uint64], room: Words, into: Words, columns: int) -> None:
        self._call["times"](
            address(rows),
            rows.strides[0] // 8,
            address(picks),
            address(room),
            address(into),
            into.strides[0] // 8,
            columns,
        )


def _whole_columns(of: Words) -> Words:
    """The same rows, contiguous in the last axis and filled up to whole columns."""
    words = of.shape[2]
    if words % LANES == 0 and of.strides[2] == 8:
        return of
    found = np.zeros((*of.shape[:2], -(-words // LANES) * LANES), np.uint64)
    found[..., :words] = of
    return found


def _made() -> Kernel | None:
    features: dict[str, bool] = dict(binding.get_host_cpu_features())
    usable = features.get("pclmul") and binding.get_default_triple().startswith("x86_64")
    return Kernel(features) if usable else None


def _agrees(kernel: Kernel) -> bool:
    """Whether it computes what NumPy does: every instruction once, on rows that fill no whole column."""

    def random_words(*shape: int) -> Words:
        return np.frombuffer(os.urandom(8 * int(np.prod(shape))), np.uint64).reshape(shape).copy()

    x, y, point = random_words(ROWS, 2, 37), random_words(ROWS, 2, 37), os.urandom(BLOCK)
    found = np.zeros((_POINTS, BLOCK), np.uint8)
    kernel.add_products(x, y, kernel.powers(point, 37), found)
    expanded = [of.reshape(*(2,) * VARIABLES, 2, 37) for of in (x, y)]
    for axis in range(VARIABLES):
        expanded = [
            np.concatenate([of, np.bitwise_xor.reduce(of, axis=axis, keepdims=True)], axis=axis)
            for of in expanded
        ]
    products = np.zeros((_POINTS, 38), np.uint64)
    products[:, :37] = np.bitwise_xor.reduce((expanded[0] & expanded[1]).reshape(_POINTS, 2, 37), axis=1)
    powers = [read(point)]
    for _ in range(19):
        powers.insert(0, multiply(powers[0], read(point)))
    looked_at = slice(0, _POINTS, 28)  # each of the 27 groups and of their 27 places
    wanted = dots(powers[:-1], products[looked_at].view(np.uint8).reshape(-1, 19, BLOCK))
    matrix, rows, into = random_words(ROWS, ROWS) % 2 == 1, random_words(ROWS, 9), random_words(ROWS, 9)
    bits, before = (np.unpackbits(of.view(np.uint8), axis=1) for of in (rows, into))
    kernel.add_times(rows, matrix, into)
    sums = (matrix.T.astype(np.float32) @ bits.astype(np.float32)).astype(np.uint8) + before & 1
    return wanted == [read(block.tobytes()) for block in found[looked_at]] and bool(
        (np.unpackbits(into.view(np.uint8), axis=1) == sums).all()
    )


kernel = CompiledOnce(_made, _agrees, WORTH_COMPILING)
"""The kernel for rows of so many words, if this process can have one and that is worth while."""
