"""Columns as functions of their codes: what a condition takes of each code, and which number a code stands
for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.domain import Column, Domain
from synth.inference.language import Condition
from synth.inference.licence import Unanswerable
from synth.inference.moments import Part

Codes_of = Callable[[str, Any], NDArray[np.bool_]]
"""Which codes of a column are one of these values; raises a `UsageError` for what the column does not hold."""


def joined(*all_parts: Mapping[str, Part]) -> dict[str, Part]:
    """The product of products."""
    found: dict[str, Part] = {}
    for parts in all_parts:
        for name, part in parts.items():
            found[name] = found[name] * part if name in found else part
    return found


def need(domain: Domain, names: Iterable[str]) -> None:
    """Raise `Unanswerable` for a column that the run does not have."""
    for name in names:
        if name not in domain:
            by_letters = {known.casefold(): known for known in domain.names}
            close = difflib.get_close_matches(name.casefold(), list(by_letters), 1)
            hint = f' (did you mean "{by_letters[close[0]]}"?)' if close else ""
            raise Unanswerable(f"The run has no column {name}{hint}; its columns: {', '.join(domain.names)}.")


def present(column: Column) -> Part:
    """1 where a row has a value."""
    found = np.ones(column.size)
    if column.missing:
        found[-1] = 0.0
    return Part.exact(found)


def number(column: Column, name: str) -> Part:
    """The number that a code stands for: of a bin its middle, and its ends; 0 where a value is missing.

    Raises `Unanswerable` for texts, days and times.
    """
    try:
        spans = column.numbers(name)
    except ValueError as error:
        raise Unanswerable(str(error)) from None
    least, most = np.array([*spans, *[(0.0, 0.0)] * column.missing], dtype=np.float64).T
    return Part((least + most) / 2, least, most)


def kinds(column: Column, name: str) -> tuple[list[str], list[Part]]:
    """Labels of the values that are there, and the indicator of each."""
    labels, parts = [], []
    for code in range(column.size - column.missing):
        labels.append(column.label(code))
        parts.append(Part.exact((np.arange(column.size) == code).astype(np.float64)))
    return labels, parts


def of_conditions(domain: Domain, conditions: Sequence[Condition], codes_of: Codes_of) -> dict[str, Part]:
    """The product of conditions, by column. Raises `Unanswerable` if no row can meet them, `UsageError`."""
    found: dict[str, Part] = {}
    for condition in conditions:
        need(domain, [condition.column])
        part = _condition(domain[condition.column], condition, codes_of)
        known = found.get(condition.column)
        found[condition.column] = part if known is None else known * part
    for name, part in found.items():
        if not (part.most > 0).any():
            raise Unanswerable(
                f"No row can meet the conditions on {name}, so there is nothing to answer from."
            )
    return found


def _condition(column: Column, condition: Condition, codes_of: Codes_of) -> Part:
    name, operator = condition.column, condition.operator
    if operator in ("<", "<=", ">", ">="):
        return _compared(column, name, operator, condition.values[0])
    codes = codes_of(name, list(condition.values) if operator == "in" else condition.values[0])
    if operator == "!=":
        codes = ~codes & (present(column).centre > 0)
    exact = codes.astype(np.float64)
    spans = [*column.spans(), *[(0.0, 0.0)] * column.missing]
    several = np.array([high > low for low, high in spans])  # a number of a bin that holds others as well
    if operator == "!=":
        doubtful = several & ~codes & (present(column).centre > 0)
        return Part(exact, exact, np.where(doubtful, 1.0, exact))
    return Part(exact, np.where(several, 0.0, exact), exact)


def _compared(column: Column, name: str, operator: str, value: object) -> Part:
    """Of each code the share that meets it; a bin that the value cuts is taken as evenly filled, and may be
    all or nothing."""
    try:
        place, spans = column.compared(value, name)
    except ValueError as error:
        raise Unanswerable(str(error)) from None
    low, high = np.array(spans, dtype=np.float64).T
    if column.binned and column.integral:
        whole = float(np.floor(place))
        edge = whole + (0.5 if operator in ("<=", ">") or place != whole else -0.5)
        return _cut(low - 0.5, high + 0.5, edge, operator, column.missing)
    return _cut(low, high, place, operator, column.missing)


def _cut(
    low: NDArray[np.float64], high: NDArray[np.float64], edge: float, operator: str, missing: bool
) -> Part:
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.clip((edge - low) / (high - low), 0.0, 1.0)
    points = high <= low
    below = np.where(points, low <= edge if operator in ("<=", ">") else low < edge, below)
    centre = below if operator in ("<", "<=") else 1.0 - below
    least, most = np.floor(centre + 1e-12), np.ceil(centre - 1e-12)
    tail = [0.0] * missing
    return Part(*(np.array([*part, *tail]) for part in (np.clip(centre, least, most), least, most)))
