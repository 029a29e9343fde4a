"""The keys of [domain], its columns and its constraints; `kinds.py` says which of them a kind of column has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mpc_protocols.options import TEXTS, WHOLE, Options, Schema, option
from synth.domain.kinds import KINDS, LIMIT, VALUE

BROKEN_ROWS = ("refuse", "leave out")


def kind_schema(name: str) -> Schema:
    """The JSON Schema of a column of one kind."""
    kind = KINDS[name]
    needed = [sorted(kind.required), *([["edges"]] if "edges" in kind.optional else [])]
    return {
        "type": "object",
        "properties": {"kind": {"const": name}, **dict(sorted(kind.keys.items()))},
        "additionalProperties": False,
        "required": ["kind"],
        "anyOf": [{"required": keys} for keys in needed],
    }


COLUMNS: Schema = {"type": "object", "additionalProperties": {"oneOf": [WHOLE, *map(kind_schema, KINDS)]}}
_CONDITION: Schema = {
    "type": "object",
    "properties": {"missing": {"const": True}, "at_least": LIMIT, "below": LIMIT},
    "additionalProperties": False,
}
_ONE: Schema = {"anyOf": [VALUE, _CONDITION]}
_SIDE: Schema = {
    "type": "object",
    "additionalProperties": {"anyOf": [VALUE, _CONDITION, {"type": "array", "items": _ONE, "minItems": 1}]},
    "minProperties": 1,
}
_CONSTRAINT: Schema = {
    "type": "object",
    "properties": {"if": _SIDE, "then": _SIDE, "order": {**TEXTS, "minItems": 2, "maxItems": 2}},
    "additionalProperties": False,
    "oneOf": [{"required": ["if", "then"]}, {"required": ["order"]}],
}


@dataclass(frozen=True)
class DomainKeys(Options):
    """[domain]."""

    file: str | None = option(
        None, "text", "a JSON file of columns and their sizes", shape="the name of a JSON file", path=True
    )
    columns: Any = option(None, "form", "a table a column", form=COLUMNS)
    constraints: Any = option(
        (), "form", "what is known to be impossible", form={"type": "array", "items": _CONSTRAINT}
    )
    broken_rows: str = option(
        BROKEN_ROWS[0], "word", "what becomes of a row that breaks one", words=BROKEN_ROWS
    )

    @classmethod
    def schema(cls) -> Schema:
        return {**super().schema(), "oneOf": [{"required": ["file"]}, {"required": ["columns"]}]}
