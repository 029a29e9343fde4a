"""Many pairs of columns that no node of a calibrated tree holds, side by side.

Problem: a list of 200 columns asks for 20,000 pairs, and a product of two tables of a hundred cells takes less time than
the calls that make it. What a subtree says about one column behind a separator, P(column | separator), is a matrix, so
those of several columns stand side by side as one: a stack. A node's conditional times a stack is a stack towards the
next separator, and a node's belief times a stack are the pairs of a column of the node with every column of the stack:
products of matrices, one for each combination of the columns that both sides keep.

A stack whose condition lies in the next separator passes through the node as it is, as `elimination` has it. Where
separators are large, a stack is as narrow as one column: its cells stay in the processor's cache. Source: variable
elimination as in `elimination.py`; same marginals up to the last digits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique
from synth.mrf.levels import summed_along
from synth.mrf.marginals.calibrated import CalibratedTree, Edge
from synth.mrf.marginals.tables import Table, check_cells

STACK_CELLS = 2**15
"""Of a stack of more than one column; half of it and twice as many take as long."""


class Stack(NamedTuple):
    """P(column | condition) of several columns. values: a row for each cell of the condition, the columns' values beside
    one another. columns: of each (a name), where its values begin."""

    condition: Clique
    values: Array
    columns: dict[str, int]


class PairsAcross:
    """Marginals of pairs of columns, each of one part of the tree."""

    def __init__(self, tree: CalibratedTree) -> None:
        self._tree, self._chains, self._sizes = tree, tree.chains, tree.chains.sizes
        self._wanted: dict[Edge, set[str]] = {}  # what is asked of the first of two neighbours by the second
        self._stacks: dict[Edge, list[Stack]] = {}
        self._holders: dict[str, list[int]] = {}
        self._sums: dict[tuple[int, int, Clique], Table] = {}

    def marginals(self, pairs: Iterable[Clique]) -> dict[Clique, Array]:
        """Expected counts of each pair (flat, row-major), without the pairs that a node holds. ValueError: a table of more
        than `MAX_TABLE_CELLS`."""
        meeting: dict[
            Edge, dict[str, dict[str, Clique]]
        ] = {}  # column of the node, column behind the edge: pair
        for pair in dict.fromkeys(pairs):
            if (node := self._meeting_point(pair)) is not None:
                ((lead, (far,)),) = self._tree.by_neighbour(node, pair).items()
                near = pair[pair[0] == far]
                meeting.setdefault((lead, node), {}).setdefault(near, {})[far] = pair
        for edge, asked in meeting.items():
            self._ask(edge, {far for fars in asked.values() for far in fars})
        found: dict[Clique, Array] = {}
        for edge, asked in meeting.items():
            for stack in self._behind(edge):
                for near, fars in asked.items():
                    if (some := self._only(stack, fars)) is not None:
                        found |= self._pairs(edge[1], near, some, fars)
        return found

    def _pairs(self, node: int, near: str, stack: Stack, fars: dict[str, Clique]) -> dict[Clique, Array]:
        """A column of the node beside each column of the stack that is asked for."""
        found = {}
        for part in self._cut(stack, (near,)):
            counts = self._product(self._tree.beliefs[node], (node, node), part, (near,))
            for far, start in part.columns.items():
                if (pair := fars.get(far)) is not None:
                    values = counts[:, start : start + self._sizes[far]]
                    found[pair] = (values if pair[1] == far else values.T).flatten()
        return found

    def _meeting_point(self, pair: Clique) -> int | None:
        """The smallest node that holds one of two columns; None if a node holds both."""
        one, other = map(self._holding, pair)
        if not set(one).isdisjoint(other):
            return None
        return min(one[0], other[0], key=self._size)

    def _holding(self, name: str) -> list[int]:
        """The nodes that hold a column at this level, the smallest first."""
        known = self._holders.get(name)
        if known is None:
            nodes = self._tree.holders[self._chains.column[name]]
            known = self._holders[name] = sorted(
                (node for node in nodes if self._tree.holds(node, name)), key=self._size
            )
        return known

    def _size(self, node: int) -> tuple[int, int]:
        return self._tree.beliefs[node].values.size, node

    def _ask(self, edge: Edge, names: Collection[str]) -> None:
        """Note what is asked through an edge, and so through those behind it."""
        asked = [(edge, names)]
        while asked:
            edge, names = asked.pop()
            known = self._wanted.setdefault(edge, set())
            new = [name for name in names if name not in known]
            known.update(new)
            for other, some in self._tree.by_neighbour(edge[0], new).items():
                asked.append(((other, edge[0]), some))

    def _behind(self, edge: Edge) -> list[Stack]:
        """What is asked through an edge; some columns may be in it that are not."""
        found = self._stacks.get(edge)
        if found is not None:
            return found
        tree, (node, towards) = self._tree, edge
        wanted = [name for name in self._sizes if name in self._wanted[edge]]  # in an order
        separator, conditional = tree.near[node][towards], tree.conditional(node, towards)
        found, made = [], list[Stack]()
        from_others = sorted(tree.by_neighbour(node, wanted).items())
        told = {name for _, names in from_others for name in names}
        for name in wanted:
            if name not in told:
                made.append(Stack(separator, self._own(conditional, name, separator), {name: 0}))
        for other, names in from_others:
            for stack in self._behind((other, node)):
                some = self._only(stack, names)
                if some is None:
                    continue
                if self._passes(some.condition, separator):
                    found.append(some)
                    continue
                made += [
                    Stack(separator, self._product(conditional, edge, part, separator), part.columns)
                    for part in self._cut(some, separator)
                ]
        found += self._joined(made)
        self._stacks[edge] = found
        return found

    def _passes(self, condition: Clique, separator: Clique) -> bool:
        """Whether the separator has all columns of the condition, at its levels or finer ones."""
        column, rank = self._chains.column, self._chains.rank
        own = {column[name]: rank[name] for name in separator}
        return all(own.get(column[name], -1) >= rank[name] for name in condition)

    def _only(self, stack: Stack, names: Collection[str]) -> Stack | None:
        """The columns of these names, and no more than as many values of others; None if there are none."""
        kept = [name for name in stack.columns if name in names]
        width = sum(self._sizes[name] for name in kept)
        if 2 * width > stack.values.shape[1]:
            return stack
        if not kept:
            return None
        parts = [
            Stack(stack.condition, stack.values[:, start : start + self._sizes[name]], {name: 0})
            for name, start in ((name, stack.columns[name]) for name in kept)
        ]
        return _side_by_side(parts)

    def _cut(self, stack: Stack, out: Clique) -> list[Stack]:
        """Parts of a stack that, given `out` instead of its condition as well, have at most `STACK_CELLS` or one column."""
        cells = max(len(stack.values), prod([self._sizes[name] for name in out]))
        if cells * stack.values.shape[1] <= STACK_CELLS:
            return [stack]
        runs: list[tuple[int, int, dict[str, int]]] = []  # of the values: begin, end; the columns there
        for name, start in stack.columns.items():
            stop = start + self._sizes[name]
            if runs and cells * (stop - runs[-1][0]) <= STACK_CELLS:
                begin, _, columns = runs.pop()
                runs.append((begin, stop, {**columns, name: start - begin}))
            else:
                runs.append((start, stop, {name: 0}))
        return [Stack(stack.condition, stack.values[:, begin:end], columns) for begin, end, columns in runs]

    def _joined(self, made: Sequence[Stack]) -> list[Stack]:
        """Stacks of one condition, as few as `STACK_CELLS` allows."""
        groups: list[list[Stack]] = []
        cells = 0
        for stack in made:
            if groups and cells + stack.values.size <= STACK_CELLS:
                groups[-1].append(stack)
                cells += stack.values.size
            else:
                groups.append([stack])
                cells = stack.values.size
        return list(map(_side_by_side, groups))

    def _own(self, conditional: Table, name: str, separator: Clique) -> Array:
        """P(a column of the node | separator): a row for each cell of the separator."""
        chains = self._chains
        of = chains.column[name]
        target = chains.finest(separator, (name,))
        check_cells(self._sizes, (*separator, name))
        table = self._tree.tables.restricted(conditional, target)
        axis = table.columns.index(name)
        shape = [self._sizes[other] for other in table.columns]
        values = table.values.reshape(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])).transpose(
            0, 2, 1
        )
        coarse = next((other for other in separator if chains.column[other] == of), None)
        if coarse is None:
            return values.reshape(-1, shape[axis])
        # The separator has bins of the column: a value is nowhere but in its bin.
        found = np.zeros((len(values), self._sizes[coarse], values.shape[1], shape[axis]))
        at = np.arange(shape[axis])
        found[:, chains.bins(name, coarse), :, at] = values.transpose(2, 0, 1)
        return found.reshape(-1, shape[axis])

    def _product(self, table: Table, key: Edge, stack: Stack, out: Clique) -> Array:
        """The table times a stack, summed down to `out`: a row for each of its cells, the stack's columns beside one another.

        key: of the table. out: in the order of all tables.
        """
        chains, sizes, width = self._chains, self._sizes, stack.values.shape[1]
        column = chains.column
        check_cells({**sizes, "": width}, (*out, ""))
        levels = chains.finest(out, stack.condition)
        names = self._tree.tables.restriction(table.columns, levels)
        if (left := self._sums.get((*key, names))) is None:
            left = self._sums[*key, names] = self._tree.tables.project(table, names)
        right = stack.values.reshape([*(sizes[name] for name in stack.condition), width])
        for axis, name in enumerate(stack.condition):
            if (fine := levels[column[name]]) != name:
                right = right.take(chains.bins(fine, name), axis=axis)
        kept, given = ([column[name] for name in some] for some in (out, stack.condition))
        of = [column[name] for name in names]
        both = [axis for axis, name in enumerate(of) if name in kept and name in given]
        rows = [axis for axis, name in enumerate(of) if name not in given]
        summed = [axis for axis, name in enumerate(of) if name not in kept]
        shape = left.values.shape
        batch, inner = (prod([shape[axis] for axis in axes]) for axes in (both, summed))
        a = left.values.transpose([*both, *rows, *summed]).reshape(batch, -1, inner)
        b = right.transpose([*(given.index(of[axis]) for axis in (*both, *summed)), len(given)])
        made = a @ b.reshape(batch, inner, width)
        order = [of[axis] for axis in (*both, *rows)]
        product = made.reshape([*(shape[axis] for axis in (*both, *rows)), width])
        product = np.ascontiguousarray(product.transpose([*map(order.index, kept), len(kept)]))
        for axis, name in enumerate(out):
            if (fine := levels[column[name]]) != name:
                product = summed_along(product, axis, chains.sums(fine, name))
        return product.reshape(-1, width)


def _side_by_side(stacks: Sequence[Stack]) -> Stack:
    """Stacks of one condition as one."""
    if len(stacks) == 1:
        return stacks[0]
    columns, start = dict[str, int](), 0
    for stack in stacks:
        columns |= {name: start + at for name, at in stack.columns.items()}
        start += stack.values.shape[1]
    return Stack(stacks[0].condition, np.concatenate([stack.values for stack in stacks], axis=1), columns)
