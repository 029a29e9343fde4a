"""`--where`: which rows are drawn, in the words of the command line.

One grammar: COLUMN=VALUE, COLUMN=LOW..HIGH or COLUMN= (a missing value), one condition an option. What is
written otherwise (`age==40`, `age >= 40`, `sex=f,age=40`, quotation marks that a shell has left) is refused
with the condition as it would be written here: a text may be a value of the column, so nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from mpc_protocols.errors import UsageError
from runner.api.conditions import allowed, between
from synth.domain import Column, Domain

_CONDITION: Final = re.compile(r"\s*(.*?)\s*(==|!=|<>|>=|<=|=|>|<)\s*(.*?)\s*", re.DOTALL)
_NEXT: Final = re.compile(r"\s*(?:[,;&]+|\band\b)\s*(?=[^=<>!,;&]+[=<>!])", re.IGNORECASE)
"""Between two conditions in one text."""
_OR: Final = re.compile(r"\s*(?:[,;|]+|\bor\b)\s*", re.IGNORECASE)
"""Between two values of one column."""
_FROM_TO: Final = re.compile(r"(-?[\d.]+)\s*(?:-|:|\.\.\.|\bto\b)\s*(-?[\d.]+)")
_GROUP: Final = r"[,'\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE} ]"
_GROUPED: Final = re.compile(rf"-?[1-9]\d{{0,2}}(?:{_GROUP}\d{{3}})+(?:\.\d+)?")
"""A number whose thousands are set apart."""
_QUOTES: Final = "\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"


def conditions(given: Sequence[str], domain: Domain) -> dict[str, Any]:
    """`--where COLUMN=VALUE`... as `Run.sample` takes them. Raises `UsageError`."""
    try:
        return _read(given, domain)
    except UsageError:
        for text in given:
            if said := _as_written_here(text, domain):
                raise UsageError(f"--where {text} is written otherwise here: {said}.") from None
        raise


def _read(given: Sequence[str], domain: Domain) -> dict[str, Any]:
    """Of this grammar only."""
    where: dict[str, Any] = {}
    for text in given:
        _add(where, text)
    allowed(domain, where)
    return where


def _add(where: dict[str, Any], text: str) -> None:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--where {text} must be COLUMN=VALUE, COLUMN=LOW..HIGH or COLUMN= (missing).")
    low, dots, high = value.partition("..")
    if dots and (name in where or not low or not high or ".." in high):
        raise UsageError(
            f"--where {text}: a range is LOW..HIGH, both named, and the only condition on its column."
        )
    if dots:
        where[name] = between(low, high)
    elif isinstance(where.setdefault(name, []), list):
        where[name].append(value or None)
    else:
        raise UsageError(f"--where {text}: {name} has a range already, the only condition on its column.")


def _as_written_here(text: str, domain: Domain) -> str:
    """The options that a text of another grammar stands for; an empty text if it is of this one, or of
    none."""
    if _fits([text], domain):
        return ""
    found: list[str] = []
    for part in _NEXT.split(text.strip().removeprefix("(").removesuffix(")")):
        matched = _CONDITION.fullmatch(part.strip(_QUOTES) if part[:1] in _QUOTES else part)
        if matched is None or (name := matched[1].strip(_QUOTES)) not in domain:
            return ""
        if matched[2] in ("!=", "<>"):
            return f"name the values of {name} that rows may have, one --where each"
        found += _of_column(domain[name], name, matched[2], matched[3])
    return " ".join(f"--where {_quoted(one)}" for one in found) if found and _fits(found, domain) else ""


def _of_column(column: Column, name: str, sign: str, value: str) -> list[str]:
    """Conditions on one column. sign: a comparison."""
    value = value.strip(_QUOTES)
    if sign in (">", ">=", "<", "<="):
        if not column.binned:
            return []
        return [
            f"{name}={value}..{column.written(column.high)}"
            if sign[0] == ">"
            else f"{name}={column.written(column.low)}..{value}"
        ]
    if column.binned and _GROUPED.fullmatch(value):  # 1,000 is no choice of 1 or 000
        return [f"{name}={re.sub(_GROUP, '', value)}"]
    if column.binned and (ends := _FROM_TO.fullmatch(value)):
        return [f"{name}={ends[1]}..{ends[2]}"]
    return [f"{name}={one.strip(_QUOTES)}" for one in _OR.split(value.strip("()[]"))]


def _fits(given: Sequence[str], domain: Domain) -> bool:
    try:
        _read(given, domain)
    except UsageError:
        return False
    return True


def _quoted(text: str) -> str:
    """As a shell takes it for one word."""
    return f'"{text}"' if re.search(r"[\s<>&;|()]", text) else text
