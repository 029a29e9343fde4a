"""Rows rearranged so that marginals outside the model's cliques, too, are close to the model's.

Problem: sampling along the junction tree keeps the marginals inside cliques to within rounding, but a
marginal across cliques gets the noise of a random matching, about that of a fresh sample. On Adult at epsilon
1 this costs 0.015 of the mean L1 error of 64 three-way marginals (`docs/design/algorithms.md` 5: 0.177 for
the model itself, 0.191 for a table sampled from it).

Method: two rows that agree on a separator of the tree may exchange all their columns on one side of it: every
marginal inside a clique of the tree stays what it was, to the row. Such exchanges are proposed for random
pairs and kept when they lower

    sum over the targets q of || table's marginal of q - model's marginal of q ||_1 .

A sweep proposes every row once per separator; of many rows, beside many targets, a part, others each time:
the larger a table, the less noise it has (200,000 rows of 60 columns, 6,500 at a time, come closer to 1,770
pairs than 20,000 rows do, all at a time). What a sweep gains: `docs/design/algorithms.md` 5. How an exchange
is judged: `pairs.py` for pairs of columns of few values, `cells.py` for all other targets; `kernel/` does both at
once, compiled, with the same result. Targets are public cliques and the model is a DP release: this is
post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.process.compiled.library import CompiledOnce
from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique, JunctionTree
from synth.mrf.levels import Chains
from synth.mrf.rows.cells import AcrossCells, CellTargets
from synth.mrf.rows.kernel.library import Kernel
from synth.mrf.rows.pairs import AcrossPairs, PairTargets, judged_as_pairs

Codes = NDArray[np.int32]
Rows = NDArray[np.intp]
Judges = Sequence[AcrossPairs | AcrossCells]

BATCH = 256  # most pairs judged against the same counts,
SHARE = 64  # and at most one per so many rows: more would overshoot together
MIN_GAIN = 1e-3  # rows: what float32 may take for a gain
MAX_WORK = 5e9  # rows looked at in a sweep of one separator, times targets, times the root of all rows
CODES = 2**18  # of rows and targets that are looked at together
MAX_TARGET_CELLS = 2**25  # of all targets together: a float32 table of that many
WORTH_COMPILING = 4 * 10**7  # rows looked at, times targets: compiling takes the time that it saves


class Exchanges:
    """Rows in which pairs may exchange some columns, judged by all targets together. values: (columns, rows)."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        cliques: Sequence[Clique],
        answers: Sequence[Array],
        values: Codes,
        kernel: Kernel | None = None,
    ) -> None:
        self.values = values
        self._multipliers = np.random.default_rng(0).integers(1 << 62, size=len(values)) * 2 + 1
        self._of_rows = self._keys(range(len(values)))
        narrow = judged_as_pairs(sizes, cliques)
        wanted = dict(zip(cliques, answers, strict=True))
        pairs = {clique: answer for clique, answer in wanted.items() if clique in narrow}
        others = {clique: answer for clique, answer in wanted.items() if clique not in narrow}
        self.kinds: list[PairTargets | CellTargets] = []
        if pairs:
            self.kinds.append(PairTargets(sizes, pairs, values))
        if others:
            self.kinds.append(CellTargets(sizes, others, values))
        self._compiled = kernel.exchanger(values) if kernel else None

    def judges(self, side: Sequence[int]) -> Judges:
        """Of exchanges of the columns `side`; none if no target has columns of both sides."""
        return [judge for kind in self.kinds if (judge := kind.across(side)) is not None]

    def make(self, first: Rows, second: Rows, side: Sequence[int], judges: Judges) -> None:
        """Exchange the columns `side` between the rows first[i] and second[i] where that helps. No row is in
        two pairs."""
        of_side = self._keys(side)
        others = self._of_rows - of_side
        # Rows that are the same on one side have nothing to exchange.
        unlike = np.flatnonzero(
            (of_side.take(first) != of_side.take(second)) & (others.take(first) != others.take(second))
        )
        first, second = first.take(unlike), second.take(unlike)
        together = max(BATCH, CODES // (len(self.values) + sum(judge.width for judge in judges)))
        batch = min(BATCH, max(1, self.values.shape[1] // SHARE))
        if self._compiled:
            made = self._compiled.make(first, second, side, judges, together, batch, -MIN_GAIN)
        else:
            made = self._made(first, second, side, judges, together, batch)
        for judge in judges:
            judge.close()
        a, b = first.take(made), second.take(made)
        self._of_rows[a], self._of_rows[b] = others[a] + of_side[b], others[b] + of_side[a]

    def _made(
        self, first: Rows, second: Rows, side: Sequence[int], judges: Judges, together: int, batch: int
    ) -> Rows:
        """Exchange where it helps; which pairs. together: pairs that are looked at, of which `batch` are
        judged against the same counts."""
        made = [np.empty(0, dtype=np.intp)]
        for start in range(0, len(first), together):
            a, b = first[start : start + together], second[start : start + together]
            codes = np.empty((len(self.values), 2, len(a)), dtype=np.int32)
            for of, (of_a, of_b) in zip(self.values, codes, strict=True):
                of.take(a, out=of_a, mode="clip")
                of.take(b, out=of_b, mode="clip")
            for judge in judges:
                judge.look(codes)
            helping = _judged(len(a), judges, batch)
            a, b = a.take(helping), b.take(helping)
            for column in side:
                of = self.values[column]
                of[a], of[b] = codes[column, 1].take(helping), codes[column, 0].take(helping)
            made.append(helping + start)
        return np.concatenate(made)

    def _keys(self, columns: Iterable[int]) -> NDArray[np.int64]:
        """A number for each row, the same where these columns are the same, and hardly ever where not (sums
        wrap)."""
        keys = np.zeros(self.values.shape[1], dtype=np.int64)
        for column in columns:
            keys += self.values[column] * self._multipliers[column]
        return keys


def _judged(pairs: int, judges: Judges, batch: int) -> Rows:
    """Which of the pairs that the judges look at exchange their columns."""
    made = [np.empty(0, dtype=np.intp)]
    for start in range(0, pairs, batch):
        stop = min(start + batch, pairs)
        good = np.flatnonzero(sum(judge.costs(start, stop) for judge in judges) < -MIN_GAIN)
        if len(good):
            for judge in judges:
                judge.exchanged(good)
            made.append(good + start)
    return np.concatenate(made)


def _agrees(made: Kernel) -> bool:
    """Whether it exchanges and sorts as NumPy does; there are more columns than a word has bits."""
    rng, rows = np.random.default_rng(0), 600
    sizes = {str(column): 2 + column % 4 for column in range(70)}
    values = np.stack([rng.integers(size, size=rows) for size in sizes.values()]).astype(np.int32)
    cliques: list[Clique] = [tuple(rng.choice(list(sizes), 3, replace=False)) for _ in range(30)]
    cliques += combinations(list(sizes)[:8], 2)  # judged as pairs
    answers = [rng.uniform(1, 9, prod(sizes[name] for name in clique)) for clique in cliques]
    order, side = rng.permutation(rows), range(0, len(sizes), 2)
    first, second = order.reshape(2, -1)
    compiled, known = (Exchanges(sizes, cliques, answers, values.copy(), of) for of in (made, None))
    for exchanges in (compiled, known):
        exchanges.make(first, second, side, exchanges.judges(side))
    alike = (
        np.array_equal(one, other)
        for one, other in (
            (compiled.values, known.values),
            *((one.surplus, other.surplus) for one, other in zip(compiled.kinds, known.kinds, strict=True)),
        )
    )
    keys = (rng.integers(1 << 53, size=rows) << 10) + np.arange(rows)
    return all(alike) and np.array_equal(np.sort(keys), made.sorted(keys, 10))


kernel = CompiledOnce(Kernel, _agrees, WORTH_COMPILING)
"""For so many rows that are looked at, times targets, the kernel if this process can have it and it is worth
while."""


def _pairs(
    group: NDArray[np.int64], groups: int, rng: np.random.Generator, compiled: Kernel | None = None
) -> tuple[Rows, Rows]:
    """Disjoint random pairs of rows of the same group, each group's spread evenly over the order. group: of
    each row."""
    row_bits = (len(group) - 1).bit_length()
    free = 63 - row_bits - (groups - 1).bit_length()
    # Sorted with the row's number below: faster than an argsort.
    order = (group << free) + rng.integers(1 << free, size=len(group))
    order = (order << row_bits) + np.arange(len(group))
    if compiled:
        order = compiled.sorted(order, row_bits)
    else:
        order.sort()
    order &= (1 << row_bits) - 1
    half = len(order) // 2 * 2
    first, second = order[:half:2], order[1:half:2]
    if groups > 1:
        alike = np.flatnonzero(group.take(first) == group.take(second))
        first, second = first.take(alike), second.take(alike)
    apart = max(1, len(first) // BATCH)
    spread = np.concatenate([np.arange(start, len(first), apart) for start in range(apart)])
    return first.take(spread), second.take(spread)


def _subtrees(tree: JunctionTree) -> list[set[str]]:
    """Columns of each node and of everything below it."""
    below = [set(members) for members in tree.members]
    for index in range(len(below) - 1, 0, -1):
        below[tree.parents[index]] |= below[index]
    return below


def _affordable(sizes: Mapping[str, int], cliques: Sequence[Clique], rng: np.random.Generator) -> list[int]:
    """Positions of the targets to use: all of them, or as many random ones as the memory limit allows."""
    chosen: list[int] = []
    cells = 0
    for index in rng.permutation(len(cliques)).tolist():
        cells += (size := prod(sizes[name] for name in cliques[index]))
        if cells > MAX_TARGET_CELLS:
            cells -= size
        else:
            chosen.append(index)
    return sorted(chosen)


def _window(rows: int, targets: int) -> int:
    """How many rows are looked at in a sweep of one separator."""
    return min(rows, max(2, int(MAX_WORK / (targets * rows**0.5))))


def _windows(rows: int, most: int, rng: np.random.Generator) -> Iterator[Rows]:
    """All rows, or so many random ones, others each time until all have been."""
    order, start = rng.permutation(rows), 0
    while True:
        yield np.concatenate((order[start : start + most], order[: max(0, start + most - rows)]))
        start = (start + most) % rows


def prepare(columns: int, targets: int, rows: int, sweeps: int) -> None:
    """Compile what `balance` of such a table may take, 0.1 s of CPU, in a thread that has nothing else to do."""
    kernel(sweeps * (columns - 1) * _window(rows, targets) * targets if targets else 0)


def balance(
    tree: JunctionTree,
    chains: Chains,
    table: NDArray[np.int64],
    cliques: Sequence[Clique],
    answers: Callable[[Sequence[Clique]], list[Array]],
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Rearrange the rows of `table` (int64, rows x columns in domain order) in place, towards the model on
    the targets `cliques`.

    answers: gives the model's marginals of some cliques, flat row-major. Marginals inside the tree's cliques
    stay what they are. chains: with the levels that the separators name, which are no columns of the table.
    CPU time: 0.13 s per sweep for 50,000 rows, 14 columns and 64 targets, half of that with the kernel.
    """
    sizes = {name: chains.sizes[name] for name in dict.fromkeys(chains.column.values())}
    holders: dict[str, list[frozenset[str]]] = {}
    for members in tree.members:
        for name in members:
            holders.setdefault(name, []).append(members)
    across = [clique for clique in cliques if not any(node.issuperset(clique) for node in holders[clique[0]])]
    chosen = [across[i] for i in _affordable(sizes, across, rng)]
    if len(table) < 2 or not chosen:
        return
    values = np.ascontiguousarray(table.T, dtype=np.int32)
    window = _window(len(table), len(chosen))
    compiled = kernel(sweeps * (len(tree.nodes) - 1) * window * len(chosen))
    exchanges = Exchanges(sizes, chosen, answers(chosen), values, compiled)
    column = {name: index for index, name in enumerate(sizes)}
    below, windows = _subtrees(tree), _windows(len(table), window, rng)
    for _ in range(sweeps):
        for index in range(1, len(tree.nodes)):
            separator = tree.members[index] & tree.members[tree.parents[index]]
            side, other = below[index] - separator, chains.sizes.keys() - below[index]
            sides = [sorted(column[name] for name in names & sizes.keys()) for names in (side, other)]
            columns = min(sides, key=len)  # rows have no order: either side may be exchanged
            if not (judges := exchanges.judges(columns)):
                continue
            rows, groups = next(windows), 1
            group = np.zeros(len(rows), dtype=np.int64)
            for name in tree.separators[index]:
                groups *= chains.sizes[name]
                group *= chains.sizes[name]
                value = exchanges.values[column[chains.column[name]]].take(rows)
                group += value if name in sizes else chains.bins(chains.column[name], name).take(value)
            first, second = _pairs(group, groups, rng, compiled)
            exchanges.make(rows.take(first), rows.take(second), columns, judges)
    table[:] = exchanges.values.T
