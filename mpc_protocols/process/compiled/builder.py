"""A function under construction, in LLVM's intermediate representation: its arguments, loops, addresses.

Conditions and arithmetic are those of llvmlite's own builder. No pass rewrites what is
built: values that a loop changes are carried by it, not kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

WORD = ir.IntType(64)
_BYTE, _SMALL = ir.IntType(8), ir.IntType(32)


def word(value: int) -> Any:
    return ir.Constant(WORD, value)


@dataclass
class Loop:
    """A loop under construction.

    index: from 0. values: what it carries: inside as they are before a turn, behind the loop as they are after
    the last one. following: what they become by a turn, to be set inside.
    """

    index: Any
    values: Sequence[Any]
    following: Sequence[Any]


class Function:
    """A function under construction, with `builder` at its end."""

    def __init__(self, module: Any, name: str, arguments: dict[str, Any], result: Any = None) -> None:
        """arguments: their types by name. result: its type; None if there is none."""
        kind = ir.FunctionType(result or ir.VoidType(), list(arguments.values()))
        function = ir.Function(module, kind, name)
        self._module = module
        self.builder = ir.IRBuilder(function.append_basic_block())
        self.arguments = dict(zip(arguments, function.args, strict=True))

    @contextmanager
    def carrying(self, count: Any, *first: Any) -> Iterator[Loop]:
        """Repeat what is built inside for an index from 0 below count, and carry values that are `first` at
        first."""
        builder, before = self.builder, self.builder.block
        head, body, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        index, *values = [builder.phi(value.type) for value in (count, *first)]
        for phi, value in zip((index, *values), (ir.Constant(count.type, 0), *first), strict=True):
            phi.add_incoming(value, before)
        builder.cbranch(builder.icmp_unsigned("<", index, count), body, after)
        builder.position_at_end(body)
        loop = Loop(index, values, values)
        yield loop
        following = builder.add(index, ir.Constant(count.type, 1))
        for phi, value in zip((index, *values), (following, *loop.following), strict=True):
            phi.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def loop(self, count: Any) -> Iterator[Any]:
        """Repeat what is built inside for an index from 0 below count."""
        with self.carrying(count) as loop:
            yield loop.index

    def at(self, base: Any, *terms: Any) -> Any:
        """The address so many elements behind a pointer to elements."""
        place = terms[0]
        for term in terms[1:]:
            place = self.builder.add(place, term)
        return self.builder.gep(base, [place])

    def times(self, factor: int, value: Any) -> Any:
        return self.builder.mul(word(factor), value)

    def prefetch(self, address: Any) -> None:
        """Ask for what will be read at an address."""
        address = self.builder.bitcast(address, _BYTE.as_pointer())
        how = [ir.Constant(_SMALL, value) for value in (0, 3, 1)]  # to read, from all caches, data
        function = self.intrinsic("llvm.prefetch", ir.VoidType(), [address.type, *[_SMALL] * 3])
        self.builder.call(function, [address, *how])

    def intrinsic(self, name: str, result: Any, arguments: list[Any]) -> Any:
        """One of LLVM's own functions."""
        known = self._module.globals.get(name)
        return known or ir.Function(self._module, ir.FunctionType(result, arguments), name)
