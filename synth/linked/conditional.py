"""Rows of some columns of a model, given all its other columns, row by row: exact, and for many rows at once.

Problem: a child is drawn given its own person and the child before, so every row has evidence of its own, and
`synth/mrf/ conditional.py` would need a model a row. Where all columns but a few are known, the law of these
is a Markov field over them alone: each potential that names one is a slice, at the row's values of the
others. The free columns are eliminated one by one, the tables having an axis for the rows, and drawn
backwards (variable elimination; Koller and Friedman 2009, 9.3 and 12.3).

Levels of a free column are drawn with it, as columns of their own that it determines: so a potential over
bins stays small.

Cost: rows times the cells of the largest set of free columns that an elimination joins; rows go in blocks of
bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from synth.mrf import Model
from synth.mrf.factor import Array
from synth.mrf.levels import Chains

CELLS = 1 << 21
"""Of a block's largest table."""
GOLDEN = (5**0.5 - 1) / 2
Codes = NDArray[np.int64]
_Table = tuple[tuple[str, ...], Array]  # its free columns, and log weights (rows or 1, a size each)


@dataclass(frozen=True)
class _Evidence:
    """A known axis of a potential. column: its place in a row. size: of the axis. bins: of each code; None:
    the codes themselves."""

    column: int
    size: int
    bins: NDArray[np.intp] | None


def _bins(chains: Chains, name: str) -> NDArray[np.intp] | None:
    column = chains.column[name]
    return None if column == name else chains.bins(column, name)


class ConditionalLaw:
    """The law of the columns `free` of a model, given all the others.

    allowed: of a free column, which codes it may have. unknown: columns that are not given either, and not
    asked for. Columns that no potential joins with one of these need no value.
    """

    def __init__(
        self,
        model: Model,
        free: Sequence[str],
        allowed: Mapping[str, NDArray[np.bool_]] | None = None,
        unknown: Sequence[str] = (),
    ) -> None:
        chains = Chains.used(model.sizes, model.used_levels, model.cliques)
        self._columns = tuple(free)
        self._free = tuple(one for name in (*free, *unknown) for one in (*chains.coarser[name], name))
        self._sizes = {name: chains.sizes[name] for name in self._free}
        self._place = {name: j for j, name in enumerate(model.sizes)}
        self._potentials: list[tuple[tuple[str, ...], tuple[_Evidence, ...], Array]] = []
        for clique, values in model.potentials.items():
            self._add(chains, clique, np.asarray(values).reshape([chains.sizes[name] for name in clique]))
        for clique, cells in model.impossible.items():
            self._add(chains, clique, np.where(cells, -np.inf, 0.0))
        for coarse, fine in pairwise(self._free):
            if chains.column[coarse] == chains.column[fine]:
                own = chains.bins(fine, coarse)[None] == np.arange(self._sizes[coarse])[:, None]
                self._potentials.append(((coarse, fine), (), np.where(own, 0.0, -np.inf)[None]))
        self._alone = {name: np.zeros(size) for name, size in self._sizes.items()}
        for name, codes in (allowed or {}).items():
            self._alone[name] = np.where(codes, 0.0, -np.inf)
        self._evidence = sorted({one.column for _, evidence, _ in self._potentials for one in evidence})
        self._steps = self._elimination()
        self._most = max(
            (prod(self._sizes[n] for n in (name, *rest)) for name, rest in self._steps), default=1
        )

    def draw(
        self, rows: Codes, rng: np.random.Generator, weights: Mapping[str, Array] | None = None
    ) -> Codes:
        """Codes of the free columns for each row, (rows, free). rows: codes of all columns, in the model's
        order, of which those of the free ones do not matter. weights: of a free column, logarithms that its
        law is multiplied by, (rows, codes).

        A row that the model has no mass for takes any allowed codes.
        """
        out = np.empty((len(rows), len(self._columns)), dtype=np.int64)
        block = max(1, CELLS // self._most)
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            own = {name: values[part] for name, values in (weights or {}).items()}
            out[part] = self._block(rows[part], rng, own)
        return out

    def _add(self, chains: Chains, clique: Iterable[str], values: Array) -> None:
        """Keep a potential that names a free column or a level of one: an axis for all the others, then
        theirs."""
        names = tuple(clique)
        free = tuple(name for name in names if name in self._sizes)
        if not free:
            return
        known = [name for name in names if name not in free]
        order = [names.index(name) for name in (*known, *free)]
        values = values.transpose(order).reshape(-1, *(self._sizes[name] for name in free))
        evidence = tuple(
            _Evidence(self._place[chains.column[name]], chains.sizes[name], _bins(chains, name))
            for name in known
        )
        self._potentials.append((free, evidence, np.ascontiguousarray(values)))

    def _elimination(self) -> list[tuple[str, tuple[str, ...]]]:
        """Columns in the order in which they are eliminated, each with those it is then joined with: the
        smallest table first."""
        near = {name: set[str]() for name in self._free}
        for columns, _, _ in self._potentials:
            for name in columns:
                near[name] |= set(columns) - {name}
        steps = []
        while near:
            name = min(
                near, key=lambda one: (self._sizes[one] * prod(self._sizes[n] for n in near[one]), one)
            )
            rest = tuple(one for one in self._free if one in near[name])
            for one in rest:
                near[one] = (near[one] | set(rest)) - {one, name}
            del near[name]
            steps.append((name, rest))
        return steps

    def _block(self, rows: Codes, rng: np.random.Generator, weights: Mapping[str, Array]) -> Codes:
        tables: list[_Table] = [((name,), values[None]) for name, values in self._alone.items()]
        tables += [((name,), values) for name, values in weights.items()]
        for columns, evidence, values in self._potentials:
            cell = np.zeros(len(rows), dtype=np.int64)
            for one in evidence:
                codes = rows[:, one.column]
                cell = cell * one.size + (codes if one.bins is None else one.bins[codes])
            tables.append((columns, values[cell] if evidence else values))
        joined: list[tuple[str, tuple[str, ...], Array]] = []
        for name, rest in self._steps:
            mine = [table for table in tables if name in table[0]]
            tables = [table for table in tables if name not in table[0]]
            whole = _sum(mine, (*rest, name), self._sizes)
            top = whole.max(axis=-1, keepdims=True)
            shares = np.exp(whole - np.where(np.isfinite(top), top, 0.0))
            joined.append((name, rest, shares))
            if rest:
                with np.errstate(divide="ignore"):
                    tables.append((rest, np.log(shares.sum(axis=-1)) + top[..., 0]))
        drawn: dict[str, Codes] = {}
        every = np.arange(len(rows))
        order = np.lexsort(rows[:, self._evidence].T) if self._evidence else every
        for name, rest, shares in reversed(joined):
            own = shares[
                (
                    every if len(shares) > 1 or len(rows) == 1 else np.zeros(len(rows), dtype=np.int64),
                    *(drawn[one] for one in rest),
                )
            ]
            drawn[name] = _pick(own, np.isfinite(self._alone[name]), order, rng)
            order = order[np.argsort(drawn[name][order], kind="stable")]
        return np.column_stack([drawn[name] for name in self._columns])


def _sum(tables: Sequence[_Table], columns: tuple[str, ...], sizes: Mapping[str, int]) -> Array:
    """The product of tables, given by logarithms, over these columns."""
    whole: Array = np.zeros((1, *(sizes[name] for name in columns)))
    for names, values in tables:
        order = sorted(range(len(names)), key=lambda axis: columns.index(names[axis]))
        shape = tuple(sizes[name] if name in names else 1 for name in columns)
        whole = whole + values.transpose([0, *(1 + axis for axis in order)]).reshape(len(values), *shape)
    return whole


def _pick(
    weights: Array, allowed: NDArray[np.bool_], order: NDArray[np.intp], rng: np.random.Generator
) -> Codes:
    """A code of each row, by its weights; where these are all zero, any that is allowed. order: of rows, like
    ones together.

    Each row's number is uniform on its own; those of rows that stand together lie evenly (multiples of the
    golden ratio from a random start), so that like rows get what they expect, with less noise than
    independent draws.
    """
    sums = weights.cumsum(axis=1)
    void = ~(sums[:, -1] > 0)
    if void.any():
        sums[void] = np.cumsum(allowed)
    even = np.empty(len(weights))
    even[order] = (rng.random() + GOLDEN * np.arange(len(weights))) % 1.0
    found: Codes = (sums <= (even * sums[:, -1])[:, None]).sum(axis=1)
    inside: Codes = np.minimum(found, weights.shape[1] - 1)
    return inside
