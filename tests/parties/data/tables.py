"""The same table as CSV, Parquet and a DuckDB database, for the tests of `parties/`; and a search for leaks
in an error."""

from __future__ import annotations

import csv
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from mpc_protocols.errors import CosynthError
from parties.data.location import Location, locate
from synth.domain import Binned, Codes, Column

CANARY = "SECRET-42"

Table = dict[str, list[object]]


def code_of(column: Column, value: object) -> int:
    """The domain's own words for what a value's code is."""
    if value is None:
        return column.size - 1
    if isinstance(column, Binned):
        assert isinstance(value, int)
        return column.bin_of(value)
    return value if isinstance(column, Codes) else column.listed.index(value)  # type: ignore[return-value]


def write_csv(path: Path, columns: Mapping[str, Sequence[object]]) -> Location:
    """None becomes an empty field."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(
            ["" if value is None else value for value in row] for row in zip(*columns.values(), strict=True)
        )
    return locate(path)


def write_parquet(
    path: Path, columns: Mapping[str, Sequence[object]], schema: pa.Schema | None = None
) -> Location:
    pq.write_table(
        pa.table({name: list(values) for name, values in columns.items()}, schema=schema),
        path,
        row_group_size=700,
    )
    return locate(path)


@contextmanager
def in_duckdb(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a database that is written, beside others in one DuckDB: making one takes 20 ms."""
    with _writer().cursor() as database:
        database.execute(f"ATTACH '{path}' AS written; USE written")
        yield database
        database.execute("USE memory; DETACH written")


@cache
def _writer() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def write_duckdb(path: Path, columns: Mapping[str, Sequence[object]]) -> Location:
    table = pa.table({name: list(values) for name, values in columns.items()})
    with in_duckdb(path) as database:
        database.register("given", table)
        database.execute("CREATE SCHEMA s; CREATE TABLE s.people AS SELECT * FROM given")
    return locate({"url": f"duckdb://{path}", "table": "s.people"})


def written(folder: Path, table: Table) -> list[Location]:
    """In every format."""
    return [
        write(folder / f"t.{suffix}", table)
        for write, suffix in ((write_csv, "csv"), (write_parquet, "parquet"), (write_duckdb, "duckdb"))
    ]


def everything_in(error: BaseException) -> str:
    """All that a handler, a logger or a debugger could print of an error: its chain too, even where it is
    suppressed."""
    seen: list[BaseException] = []
    rest: list[BaseException | None] = [error]
    while rest:
        here = rest.pop()
        if here is not None and here not in seen:
            seen.append(here)
            rest += [here.__cause__, here.__context__]
    return "\n".join(
        f"{each!r} {each.args} {''.join(traceback.format_exception_only(each))}" for each in seen
    )


def assert_says(error: CosynthError, *parts: str) -> None:
    """One sentence with these parts, an exit code, and no trace of the canary."""
    assert error.exit_code == 30
    for part in parts:
        assert part in error.sentence, error.sentence
    assert error.sentence.endswith(".") and "\n" not in error.sentence
    assert CANARY not in everything_in(error)
