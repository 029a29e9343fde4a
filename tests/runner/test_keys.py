"""A key is declared once: its reader, schema, template and row of the reference page follow."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import pytest

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.options import Options, option, required
from runner.study.declared.reference import keys_of
from runner.study.declared.table import Table
from runner.study.declared.tables import Alignment


@dataclass(frozen=True)
class Made(Options):
    """A table that no study has."""

    who: str = required("word", "who is meant", words=lambda: ("all", "some"))
    share: Fraction = option(Fraction(1, 5), "decimal", "of the budget", below=1.0)
    file: str | None = option(None, "text", "a file", shape="the name of a file", example="a.json")
    limits: Any = option(None, "form", "of each", form={"type": "object"}, fallback="none")
    names: tuple[str, ...] = required("texts", "of columns")


def read(raw: dict[str, Any]) -> tuple[Made, list[str]]:
    problems: list[str] = []
    return Table(raw, "s.toml", "[made]", Made, problems).options(Made), problems


def test_values_are_read_as_declared() -> None:
    made, problems = read({"who": "some", "share": 0.1, "names": ["a", "b"], "limits": {"a": 1}})
    assert not problems
    assert made == Made("some", Fraction(1, 10), None, None, ("a", "b"))  # a form is its own reader's
    assert made.public() == {"who": "some", "share": 0.1, "names": ["a", "b"]}
    limited = replace(made, limits=MappingProxyType({"a": 1}))
    assert json.dumps(limited.public()["limits"]) == '{"a": 1}'


def test_every_problem_has_a_sentence_and_something_stands_in() -> None:
    made, problems = read({"who": "sone", "share": 1, "file": "a\0b", "nmaes": []})
    assert problems == [
        's.toml: [made] unknown key "nmaes" (did you mean "names"?); known here: who, share, file, limits, names.',
        's.toml: [made] who must be "all" or "some", got "sone" (did you mean "some"?).',
        "s.toml: [made] share must be a number greater than 0 and less than 1, got 1.",
        's.toml: [made] file must be the name of a file, got "a\\x00b".',
        "s.toml: [made] names is missing: it must be a list of different non-empty texts.",
    ]
    assert made == Made("all", Fraction(1, 5), None, None, ("?",))


def test_what_is_required_is_required_of_code_too() -> None:
    with pytest.raises(StudyInvalid, match="The option who must be"):
        Made(names=("a",))


def test_schema_template_and_page_say_the_same() -> None:
    schema = Made.schema()
    assert schema["required"] == ["who", "names"] and list(schema["properties"]) == list(Made.options())
    assert schema["properties"]["who"] == {"enum": ["all", "some"], "description": "who is meant"}
    assert Made.template(20, "file") == '# file = "a.json"   # a file'
    assert keys_of({"made": Made}).splitlines()[2:] == [
        "| `who` | `all`, `some` | required | who is meant |",
        "| `share` | above 0, below 1 | `0.2` | of the budget |",
        "| `file` | text | - | a file |",
        "| `limits` |  | none | of each |",
        "| `names` | list of texts | required | of columns |",
    ]


def test_each_key_of_an_alignment_stands_in_what_the_parties_agree_on() -> None:
    """A key that is declared is left out by a reason only: it has no meaning here."""
    given = Alignment("psu", id=("a",), normalise=("text",), pad_to=MappingProxyType({"north": 2000}))
    agreed = given.agreed("add-remove")
    assert list(agreed) == list(Alignment.options()) and agreed["pad_to"] == {"north": 2000}
    public = given.agreed("replace")
    assert set(agreed) - set(public) == {"size_epsilon", "size_delta", "pad_to"}
    aligned = Alignment("row-order").agreed("add-remove")
    assert set(aligned) == {"method", "population", "min_size", "size_epsilon", "size_delta"}
