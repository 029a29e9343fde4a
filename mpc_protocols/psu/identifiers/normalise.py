"""From a table's key columns to canonical identifiers: two owners must write the same person in the same
bytes (`docs/design/psu.md` 5).

A public policy, part of the study, says how each column is read:

    exact      the text as it is (integers in decimal, dates in ISO form)
    text       Unicode canonical form, caseless; blanks trimmed and collapsed                                     (default)
    name       the same with compatibility forms unified
    email      as text; one @, something before and after it
    phone:CC   E.164, national numbers in country CC (`phone`)
    date       YYYY-MM-DD, from dates, YYYY-MM-DD or YYYYMMDD: day/month order is never guessed

Composite keys are one identifier: every field preceded by its length, so ("ab", "c") and ("a", "bc") differ.
Real identifiers begin with byte 0, which no dummy does (`dummies`).

Missing, empty and placeholder values ("n/a", "unknown") are refused: unequal people would become one.
Duplicates after normalising are refused, or the first row of each kept. Everything here is local: nothing
about failures reaches a peer but a sentence that names column and row, never a value; the number of
duplicates goes to the caller only.
"""

from __future__ import annotations

import datetime
import operator
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.psu.identifiers import phone

RULES = ("text", "exact", "name", "email", "date")
REAL = b"\x00"
"""First byte of a real identifier."""
MAX_FIELD = 4096
"""Most bytes of one canonical field."""
KINDS = ("untyped", "text", "integer", "date")
"""What a column's values are; "untyped" is text from a file without types, which fits all others."""

_PLACEHOLDERS = frozenset({"-", "--", "?", "n/a", "#n/a", "unknown"})
_NULL_WORDS = frozenset(
    {"na", "nan", "nil", "none", "null"}
)  # may be names of people, so not refused by the rule "name"


@dataclass(frozen=True)
class Identifiers:
    """One owner's identifiers. entries: distinct canonical bytes. rows: (n,) int64, the table's row of each.
    kinds: types of the key columns, as in KINDS. duplicates: how many rows were left out because an earlier
    one had their identifier (for the owner's own log)."""

    entries: list[bytes] = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)
    kinds: tuple[str, ...]
    duplicates: int = field(default=0, repr=False)


@dataclass(frozen=True)
class IdentifierPolicy:
    """How identifiers are made: one rule per key column; `duplicates` within an owner: refuse, or keep the
    first row."""

    columns: tuple[str, ...]
    rules: tuple[str, ...]
    duplicates: Literal["refuse", "first"] = "refuse"

    def __post_init__(self) -> None:
        if (
            not self.columns
            or len(self.columns) != len(self.rules)
            or len(set(self.columns)) != len(self.columns)
        ):
            raise StudyInvalid(
                "[alignment] id must name one or more different columns, and normalise one rule for each."
            )
        if self.duplicates not in ("refuse", "first"):
            raise StudyInvalid(
                f'[alignment] duplicates must be "refuse" or "first", got {self.duplicates!r}.'
            )
        for name in self.rules:
            _rule(name)

    def canonical(self, values: Sequence[object]) -> bytes | None:
        """One record's identifier, one value per column; None if a value is missing, a placeholder or not
        what the rule reads."""
        fields = [field_of(value, name) for value, name in zip(values, self.rules, strict=True)]
        return None if None in fields else REAL + b"".join(_prefixed(f) for f in fields if f is not None)

    def collect(self, keys: Sequence[bytes], kinds: tuple[str, ...]) -> Identifiers:
        """The distinct ones of a table's identifiers, each with its first row. keys: one per row, as
        `canonical` makes them."""
        first = dict.fromkeys(keys)
        if len(first) == len(keys):
            return Identifiers(list(keys), np.arange(len(keys), dtype=np.int64), kinds)
        rows: dict[bytes, int] = {}
        for row, key in enumerate(keys):
            rows.setdefault(key, row)
        return Identifiers(
            list(rows), np.fromiter(rows.values(), np.int64, len(rows)), kinds, len(keys) - len(rows)
        )

    def encode(
        self, columns: Sequence[Sequence[object]], owner: str, *, untyped: bool = False
    ) -> Identifiers:
        """All identifiers of a table.

        columns: the key columns, of equal length: text, integers or dates. owner: its name, for errors.
        untyped: text comes from a file without types. Raises `DataRefused`: a missing value, one that does
        not fit its rule, several types in a column, duplicates.
        """
        if len(columns) != len(self.columns) or len({len(column) for column in columns}) != 1:
            raise ValueError("One sequence of values per key column is needed, all of the same length.")
        kinds = tuple(
            self._kind(column, name, owner, untyped)
            for column, name in zip(columns, self.columns, strict=True)
        )
        parts = [
            self._fields(column, name, rule, owner)
            for column, name, rule in zip(columns, self.columns, self.rules, strict=True)
        ]
        keys = [REAL + b"".join(record) for record in zip(*parts, strict=True)]
        made = self.collect(keys, kinds)
        if made.duplicates and self.duplicates == "refuse":
            raise DataRefused(f"Party {owner} {self.repeated()}")
        return made

    def repeated(self) -> str:
        """What to say of duplicates that are refused, after who has them."""
        return (
            f"has several rows with the same identifier ({', '.join(self.columns)}) after normalising; remove them, or set "
            '[alignment] duplicates = "first" to keep the first of each.'
        )

    def _kind(self, column: Sequence[object], name: str, owner: str, untyped: bool) -> str:
        kinds = {_kind(value) for value in column} - {None}
        if not kinds <= set(KINDS) or len(kinds) > 1:
            found = ", ".join(sorted(map(str, kinds)))
            raise DataRefused(
                f"Party {owner}: the identifier column {name!r} holds {found} values; identifiers are text, "
                "integers or dates, one type in a column."
            )
        kind = kinds.pop() if kinds else "untyped"
        return "untyped" if untyped and kind == "text" else str(kind)

    def _fields(self, column: Sequence[object], name: str, rule_name: str, owner: str) -> list[bytes]:
        out = []
        for row, value in enumerate(column):
            canonical = field_of(value, rule_name)
            if canonical is None:
                what = (
                    "is missing"
                    if _kind(value) is None
                    else f"is a placeholder or cannot be read as {rule_name!r}"
                )
                raise DataRefused(
                    f"Party {owner}: the identifier in column {name!r} of row {row + 1} {what}; "
                    "complete it or leave the row out."
                )
            out.append(_prefixed(canonical))
        return out


def _prefixed(part: bytes) -> bytes:
    return len(part).to_bytes(4, "big") + part


def _kind(value: object) -> str | None:
    """The type of a value, as in KINDS, None for a missing one; anything else by its type's name."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, (int, np.integer)):
        return "integer"
    if isinstance(value, (datetime.date, np.datetime64)):
        return None if isinstance(value, np.datetime64) and np.isnat(value) else "date"
    if isinstance(value, (float, np.floating)):
        return None if value != value else "floating point"
    return type(value).__name__


def field_of(value: object, rule_name: str) -> bytes | None:
    """The canonical bytes of one value under a rule, at most MAX_FIELD; None if it has none."""
    kind = _kind(value)
    if kind is None:
        return None
    if isinstance(value, str):
        text = value
    elif isinstance(value, datetime.datetime):
        if value.time() != datetime.time():
            return None  # a moment, not a day
        text = value.date().isoformat()
    elif isinstance(value, datetime.date):
        text = value.isoformat()
    elif isinstance(value, np.datetime64):
        day = value.astype("datetime64[D]")
        if day != value:
            return None
        text = str(day)
    elif kind == "integer":
        text = str(operator.index(value))  # type: ignore[arg-type]
    else:
        return None
    canonical = _rule(rule_name)(text)
    if not canonical:
        return None
    if canonical in placeholders(rule_name):
        return None
    try:
        encoded = canonical.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return None
    return encoded if len(encoded) <= MAX_FIELD else None


def placeholders(rule_name: str) -> frozenset[str]:
    """Canonical texts that stand for no value under a rule."""
    if rule_name == "exact":
        return frozenset()
    return _PLACEHOLDERS if rule_name == "name" else _PLACEHOLDERS | _NULL_WORDS


def _exact(text: str) -> str:
    return text


def _text(text: str) -> str:
    """Canonical caseless form (Unicode 3.13, D145), composed, blanks collapsed."""
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFC", " ".join(folded.split()))


def _name(text: str) -> str:
    """Compatibility caseless form (D146), composed, blanks collapsed."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFD", text).casefold()).casefold()
    return unicodedata.normalize("NFKC", " ".join(unicodedata.normalize("NFKD", folded).split()))


def _email(text: str) -> str | None:
    """As text; no dot or plus rules of particular providers, which differ and change."""
    address = _text(text)
    local, _, domain = address.rpartition("@")
    return address if local and domain and " " not in address and "@" not in local else None


def _date(text: str) -> str | None:
    compact = text.strip()
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}", compact):
        return None
    try:
        return datetime.date.fromisoformat(compact).isoformat()
    except ValueError:
        return None


_RULES: dict[str, Callable[[str], str | None]] = {
    "text": _text,
    "exact": _exact,
    "name": _name,
    "email": _email,
    "date": _date,
}


@cache
def _rule(name: str) -> Callable[[str], str | None]:
    if name.startswith("phone:"):
        return phone.rule(name.removeprefix("phone:"))
    if name not in _RULES:
        raise StudyInvalid(f"[alignment] normalise = {name!r} is not one of {', '.join(RULES)} or phone:CC.")
    return _RULES[name]
