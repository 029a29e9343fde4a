"""Greedy elimination as machine code: LLVM's intermediate representation of one function.

    eliminated(start, words, room, places, rows, table, edges, edged, most, steps)

What it computes is what `SizeEstimator._grown` does: cells of the maximal cliques once some columns have some
neighbours more. It takes every step of the elimination itself, in a twentieth of the time.

A column stands at a *place*, in the domain's order: bit `place % 64` of word `place // 64` of every set of
columns. Columns of which one is coarser than another share a word, the finer at the higher bit. So the cells of
a set are a product, word by word: the highest bit's column counts, and its bit and those of what is coarser are
cleared (`table`: values by the place, and behind them the bits that are cleared with it).

No pass rewrites what is built, so what changes within a step is kept in registers by hand, what changes from
step to step in the state.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from mpc_protocols.process.compiled.builder import WORD, Function, Loop, word
from synth.mrf.tree_size.state import (
    CELLS,
    HEAD,
    KEY_LANES,
    LANES,
    LEFT,
    MAX_WORD_CELLS,
    NO_KEY,
    PLACE_BITS,
    TAKEN,
    UNKNOWN,
)


class _Elimination(Function):
    """The function under construction."""

    def __init__(self, module: Any) -> None:
        words = WORD.as_pointer()
        super().__init__(
            module,
            "eliminated",
            {"start": words, "words": WORD, "room": words, "places": WORD, "rows": WORD, "table": words}
            | {"edges": words, "edged": WORD, "most": WORD, "steps": WORD},
        )
        build, given = self.builder, self.arguments
        self.rows, self.room, self.places = given["rows"], given["room"], given["places"]
        size = build.mul(self.places, self.rows)
        self.near = self.at(self.room, word(HEAD))
        self.marks = self.at(self.near, size)
        self.where = self.at(self.marks, size)
        self.keys = self.at(self.where, self.places)
        self.owners = self.at(self.keys, self.places)
        self.counts = self.at(self.owners, self.places)
        self.pending = self.at(self.counts, self.places)

    def load(self, base: Any, *terms: Any) -> Any:
        return self.builder.load(self.at(base, *terms))

    def store(self, value: Any, base: Any, *terms: Any) -> None:
        self.builder.store(value, self.at(base, *terms))

    def row(self, of: Any, place: Any) -> Any:
        """Where the row of a place begins."""
        return self.at(of, self.builder.mul(place, self.rows))

    def bit(self, place: Any) -> tuple[Any, Any]:
        """(which word of a row, its bit) of a place."""
        build = self.builder
        return build.lshr(place, word(6)), build.shl(word(1), build.and_(place, word(63)))

    def vector(self, base: Any, number: Any, lanes: int) -> Any:
        """The address of the vector of this number."""
        kind = ir.VectorType(WORD, lanes).as_pointer()
        return self.builder.bitcast(self.at(base, self.times(lanes, number)), kind)

    @contextmanager
    def while_some(self, *first: Any) -> Iterator[Loop]:
        """Repeat while the first of what is carried is not zero."""
        build, before = self.builder, self.builder.block
        head, body, after = (build.append_basic_block() for _ in range(3))
        build.branch(head)
        build.position_at_end(head)
        values = [build.phi(value.type) for value in first]
        for phi, value in zip(values, first, strict=True):
            phi.add_incoming(value, before)
        build.cbranch(build.icmp_unsigned("!=", values[0], word(0)), body, after)
        build.position_at_end(body)
        loop = Loop(None, values, values)
        yield loop
        for phi, value in zip(values, loop.following, strict=True):
            phi.add_incoming(value, build.block)
        build.branch(head)
        build.position_at_end(after)

    def counted_zeros(self, name: str, value: Any) -> Any:
        """Zeros behind the lowest bit (cttz) or before the highest (ctlz)."""
        flag = ir.IntType(1)
        function = self.intrinsic(f"llvm.{name}.i64", WORD, [WORD, flag])
        return self.builder.call(function, [value, ir.Constant(flag, 1)])

    @contextmanager
    def members(self, row: Any) -> Iterator[Any]:
        """What is built inside, for each place of a row."""
        build = self.builder
        with self.loop(self.rows) as number, self.while_some(self.load(row, number)) as bits:
            value = bits.values[0]
            yield build.add(build.shl(number, word(6)), self.counted_zeros("cttz", value))
            bits.following = [build.and_(value, build.sub(value, word(1)))]

    def count(self, row: Any) -> Any:
        """How many places a row has."""
        build, ones = self.builder, self.intrinsic("llvm.ctpop.i64", WORD, [WORD])
        with self.carrying(self.rows, word(0)) as sums:
            sums.following = [build.add(sums.values[0], build.call(ones, [self.load(row, sums.index)]))]
        return sums.values[0]

    def key(self, place: Any) -> Any:
        """The key of a place, by its neighbourhood."""
        build, table, row = self.builder, self.arguments["table"], self.row(self.near, place)
        cleared = self.at(table, self.places)
        with self.carrying(self.rows, word(1)) as by_word:
            base = build.shl(by_word.index, word(6))
            with self.while_some(self.load(row, by_word.index), by_word.values[0]) as bits:
                value, product = bits.values
                high = build.sub(word(63), self.counted_zeros("ctlz", value))
                at = build.add(base, high)
                product = build.mul(product, self.load(table, at))
                few = build.icmp_unsigned("<", product, word(MAX_WORD_CELLS))
                bits.following = [
                    build.and_(value, build.not_(self.load(cleared, at))),
                    build.select(few, product, word(MAX_WORD_CELLS)),
                ]
            by_word.following = [bits.values[1]]
        return build.or_(build.shl(by_word.values[0], word(PLACE_BITS)), place)

    def copy_start(self) -> None:
        build, given = self.builder, self.arguments
        with self.loop(build.udiv(given["words"], word(KEY_LANES))) as number:
            value = build.load(self.vector(given["start"], number, KEY_LANES), align=8)
            build.store(value, self.vector(self.room, number, KEY_LANES), align=8)

    def add_edges(self) -> None:
        """Add the neighbours, pairs (place, its neighbour); columns that were no part of it come in."""
        build, given = self.builder, self.arguments
        for is_first in (True, False):  # keys when all neighbours are known
            with self.loop(given["edged"]) as edge:
                place = self.load(given["edges"], self.times(2, edge))
                if is_first:
                    absent = build.icmp_unsigned("==", self.load(self.where, place), word(NO_KEY))
                    with build.if_then(absent):
                        left = self.load(self.room, word(LEFT))
                        self.store(left, self.where, place)
                        self.store(place, self.owners, left)
                        self.store(build.add(left, word(1)), self.room, word(LEFT))
                    other = self.load(given["edges"], build.add(self.times(2, edge), word(1)))
                    number, bit = self.bit(other)
                    near = self.row(self.near, place)
                    self.store(build.or_(self.load(near, number), bit), near, number)
                else:
                    self.store(self.key(place), self.keys, self.load(self.where, place))

    def least_key(self) -> Any:
        build = self.builder
        kind = ir.VectorType(WORD, KEY_LANES)
        vectors = build.udiv(
            build.add(self.load(self.room, word(LEFT)), word(KEY_LANES - 1)), word(KEY_LANES)
        )
        with self.carrying(vectors, ir.Constant(kind, [NO_KEY] * KEY_LANES)) as loop:
            value = build.load(self.vector(self.keys, loop.index, KEY_LANES), align=8)
            less = build.icmp_signed("<", value, loop.values[0])
            loop.following = [build.select(less, value, loop.values[0])]
        return build.call(
            self.intrinsic(f"llvm.vector.reduce.smin.v{KEY_LANES}i64", WORD, [kind]), [loop.values[0]]
        )

    def lies_in_an_earlier(self, place: Any, size: Any) -> Any:
        """Whether the clique of a column that goes, of so many columns, is no maximal one (a word, 0 if not).

        What the steps that left it have left is gone in part from now on: they are not pending any more.
        """
        build, marks = self.builder, self.row(self.marks, place)
        with self.carrying(self.rows, word(0)) as by_word:
            left_it = self.load(marks, by_word.index)
            waiting = self.load(self.pending, by_word.index)
            self.store(build.and_(waiting, build.not_(left_it)), self.pending, by_word.index)
            base = build.shl(by_word.index, word(6))
            with self.while_some(build.and_(left_it, waiting), by_word.values[0]) as bits:
                value, found = bits.values
                step = build.add(base, self.counted_zeros("cttz", value))
                same = build.icmp_unsigned("==", self.load(self.counts, step), size)
                found = build.or_(found, build.zext(same, WORD))
                bits.following = [build.and_(value, build.sub(value, word(1))), found]
            by_word.following = [bits.values[1]]
        return by_word.values[0]

    def take(self, place: Any, left: Any) -> None:
        """Remove the key of a column that goes: the last one takes its place."""
        last = self.builder.sub(left, word(1))
        at = self.load(self.where, place)
        moved = self.load(self.owners, last)
        self.store(self.load(self.keys, last), self.keys, at)
        self.store(moved, self.owners, at)
        self.store(at, self.where, moved)
        self.store(word(NO_KEY), self.keys, last)
        self.store(last, self.room, word(LEFT))

    def join_neighbours(self, place: Any) -> None:
        """Make a clique of what a column that goes leaves."""
        build = self.builder
        row, (at, bit) = self.row(self.near, place), self.bit(place)
        self.store(build.xor(self.load(row, at), bit), row, at)
        step = self.load(self.room, word(TAKEN))
        step_word, step_bit = self.bit(step)
        size = self.count(row)
        self.store(size, self.counts, step)
        some = build.icmp_unsigned("!=", size, word(0))
        waiting = build.or_(self.load(self.pending, step_word), build.select(some, step_bit, word(0)))
        self.store(waiting, self.pending, step_word)
        with self.members(row) as other:
            near, marks = self.row(self.near, other), self.row(self.marks, other)
            with self.loop(build.udiv(self.rows, word(LANES))) as number:
                address = self.vector(near, number, LANES)
                more = build.load(self.vector(row, number, LANES), align=8)
                build.store(build.or_(build.load(address, align=8), more), address, align=8)
            self.store(build.and_(self.load(near, at), build.not_(bit)), near, at)
            self.store(build.or_(self.load(marks, step_word), step_bit), marks, step_word)
            self.store(self.key(other), self.keys, self.load(self.where, other))
        self.store(build.add(step, word(1)), self.room, word(TAKEN))

    def build(self) -> None:
        """The whole: steps until the clique holds all that is left, or there are more cells than `most`, or so
        many steps are taken."""
        build, given = self.builder, self.arguments
        self.copy_start()
        self.add_edges()
        head, body, end = (build.append_basic_block() for _ in range(3))
        build.branch(head)
        build.position_at_end(head)
        left, taken = self.load(self.room, word(LEFT)), self.load(self.room, word(TAKEN))
        goes_on = build.and_(
            build.icmp_unsigned("!=", left, word(0)), build.icmp_unsigned("<", taken, given["steps"])
        )
        build.cbranch(goes_on, body, end)
        build.position_at_end(body)
        key = self.least_key()
        cells = build.lshr(key, word(PLACE_BITS))
        place = build.and_(key, word((1 << PLACE_BITS) - 1))
        too_many = build.icmp_unsigned(">=", cells, word(MAX_WORD_CELLS))
        size = self.count(self.row(self.near, place))
        in_earlier = build.icmp_unsigned("!=", self.lies_in_an_earlier(place, size), word(0))
        more = build.add(self.load(self.room, word(CELLS)), build.select(in_earlier, word(0), cells))
        self.store(more, self.room, word(CELLS))
        self.store(build.zext(too_many, WORD), self.room, word(UNKNOWN))
        ends = build.or_(
            build.or_(build.icmp_unsigned("==", size, left), too_many),
            build.icmp_unsigned(">", more, given["most"]),
        )
        with build.if_then(build.not_(ends)):
            self.take(place, left)
            self.join_neighbours(place)
        build.cbranch(ends, end, head)
        build.position_at_end(end)
        build.ret_void()


def module() -> str:
    """The module with the one function."""
    made = ir.Module("elimination")
    _Elimination(made).build()
    return str(made)
