"""A function of the kernel under construction: loops, addresses, vectors, and the one instruction that
processors name apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from mpc_protocols.backends.replicated.proof.kernel.layout import LANES

BYTE, PLACE, WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(WORD, LANES)
PAIR, BLOCK = ir.VectorType(WORD, 2), ir.IntType(128)
DOUBLE = ir.IntType(256)
_AHEAD = 8
"""Columns: a microsecond or so."""


class Code:
    """A function under construction."""

    def __init__(self, module: Any, name: str, arguments: dict[str, Any]) -> None:
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), list(arguments.values())), name)
        self._module = module
        self.builder = ir.IRBuilder(function.append_basic_block())
        self.arguments = dict(zip(arguments, function.args, strict=True))

    @contextmanager
    def loop(self, count: Any) -> Iterator[Any]:
        """Repeat what is built inside for an index from 0 below count, at least once."""
        builder = self.builder
        before = builder.block
        body = builder.append_basic_block()
        builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(WORD)
        index.add_incoming(word(0), before)
        yield index
        following = builder.add(index, word(1))
        index.add_incoming(following, builder.block)
        after = builder.append_basic_block()
        builder.cbranch(builder.icmp_unsigned("<", following, count), body, after)
        builder.position_at_end(after)

    def at(self, base: Any, *terms: Any) -> Any:
        """The address so many words behind a pointer to words."""
        place = terms[0]
        for term in terms[1:]:
            place = self.builder.add(place, term)
        return self.builder.gep(base, [place])

    def load(self, address: Any, kind: Any = VECTOR) -> Any:
        return self.builder.load(self.builder.bitcast(address, kind.as_pointer()), align=8)

    def store(self, value: Any, address: Any) -> None:
        self.builder.store(value, self.builder.bitcast(address, value.type.as_pointer()), align=8)

    def prefetch(self, address: Any) -> None:
        """Ask for the words that a loop over columns needs some columns later: rows lie too far apart for a
        guess."""
        ahead = self.builder.bitcast(self.at(address, word(_AHEAD * LANES)), BYTE.as_pointer())
        how = [ir.Constant(PLACE, value) for value in (0, 3, 1)]  # to read, from all caches, data
        function = self.intrinsic("llvm.prefetch", ir.VoidType(), [ahead.type, PLACE, PLACE, PLACE])
        self.builder.call(function, [ahead, *how])

    def times(self, factor: int, value: Any) -> Any:
        return self.builder.mul(word(factor), value)

    def xor(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = self.builder.xor(first, other)
        return first

    def intrinsic(self, name: str, result: Any, arguments: list[Any]) -> Any:
        """One of LLVM's own functions."""
        known = self._module.globals.get(name)
        return known or ir.Function(self._module, ir.FunctionType(result, arguments), name)

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


def word(value: int) -> Any:
    return ir.Constant(WORD, value)


def lanes(places: list[int]) -> Any:
    return ir.Constant(ir.VectorType(PLACE, len(places)), places)
