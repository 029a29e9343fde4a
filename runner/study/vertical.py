"""The [alignment] table of a vertical study (DESIGN section 7, `psu.md` 3-5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from runner.study.model import Alignment
from runner.study.table import Table, shown

KEYS = ("method", "via", "id", "population", "duplicates", "normalise", "security", "min_size", "size_epsilon",
        "size_delta", "pad_to")
NORMALISE = ("text", "exact", "name", "email", "date")


def read_alignment(raw: object, file: str, problems: list[str], adjacency: str) -> Alignment:
    """The table with its defaults; every problem is noted."""
    table = Table(raw, file, "[alignment]", KEYS, problems)
    composite = isinstance(table.raw.get("id"), list)
    names = table.texts("id") if composite else (table.text("id", expected="a column's name or a list of them"),)
    if adjacency == "replace":
        for key in ("size_epsilon", "size_delta", "pad_to"):
            if key in table:
                table.problem('belongs to adjacency = "add-remove": with "replace", sizes are public', key)
    return Alignment(
        method=cast(Any, table.choice("method", ("psu", "row-order"))),
        via=cast(Any, table.choice("via", ("auto", "florist", "dh2", "merge3", "helper"), "auto")),
        id=names,
        population=cast(Any, table.choice("population", ("intersection", "union"), "intersection")),
        duplicates=cast(Any, table.choice("duplicates", ("refuse", "first"), "refuse")),
        normalise=_normalise(table, len(names)),
        security=cast(Any, table.choice("security", ("semi-honest", "proofs"), "semi-honest")),
        min_size=table.integer("min_size", 1000, low=1),
        size_epsilon=float(table.number("size_epsilon")) if "size_epsilon" in table else None,
        size_delta=float(table.number("size_delta", below=1.0)) if "size_delta" in table else None,
        pad_to=_pad_to(table),
    )


def _normalise(table: Table, columns: int) -> tuple[str, ...]:
    given = table.raw.get("normalise", "text")
    rules = [given] * columns if isinstance(given, str) else given
    if (isinstance(rules, list) and len(rules) == columns
            and all(isinstance(rule, str) and (rule in NORMALISE or re.fullmatch(r"phone:[A-Z]{2}", rule)) for rule in rules)):
        return tuple(rules)
    words = ", ".join(NORMALISE)
    table.problem(f'must be {words} or "phone:CC", or a list, one per column of id, got {shown(given)}', "normalise")
    return ("text",) * columns


def _pad_to(table: Table) -> int | Mapping[str, int] | None:
    given = table.raw.get("pad_to")
    if given is None:
        return None
    sizes = list(given.values()) if isinstance(given, dict) else [given]
    if sizes and all(isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in sizes):
        return cast("int | Mapping[str, int]", given)
    table.problem(f"must be a whole number, or one per party, got {shown(given)}", "pad_to")
    return None
