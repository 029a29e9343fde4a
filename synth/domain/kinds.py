"""The kinds of column as the study file writes them: which keys each has, and what is made of them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from mpc_protocols.errors import StudyInvalid
from synth.domain.categorical import Boolean, Categorical, Ordinal
from synth.domain.checks import check_size
from synth.domain.codes import Codes
from synth.domain.dates import Date, DateTime
from synth.domain.numbers import Binned, Edged, Integer, Numeric

Column = Codes | Binned | Categorical
"""One column: frozen, hashable. kind: in the study file. ordered: whether neighbouring codes are alike. size:
number of codes. missing: whether the last one is for an absent value."""

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


LISTS: Final = frozenset({"values", "edges"})
"""Keys whose value is a list."""


@dataclass(frozen=True)
class Kind:
    """required, optional: keys beside `kind`. build: of the keys that were given."""

    build: Callable[..., Column]
    required: frozenset[str]
    optional: frozenset[str] = frozenset()

    @property
    def keys(self) -> frozenset[str]:
        """All keys that it knows."""
        return self.required | self.optional


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
    "codes": Kind(Codes, frozenset({"size"})),
    "numeric": Kind(
        _numeric,
        frozenset({"low", "high", "bins"}),
        frozenset({"integral", "missing", "scale", "zero", "edges"}),
    ),
    "integer": Kind(_integer, frozenset({"low", "high"}), frozenset({"bins", "missing", "zero"})),
    "date": Kind(_date, frozenset({"low", "high"}), frozenset({"step", "missing"})),
    "datetime": Kind(_datetime, frozenset({"low", "high"}), frozenset({"step", "missing"})),
    "categorical": Kind(Categorical, frozenset({"values"}), frozenset({"missing", "other"})),
    "ordinal": Kind(Ordinal, frozenset({"values"}), frozenset({"missing"})),
    "boolean": Kind(Boolean, frozenset(), frozenset({"missing"})),
}


OTHERWISE = {
    **dict.fromkeys(("bool", "binary", "logical"), "boolean"),
    **dict.fromkeys(("int", "int64", "int32", "long", "count"), "integer"),
    **dict.fromkeys(("float", "float64", "double", "real", "number", "decimal", "continuous"), "numeric"),
    **dict.fromkeys(
        ("str", "string", "text", "varchar", "object", "category", "nominal", "enum"), "categorical"
    ),
    **dict.fromkeys(("ordered", "ranked"), "ordinal"),
    **dict.fromkeys(("timestamp", "time", "datetime64"), "datetime"),
    "day": "date",
}
"""What other programs call these kinds."""


def column_from_spec(spec: object, key: str) -> Column:
    """One column: a size, or a table with `kind`. `key` names it in errors. Raises `StudyInvalid`."""
    if not isinstance(spec, Mapping):
        return Codes(check_size(spec, key))
    name = spec.get("kind")
    if isinstance(name, str) and name in UNFIT:
        raise StudyInvalid(f"{key}.kind is {name!r}, and {UNFIT[name]}.")
    if not isinstance(name, str) or name not in KINDS:
        listed = ", ".join(f'"{kind}"' for kind in KINDS)
        close = difflib.get_close_matches(said := str(name).lower(), [*KINDS, *OTHERWISE], 1, 0.7)
        ours = OTHERWISE.get(said) or next((OTHERWISE.get(each, each) for each in close), None)
        meant = f' (did you mean "{ours}"?)' if ours else ""
        raise StudyInvalid(f"{key}.kind must be one of {listed}, got {name!r}{meant}.")
    kind = KINDS[name]
    given = {word: value for word, value in spec.items() if word != "kind"}
    required = frozenset({"edges"}) if "edges" in given and "edges" in kind.optional else kind.required
    if absent := sorted(required - given.keys()):
        raise StudyInvalid(f"{key} is {name} and needs the key {absent[0]}.")
    if foreign := sorted(str(word) for word in given.keys() - kind.keys):
        known = ", ".join(sorted(kind.keys))
        raise StudyInvalid(f"{key} has an unknown key {foreign[0]}; a {name} column knows {known}.")
    for word in LISTS & given.keys():
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
