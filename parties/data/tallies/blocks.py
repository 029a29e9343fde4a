"""Rows that come as Arrow record batches from elsewhere, for whatever reads a table (`source.Source`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from parties.data.location import Location
from parties.data.source import BLOCK_ROWS, Source

if TYPE_CHECKING:
    import pyarrow as pa


class Blocks(Source):
    """Batches of the same columns, read once. label: what sentences call the table.

    Whether a person has too many rows must have been asked where the whole table is.
    """

    def __init__(self, label: str, columns: Sequence[str], batches: Iterable[pa.RecordBatch]) -> None:
        self.location = Location("parquet", label, label)
        self.label = label
        self.columns = self._header = tuple(columns)
        self._batches = batches

    def batches(self, names: Sequence[str], rows: int = BLOCK_ROWS) -> Iterator[pa.RecordBatch]:
        """See `Source`."""
        for batch in self._batches:
            chosen = batch.select(list(names))
            for begin in range(0, batch.num_rows, rows):
                yield chosen.slice(begin, rows)

    def units(self, name: str, bound: int) -> tuple[bool, bool]:
        """See `Source`."""
        raise ValueError(f"{self.label} is a part: it cannot tell how many rows a person has.")

    def check_unchanged(self) -> None:
        """See `Source`: what has come stays as it is."""

    def close(self) -> None:
        """See `Source`."""
