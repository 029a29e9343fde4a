"""One custodian's own marginals: its table is read once, in blocks, and all cliques are counted per block.

Cost and memory: `counters.py`; 2 cores' worth of Parquet decoding run beside the counting. A block and the
counters are held, whatever the rows. A large table may be counted by several processes (`tallies/`).

What does not fit the study is refused before anything is sent (`scan.py`). The counts (`LocalTable`) are
private: they leave this process only as shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpc_protocols.errors import DataRefused
from mpc_protocols.functionality import Clique, LocalCounts
from mpc_protocols.process.later import Later
from parties.data.counting.counters import Counters
from parties.data.counting.scan import KeyReader, Scan, Unit, inspect
from parties.data.source import BLOCK_ROWS
from parties.data.survey import Survey, survey

if TYPE_CHECKING:
    from parties.data.source import Source
    from parties.data.sql import counting
    from synth.domain import Domain
else:
    counting = Later("parties.data.sql.counting")


@dataclass(frozen=True)
class LocalTable:
    """A custodian's table after its one pass; all of it private but `ignored`.

    counters: of the counted cliques. clamped, absent: per column, how many numbers lay outside low..high and
    how many values were missing (the custodian's own log may show them). ignored: columns of the data that
    the study does not use.
    """

    rows: int = field(repr=False)
    counters: Counters = field(repr=False)
    clamped: Mapping[str, int] = field(repr=False)
    absent: Mapping[str, int] = field(repr=False)
    ignored: tuple[str, ...] = ()

    @property
    def counts(self) -> LocalCounts:
        """Marginals of any cliques inside the counted ones."""
        return self.counters.counts


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

    cliques: columns of the domain, each once per clique; those inside others cost nothing. max_rows: the
    study's public bound on the rows. unit: checked first, by a GROUP BY where the data is. Returns counts as
    int64.
    """
    counters = Counters(domain, cliques)
    if source.location.push_down:
        return _count_inside(counters, source, domain, max_rows, unit, allow_empty)
    scan = count_into(
        counters, source, domain, max_rows=max_rows, unit=unit, allow_empty=allow_empty, block_rows=block_rows
    )
    return LocalTable(
        scan.rows,
        counters,
        {name: coder.clamped for name, coder in scan.coders.items()},
        {name: coder.absent for name, coder in scan.coders.items()},
        inspect(source, domain, unit).ignored,
    )


def _count_inside(
    counters: Counters, source: Source, domain: Domain, max_rows: int, unit: Unit | None, allow_empty: bool
) -> LocalTable:
    """The same by a GROUP BY per union, in the database that has the rows."""
    seen = inspect(source, domain, unit)
    for sentence in seen.problems:
        raise DataRefused(sentence)
    pushed = counting.PushedDown(source, domain, max_rows=max_rows, unit=unit, allow_empty=allow_empty)
    for sentence in pushed.problems():
        raise DataRefused(sentence)
    for union, table in counters.tables.items():
        cells, counts = pushed.cells(union)
        table[cells] = counts
    pushed.check_again()
    return LocalTable(pushed.rows, counters, pushed.clamped, pushed.absent, seen.ignored)


def count_into(
    counters: Counters,
    source: Source,
    domain: Domain,
    *,
    max_rows: int,
    unit: Unit | None = None,
    keys: KeyReader | None = None,
    allow_empty: bool = False,
    block_rows: int = BLOCK_ROWS,
) -> Scan:
    """Read the table once into the counters. Raises `DataRefused` as `count` does. keys: reads identifiers
    beside the codes."""
    for sentence in inspect(source, domain, unit).problems:
        raise DataRefused(sentence)
    scan = Scan(source, domain, max_rows=max_rows, unit=unit, keys=keys, allow_empty=allow_empty)
    for codes in scan.blocks(block_rows, stop=True):
        counters.add(codes)
    for sentence in scan.problems():
        raise DataRefused(sentence)
    return scan


def validate(
    source: Source,
    domain: Domain,
    *,
    max_rows: int,
    unit: Unit | None = None,
    allow_empty: bool = False,
    block_rows: int = BLOCK_ROWS,
) -> Survey:
    """Everything that `count` would refuse, in one go: the first row of each kind of misfit in each column;
    and what the owner may know of its columns."""
    seen = inspect(source, domain, unit)
    if not seen.present:
        return Survey(seen.problems)
    here = unit if unit is not None and unit[0] in source.columns else None
    if source.location.push_down:
        present = domain.subset(seen.present)
        pushed = counting.PushedDown(source, present, max_rows=max_rows, unit=here, allow_empty=allow_empty)
        return pushed.survey(seen.problems)
    scan = Scan(source, domain.subset(seen.present), max_rows=max_rows, unit=here, allow_empty=allow_empty)
    return survey(source, scan, block_rows, seen.problems)
