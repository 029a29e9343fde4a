"""`[csv]` and `[harmonise]` of a private file: how a custodian's table is read (`docs/howto/harmonise.md`).

Standard library only.
"""

from __future__ import annotations

from typing import Any

from parties.data.counting.coding import written
from parties.data.harmony.rules import DECIMALS, DELIMITERS, ENCODINGS, RFC, ColumnRule, Dialect, Rules
from runner.study.declared.table import Table, value_text
from synth.domain import Value

CSV_KEYS = ("delimiter", "decimal", "encoding")
HARMONISE_KEYS = ("missing", "filter", "missing_ids", "names", "columns")
COLUMN_KEYS = ("from", "sql", "missing", "values")
MISSING_IDS = ("refuse", "leave out")
NAMES = ("as written", "ignore case")


def read_rules(table: Table) -> Rules:
    """The rules that a private file states; every problem is noted with the table."""
    if "csv" not in table and "harmonise" not in table:
        return Rules()
    own = _inner(table, "harmonise", "[harmonise]", HARMONISE_KEYS)
    return Rules(
        table.file,
        _dialect(_inner(table, "csv", "[csv]", CSV_KEYS)),
        _markers(own),
        own.text("filter", expected="an expression in DuckDB's SQL") if "filter" in own else None,
        own.choice("missing_ids", MISSING_IDS, MISSING_IDS[0]) == MISSING_IDS[1],
        own.choice("names", NAMES, NAMES[0]) == NAMES[1],
        {
            str(name): _column(
                Table(given, table.file, f"[harmonise.columns.{name}]", COLUMN_KEYS, table.problems)
            )
            for name, given in _mapping(own, "columns").items()
        },
        True,
    )


def _inner(table: Table, key: str, where: str, keys: tuple[str, ...]) -> Table:
    return Table(table.raw.get(key, {}), table.file, where, keys, table.problems)


def _dialect(table: Table) -> Dialect:
    dialect = Dialect(
        table.choice("delimiter", tuple(DELIMITERS), RFC.delimiter),
        table.choice("decimal", DECIMALS, RFC.decimal),
        table.choice("encoding", tuple(ENCODINGS), RFC.encoding),
    )
    if dialect.delimiter == dialect.decimal:
        table.problem(
            'says that a comma separates fields and is a decimal mark too; a file with decimal commas has delimiter = ";" mostly',
            "decimal",
        )
    return dialect


def _column(table: Table) -> ColumnRule:
    if "from" in table and "sql" in table:
        table.problem("says both `from` and `sql`; an expression names the columns that it reads itself")
    values: dict[str, Value] = {}
    for given, value in _mapping(table, "values").items():
        if isinstance(value, str | int | float) and value != "":
            values[str(given)] = value
        else:
            table.problem(
                f"must map {value_text(given)} to a text, a number, true or false, got {value_text(value)}; what stands for a "
                "missing value is listed under `missing`",
                "values",
            )
    return ColumnRule(
        table.text("from", expected="the name of a column of the data") if "from" in table else None,
        table.text("sql", expected="an expression in DuckDB's SQL") if "sql" in table else None,
        _markers(table),
        values,
    )


def _markers(table: Table) -> tuple[str, ...]:
    given: Any = table.raw.get("missing", [])
    if isinstance(given, list) and all(isinstance(one, str | int | float) and one != "" for one in given):
        return tuple(written(one) for one in given)
    table.problem(f'must be a list such as ["NA", "-9"], got {value_text(given)}', "missing")
    return ()


def _mapping(table: Table, key: str) -> dict[str, Any]:
    given = table.raw.get(key, {})
    if isinstance(given, dict):
        return given
    table.problem(f"must be a table, got {value_text(given)}", key)
    return {}
