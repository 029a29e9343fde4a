"""Vertically split data: who owns which columns, what an owner brings, and the marginals in the clear
(`docs/design/vertical.md` 1).

Several owners hold different columns about overlapping people. An alignment (`psu`) has given them a common
table of u rows, in which each owner knows the rows of its own records and of nobody else's. The marginals
that the oracle answers about are those of

    intersection   the rows that EVERY owner of the study holds, whichever columns a clique names
    union          the rows that at least one owner holds; where an owner lacks the row, each of its columns has the code that
                   stands for a missing value (the same code as a null in its own data)

Rows that nobody holds (dummies of the alignment) carry no weight in either. `ideal_counts` is the
functionality: the secure backends must return these counts, shared, and every test compares with it. It sees
all tables and PROTECTS NOTHING.

Who learns what: a `Partition` is public among the parties of the run, `rows` included (never shown to
recipients); `OwnRows` is private to its owner and has no printed form. Nobody learns which rows another owner
holds, nor how many are in common.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.functionality import Clique, Level, LocalCounts
from mpc_protocols.process.later import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]

Population = Literal["intersection", "union"]
MAX_OWNERS: Final = 8
MAX_ROWS: Final = 1 << 31
"""Rows of a common table: counts must stay below 2^31 (`mechanisms.bounds`)."""


@dataclass(frozen=True)
class Partition:
    """How the columns are split; public, equal at all parties.

    owners: wire numbers of the owners in the study's order, computing parties or contributors. columns: the
    wire number of each column's owner; every owner has at least one. missing: union only, for every column
    the code that stands for a missing value. rows: u, the rows of the common table. Raises `StudyInvalid`.
    """

    owners: tuple[int, ...]
    columns: Mapping[str, int]
    population: Population
    missing: Mapping[str, int]
    rows: int

    def __post_init__(self) -> None:
        if not 2 <= len(self.owners) <= MAX_OWNERS or len(set(self.owners)) != len(self.owners):
            raise StudyInvalid(
                f"Vertical data has 2 to {MAX_OWNERS} different owners, the study names {len(self.owners)}."
            )
        for column, owner in self.columns.items():
            if owner not in self.owners:
                raise StudyInvalid(
                    f"The column {column!r} belongs to party {owner}, which is no owner of the study."
                )
        for owner in self.owners:
            if owner not in self.columns.values():
                raise StudyInvalid(f"Party {owner} owns no column; give it one or leave it out of the study.")
        if self.population not in ("intersection", "union"):
            raise StudyInvalid(
                f"[alignment] population = {self.population!r} is neither 'intersection' nor 'union'."
            )
        if self.population == "union" and (lacking := [c for c in self.columns if c not in self.missing]):
            raise StudyInvalid(
                f'The column {lacking[0]!r} has no code for a missing value, which population = "union" needs; '
                "declare missing = true or choose the intersection."
            )
        if not 0 <= self.rows < MAX_ROWS:
            raise StudyInvalid(
                f"A common table has at most 2^31 - 1 rows, this one {self.rows}; split the study."
            )

    def of(self, owner: int) -> tuple[str, ...]:
        """The columns of an owner, in the order of `columns`."""
        return tuple(column for column, number in self.columns.items() if number == owner)

    def to_bytes(self) -> bytes:
        """One encoding of all that it says: what parties of a run agree on."""
        public = [
            self.owners,
            list(self.columns.items()),
            self.population,
            sorted(self.missing.items()),
            self.rows,
        ]
        return json.dumps(public).encode()

    def with_levels(self, levels: Sequence[Level]) -> Partition:
        """This partition with coarser versions of its columns, each its column's owner's. A missing value
        falls in its bin."""
        if not levels:
            return self
        owners = {level.name: self.columns[level.column] for level in levels}
        missing = {
            level.name: level.bins[self.missing[level.column]]
            for level in levels
            if level.column in self.missing
        }
        return replace(self, columns={**self.columns, **owners}, missing={**self.missing, **missing})


@dataclass(frozen=True)
class OwnRows:
    """One owner's own data in the common table; private, and therefore without a printed form.

    rows: (n,) int64, the row of each record, pairwise different. codes: per own column (n,) uint8, uint16 or
    uint32, each below the column's size. Raises `DataRefused` for arrays that do not fit together.
    """

    rows: NDArray[np.int64] = field(repr=False)
    codes: Mapping[str, Codes] = field(repr=False)

    def __post_init__(self) -> None:
        if self.rows.ndim != 1 or self.rows.dtype != np.int64:
            raise DataRefused("The rows of an owner's records must be one vector of 64-bit integers.")
        for column, codes in self.codes.items():
            if codes.shape != self.rows.shape or codes.dtype not in (np.uint8, np.uint16, np.uint32):
                raise DataRefused(
                    f"The codes of the column {column!r} must be one unsigned integer for each record."
                )

    def check(self, partition: Partition, owner: int, sizes: Mapping[str, int]) -> None:
        """Raise `DataRefused` unless these are the owner's columns, codes below their sizes, rows different
        and below u."""
        if set(self.codes) != set(partition.of(owner)):
            raise DataRefused(
                f"Party {owner} brings other columns than the study's {', '.join(partition.of(owner))}."
            )
        if len(self.rows):
            if int(self.rows.min()) < 0 or int(self.rows.max()) >= partition.rows:
                raise DataRefused(
                    "A record of this party has no row in the common table; run the alignment again."
                )
            if (np.diff(np.sort(self.rows)) == 0).any():
                raise DataRefused(
                    "Two records of this party have the same row of the common table; run the alignment again."
                )
            for column, codes in self.codes.items():
                if int(codes.max()) >= sizes[column]:
                    raise DataRefused(
                        f"The column {column!r} has a code outside its domain; correct the data or the domain."
                    )


@dataclass(frozen=True)
class VerticalData:
    """A party's contribution to the oracle in place of its own counts. own: its rows, None if it only
    computes."""

    partition: Partition
    own: OwnRows | None


def ideal_counts(
    partition: Partition, tables: Mapping[int, OwnRows], sizes: Mapping[str, int]
) -> LocalCounts:
    """The marginals of the population in the clear, for `IdealOracle` and for tests; protects nothing.

    tables: each owner's own rows, by wire number. sizes: of every column (`StudyFacts.sizes`). Raises
    `DataRefused` as an owner would, `StudyInvalid` (by the result) for a clique with a column that nobody
    owns.
    """
    if set(tables) != set(partition.owners):
        raise StudyInvalid("Every owner of the partition must bring its rows, and nobody else.")
    holders = np.zeros(partition.rows, np.int64)
    for owner, table in tables.items():
        table.check(partition, owner, sizes)
        holders[table.rows] += 1
    counted = holders == len(partition.owners) if partition.population == "intersection" else holders > 0

    def column(name: str) -> NDArray[np.int64]:
        if name not in partition.columns:
            raise StudyInvalid(f"The clique names the column {name!r}, which no owner has.")
        table = tables[partition.columns[name]]
        values: NDArray[Any] = np.full(partition.rows, partition.missing.get(name, 0), np.int64)
        values[table.rows] = table.codes[name]
        return values[counted]

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        marginals = []
        for clique in cliques:
            shape = tuple(sizes[name] for name in clique)
            cells = np.ravel_multi_index(tuple(column(name) for name in clique), shape)
            marginals.append(np.bincount(cells, minlength=int(np.prod(shape))).astype(np.int64))
        return marginals

    return counts
