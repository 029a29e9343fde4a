"""The study file as a JSON Schema, for editors that complete and check TOML while it is written.

Made of the declarations that the reader uses (`keys.py`, `tables.py`, what algorithms and backends declare,
kinds of column). So a key that one knows the other knows. The schema says which keys there are and what a
value looks like; what fits together, `check` says. `docs/reference/study.schema.json` is this, and `init`
puts one beside the study; `python -m runner.study.declared.schema FILE` writes it. Days and times are texts
to JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from mpc_protocols.backend import BACKENDS
from mpc_protocols.options import Options, Schema
from runner.study.declared.keys import (
    ChildKeys,
    ContributorKeys,
    InferenceKeys,
    PartyKeys,
    PriorKeys,
    StudyKeys,
)
from runner.study.declared.tables import Alignment, Privacy, Session
from synth.algorithm import ALGORITHMS
from synth.domain.keys import DomainKeys
from synth.workload import WorkloadKeys


def tables() -> Mapping[str, type[Options]]:
    """Of each table of a study its keys, in the order of the reference page."""
    return {
        "study": StudyKeys,
        "privacy": Privacy,
        "workload": WorkloadKeys,
        **{algorithm.name: algorithm.config for algorithm in ALGORITHMS},
        **{backend.name: backend.options for backend in BACKENDS if backend.options.options()},
        "domain": DomainKeys,
        "table": ChildKeys,
        "alignment": Alignment,
        "contributors": ContributorKeys,
        "inference": InferenceKeys,
        "prior": PriorKeys,
        "session": Session,
        "party": PartyKeys,
    }


def schema() -> Schema:
    """The whole schema, JSON-able."""
    forms = {name: keys.schema() for name, keys in tables().items()}
    forms["party"] = {"type": "array", "minItems": 1, "items": forms["party"]}
    forms["table"] = {"type": "object", "additionalProperties": forms["table"], "minProperties": 1}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A study of Cosynth",
        "type": "object",
        "properties": forms,
        "additionalProperties": False,
        "required": ["study", "privacy", "domain", "party"],
    }


def schema_text() -> str:
    """As a file holds it."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
