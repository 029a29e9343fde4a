"""Counters of all cliques of one table: codes in, block by block; marginals out.

Cost. A block of codes is raveled to one cell number per row and added to a table of counters, about 3 ns per
row and table. So there should be few tables: a clique inside another is a sum of the other's cells, and
cliques that together have at most 2^17 cells are counted as one table of their union (64 random three-way
cliques of Adult: 37 tables, half the time). Where all tables would have more than 2^25 cells, the unions are
smaller: all pairs of 200 columns of 10 values are in 4,852 unions of up to five columns, 1.9 GB, from which each
pair is a sum of 100,000 cells, or in 9,901 of up to three columns, 40 MB, each pair a sum of 1,000.
Memory: the tables, 4 bytes per cell, whatever the rows. Of a
table of a few thousand rows the codes are kept instead, and each clique is counted by itself: the unions'
cells, most of them empty, would cost more than the rows (Adult dealt among 1,000: 40 of 140 ms a
contributor). That takes the longer the more rows there are: whoever is asked by others first makes the unions
(`even_out`), of which sums are made in a time that depends on the study and the question alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mpc_protocols.errors import OutOfResources
from mpc_protocols.functionality import Clique
from mpc_protocols.process.later import np
from mpc_protocols.process.resources import free_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.domain import Domain

_MAX_KEPT_ROWS = 1 << 12
"""Up to so many rows are kept as codes, at 8 bytes each."""
_UNION_CELLS = (
    1 << 17
)  # 512 KiB of counters: larger unions miss the second-level cache and cost what they save
_ALL_CELLS = 1 << 25
"""Of all tables; where they would have more, unions have fewer cells."""


def unjoined_bytes(cells: Iterable[int]) -> int:
    """Of the tables of cliques of so many cells, of which none is inside another, where they are too large to be
    joined to unions; 0 for smaller ones, whose unions have 128 MiB at most."""
    whole = sum(cells)
    return 4 * whole if whole > _ALL_CELLS else 0


def check_memory(cells: Iterable[int], custodians: int) -> None:
    """Raise `OutOfResources` if this machine cannot hold what so many custodians on it count. cells: as of `unjoined_bytes`."""
    needed, free = custodians * unjoined_bytes(cells), free_memory()
    if free is not None and needed > free:
        each = f" by {custodians} custodians" if custodians > 1 else ""
        raise OutOfResources(
            f"Counting the study's marginals{each} takes {needed / 1e9:,.1f} GB of memory, and this machine has "
            f"{free / 1e9:,.1f} GB left: give columns fewer bins, "
            "ask for fewer or smaller marginals in [workload], or take a machine with more."
        )


class Counters:
    """Counters of a few unions of the cliques, or a few rows' codes; and every marginal inside one of the
    cliques.

    Which unions there are follows from domain and cliques, in this order everywhere.
    """

    def __init__(self, domain: Domain, cliques: Iterable[Clique]) -> None:
        self._sizes = domain.sizes
        self._bit = {name: 1 << i for i, name in enumerate(domain.names)}
        self._cliques = list(cliques)
        self._few: list[Mapping[str, NDArray[np.int64]]] = []
        self._many = False

    @cached_property
    def _tables(self) -> dict[Clique, NDArray[np.uint32]]:
        return {union: np.zeros(self._cells(union), np.uint32) for union in self._small_unions()}

    def _small_unions(self) -> list[Clique]:
        """Of at most `_UNION_CELLS` cells each, where cliques are joined; fewer, down to none that are joined,
        where all together would have more than `_ALL_CELLS`."""
        most = _UNION_CELLS
        while (unions := self._unions(self._cliques, most, _ALL_CELLS)) is None:
            most >>= 3
        return unions

    @cached_property
    def _holders(self) -> dict[str, list[tuple[int, Clique]]]:
        """Of each column, the tables that have it, the smallest first."""
        found: dict[str, list[tuple[int, Clique]]] = {name: [] for name in self._sizes}
        for union in sorted(self._tables, key=self._cells):
            for name in union:
                found[name].append((self._mask(union), union))
        return found

    @cached_property
    def _counted(self) -> frozenset[int]:
        """The sets of columns that were asked for."""
        return frozenset(map(self._mask, self._cliques))

    def _cells(self, names: Collection[str]) -> int:
        return math.prod(self._sizes[name] for name in names)

    def _mask(self, names: Iterable[str]) -> int:
        """A set of columns as bits, of which thousands are compared with hundreds."""
        return sum(self._bit[name] for name in names)

    def _unions(self, cliques: Iterable[Clique], most: int, of_all: int) -> list[Clique] | None:
        """Sets of columns, in domain order, that hold every clique: greedily, large first, each where it adds
        the least, the earliest of equals.

        most: cells of a union that is joined; 0: none is. of_all: cells of all unions; None where there would
        be more, unless none is joined.
        """
        masks: list[int] = []
        cells: list[int] = []
        having: dict[str, list[int]] = {name: [] for name in self._sizes}  # the unions with each column
        least_growth, filled = min(self._sizes.values()), 0
        joinable: dict[int, None] = {}  # unions that have room for a column more
        for clique in sorted(
            {frozenset(clique) for clique in cliques}, key=lambda names: (-self._cells(names), sorted(names))
        ):
            own = self._mask(clique)
            if any(not own & ~masks[place] for name in clique for place in having[name]):
                continue
            # A union with none of its columns is enlarged more than any other.
            near = {place for name in clique if self._sizes[name] > 1 for place in having[name]}
            place = self._least(clique, near & joinable.keys(), masks, cells, most)
            if place < 0:
                place = self._least(clique, joinable, masks, cells, most)
            if place < 0:
                place = len(masks)
                masks.append(0)
                cells.append(1)
                joinable[place] = None
            filled -= cells[place] if masks[place] else 0
            for name in clique:
                if not masks[place] & self._bit[name]:
                    having[name].append(place)
                    cells[place] *= self._sizes[name]
            masks[place] |= own
            filled += cells[place]
            if cells[place] * least_growth > most:
                joinable.pop(place, None)
            if most and filled > of_all:
                return None
        return [tuple(name for name, bit in self._bit.items() if bit & union) for union in masks]

    def _least(
        self, clique: Iterable[str], places: Iterable[int], masks: list[int], cells: list[int], most: int
    ) -> int:
        """Which of these unions the clique enlarges least, within so many cells: the first of equals; -1 for none."""
        growths: dict[int, int] = {}
        best = (0, -1)
        for place in sorted(places):
            missing = [name for name in clique if not masks[place] & self._bit[name]]
            key = self._mask(missing)
            if key not in growths:
                growths[key] = self._cells(missing)
            if cells[place] * growths[key] <= most and (best[1] < 0 or growths[key] < best[0]):
                best = growths[key], place
        return best[1]

    def add(self, codes: Mapping[str, NDArray[np.integer[Any]]]) -> None:
        """Count one block. Its arrays are the caller's, who may change them."""
        if self._many:
            self._add(codes)
            return
        self._few.append({name: column.astype(np.int64) for name, column in codes.items()})
        if sum(len(next(iter(block.values()))) for block in self._few) > _MAX_KEPT_ROWS:
            self.even_out()

    @property
    def tables(self) -> Mapping[Clique, NDArray[np.uint32]]:
        """Each union's counters, flat in row-major order: what counts of other rows may be added to, below 2^32 in all."""
        self.even_out()
        return self._tables

    def even_out(self) -> None:
        """From now on, and of all rows so far, the unions are counted."""
        self._many, blocks = True, self._few
        self._few = []
        for block in blocks:
            self._add(block)

    def _add(self, codes: Mapping[str, NDArray[Any]]) -> None:
        narrow = {name: column.astype(self._kind, copy=False) for name, column in codes.items()}
        rows = len(next(iter(codes.values())))
        cells, places = np.empty(rows, self._kind), np.empty(rows, np.int64)
        for union, counters in self._tables.items():
            places[:] = self._numbers(union, narrow, cells)
            np.add.at(counters, places, np.uint32(1))  # its quick way is for these types

    @cached_property
    def _kind(self) -> np.dtype[Any]:
        """Of the numbers of cells while they are computed: processors multiply several of 32 bits at once, of
        64 bits one after the other."""
        largest = max((len(table) for table in self._tables.values()), default=0)
        return np.dtype(np.int32 if largest <= np.iinfo(np.int32).max else np.int64)

    def _numbers(
        self, names: Clique, codes: Mapping[str, NDArray[Any]], out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """The cell of each row of a block, in the type of the codes; computed in `out`, if given."""
        cells = codes[names[0]]
        for i, name in enumerate(names[1:]):
            cells = np.multiply(cells, self._sizes[name], out=out if i == 0 else cells)
            cells += codes[name]
        return cells

    def counts(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """The marginals of these cliques: int64, cells in row-major order of each clique's columns as it
        lists them.

        Raises `ValueError` for one that is inside none of the cliques; which these are does not depend on the
        rows.
        """
        return [self._marginal(clique) for clique in cliques]

    def _marginal(self, clique: Clique) -> NDArray[np.int64]:
        own = self._mask(clique)
        # decided alike whatever the rows are: a table of many has more marginals, of unions, and nobody may
        # learn which it is
        if own not in self._counted and not any(not own & ~mask for mask in self._counted):
            raise ValueError(f"The marginal of {', '.join(clique)} was not counted.")
        if not self._many:
            counts = np.zeros(self._cells(clique), np.int64)
            for block in self._few:
                counts += np.bincount(self._numbers(clique, block), minlength=len(counts))
            return counts
        union = next(union for mask, union in self._holders[clique[0]] if not own & ~mask)
        whole = self._tables[union].reshape([self._sizes[name] for name in union])
        kept = [name for name in union if name in clique]
        summed = whole.sum(
            axis=tuple(i for i, name in enumerate(union) if name not in clique), dtype=np.int64
        )
        return np.ascontiguousarray(summed.transpose([kept.index(name) for name in clique])).reshape(-1)
