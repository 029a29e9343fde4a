"""A function of the kernel under construction: vectors, and the one instruction that processors name apart."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from mpc_protocols.backends.replicated.proof.kernel.layout import LANES
from mpc_protocols.process.compiled.builder import WORD, Function, word

BYTE, PLACE = ir.IntType(8), ir.IntType(32)
VECTOR = ir.VectorType(WORD, LANES)
PAIR, BLOCK = ir.VectorType(WORD, 2), ir.IntType(128)
DOUBLE = ir.IntType(256)
_AHEAD = 8
"""Columns: a microsecond or so."""


class Code(Function):
    """A function under construction, on rows of columns."""

    def load(self, address: Any, kind: Any = VECTOR) -> Any:
        return self.builder.load(self.builder.bitcast(address, kind.as_pointer()), align=8)

    def store(self, value: Any, address: Any) -> None:
        self.builder.store(value, self.builder.bitcast(address, value.type.as_pointer()), align=8)

    def ahead(self, address: Any) -> None:
        """Ask for the words that a loop over columns needs some columns later: rows lie too far apart for a
        guess."""
        self.prefetch(self.at(address, word(_AHEAD * LANES)))

    def xor(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = self.builder.xor(first, other)
        return first

    def carry_less(self, a: Any, b: Any, which: int, bits: int) -> Any:
        """Of every pair of words the carry-less product of a's lower (0x00) or upper (0x01) word and b's
        (0x00, 0x10).

        bits: of the instruction that is used.
        """
        builder, whole, at_once = self.builder, a.type.count, bits // 64
        kind = ir.VectorType(WORD, at_once)
        name = "llvm.x86.pclmulqdq" + ("" if at_once == 2 else f".{bits}")
        function = self.intrinsic(name, kind, [kind, kind, BYTE])
        parts = []
        for start in range(0, whole, at_once):
            picked = lanes(list(range(start, start + at_once)))
            x, y = ((of if at_once == whole else builder.shuffle_vector(of, of, picked)) for of in (a, b))
            parts.append(builder.call(function, [x, y, ir.Constant(BYTE, which)]))
        while len(parts) > 1:
            joined = lanes(list(range(2 * parts[0].type.count)))
            parts = [builder.shuffle_vector(parts[i], parts[i + 1], joined) for i in range(0, len(parts), 2)]
        return parts[0]


def lanes(places: list[int]) -> Any:
    return ir.Constant(ir.VectorType(PLACE, len(places)), places)
