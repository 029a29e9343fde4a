"""Linked tables of which some persons' rows are in memory, unfolded there: what a cluster's worker does, once
all that belongs to these persons has come to it (`parties/data/tallies/engines/`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parties.data.counting.scan import named
from parties.data.linked.places import orphan_of
from parties.data.linked.unfold import Unfolding, unfolded
from parties.data.location import Location
from parties.data.source import BLOCK_ROWS, Source

if TYPE_CHECKING:
    from synth.linked.tables import LinkedTables


class Held(Source):
    """A table in memory, which may be read many times. label: what sentences call it; they name no row, for
    the rows are not where anybody finds them."""

    def __init__(self, label: str, table: pa.Table) -> None:
        self.location = Location("parquet", label, label)
        self.label = label
        self.columns = self._header = tuple(table.column_names)
        self._table = table

    def batches(self, names: Sequence[str], rows: int = BLOCK_ROWS) -> Iterator[pa.RecordBatch]:
        """See `Source`."""
        yield from self._table.select(list(names)).to_batches(max_chunksize=rows)

    def units(self, name: str, bound: int) -> tuple[bool, bool]:
        """See `Source`."""
        column = self._table[name].combine_chunks()
        there = named(column)
        most = pc.max(pc.value_counts(column.filter(pa.array(there))).field("counts")).as_py()
        return (most or 0) > bound, not bool(np.all(there))

    def places(self, rows: Collection[int]) -> dict[int, str]:
        """See `Source`."""
        return dict.fromkeys(rows, "a row")

    def check_unchanged(self) -> None:
        """See `Source`: what is in memory stays as it is."""

    def close(self) -> None:
        """See `Source`."""


def unfold_held(
    tables: Mapping[str, pa.Table], labels: Mapping[str, str], linked: LinkedTables, key: bytes
) -> tuple[Held, list[Unfolding]]:
    """A row a person, called as the table of people is, and what the owner may know. tables: of all the
    study's, by name, all rows that belong to these persons. key: of the draws.

    The bits of `unfold`, person by person. Raises `DataRefused` as it does, and for children without a
    parent.
    """
    sources = {name: Held(labels[name], table) for name, table in tables.items()}
    table, told = unfolded(sources.pop(linked.parent), dict[str, Source](sources), linked, key)
    for one in told:
        if one.orphans:
            raise orphan_of(labels, linked, one.name, "")
    return Held(labels[linked.parent], table), told
