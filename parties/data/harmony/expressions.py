"""Which SQL a private file may use: expressions of DuckDB's dialect that give one value for one row, always
the same.

Why: one row must not reach into others (the folder's docstring), and a table that is read twice must be the
same table. DuckDB's own parser says what an expression is made of; kinds of node and functions that are not
listed here and in `functions.py` are refused, so that a new version's inventions are, too. Every name is a
column of the data: lambdas, which bind names, and methods (current_date.year()), whose subject the parser
takes for a schema, are refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import duckdb

from mpc_protocols.errors import StudyInvalid
from parties.data.harmony.functions import FUNCTIONS, MIN_ARGUMENTS, OPERATORS

_NODES = frozenset(
    {"BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"}
) | {"OPERATOR", "TYPE"}
_LISTED = OPERATORS.union(*FUNCTIONS.values())
_REFUSED = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "STAR": "a star",
    "PARAMETER": "a parameter",
    "LAMBDA": "a lambda, a list comprehension or an arrow ->",
    "POSITIONAL_REFERENCE": "a column by its number",
}


def columns_of(sql: str, where: str, known: Collection[str]) -> tuple[str, ...]:
    """The data's columns that an expression reads, each once. known: all that there are. where: for
    sentences.

    Raises `StudyInvalid` if it is no expression, or one that does not give one value for one row.
    """
    tree = _parsed(sql, where)
    found: dict[str, None] = {}
    for node in _nodes(tree):
        kind = node["class"]
        if kind not in _NODES:
            what = _REFUSED.get(kind, "something that is not known here to be safe")
            raise StudyInvalid(f"{where} holds {what}; it must compute one row's value from that row alone.")
        if kind == "FUNCTION":
            _check_function(node, where)
        if kind == "COLUMN_REF":
            names = node["column_names"]
            if len(names) != 1 or names[0] not in known:
                raise StudyInvalid(
                    f'{where} names "{".".join(names)}", which is not a column of the data (capitals count; a name with a blank '
                    "or a dot stands in \"quotation marks\", a text in 'these')."
                )
            found[names[0]] = None
    if len({name.casefold() for name in found}) < len(found):
        raise StudyInvalid(
            f"{where} reads two columns whose names differ in capitals only; rename one in the data."
        )
    return tuple(found)


def _parsed(sql: str, where: str) -> dict[str, Any]:
    """The syntax tree of the expression."""
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": False}) as connection:
        ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [f"SELECT ({sql}\n)"]).fetchall()
    answer = json.loads(text)
    trees = answer.get("statements", [])
    if answer.get("error") or len(trees) != 1:
        raise StudyInvalid(f"{where} is not an expression in DuckDB's SQL, got {_short(sql)}.")
    node = trees[0]["node"]
    plain = (
        node.get("type") == "SELECT_NODE"
        and len(node["select_list"]) == 1
        and node["from_table"]["type"] == "EMPTY"
        and not any(
            node.get(part) for part in ("where_clause", "group_expressions", "having", "qualify", "sample")
        )
        and not node.get("modifiers")
        and not node.get("cte_map", {}).get("map")
    )
    if not plain:
        raise StudyInvalid(f"{where} must be one expression, without SELECT, FROM or anything behind it.")
    return dict(node["select_list"][0])


def _short(sql: str) -> str:
    return repr(sql if len(sql) <= 60 else sql[:57] + "...")


def _nodes(tree: object) -> Iterator[Mapping[str, Any]]:
    """All nodes of a tree that are expressions."""
    if isinstance(tree, Mapping):
        if "class" in tree:
            yield tree
        for part in tree.values():
            yield from _nodes(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from _nodes(part)


def _check_function(node: Mapping[str, Any], where: str) -> None:
    """Raises `StudyInvalid` for a call of anything but a listed function by its plain name."""
    name = str(node["function_name"])
    if node["schema"] or node["catalog"]:
        raise StudyInvalid(
            f"{where} calls {name} behind a dot; write the function first, with all it reads between the brackets."
        )
    if name.lower() not in _LISTED:
        raise StudyInvalid(
            f"{where} uses {name}, which is not among the functions that docs/howto/harmonise.md lists; each of them computes "
            "one row's value from that row alone (no aggregates, no random numbers, no clock)."
        )
    if len(node["arguments"]) < (least := MIN_ARGUMENTS.get(name.lower(), 0)):
        raise StudyInvalid(
            f"{where} uses {name} with fewer than {least} arguments, which asks the machine's clock or zone; give it {least}."
        )
