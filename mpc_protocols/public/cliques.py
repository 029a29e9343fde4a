"""Which marginals are shared and which are sums of shared ones.

Problem: a custodian's counts are masked and sent once; a marginal over fewer columns is a sum of cells of a
larger one, which every party adds up on its own shares (`docs/design/algorithms.md` 4). This file decides,
from public facts and alike at every party, what must be shared, and says for each handle from which shared
marginal and along which axes it is derived. It never sees a count.

A level (`functionality.Level`) is a column of its own here: a public function of a column of the study. A
clique over levels is a sum of any clique whose versions of the same columns determine them: the column
itself, or a finer nested level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_CELLS, Clique, Handle, Level, LocalCounts, StudyFacts
from mpc_protocols.public.steps import MAX_ITEMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_SHARED_CELLS: Final = 1 << 28
"""Cells of all that a run shares: 1 GiB in 32-bit cells at each computing party."""
MAX_DERIVED_CELLS: Final = 1 << 30
"""Cells of all handles' marginals that are sums of shared ones, which parties keep; all subsets of 15 columns
have fewer."""
BLOCK_CELLS: Final = 1 << 22
"""Cells of one message of counts, and of marginals over columns' own values that are held at once while they are summed to
levels: more go in blocks of whole cliques."""
MAX_LEVELS: Final = 16
"""Levels of one column in a run."""
MAX_COMPARED: Final = 1 << 28
"""Pairs of cliques that a run looks at to find which are sums of which: minutes; triples of 60 columns take
an eighth."""


@dataclass(frozen=True)
class Derivation:
    """How a handle's marginal comes from a shared one: a public 0/1 sum of its cells.

    source: the shared clique. shape: sizes of the source's columns. axes: for each column of the handle's
    clique, the position of its finer version among the source's columns. bins: for each column of the
    handle's clique, which of its values each of the source column's values falls in; None where they are the
    same column.
    """

    source: Clique
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    bins: tuple[tuple[int, ...] | None, ...]

    @property
    def is_identity(self) -> bool:
        """The handle's marginal is the shared one itself."""
        return self.axes == tuple(range(len(self.shape))) and not any(self.bins)

    def apply(self, cells: NDArray[Any]) -> NDArray[Any]:
        """The handle's cells from the source's, both flat in row-major order; same dtype (sums wrap in
        unsigned rings)."""
        if self.is_identity:
            return cells
        summed = tuple(axis for axis in range(len(self.shape)) if axis not in self.axes)
        kept = sorted(self.axes)
        table = cells.reshape(self.shape)
        if summed:
            table = table.sum(axis=summed, dtype=cells.dtype)
        table = table.transpose([kept.index(axis) for axis in self.axes])
        for axis, bins in enumerate(self.bins):
            if bins is not None:
                table = _binned(table, axis, bins)
        return table.reshape(-1)


def _binned(table: NDArray[Any], axis: int, bins: tuple[int, ...]) -> NDArray[Any]:
    """Sums along an axis over the values of each bin; no bin is empty."""
    order, starts = _order_of(bins)
    if order is not None:
        table = table.take(order, axis=axis)
    return np.add.reduceat(table, starts, axis=axis, dtype=table.dtype)


@lru_cache(maxsize=4096)
def _order_of(bins: tuple[int, ...]) -> tuple[NDArray[np.intp] | None, NDArray[np.intp]]:
    """An order in which the values of a bin are together, None if they are, and where each bin begins in it."""
    of_value = np.array(bins)
    order = np.argsort(of_value, kind="stable")
    starts = np.searchsorted(of_value[order], np.arange(of_value.max() + 1))
    return None if bool((order[1:] > order[:-1]).all()) else order, starts


class _Coverings:
    """Shared cliques by what they have: each of their columns, and each two of them."""

    def __init__(self) -> None:
        self._having: dict[tuple[str, ...], list[tuple[dict[str, str], Clique]]] = {}

    def add(self, names: dict[str, str], clique: Clique) -> None:
        """names: what the clique calls its columns."""
        for columns in chain(combinations(sorted(names), 1), combinations(sorted(names), 2)):
            self._having.setdefault(columns, []).append((names, clique))

    def of(self, names: Mapping[str, str]) -> list[tuple[dict[str, str], Clique]]:
        """A short list with all that have these columns, in the order in which they came."""
        parts = combinations(sorted(names), min(2, len(names)))
        return min((self._having.get(columns, []) for columns in parts), key=len)


class CliqueRegister:
    """Handles of a run, in the order in which they were asked for, the levels declared, and the marginals
    shared so far.

    facts: the study's, its `sizes` with those of all levels declared so far.
    """

    def __init__(self, facts: StudyFacts) -> None:
        self._columns = frozenset(facts.sizes)
        self._levels: dict[str, Level] = {}
        self._nested: dict[tuple[str, str], tuple[int, ...] | None] = {}
        self._handles: dict[Clique, Handle] = {}
        self._derivations: list[Derivation] = []
        self._derived_cells = 0
        self._compared = 0
        self._coverings = _Coverings()
        self.facts = facts
        self.cliques: list[Clique] = []
        self.cells: list[int] = []
        """Of the marginal of each handle."""
        self.shared: list[Clique] = []

    def unknown(self, levels: Sequence[Level]) -> list[Level]:
        """Levels that are not declared yet, in order."""
        return [level for level in dict.fromkeys(levels) if self._levels.get(level.name) != level]

    def declare(self, levels: Sequence[Level]) -> list[Level]:
        """Make levels known; returns those that were not. Raises `StudyInvalid` for one that does not fit its
        column."""
        fresh = self.unknown(levels)
        names = {level.name for level in fresh}
        if len(names) != len(fresh):
            raise StudyInvalid("Two levels of a step have the same name; name one of them otherwise.")
        for level in fresh:
            if level.name in self.facts.sizes:
                raise StudyInvalid(
                    f"The level {level.name!r} has the name of a column, or of another level; name it otherwise."
                )
            if level.column not in self._columns or len(level.bins) != self.facts.sizes[level.column]:
                raise StudyInvalid(
                    f"The level {level.name!r} must have a bin for each value of a column of the study, {level.column!r}."
                )
        of_column = Counter(level.column for level in (*self._levels.values(), *fresh))
        for column, count in of_column.items():
            if count > MAX_LEVELS:
                raise StudyInvalid(
                    f"The column {column!r} would have {count} levels, at most {MAX_LEVELS} can be declared; use fewer."
                )
        self._levels |= {level.name: level for level in fresh}
        self.facts = self.facts.with_levels(fresh)
        return fresh

    def forget(self, levels: Sequence[Level]) -> None:
        """Undo `declare` of levels that no clique names yet."""
        for level in levels:
            del self._levels[level.name]
        self._nested = {
            pair: bins
            for pair, bins in self._nested.items()
            if not {level.name for level in levels} & {*pair}
        }
        sizes = {
            name: size
            for name, size in self.facts.sizes.items()
            if name in self._columns or name in self._levels
        }
        self.facts = replace(self.facts, sizes=sizes)

    def column(self, name: str) -> str:
        """The study's column of a level; of a column, itself."""
        return self._levels[name].column if name in self._levels else name

    def levels_of(self, cliques: Sequence[Clique]) -> tuple[Level, ...]:
        """The levels that these cliques name, in the order of their declaration."""
        named = {name for clique in cliques for name in clique}
        return tuple(level for name, level in self._levels.items() if name in named)

    def to_share(self, cliques: Sequence[Clique]) -> list[Clique]:
        """Which of these must be shared now: those that are sums neither of a shared one nor of another of
        these.

        In the order given; of two with the same cells the first. Raises `StudyInvalid` for an unknown or
        repeated column, a marginal that custodians do not count (`StudyFacts.counted`), too many cells or too
        many handles.
        """
        for clique in cliques:
            self._check(clique)
        if len(self._handles) + len(set(cliques) - self._handles.keys()) > MAX_ITEMS:
            raise StudyInvalid(f"A run can use at most {MAX_ITEMS} marginals; choose a smaller workload.")
        fresh: list[Clique] = []
        coverings = _Coverings()
        for clique in sorted(
            cliques, key=lambda clique: (len(clique), self.facts.cells(clique)), reverse=True
        ):
            names = self._names(clique)
            known = (self._finer(names, of) for of in (self._coverings, coverings))
            if not any(True for _ in chain.from_iterable(known)):
                fresh.append(clique)
                coverings.add(names, clique)
        cells = sum(self.facts.cells(clique) for clique in [*self.shared, *fresh])
        if cells > MAX_SHARED_CELLS:
            raise StudyInvalid(
                f"{cells} cells of marginals were to be shared, at most {MAX_SHARED_CELLS} can be; ask for fewer."
            )
        new = set(cliques) - self._handles.keys() - set(fresh)
        derived = self._derived_cells + sum(map(self.facts.cells, new))
        if derived > MAX_DERIVED_CELLS:
            raise StudyInvalid(
                f"{derived} cells of marginals were to be sums of shared ones, at most {MAX_DERIVED_CELLS} can be; ask for "
                "fewer."
            )
        place = {clique: number for number, clique in enumerate(reversed(cliques))}
        return sorted(fresh, key=lambda clique: -place[clique])

    def register(self, cliques: Sequence[Clique], fresh: Sequence[Clique] | None = None) -> list[Handle]:
        """Handles of these cliques; a known clique keeps its handle. fresh: what `to_share` gave for them,
        which counts as shared from now on; None to ask it. Raises as `to_share`."""
        fresh = self.to_share(cliques) if fresh is None else fresh
        self.shared += fresh
        for clique in fresh:
            self._coverings.add(self._names(clique), clique)
        own = set(fresh)
        for clique in cliques:
            if clique not in self._handles:
                derivation = self._derive(clique, own)
                self._handles[clique] = len(self.cliques)
                self.cliques.append(clique)
                self.cells.append(self.facts.cells(clique))
                self._derivations.append(derivation)
                self._derived_cells += 0 if derivation.source == clique else self.cells[-1]
        return [self._handles[clique] for clique in cliques]

    def refines(self, finer: Clique, coarser: Clique) -> bool:
        """Whether a clique's marginal is a sum of another's cells."""
        of_finer, of_coarser = self._names(finer), self._names(coarser)
        return of_coarser.keys() <= of_finer.keys() and self._refines(of_finer, of_coarser)

    def derive(self, clique: Clique, source: Clique) -> Derivation:
        """How a clique's marginal comes from another's, which `refines` it."""
        return self._derivation(clique, self._names(source), source)

    def derivation(self, handle: Handle) -> Derivation:
        """From which shared marginal a handle's is derived: the smallest that it is a sum of, the earliest
        among equals."""
        return self._derivations[handle]

    def _check(self, clique: Clique) -> None:
        for column in clique:
            if column not in self.facts.sizes:
                raise StudyInvalid(
                    f"The clique {clique} names the column {column!r}, which the domain does not have."
                )
        if not clique or len(self._names(clique)) != len(clique):
            raise StudyInvalid(f"The clique {clique} must name at least one column and none twice.")
        if (cells := self.facts.cells(clique)) > MAX_CELLS:
            raise StudyInvalid(
                f"The clique {clique} has {cells} cells, at most {MAX_CELLS} can be shared; leave a column out."
            )
        if not self._is_counted(frozenset(map(self.column, clique))):
            raise StudyInvalid(
                f"The clique {clique} is inside no marginal that custodians count; ask for what the study's plan names."
            )

    def _is_counted(self, columns: frozenset[str]) -> bool:
        """Whether custodians can count a marginal of these columns: decided by public facts, before any count
        is touched."""
        counted = self.facts.counted
        if counted is None or columns in counted:
            return True
        return any(
            columns <= of for of in min((self._counted.get(column, []) for column in columns), key=len)
        )

    @cached_property
    def _counted(self) -> dict[str, list[frozenset[str]]]:
        """Of each column, the counted sets that have it."""
        found: dict[str, list[frozenset[str]]] = {}
        for columns in self.facts.counted or ():
            for column in columns:
                found.setdefault(column, []).append(columns)
        return found

    def _names(self, clique: Clique) -> dict[str, str]:
        """What the clique calls each of its columns."""
        return {self.column(name): name for name in clique}

    def _finer(
        self, names: Mapping[str, str], coverings: _Coverings
    ) -> Iterator[tuple[dict[str, str], Clique]]:
        """Those of which a clique is a sum. Raises `StudyInvalid` (`MAX_COMPARED`)."""
        for of in coverings.of(names):
            self._compared += 1
            if self._compared > MAX_COMPARED:
                raise StudyInvalid(
                    f"More than {MAX_COMPARED} pairs of marginals were to be compared; ask for fewer marginals at once."
                )
            if names.keys() <= of[0].keys() and self._refines(of[0], names):
                yield of

    def _refines(self, finer: Mapping[str, str], coarser: Mapping[str, str]) -> bool:
        """Each column of a clique is a function of the other clique's version of the same column."""
        return all(
            finer[column] == name or self._bins(finer[column], name) is not None
            for column, name in coarser.items()
        )

    def _bins(self, finer: str, coarser: str) -> tuple[int, ...] | None:
        """The coarser column's value for each value of the finer one, of the same column; None unless that
        determines it."""
        pair = finer, coarser
        if pair not in self._nested:
            self._nested[pair] = self._nest(finer, coarser)
        return self._nested[pair]

    def _nest(self, finer: str, coarser: str) -> tuple[int, ...] | None:
        if coarser not in self._levels:
            return None
        bins = self._levels[coarser].bins
        if finer not in self._levels:
            return bins
        of_finer = dict(zip(self._levels[finer].bins, bins, strict=True))
        if any(of_finer[value] != bin_ for value, bin_ in zip(self._levels[finer].bins, bins, strict=True)):
            return None
        return tuple(of_finer[value] for value in range(len(of_finer)))

    def _derive(self, clique: Clique, fresh: Set[Clique]) -> Derivation:
        names = self._names(clique)
        if clique in fresh:  # no other one, or it would not have to be shared
            finer, source = names, clique
        else:
            finer, source = min(
                self._finer(names, self._coverings), key=lambda pair: self.facts.cells(pair[1])
            )
        return self._derivation(clique, finer, source)

    def _derivation(self, clique: Clique, finer: Mapping[str, str], source: Clique) -> Derivation:
        """finer: what the source calls each of its columns."""
        shape = tuple(self.facts.sizes[name] for name in source)
        versions = [finer[self.column(name)] for name in clique]
        bins = tuple(
            None if version == name else self._bins(version, name)
            for version, name in zip(versions, clique, strict=True)
        )
        return Derivation(source, shape, tuple(source.index(version) for version in versions), bins)


def counts_at_levels(counts: LocalCounts, facts: StudyFacts, levels: Sequence[Level]) -> LocalCounts:
    """Local counts for cliques that may name levels, as sums of a custodian's own counts of the columns.
    facts: the study's.

    The result raises `StudyInvalid` for a clique whose columns have more than `MAX_CELLS` cells together.
    """
    if not levels:
        return counts
    of_level = {level.name: level for level in levels}

    def at_levels(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        finest = [
            tuple(of_level[name].column if name in of_level else name for name in clique)
            for clique in cliques
        ]
        for clique in finest:
            if facts.cells(clique) > MAX_CELLS:
                raise StudyInvalid(
                    f"The clique {clique} has {facts.cells(clique)} cells, at most {MAX_CELLS} can be counted; leave a "
                    "column out."
                )
        found: list[NDArray[np.int64]] = []
        for block in blocks(facts, finest):
            for clique, fine, cells in zip(cliques[block], finest[block], counts(finest[block]), strict=True):
                derivation = Derivation(
                    fine,
                    tuple(facts.sizes[name] for name in fine),
                    tuple(range(len(fine))),
                    tuple(of_level[name].bins if name in of_level else None for name in clique),
                )
                found.append(derivation.apply(cells))
        return found

    return at_levels


def blocks(facts: StudyFacts, cliques: Sequence[Clique]) -> Iterator[slice]:
    """Consecutive cliques that travel, or are held, together: at most BLOCK_CELLS cells, or a single clique."""
    start, cells = 0, 0
    for position, clique in enumerate(cliques):
        size = facts.cells(clique)
        if position > start and cells + size > BLOCK_CELLS:
            yield slice(start, position)
            start, cells = position, 0
        cells += size
    if cliques:
        yield slice(start, len(cliques))
