"""The keys of [domain], its columns and its constraints; `kinds.py` says which of them a kind of column has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mpc_protocols.options import FLAG, TEXT, TEXTS, WHOLE, Options, Schema, option
from synth.domain.dates import DAYS, SECONDS
from synth.domain.kinds import KINDS
from synth.domain.numbers import SCALES

BROKEN_ROWS = ("refuse", "leave out")
_VALUE: Schema = {"type": ["string", "number", "boolean"]}
_LIMIT: Schema = {"type": ["number", "string"]}
_KEYS: dict[str, Schema] = {
    "size": WHOLE,
    "low": _LIMIT,
    "high": _LIMIT,
    "bins": WHOLE,
    "edges": {"type": "array", "items": {"type": "number"}, "minItems": 2},
    "integral": FLAG,
    "missing": FLAG,
    "zero": FLAG,
    "scale": {"enum": list(SCALES)},
    "step": {"enum": [*SECONDS, *DAYS]},
    "values": {"type": "array", "items": _VALUE, "minItems": 1},
    "other": TEXT,
}


def _kind(name: str) -> Schema:
    kind = KINDS[name]
    needed = [sorted(kind.required), *([["edges"]] if "edges" in kind.optional else [])]
    return {
        "type": "object",
        "properties": {"kind": {"const": name}, **{key: _KEYS[key] for key in sorted(kind.keys)}},
        "additionalProperties": False,
        "required": ["kind"],
        "anyOf": [{"required": keys} for keys in needed],
    }


COLUMNS: Schema = {"type": "object", "additionalProperties": {"oneOf": [WHOLE, *map(_kind, KINDS)]}}
_CONDITION: Schema = {
    "type": "object",
    "properties": {"missing": {"const": True}, "at_least": _LIMIT, "below": _LIMIT},
    "additionalProperties": False,
}
_ONE: Schema = {"anyOf": [_VALUE, _CONDITION]}
_SIDE: Schema = {
    "type": "object",
    "additionalProperties": {"anyOf": [_VALUE, _CONDITION, {"type": "array", "items": _ONE, "minItems": 1}]},
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
