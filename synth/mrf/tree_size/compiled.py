"""Eliminations of one graph with neighbours added, in machine code (`code.py`), as `SizeEstimator` makes them in
Python: the same cells.

The sizes are the same whoever counts, so parties of a run may differ in what they have installed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from mpc_protocols.process.compiled.library import ADDRESS, WORD, CompiledOnce, address, functions
from mpc_protocols.process.later import Later
from synth.mrf.junction_tree import ColumnSet, eliminate, graph, maximal
from synth.mrf.tree_size.state import (
    HEAD,
    KEY_LANES,
    LANES,
    MAX_PLACES,
    MAX_VALUES,
    MAX_WORD_CELLS,
    NO_KEY,
    TAKEN,
    UNKNOWN,
)

if TYPE_CHECKING:
    from synth.mrf.tree_size import code
else:
    code = Later("synth.mrf.tree_size.code")

Eliminated = Callable[..., None]
_SIGNATURE: Final = (ADDRESS, WORD, ADDRESS, WORD, WORD, ADDRESS, ADDRESS, WORD, WORD, WORD)
WORTH_COMPILING: Final = 1 << 17
"""Steps of eliminations: Python takes about as long for these as compiling does."""
_STARTS: Final = 16
"""Of the elimination without a candidate, states that are kept."""
_BITS: Final = 64


def bits_of(mask: int) -> list[int]:
    """The numbers of the bits that are set, from the lowest."""
    found = []
    while mask:
        low = mask & -mask
        mask ^= low
        found.append(low.bit_length() - 1)
    return found


class Places:
    """Where some columns of a domain stand, in its order: those of which one is coarser than another in one word."""

    def __init__(self, columns: ColumnSet, placed: int) -> None:
        """placed: the columns' bits. Raises `ValueError` for columns that are counted in Python."""
        self.of: dict[int, int] = {}
        """Place by the column's number."""
        at = 0
        for group in _together(columns, placed):
            if at % _BITS + len(group) > _BITS:
                at = _up(at, _BITS)
            self.of |= {number: at + further for further, number in enumerate(group)}
            at += len(group)
        self.count = _up(at, KEY_LANES)
        if self.count > MAX_PLACES:
            raise ValueError("So many columns are counted in Python.")
        self.rows = _up(-(-at // _BITS), LANES)
        self.table = np.ones((2, self.count), np.uint64)
        """Values, and bits of a word that are cleared."""
        for number, place in self.of.items():
            cleared = [self.of[other] % _BITS for other in bits_of(columns.implied(number) & placed)]
            self.table[:, place] = columns.sizes[number], sum(1 << bit for bit in (place % _BITS, *cleared))


class CompiledElimination:
    """Eliminations of a graph with some neighbours more."""

    def __init__(self, call: Eliminated, places: Places, near: Sequence[int], columns: Sequence[int]) -> None:
        """near: each column's neighbourhood in the graph. columns: those that are part of it, in the order in
        which they go."""
        self._call, self._of, rows, count = call, places.of, places.rows, places.count
        self._order = {number: step for step, number in enumerate(columns)}
        size = count * rows
        words = HEAD + 2 * size + 4 * count + _up(rows, KEY_LANES)
        self._room = np.empty(words, np.uint64)
        self._table = places.table  # whose address is held
        self._fixed = words, address(self._room), count, rows, address(self._table)
        start = np.zeros(words, np.uint64)
        neighbours = start[HEAD : HEAD + size].reshape(count, rows)
        for number, place in self._of.items():
            for other in bits_of(near[number]):
                at = self._of[other]
                neighbours[place, at // _BITS] |= np.uint64(1 << at % _BITS)
        start[HEAD + 2 * size :][: 2 * count] = NO_KEY  # where keys stand, and keys
        # A column comes in with its first neighbour: itself.
        self._run(
            address(start), [self._of[number] for number in columns for _ in range(2)], MAX_WORD_CELLS, 0
        )
        self._starts, self._steps = [self._room.copy()], [0]
        every = max(1, -(-len(columns) // _STARTS))
        for step in range(every, len(columns), every):
            self._run(address(self._starts[-1]), [], NO_KEY, step)
            if int(self._room[TAKEN]) < step:
                break
            self._starts.append(self._room.copy())
            self._steps.append(step)
        self._addresses = [address(state) for state in self._starts]

    def grown(self, grown: Mapping[int, int], most: float) -> int | None:
        """Cells of the maximal cliques once these columns have these neighbours too; above `most`, of a part of
        them, as `SizeEstimator`'s form in Python counts them. None if that is to count: a column has no place, or
        cells are too many for a word.

        most: no less than there are without these neighbours.
        """
        edges, of, order = list[int](), self._of, self._order
        if most >= MAX_WORD_CELLS or not of.keys() >= grown.keys():
            return None
        first = len(order)  # steps that take none of these columns
        for column, mask in grown.items():
            place = of[column]
            if (step := order.get(column, first)) < first:
                first = step
            while mask:
                low = mask & -mask
                mask ^= low
                edges += place, of[low.bit_length() - 1]
        self._run(self._addresses[bisect_right(self._steps, first) - 1], edges, int(most), NO_KEY)
        _, _, cells, unknown = self._room[: UNKNOWN + 1].tolist()
        return None if unknown else cells

    def _run(self, start: int, edges: Sequence[int], most: int, steps: int) -> None:
        """From the state at this address on. steps: of all, those from the start of the graph's among them."""
        pairs = array("Q", edges)
        self._call(start, *self._fixed, pairs.buffer_info()[0], len(edges) // 2, most, steps)


def _together(columns: ColumnSet, placed: int) -> list[list[int]]:
    """These columns' numbers in order, those together between which one is coarser than another."""
    found, group = list[list[int]](), list[int]()
    first = len(columns.names)
    for number in reversed(bits_of(placed)):
        coarser = columns.implied(number) & placed
        first = min([first, number, *bits_of(coarser)[:1]])
        group.insert(0, number)
        if coarser >> number or columns.sizes[number] > MAX_VALUES or len(group) > _BITS:
            raise ValueError("Columns like these are counted in Python.")
        if number == first:
            found.insert(0, group)
            first, group = len(columns.names), []
    return found


def elimination(
    columns: ColumnSet, placed: int, near: Sequence[int], order: Sequence[int]
) -> CompiledElimination | None:
    """Of a graph over some of these columns; None if Python is to count. placed: the bits of those that may get
    neighbours. near, order: as `CompiledElimination`'s."""
    call = _COMPILED(columns.steps)
    try:
        return call and CompiledElimination(call, Places(columns, placed), near, order)
    except ValueError:
        return None


def _compile() -> Eliminated:
    return functions(code.module(), {"eliminated": _SIGNATURE})["eliminated"]


def _agrees(call: Eliminated) -> bool:
    """Whether it counts what Python does, of a ring of columns with chords: in two words, with a column that is
    coarser than another, and one that is no part of the ring at first."""
    names = [f"{number}" for number in range(70)]
    columns = ColumnSet({name: 2 + number % 3 for number, name in enumerate(names)}, {"9": ("8",)})
    held, late = (1 << 69) - 1, 1 << 69
    pairs = [1 << number | 1 << (number + 1) % 69 for number in range(69)]
    near = graph(columns, [*pairs, columns.mask(("9",))])
    order = [step.column for step in eliminate(columns, list(near), late)]
    found = CompiledElimination(call, Places(columns, held | late), near, order)
    for clique in (1 << 2 | 1 << 40, 1 << 9 | 1 << 66 | late, 1 << 20 | 1 << 30 | 1 << 50):
        steps = eliminate(columns, graph(columns, [*pairs, columns.mask(("9",)), clique]), late & ~clique)
        cells = sum(map(columns.cells, maximal(steps)))
        grown = {number: clique & ~near[number] for number in bits_of(clique)}
        if found.grown(grown, cells) != cells:
            return False
    return True


_COMPILED = CompiledOnce(_compile, _agrees, WORTH_COMPILING)


def _up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
