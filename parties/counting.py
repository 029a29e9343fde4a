"""One custodian's own marginals: its table is read once, in blocks, and all cliques are counted per block.

Cost. A block of codes is raveled to one cell number per row and added to a table of counters, about 4 ns per row and table
(2 cores' worth of Parquet decoding runs beside it). So there should be few tables: a clique inside another is a sum of the
other's cells, and cliques that together have at most 2^17 cells are counted as one table of their union (64 random
three-way cliques of Adult: 37 tables, half the time). Memory: one block and the tables, 8 bytes per cell, whatever the rows.

What is refused here (`DataRefused`, exit 30) is refused before anything is sent: a missing column, a value outside the
domain, no rows, more rows than the public max_rows (every ring width is derived from it: a custodian above it would break
the sensitivity, `mechanisms.md` 5), a unit with more rows than its bound. Sentences name the file, the column and the line;
never a value nor a count. The counts themselves (`LocalTable`) are private: they leave this process only as shares.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import Clique, LocalCounts
from parties.coding import Coder
from parties.source import BLOCK_ROWS, Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from synth.domain import Domain

_UNION_CELLS = 1 << 17  # 1 MiB of counters: larger unions miss the second-level cache and cost what they save

Unit = tuple[str, int]
"""The privacy unit's identifier column and the most rows one identifier may have at this custodian."""


@dataclass(frozen=True)
class LocalTable:
    """What a custodian knows after its one pass; all of it private but `ignored`.

    counts: marginals of any cliques inside the counted ones. clamped, absent: per column, how many numbers lay outside
    low..high and how many values were missing (the custodian's own log may show them). ignored: columns of the data that
    the study does not use.
    """

    rows: int = field(repr=False)
    counts: LocalCounts = field(repr=False)
    clamped: Mapping[str, int] = field(repr=False)
    absent: Mapping[str, int] = field(repr=False)
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inspection:
    """A look at the column names only. problems: sentences, empty if the data can be read by the study."""

    found: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]
    problems: tuple[str, ...]


def count(source: Source, domain: Domain, cliques: Sequence[Clique], *, max_rows: int, unit: Unit | None = None,
          allow_empty: bool = False, block_rows: int = BLOCK_ROWS) -> LocalTable:
    """Read the table once and count the cliques. Raises `DataRefused` at the first thing that does not fit.

    cliques: columns of the domain, each once per clique; those inside others cost nothing. max_rows: the study's public
    bound on the rows. unit: checked first, by a GROUP BY where the data is. Returns counts as int64.
    """
    for sentence in inspect(source, domain, unit).problems:
        raise DataRefused(sentence)
    tables = _Tables(domain, cliques)
    scan = _Scan(source, domain, max_rows, unit, allow_empty)
    for codes in scan.blocks(block_rows, stop=True):
        tables.add(codes)
    for sentence in scan.problems():
        raise DataRefused(sentence)
    return LocalTable(scan.rows, tables.counts, {name: coder.clamped for name, coder in scan.coders.items()},
                      {name: coder.absent for name, coder in scan.coders.items()}, inspect(source, domain, unit).ignored)


def validate(source: Source, domain: Domain, *, max_rows: int, unit: Unit | None = None, allow_empty: bool = False,
             block_rows: int = BLOCK_ROWS) -> list[str]:
    """Everything that `count` would refuse, in one go: the first row of each kind of misfit in each column. Empty: all fits."""
    seen = inspect(source, domain, unit)
    if not seen.found:
        return list(seen.problems)
    here = unit if unit is not None and unit[0] in source.columns else None
    scan = _Scan(source, domain.subset(seen.found), max_rows, here, allow_empty)
    for _ in scan.blocks(block_rows, stop=False):
        pass
    return [*seen.problems, *scan.problems()]


def inspect(source: Source, domain: Domain, unit: Unit | None = None) -> Inspection:
    """Compare the column names with the study's; reads no row.

    Where no column is known, the first line of a CSV may be a record: then its fields are not named.
    """
    wanted = [*domain.names, *([unit[0]] if unit is not None and unit[0] not in domain else [])]
    missing = tuple(name for name in wanted if name not in source.columns)
    if len(missing) == len(wanted):
        hint = " (line 1 must be a header line, its names separated by commas)" if source.location.kind == "csv" else ""
        return Inspection((), missing, (), (f"{source.label} has none of the study's columns{hint}.",))
    problems = [f'{source.label} has no column "{name}", which the study declares; names must be equal, capitals included.'
                for name in missing]
    problems += [f'{source.label} has more than one column "{name}".' for name in wanted if source.columns.count(name) > 1]
    found = tuple(name for name in domain.names if name in source.columns)
    return Inspection(found, missing, tuple(name for name in source.columns if name not in wanted), tuple(problems))


class _Scan:
    """One pass over the rows: codes per block, and what did not fit, each kind once."""

    def __init__(self, source: Source, domain: Domain, max_rows: int, unit: Unit | None, allow_empty: bool) -> None:
        self._source, self._max_rows, self._unit, self._allow_empty = source, max_rows, unit, allow_empty
        self.coders = {name: Coder(domain[name]) for name in domain.names}
        self.rows = 0
        self._general: list[str] = []
        self._misfits: dict[tuple[str, str], int | None] = {}

    def blocks(self, block_rows: int, *, stop: bool) -> Iterator[dict[str, NDArray[np.int64]]]:
        """Codes per column, block by block; with `stop`, ends at the first misfit. Raises `DataRefused` if unreadable."""
        self._check_units()
        if stop and self._general:
            return
        for batch in self._source.batches(list(self.coders), block_rows):
            codes = {}
            for name, values in zip(self.coders, batch.columns, strict=True):
                codes[name], misfits = self.coders[name].code(values)
                for misfit in misfits:
                    row = None if misfit.row is None else misfit.row + self.rows
                    self._misfits.setdefault((name, misfit.reason), row)
            self.rows += batch.num_rows
            if self.rows > self._max_rows:
                self._general.append(f"{self._source.label} has more rows than the study's max_rows = {self._max_rows}; "
                                     "the parties must agree on a larger one.")
                return
            if stop and self._misfits:
                return
            yield codes
        if self.rows == 0 and not self._allow_empty:
            self._general.append(f"{self._source.label} has no rows; if that is right, set allow_empty = true in the private "
                                 "file.")

    def _check_units(self) -> None:
        if self._unit is None:
            return
        name, bound = self._unit
        above, absent = self._source.units(name, bound)
        if above:
            self._general.append(f'{self._source.label}, column "{name}": a person (one value of the unit\'s id) has more rows '
                                 f"than the study's unit max_rows = {bound}.")
        if absent:
            self._general.append(f'{self._source.label}, column "{name}": a row has no value of the unit\'s id, so its person '
                                 "is not known.")

    def problems(self) -> list[str]:
        """The sentences, by line; what concerns the whole table first."""
        found = sorted(self._misfits.items(), key=lambda entry: -1 if entry[1] is None else entry[1])
        places = self._source.places({row for _, row in found if row is not None})
        where = [f'{self._source.label}, column "{name}"' + ("" if row is None else f", {places[row]}") + f": {reason}."
                 for (name, reason), row in found]
        return self._general + where


class _Tables:
    """Counters of a few unions of the cliques, and every marginal inside them."""

    def __init__(self, domain: Domain, cliques: Iterable[Clique]) -> None:
        import numpy as np

        self._sizes = domain.sizes
        self._order = {name: i for i, name in enumerate(domain.names)}
        self._tables: dict[Clique, NDArray[np.int64]] = {
            union: np.zeros(self._cells(union), np.int64) for union in self._unions(cliques)}

    def _cells(self, names: Collection[str]) -> int:
        return math.prod(self._sizes[name] for name in names)

    def _unions(self, cliques: Iterable[Clique]) -> list[Clique]:
        """Sets of columns, in domain order, that hold every clique: greedily, large first, each where it adds the least."""
        unions: list[frozenset[str]] = []
        for clique in sorted({frozenset(clique) for clique in cliques}, key=lambda names: (-self._cells(names), sorted(names))):
            grown = [(self._cells(union | clique) / self._cells(union), i) for i, union in enumerate(unions)
                     if clique <= union or self._cells(union | clique) <= _UNION_CELLS]
            if grown:
                _, i = min(grown)
                unions[i] |= clique
            else:
                unions.append(clique)
        return [tuple(sorted(union, key=self._order.__getitem__)) for union in unions]

    def add(self, codes: Mapping[str, NDArray[np.int64]]) -> None:
        """Count one block."""
        import numpy as np

        for union, counters in self._tables.items():
            cells = codes[union[0]]
            for i, name in enumerate(union[1:]):
                cells = np.multiply(cells, self._sizes[name], out=None if i == 0 else cells)
                cells += codes[name]
            np.add.at(counters, cells, 1)

    def counts(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """The marginals of these cliques: int64, cells in row-major order of each clique's columns as it lists them."""
        return [self._marginal(clique) for clique in cliques]

    def _marginal(self, clique: Clique) -> NDArray[np.int64]:
        import numpy as np

        union = min((union for union in self._tables if set(clique) <= set(union)), key=self._cells, default=None)
        if union is None:
            raise ValueError(f"the marginal of {', '.join(clique)} was not counted")
        whole = self._tables[union].reshape([self._sizes[name] for name in union])
        kept = [name for name in union if name in clique]
        summed = whole.sum(axis=tuple(i for i, name in enumerate(union) if name not in clique), dtype=np.int64)
        return np.ascontiguousarray(summed.transpose([kept.index(name) for name in clique])).reshape(-1)
