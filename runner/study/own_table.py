"""`[csv]` and `[harmonise]` of a private file: how a custodian's table is read (`docs/howto/harmonise.md`).

Standard library only.
"""

from __future__ import annotations

from typing import Any

from mpc_protocols.options import Options
from parties.data.counting.coding import written
from parties.data.harmony.rules import ColumnRule, Dialect, Rules
from runner.study.declared.private_keys import COLUMN, MISSING_IDS, NAMES, HarmoniseKeys
from runner.study.declared.table import Table, value_text
from synth.domain import Value


def read_rules(table: Table) -> Rules:
    """The rules that a private file states; every problem is noted with the table."""
    if "csv" not in table and "harmonise" not in table:
        return Rules()
    own = _inner(table, "harmonise", "[harmonise]", HarmoniseKeys)
    said = own.options(HarmoniseKeys)
    return Rules(
        table.file,
        _dialect(_inner(table, "csv", "[csv]", Dialect)),
        _markers(own),
        said.filter,
        said.missing_ids == MISSING_IDS[1],
        said.names == NAMES[1],
        {
            str(name): _column(
                Table(given, table.file, f"[harmonise.columns.{name}]", COLUMN, table.problems)
            )
            for name, given in _mapping(own, "columns").items()
        },
        True,
    )


def _inner(table: Table, key: str, where: str, keys: type[Options]) -> Table:
    return Table(table.raw.get(key, {}), table.file, where, keys, table.problems)


def _dialect(table: Table) -> Dialect:
    dialect = table.options(Dialect)
    if dialect.delimiter == dialect.decimal:
        table.problem(
            'says that a comma separates fields and is a decimal mark too; a file with decimal commas has delimiter = ";" mostly',
            "decimal",
        )
    elif dialect.thousands == dialect.decimal:
        table.problem("is the decimal mark too", "thousands")
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
        table.option("from", COLUMN["from"], None),
        table.option("sql", COLUMN["sql"], None),
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
