"""Columns of a study from SDV's metadata of one table, with the public limits that metadata do not have.

SDV reads limits and categories off the rows when it fits; here they are public and given, for limits taken
from rows tell of the rows. Source of the form: SDV's metadata, version V1 (one table: {"tables": {NAME:
{"columns": ..}}}) and SINGLE_TABLE_V1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mpc_protocols.errors import UsageError

KINDS: Final = {
    "numerical": "numeric",
    "boolean": "boolean",
    "categorical": "categorical",
    "datetime": "datetime",
}
"""Our kind for an sdtype; sdtypes besides these name identifiers and personal fields, which no synthetic
table has."""
LIMITS: Final = {
    "numeric": ("low", "high"),
    "integer": ("low", "high"),
    "datetime": ("low", "high"),
    "date": ("low", "high"),
    "categorical": ("values",),
}
"""What each kind needs of public limits."""


def columns_of(
    metadata: Any, limits: Mapping[str, Mapping[str, Any] | int]
) -> dict[str, Mapping[str, Any] | int]:
    """See `Synthesizer.from_metadata`. Raises `UsageError`: no metadata of one table, limits that are missing
    or of no column."""
    if not isinstance(limits, Mapping):
        raise UsageError(
            f"Limits map a column's name to what metadata do not say of it, got an object of type {type(limits).__name__}."
        )
    tree = metadata.to_dict() if hasattr(metadata, "to_dict") else metadata
    tables = tree.get("tables") if isinstance(tree, Mapping) else None
    if isinstance(tables, Mapping):
        if len(tables) != 1:
            raise UsageError(f"The metadata describe {len(tables)} tables; a synthesizer has one.")
        [tree] = tables.values()
    given = tree.get("columns") if isinstance(tree, Mapping) else None
    if not isinstance(given, Mapping) or not given:
        raise UsageError(
            "The metadata describe no columns; give SDV's Metadata of one table, or its to_dict()."
        )
    if unknown := [name for name in limits if name not in given]:
        raise UsageError(f"The limits name the column {unknown[0]!r}, which the metadata do not have.")
    columns: dict[str, Mapping[str, Any] | int] = {}
    for name, facts in given.items():
        own = limits.get(name)
        if own is not None and not isinstance(own, int | Mapping):
            raise UsageError(
                f"The limits of the column {name!r:.60} are its size or a table of keys, got an object of type "
                f"{type(own).__name__}."
            )
        stated = facts if isinstance(facts, Mapping) else {}
        sdtype = str(stated.get("sdtype"))
        if isinstance(own, int) or (own is None and sdtype not in KINDS):
            if own is not None:
                columns[name] = own
            continue
        columns[name] = _column(str(name), stated, KINDS.get(sdtype), own or {})
    if not columns:
        raise UsageError(
            "The metadata describe identifiers and personal fields alone; no table can be made of them."
        )
    return columns


def _column(name: str, facts: Mapping[str, Any], kind: str | None, own: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "numeric" and "int" in str(facts.get("computer_representation", "")).lower():
        kind = "integer"
    known: dict[str, Any] = {} if kind is None else {"kind": kind}
    if kind == "categorical" and isinstance(facts.get("order"), list):
        known["values"] = list(facts["order"])
    column = {**known, **own}
    needed = [key for key in LIMITS.get(str(column.get("kind")), ()) if key not in column]
    if needed:
        raise UsageError(
            f"The metadata do not say {' and '.join(needed)} of the column {name!r:.60}; give them in limits, from a code book "
            "and not from the rows."
        )
    return column
