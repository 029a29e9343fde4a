"""Synthetic rows as a file: CSV or Parquet."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parties.data.libraries import pa, parquet
from runner.results.columns import decoded, decoded_arrays
from runner.results.table.csv_fields import Fields
from runner.results.table.formulas import harmless

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from synth.domain import Column, Domain


def write_table(
    path: Path, codes: NDArray[np.integer[Any]], domain: Domain, seed: int, *, safe: bool = False
) -> None:
    """Write synthetic rows, (rows, columns) codes, as CSV: codes as integers, or values decoded by the public
    seed.

    A missing value is an empty field; days and times are as ISO 8601 has them. safe: an apostrophe stands
    before what a spreadsheet would run (`formulas`).
    """
    # not by Arrow, whose arrays of NumPy values load pandas; nor row by row by the csv module, which asks of
    # every value anew whether it has to be quoted
    fields = Fields(harmless if safe else None)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(fields.of_each(domain.names)) + "\n")
        for columns in decoded_arrays(codes, domain, seed):
            texts = [fields.of(column) for column in columns]
            if len(texts) == 1:  # a line must hold something
                texts = [[text or '""' for text in texts[0]]]
            file.write("\n".join([*map(",".join, zip(*texts, strict=True)), ""]))


def write_parquet(path: Path, codes: NDArray[np.integer[Any]], domain: Domain, seed: int) -> None:
    """Write the rows that `write_table` would write as Parquet, in the columns' own types; a missing value is
    a null.

    Whole numbers are int64, others float64, days date32, times timestamps to the second, values of a category
    what they are in the study (of different kinds: text).
    """
    types = [_arrow_type(column) for column in domain.columns]
    schema = pa.schema(list(zip(domain.names, types, strict=True)))
    with parquet.ParquetWriter(path, schema) as writer:
        for columns in decoded(codes, domain, seed):
            arrays = [
                pa.array(
                    [None if v is None else str(v) for v in column] if pa.types.is_string(kind) else column,
                    kind,
                )
                for column, kind in zip(columns, types, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _arrow_type(column: Column) -> pa.DataType:

    types = {
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
        date: pa.date32(),
        datetime: pa.timestamp("s"),
    }
    return types.get(column.value_type, pa.string())
