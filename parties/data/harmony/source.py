"""A table as its custodian's private file has it: a `Source` whose columns are the study's.

The data's blocks come as they are; filter and expressions are computed on them by a DuckDB in this process
that has nothing but the block, whatever the data is kept in. What it says of a row that cannot be computed
quotes the row: it is never forwarded; the row is found again by halving the block, and named by its line.

Rows keep the numbers of the data's own for people (`places`): a bit a row remembers which were left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

from mpc_protocols.errors import DataRefused, StudyInvalid
from parties.data.engines.duckdb_engine import settle
from parties.data.files.arrow import bits, present, truths
from parties.data.harmony.expressions import columns_of
from parties.data.harmony.recipe import Recipe, Step
from parties.data.harmony.values import Change
from parties.data.location import Location
from parties.data.source import BLOCK_ROWS, Source

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray


class Harmonised(Source):
    """See `Source`. A column of the study is there if what it is made of is there."""

    def __init__(self, location: Location, recipe: Recipe) -> None:
        self._rows: DuckDBPyConnection | None = None  # `close` looks at it, also where opening fails
        super().__init__(location)
        self._kept: list[tuple[int, NDArray[np.uint8]]] = []
        try:
            recipe = recipe.written_as(self._header)
            self.recipe, self.leaves_out = recipe, recipe.leave_out
            self.location = replace(location, recipe=recipe)
            self._inputs = {name: self._input(name, step) for name, step in recipe.steps.items()}
            self._filtered = () if recipe.filter is None else self._of(recipe.filter, "[harmonise] filter")
        except BaseException:
            self.close()
            raise
        made = [
            name
            for name, inputs in self._inputs.items()
            if inputs is not None
            for _ in range(
                max(1, *map(self._header.count, inputs)) if inputs else 1
            )  # one that is there twice stays so
        ]
        taken = {column for name in made for column in self._inputs[name] or ()} | set(self._filtered)
        # without one name that is known, the first line may be a record
        rest = (
            [name for name in self._header if name not in taken and name not in recipe.steps] if taken else []
        )
        self.columns = (*made, *rest)

    def _of(self, sql: str, where: str) -> tuple[str, ...]:
        return columns_of(sql, f"{self.recipe.file}: {where}", self._header)

    def _input(self, name: str, step: Step) -> tuple[str, ...] | None:
        """The data's columns that a step reads; None if the one it names is not there."""
        if step.sql is not None:
            return self._of(step.sql, f"[harmonise.columns.{name}] sql")
        return (step.source,) if step.source is not None and step.source in self._header else None

    def lacking(self, name: str) -> str:
        """See `Source`."""
        source = self.recipe.step(name).source
        if source in (None, name):
            return super().lacking(name)
        return f'{self.label} has no column "{source}", from which {self.recipe.file} takes the study\'s {name}; capitals count.'

    def close(self) -> None:
        """See `Source`."""
        super().close()
        if self._rows is not None:
            with suppress(Exception):
                self._rows.close()
            self._rows = None

    def batches(self, names: Sequence[str], rows: int = BLOCK_ROWS) -> Iterator[pa.RecordBatch]:
        """See `Source`."""
        steps = {name: self.recipe.step(name) for name in names}
        self.changes = {name: Change(step) for name, step in steps.items()}
        self.left_out, self._kept, begun = 0, [], 0
        wanted = chain.from_iterable(
            self._inputs.get(name) or (name,) for name in names if not self._constant(name)
        )
        inputs = list(dict.fromkeys([*wanted, *self._filtered])) or [self._header[0]]
        for batch in super().batches(inputs, rows):
            block = pa.Table.from_batches([batch]).combine_chunks()
            kept = self._filter(block, begun)
            if kept is not None:
                block = block.filter(kept)
            made = [
                self.changes[name](
                    self._column(block, step.source)
                    if step.sql is None
                    else self._computed(block, step.sql, name, begun)
                )
                for name, step in steps.items()
            ]
            begun += batch.num_rows
            yield pa.RecordBatch.from_arrays(made, names=list(names))

    def _constant(self, name: str) -> bool:
        return self._inputs.get(name) == ()

    @staticmethod
    def _column(block: pa.Table, name: str | None) -> pa.Array:
        column = block.column(name)
        if column.num_chunks == 1:
            return column.chunk(0)
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)

    def _filter(self, block: pa.Table, begun: int) -> pa.Array | None:
        """Which rows of a block count; None: all. Remembers the others."""
        if self.recipe.filter is None:
            return None
        found = self._computed(block, self.recipe.filter, None, begun)
        if not pa.types.is_boolean(found.type):
            raise StudyInvalid(
                f"{self.recipe.file}: [harmonise] filter must be true or false for every row, and is {found.type}; "
                "write a comparison."
            )
        kept = truths(found) & present(found)
        self.left_out += int(len(kept) - np.count_nonzero(kept))
        self._kept.append((len(kept), np.packbits(kept)))
        return bits(kept)

    def _computed(self, block: pa.Table, sql: str, name: str | None, begun: int) -> pa.Array:
        """An expression's values, one a row. name: the column that it makes; None: the filter. begun: rows
        before the block."""
        values = self._values(block, sql)
        if values is not None:
            return values
        where = "[harmonise] filter" if name is None else f"[harmonise.columns.{name}] sql"
        if self._values(block.slice(0, 0), sql) is None:
            raise StudyInvalid(
                f"{self.recipe.file}: {where} does not fit the types of the data's columns; those of a CSV file are all text "
                "until they are cast."
            )
        row = self._first_failing(block, sql)
        number = begun + row if name is None else self._origin(row, begun)
        raise DataRefused(
            f"{self.label}, {super().places({number})[number]}: {where} of {self.recipe.file} cannot be computed for this row; "
            "with TRY_CAST in place of CAST, what cannot be read is a missing value."
        )

    def _values(self, block: pa.Table, sql: str) -> pa.Array | None:
        """None: it cannot be computed for some row."""
        if self._rows is None:
            self._rows = _connected()
        self._rows.register("block", block)
        try:
            table = self._rows.sql(f"SELECT ({sql}\n) AS value FROM block").to_arrow_table()
        except Exception:  # it would quote a row
            return None
        finally:
            self._rows.unregister("block")
        return self._column(table, "value")

    def _first_failing(self, block: pa.Table, sql: str) -> int:
        """The first row for which an expression cannot be computed."""
        low, high = 0, block.num_rows  # the rows before `low` are fine, those before `high` are not
        while high - low > 1:
            middle = (low + high) // 2
            if self._values(block.slice(low, middle - low), sql) is None:
                high = middle
            else:
                low = middle
        return low

    def units(self, name: str, bound: int) -> tuple[bool, bool]:
        """See `Source`. Pushed down where the identifier stays as it is and all rows count; else counted
        here, in one pass."""
        step = self.recipe.step(name)
        if step.plain and self.recipe.filter is None:
            return super().units(step.source or name, bound)
        return self._counted(name, bound)

    def outgrown(self, name: str, bound: int) -> bool:
        """See `Source`. What the last reading made of the values stays what it was."""
        before = self.changes, self.left_out, self._kept
        try:
            return super().outgrown(name, bound)
        finally:
            self.changes, self.left_out, self._kept = before

    def _counted(self, name: str, bound: int) -> tuple[bool, bool]:
        failure: list[DataRefused | StudyInvalid] = []

        def texts() -> Iterator[pa.RecordBatch]:
            try:
                for batch in self.batches([name]):
                    yield pa.RecordBatch.from_arrays([batch.column(0).cast(pa.string())], names=["unit"])
            except (DataRefused, StudyInvalid) as error:
                failure.append(error)
                raise

        reader = pa.RecordBatchReader.from_batches(pa.schema([("unit", pa.string())]), texts())
        with duckdb.connect(
            ":memory:", config={"temp_directory": self._spill, "memory_limit": "1GB"}
        ) as counting:
            counting.register("units", reader)
            with suppress(Exception):
                ((above, absent),) = counting.execute(
                    "SELECT bool_or(unit IS NOT NULL AND size > ?), bool_or(unit IS NULL) FROM "
                    "(SELECT nullif(unit, '') AS unit, count(*) AS size FROM units GROUP BY ALL)",
                    [bound],
                ).fetchall()
                return bool(above), bool(absent)
        for error in failure:
            raise error
        raise DataRefused(
            f"{self.label} could not be counted by its column {name}; is it text, a number or a date?"
        )

    def _origin(self, row: int, begun: int = 0) -> int:
        """The data's own number of a row, counted from 0 after `begun` of the data's rows."""
        if self.recipe.filter is None:
            return begun + row
        before = 0
        for size, packed in self._kept:
            if before >= begun:
                places = np.flatnonzero(np.unpackbits(packed, count=size))
                if row < len(places):
                    return before + int(places[row])
                row -= len(places)
            before += size
        return before + row

    def places(self, rows: Collection[int]) -> dict[int, str]:
        """See `Source`."""
        origins = {row: self._origin(row) for row in rows}
        found = super().places(set(origins.values()))
        return {row: found[origin] for row, origin in origins.items()}


def _connected() -> DuckDBPyConnection:
    """A DuckDB that has nothing, and reaches nothing outside."""
    rows = duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "enable_external_access": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )
    settle(rows)
    return rows
