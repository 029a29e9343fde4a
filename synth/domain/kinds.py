"""The kinds of column as the study file writes them: which keys each has, and what is made of them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.options import FLAG, TEXT, WHOLE, Schema
from synth.domain.categorical import Boolean, Categorical, Ordinal
from synth.domain.checks import check_size
from synth.domain.codes import Codes
from synth.domain.column import Column
from synth.domain.dates import DAYS, SECONDS, Date, DateTime
from synth.domain.numbers import SCALES, Edged, Integer, Numeric

VALUE: Schema = {"type": ["string", "number", "boolean"]}
LIMIT: Schema = {"type": ["number", "string"]}
_LIMITS = {"low": LIMIT, "high": LIMIT}
_VALUES: dict[str, Schema] = {"values": {"type": "array", "items": VALUE, "minItems": 1}}
_STEP: dict[str, Schema] = {"step": {"enum": [*SECONDS, *DAYS]}}
_MISSING: dict[str, Schema] = {"missing": FLAG}

UNFIT: Final = {
    **dict.fromkeys(
        ("id", "identifier", "key", "uuid"),
        "an identifier names a person and cannot be synthesised: leave it out of [domain] (of a vertical study it is "
        "[alignment] id, of a privacy unit of several rows [privacy] unit)",
    ),
    **dict.fromkeys(
        ("text", "string", "free text", "note"),
        "free text cannot be synthesised from counts: leave it out of [domain], or code it into a categorical column first",
    ),
}
"""Kinds that people look for and that there cannot be, with advice."""


@dataclass(frozen=True)
class Kind:
    """required, optional: keys beside `kind`, and what each may hold. build: of the keys that were given. also:
    what other programs call it."""

    build: Callable[..., Column]
    required: Mapping[str, Schema]
    optional: Mapping[str, Schema]
    also: tuple[str, ...] = ()

    @property
    def keys(self) -> Mapping[str, Schema]:
        """All keys that it knows."""
        return {**self.required, **self.optional}


def _numeric(**given: Any) -> Column:
    if "edges" not in given:
        return Numeric(**given)
    if inapplicable := sorted(given.keys() & {"low", "high", "bins", "scale"}):
        raise StudyInvalid(f"edges say all about the bins; leave out {inapplicable[0]}.")
    return Edged(given.pop("edges"), **given)


def _integer(bins: int | None = None, **given: Any) -> Column:
    if bins is not None:
        check_size(bins, "bins")
    return Integer(count=bins or 0, **given)


def _date(low: object, high: object, **given: Any) -> Column:
    return Date(_day(low), _day(high), **given)


def _datetime(low: object, high: object, **given: Any) -> Column:
    return DateTime(_time(low), _time(high), **given)


KINDS: Mapping[str, Kind] = {
    "codes": Kind(Codes, {"size": WHOLE}, {}),
    "numeric": Kind(
        _numeric,
        {**_LIMITS, "bins": WHOLE},
        {
            **_MISSING,
            "integral": FLAG,
            "scale": {"enum": list(SCALES)},
            "zero": FLAG,
            "edges": {"type": "array", "items": {"type": "number"}, "minItems": 2},
        },
        ("float", "float64", "double", "real", "number", "decimal", "continuous"),
    ),
    "integer": Kind(
        _integer,
        _LIMITS,
        {**_MISSING, "bins": WHOLE, "zero": FLAG},
        ("int", "int64", "int32", "long", "count"),
    ),
    "date": Kind(_date, _LIMITS, {**_MISSING, **_STEP}, ("day",)),
    "datetime": Kind(_datetime, _LIMITS, {**_MISSING, **_STEP}, ("timestamp", "time", "datetime64")),
    "categorical": Kind(
        Categorical,
        _VALUES,
        {**_MISSING, "other": TEXT},
        ("str", "string", "text", "varchar", "object", "category", "nominal", "enum"),
    ),
    "ordinal": Kind(Ordinal, _VALUES, _MISSING, ("ordered", "ranked")),
    "boolean": Kind(Boolean, {}, _MISSING, ("bool", "binary", "logical")),
}
"""Every kind, in the order in which sentences list them."""


def column_from_spec(spec: object, key: str) -> Column:
    """One column: a size, or a table with `kind`. `key` names it in errors. Raises `StudyInvalid`."""
    if not isinstance(spec, Mapping):
        return Codes(check_size(spec, key))
    name = spec.get("kind")
    if isinstance(name, str) and name in UNFIT:
        raise StudyInvalid(f"{key}.kind is {name!r}, and {UNFIT[name]}.")
    if not isinstance(name, str) or name not in KINDS:
        listed = ", ".join(f'"{kind}"' for kind in KINDS)
        names = {kind: kind for kind in KINDS} | {
            word: kind for kind, of in KINDS.items() for word in of.also
        }
        close = difflib.get_close_matches(str(name).lower(), names, 1, 0.7)  # itself first, if it is one
        ours = names[close[0]] if close else None
        meant = f' (did you mean "{ours}"?)' if ours else ""
        raise StudyInvalid(f"{key}.kind must be one of {listed}, got {name!r}{meant}.")
    kind = KINDS[name]
    given = {word: value for word, value in spec.items() if word != "kind"}
    required = {"edges"} if "edges" in given and "edges" in kind.optional else kind.required.keys()
    if absent := sorted(required - given.keys()):
        raise StudyInvalid(f"{key} is {name} and needs the key {absent[0]}.")
    if foreign := sorted(str(word) for word in given.keys() - kind.keys.keys()):
        known = ", ".join(sorted(kind.keys))
        raise StudyInvalid(f"{key} has an unknown key {foreign[0]}; a {name} column knows {known}.")
    for word in given:
        if kind.keys[word].get("type") != "array":
            continue
        if not isinstance(given[word], list | tuple):
            raise StudyInvalid(f"{key}.{word} must be a list.")
        given[word] = tuple(given[word])
    try:
        return kind.build(**given)
    except StudyInvalid as error:
        raise StudyInvalid(f"{key}: {error.sentence}") from None


def _day(given: Any) -> Any:
    """A day that was written as text; anything else as it is, for the column to judge."""
    if isinstance(given, str):
        with suppress(ValueError):
            return date.fromisoformat(given)
    return given


def _time(given: Any) -> Any:
    """The same for a time."""
    if isinstance(given, str):
        with suppress(ValueError):
            return datetime.fromisoformat(given)
    return given
