"""The study file as a JSON Schema, for editors that complete and check TOML while it is written.

Made of the tables that the reader uses: keys (`keys.py`), what algorithms and backends declare, kinds of column. So a key that
one knows the other knows. The schema says which keys there are and what a value looks like; what fits together, `check` says.
`docs/reference/study.schema.json` is this, and `init` puts one beside the study; `python -m runner.study.schema FILE` writes it.
Days and times are texts to JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mpc_protocols.backend import BACKENDS
from mpc_protocols.options import Option, Options
from mpc_protocols.psu.method import methods, vias
from parties.data.sql.addresses import FILES
from runner.study import contributors, inference, keys, linked, prior, vertical
from runner.study.together import PARTITIONS, SECURITIES
from synth.algorithm import ALGORITHMS
from synth.domain import BROKEN_ROWS
from synth.domain.dates import DAYS, SECONDS
from synth.domain.domain import DOMAIN_KEYS
from synth.domain.kinds import KINDS
from synth.domain.numbers import SCALES
from synth.linked.tables import MAX_CHILDREN, NAME
from synth.workload import KEYS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
WHOLE: Schema = {"type": "integer", "minimum": 1}
TEXTS: Schema = {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True}
VALUE: Schema = {"type": ["string", "number", "boolean"]}
LIMIT: Schema = {"type": ["number", "string"]}
OPEN: Schema = {"type": "object"}


def _words(words: Iterable[str]) -> Schema:
    return {"enum": list(words)}


def _table(known: Iterable[str], forms: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    """A table with these keys and no others."""
    table: Schema = {
        "type": "object",
        "properties": {key: forms[key] for key in known},
        "additionalProperties": False,
    }
    return {**table, "required": list(required)} if required else table


def _declared(options: type[Options]) -> Schema:
    """The table of an algorithm or a backend."""
    forms = {key: _option(option) for key, option in options.options().items()}
    return _table(forms, forms)


def _option(option: Option) -> Schema:
    plain: list[Schema] = {
        "whole": [
            {
                "type": "integer",
                "minimum": option.low,
                **({"maximum": option.high} if option.high < 2**63 - 1 else {}),
            }
        ],
        "number": [
            {"type": "number", "exclusiveMinimum": option.above}
            | ({"exclusiveMaximum": option.below} if option.below < float("inf") else {})
        ],
        "flag": [FLAG],
        "text": [TEXT],
        "word": [],
        "texts": [TEXTS],
    }[option.kind]
    forms = [*plain, *([_words(option.words)] if option.words else [])]
    return {**(forms[0] if len(forms) == 1 else {"anyOf": forms}), "description": option.help}


def _columns() -> Schema:
    forms = {
        "size": WHOLE,
        "low": LIMIT,
        "high": LIMIT,
        "bins": WHOLE,
        "edges": {"type": "array", "items": NUMBER, "minItems": 2},
        "integral": FLAG,
        "missing": FLAG,
        "zero": FLAG,
        "scale": _words(SCALES),
        "step": _words((*SECONDS, *DAYS)),
        "values": {"type": "array", "items": VALUE, "minItems": 1},
        "other": TEXT,
    }
    kinds = []
    for name, kind in KINDS.items():
        table = _table(sorted(kind.keys), forms, ["kind"])
        table["properties"] = {"kind": {"const": name}, **table["properties"]}
        required = [sorted(kind.required)]
        if "edges" in kind.optional:
            required.append(["edges"])
        kinds.append({**table, "anyOf": [{"required": keys} for keys in required]})
    return {"type": "object", "additionalProperties": {"oneOf": [WHOLE, *kinds]}}


def _domain() -> Schema:
    condition = _table(keys.CONDITION, {"missing": {"const": True}, "at_least": LIMIT, "below": LIMIT})
    one = {
        "anyOf": [VALUE, condition, {"type": "array", "items": {"anyOf": [VALUE, condition]}, "minItems": 1}]
    }
    side = {"type": "object", "additionalProperties": one, "minProperties": 1}
    pair = {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}
    constraint = _table(keys.CONSTRAINT, {"if": side, "then": side, "order": pair})
    constraint["oneOf"] = [{"required": ["if", "then"]}, {"required": ["order"]}]
    forms = {
        "file": TEXT,
        "columns": _columns(),
        "constraints": {"type": "array", "items": constraint},
        "broken_rows": _words(BROKEN_ROWS),
    }
    return {**_table(DOMAIN_KEYS, forms), "oneOf": [{"required": ["file"]}, {"required": ["columns"]}]}


def _privacy() -> Schema:
    unit = _table(keys.UNIT, {"id": TEXT, "max_rows": WHOLE, "max_custodians": WHOLE}, keys.UNIT)
    forms = {
        "epsilon": {**POSITIVE, "exclusiveMaximum": keys.MAX_EPSILON},
        "delta": {**POSITIVE, "exclusiveMaximum": 1},
        "adjacency": _words(("add-remove", "replace")),
        "max_rows": WHOLE,
        "unit": {"anyOf": [{"const": "row"}, unit]},
        "accept_delta": {"type": "boolean"},
    }
    return _table(keys.PRIVACY, forms, ("epsilon", "delta", "adjacency"))


def _alignment() -> Schema:
    forms = {
        "method": _words(methods()),
        "via": _words(vias()),
        "id": {"anyOf": [TEXT, TEXTS]},
        "population": _words(("intersection", "union")),
        "duplicates": _words(("refuse", "first")),
        "normalise": {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]},
        "security": _words(("semi-honest", "proofs")),
        "min_size": WHOLE,
        "size_epsilon": POSITIVE,
        "size_delta": {**POSITIVE, "exclusiveMaximum": 1},
        "pad_to": {"anyOf": [WHOLE, {"type": "object", "additionalProperties": WHOLE}]},
    }
    return _table(vertical.KEYS, forms, ("method",))


def _party() -> Schema:
    file = {"type": "string", "pattern": f"^({'|'.join(FILES)})://"}  # a server's stands in the private file
    data = _table(keys.DATA, {"url": file, "table": TEXT, "push_down": FLAG}, ("url", "table"))
    names = {"pattern": NAME.pattern, "not": {"enum": sorted(linked.RESERVED)}}
    tables = {
        "type": "object",
        "propertyNames": names,
        "additionalProperties": {"anyOf": [TEXT, data]},
        "minProperties": 1,
    }
    forms = {
        "name": TEXT,
        "address": TEXT,
        "data": {"anyOf": [TEXT, data, tables]},
        "compute": FLAG,
        "fingerprint": TEXT,
        "columns": TEXTS,
    }
    return {"type": "array", "minItems": 1, "items": _table(keys.PARTY, forms, ("name", "address"))}


def _linked() -> Schema:
    forms = {
        "parent": TEXT,
        "key": TEXT,
        "max_rows": {**WHOLE, "maximum": MAX_CHILDREN},
        "order": TEXT,
        "columns": _columns(),
    }
    child = _table(linked.KEYS, forms, [key for key in linked.KEYS if key != "order"])
    return {"type": "object", "additionalProperties": child, "minProperties": 1}


def _close() -> Schema:
    return {**_table(keys.CLOSE, {"at": TEXT, "bundles": WHOLE}), "minProperties": 1}


def _wave() -> Schema:
    return _table(keys.WAVE, dict.fromkeys(keys.WAVE, TEXT), keys.WAVE)


def schema() -> Schema:
    """The whole schema, JSON-able."""
    backends = [backend for backend in BACKENDS if backend.options.options()]
    tables = {
        "study": _table(
            keys.STUDY,
            {
                "name": TEXT,
                "algorithm": _words(ALGORITHMS.names),
                "backend": _words(BACKENDS.names),
                "partition": _words(PARTITIONS),
                "security": _words(SECURITIES),
                "research": FLAG,
            },
            keys.STUDY[:4],
        ),
        "privacy": _privacy(),
        "workload": _table(
            KEYS,
            {
                "cliques": {"type": "array", "items": TEXTS, "minItems": 1},
                "degree": WHOLE,
                "count": WHOLE,
                "seed": {"type": "integer", "minimum": 0},
                "label": TEXT,
            },
        ),
        **{algorithm.name: _declared(algorithm.config) for algorithm in ALGORITHMS},
        **{backend.name: _declared(backend.options) for backend in backends},
        "domain": _domain(),
        "table": _linked(),
        "alignment": _alignment(),
        "contributors": _table(
            contributors.KEYS,
            {
                "keys": TEXT,
                "receivers": TEXT,
                "expected_rows": WHOLE,
                "min": {"type": "integer", "minimum": 2},
                "close": {"oneOf": [_close(), {"type": "array", "items": _close(), "minItems": 1}]},
                "schedule": _words(contributors.SCHEDULES),
                "again": FLAG,
                "registered": TEXT,
                "after": {"oneOf": [_wave(), {"type": "array", "items": _wave(), "minItems": 1}]},
            },
            ("keys", "receivers", "expected_rows", "close"),
        ),
        "inference": _table(
            inference.KEYS,
            {
                "queries": TEXTS,
                "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": inference.MAX_SHARE},
            },
            ("queries",),
        ),
        "prior": _table(prior.KEYS, {"release": TEXT, "table": TEXT, "people": _words(prior.PEOPLE)}),
        "session": _table(
            keys.SESSION,
            {
                "connect_s": POSITIVE,
                "silence_s": {"type": "number", "minimum": 2},
                "tls": _words(("mutual", "insecure-loopback")),
                "bad_input": _words(("end", "exclude")),
                "answer_s": {"type": "number", "exclusiveMinimum": 0},
                "deadline_factor": {"type": "number", "minimum": 1},
                "deadline_floor_s": {"type": "number", "exclusiveMinimum": 0},
            },
        ),
        "party": _party(),
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A study of Cosynth",
        **_table(tables, tables, ("study", "privacy", "domain", "party")),
    }


def schema_text() -> str:
    """As a file holds it."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
