"""One custodian's own marginals: its table is read once, in blocks, and all cliques are counted per block.

Cost. A block of codes is raveled to one cell number per row and added to a table of counters, about 4 ns per row and table
(2 cores' worth of Parquet decoding runs beside it). So there should be few tables: a clique inside another is a sum of the
other's cells, and cliques that together have at most 2^17 cells are counted as one table of their union (64 random
three-way cliques of Adult: 37 tables, half the time). Memory: one block and the tables, 8 bytes per cell, whatever the rows.
Of a table of a few thousand rows the codes are kept instead, and each clique is counted by itself: the unions' cells, most of
them empty, would cost more than the rows (Adult dealt among 1,000: 40 of 140 ms a contributor).

What does not fit the study is refused before anything is sent (`scan.py`). The counts (`LocalTable`) are private: they leave
this process only as shares.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import Clique, LocalCounts
from parties.data.scan import Scan, Unit, inspect
from parties.data.source import BLOCK_ROWS, Source
from parties.data.survey import Survey, survey

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from synth.domain import Domain

_MAX_KEPT_ROWS = 1 << 12
"""Up to so many rows are kept as codes, at 8 bytes each."""
_UNION_CELLS = 1 << 17  # 1 MiB of counters: larger unions miss the second-level cache and cost what they save


@dataclass(frozen=True)
class LocalTable:
    """A custodian's table after its one pass; all of it private but `ignored`.

    counts: marginals of any cliques inside the counted ones. clamped, absent: per column, how many numbers lay outside
    low..high and how many values were missing (the custodian's own log may show them). ignored: columns of the data that
    the study does not use.
    """

    rows: int = field(repr=False)
    counts: LocalCounts = field(repr=False)
    clamped: Mapping[str, int] = field(repr=False)
    absent: Mapping[str, int] = field(repr=False)
    ignored: tuple[str, ...] = ()


def count(
    source: Source,
    domain: Domain,
    cliques: Sequence[Clique],
    *,
    max_rows: int,
    unit: Unit | None = None,
    allow_empty: bool = False,
    block_rows: int = BLOCK_ROWS,
) -> LocalTable:
    """Read the table once and count the cliques. Raises `DataRefused` at the first thing that does not fit.

    cliques: columns of the domain, each once per clique; those inside others cost nothing. max_rows: the study's public
    bound on the rows. unit: checked first, by a GROUP BY where the data is. Returns counts as int64.
    """
    for sentence in inspect(source, domain, unit).problems:
        raise DataRefused(sentence)
    tables = _Tables(domain, cliques)
    if source.location.push_down:
        return _pushed_down(source, domain, tables, max_rows, unit, allow_empty)
    scan = Scan(source, domain, max_rows=max_rows, unit=unit, allow_empty=allow_empty)
    for codes in scan.blocks(block_rows, stop=True):
        tables.add(codes)
    for sentence in scan.problems():
        raise DataRefused(sentence)
    return LocalTable(
        scan.rows,
        tables.counts,
        {name: coder.clamped for name, coder in scan.coders.items()},
        {name: coder.absent for name, coder in scan.coders.items()},
        inspect(source, domain, unit).ignored,
    )


def _pushed_down(
    source: Source, domain: Domain, tables: _Tables, max_rows: int, unit: Unit | None, allow_empty: bool
) -> LocalTable:
    """The same by a GROUP BY per union, where the table is."""
    from parties.data.sql.counting import PushedDown

    pushed = PushedDown(source, domain, max_rows=max_rows, unit=unit, allow_empty=allow_empty)
    for sentence in pushed.problems():
        raise DataRefused(sentence)
    for union in tables.unions:
        tables.put(union, *pushed.cells(union))
    return LocalTable(
        pushed.rows, tables.counts, pushed.clamped, pushed.absent, inspect(source, domain, unit).ignored
    )


def validate(
    source: Source,
    domain: Domain,
    *,
    max_rows: int,
    unit: Unit | None = None,
    allow_empty: bool = False,
    block_rows: int = BLOCK_ROWS,
) -> Survey:
    """Everything that `count` would refuse, in one go: the first row of each kind of misfit in each column; and what the
    owner may know of its columns."""
    seen = inspect(source, domain, unit)
    if not seen.present:
        return Survey(seen.problems)
    here = unit if unit is not None and unit[0] in source.columns else None
    if source.location.push_down:
        from parties.data.sql.counting import PushedDown

        pushed = PushedDown(
            source, domain.subset(seen.present), max_rows=max_rows, unit=here, allow_empty=allow_empty
        )
        return pushed.survey(seen.problems)
    scan = Scan(source, domain.subset(seen.present), max_rows=max_rows, unit=here, allow_empty=allow_empty)
    return survey(source, scan, block_rows, seen.problems)


class _Tables:
    """Counters of a few unions of the cliques, or a few rows' codes; and every marginal inside them."""

    def __init__(self, domain: Domain, cliques: Iterable[Clique]) -> None:
        self._sizes = domain.sizes
        self._bit = {name: 1 << i for i, name in enumerate(domain.names)}
        self._cliques = list(cliques)
        self._few: list[Mapping[str, NDArray[np.int64]]] = []
        self._many = False

    @cached_property
    def _tables(self) -> dict[Clique, NDArray[np.int64]]:
        import numpy as np

        return {union: np.zeros(self._cells(union), np.int64) for union in self._unions(self._cliques)}

    @cached_property
    def _masks(self) -> list[tuple[int, Clique]]:
        """Of the tables, the smallest first."""
        return [(self._mask(union), union) for union in sorted(self._tables, key=self._cells)]

    @cached_property
    def _counted(self) -> frozenset[int]:
        """The sets of columns that were asked for."""
        return frozenset(map(self._mask, self._cliques))

    def _cells(self, names: Collection[str]) -> int:
        return math.prod(self._sizes[name] for name in names)

    def _mask(self, names: Iterable[str]) -> int:
        """A set of columns as bits, of which thousands are compared with hundreds."""
        return sum(self._bit[name] for name in names)

    def _unions(self, cliques: Iterable[Clique]) -> list[Clique]:
        """Sets of columns, in domain order, that hold every clique: greedily, large first, each where it adds the least."""
        masks: list[int] = []
        cells: list[int] = []
        for clique in sorted(
            {frozenset(clique) for clique in cliques}, key=lambda names: (-self._cells(names), sorted(names))
        ):
            own, lacking, least, place = self._mask(clique), dict[int, int](), 0, -1
            for i, union in enumerate(masks):
                missing = own & ~union
                if not missing:
                    place = -1
                    break
                growth = lacking.get(missing)
                if growth is None:
                    growth = self._cells([name for name in clique if self._bit[name] & missing])
                    lacking[missing] = growth
                if (place < 0 or growth < least) and cells[i] * growth <= _UNION_CELLS:
                    least, place = growth, i
            else:
                if place < 0:
                    masks.append(own)
                    cells.append(self._cells(clique))
            if place >= 0:
                masks[place] |= own
                cells[place] *= least
        return [tuple(name for name, bit in self._bit.items() if bit & union) for union in masks]

    def add(self, codes: Mapping[str, NDArray[np.int64]]) -> None:
        """Count one block. Its arrays are the caller's, who may change them."""
        if not self._many:
            self._few.append({name: column.copy() for name, column in codes.items()})
            if sum(len(next(iter(block.values()))) for block in self._few) <= _MAX_KEPT_ROWS:
                return
            self._many, blocks = True, self._few
            self._few = []
            for block in blocks:
                self._add(block)
            return
        self._add(codes)

    @property
    def unions(self) -> list[Clique]:
        """The tables that are counted where rows are many."""
        return list(self._tables)

    def put(self, union: Clique, cells: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Take over what a database has counted of a union: its cells that are not empty, each once."""
        self._many = True
        self._tables[union][cells] = counts

    def _add(self, codes: Mapping[str, NDArray[np.int64]]) -> None:
        import numpy as np

        for union, counters in self._tables.items():
            np.add.at(counters, self._numbers(union, codes), 1)

    def _numbers(self, names: Clique, codes: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """The cell of each row of a block."""
        import numpy as np

        cells = codes[names[0]]
        for i, name in enumerate(names[1:]):
            cells = np.multiply(cells, self._sizes[name], out=None if i == 0 else cells)
            cells += codes[name]
        return cells

    def counts(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """The marginals of these cliques: int64, cells in row-major order of each clique's columns as it lists them."""
        return [self._marginal(clique) for clique in cliques]

    def _marginal(self, clique: Clique) -> NDArray[np.int64]:
        import numpy as np

        own = self._mask(clique)
        if not self._many and (own in self._counted or any(not own & ~mask for mask in self._counted)):
            counts = np.zeros(self._cells(clique), np.int64)
            for block in self._few:
                counts += np.bincount(self._numbers(clique, block), minlength=len(counts))
            return counts
        union = next((union for mask, union in self._masks if not own & ~mask), None) if self._many else None
        if union is None:
            raise ValueError(f"The marginal of {', '.join(clique)} was not counted.")
        whole = self._tables[union].reshape([self._sizes[name] for name in union])
        kept = [name for name in union if name in clique]
        summed = whole.sum(
            axis=tuple(i for i, name in enumerate(union) if name not in clique), dtype=np.int64
        )
        return np.ascontiguousarray(summed.transpose([kept.index(name) for name in clique])).reshape(-1)
