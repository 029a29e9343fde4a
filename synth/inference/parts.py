"""Columns as functions of their codes: what a condition takes of each code, and which number a code stands
for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.domain import Binned, Boolean, Calendar, Categorical, Codes, Column, Domain
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
            raise Unanswerable(f"The run has no column {name}; its columns: {', '.join(domain.names)}.")


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
    if isinstance(column, Calendar):
        raise Unanswerable(
            f"Column {name} holds days or times; ask for shares of it, such as share({name} < ...)."
        )
    if isinstance(column, Codes):
        return Part.exact(np.arange(column.size, dtype=np.float64))
    if isinstance(column, Binned):
        there = column.size - column.missing
        least, most = np.array([column.span(code) for code in range(there)] + [(0.0, 0.0)] * column.missing).T
        return Part((least + most) / 2, least, most)
    if not isinstance(column, Boolean) and any(
        isinstance(value, bool | str) or not isinstance(value, int | float) for value in column.values
    ):
        raise Unanswerable(
            f"Column {name} holds texts, which have no mean; ask for a share, such as share({name} == ...)."
        )
    return Part.exact(np.array([*map(float, column.values), *[0.0] * column.missing]))


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
    if isinstance(column, Binned):  # a number of a bin that holds others as well
        spans = [
            column.span(code) if code < column.size - column.missing else (0.0, 0.0)
            for code in range(column.size)
        ]
        several = np.array([high > low for low, high in spans])
        if operator == "!=":
            raise_if = several & ~codes & (present(column).centre > 0)
            return Part(exact, exact, np.where(raise_if, 1.0, exact))
        return Part(exact, np.where(several, 0.0, exact), exact)
    return Part.exact(exact)


def _compared(column: Column, name: str, operator: str, value: object) -> Part:
    """Of each code the share that meets it; a bin that the value cuts is taken as evenly filled, and may be
    all or nothing."""
    there = column.size - column.missing
    if isinstance(column, Categorical):
        if column.ordered and value in column.values:
            place = column.values.index(value)
            ends = np.arange(there, dtype=np.float64)
            return _cut(ends, ends, float(place), operator, column.missing)
        numbers = [v for v in column.values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) != len(column.values) or not isinstance(value, int | float):
            raise Unanswerable(
                f"Column {name} has no order in which {value!r:.40} has a place; list its values with in [...]."
            )
        ends = np.array(numbers, dtype=np.float64)
        return _cut(ends, ends, float(value), operator, column.missing)
    if isinstance(column, Calendar):
        moment = column.number_of(value) if isinstance(value, str) else None
        if moment is None:
            raise Unanswerable(
                f"Column {name} is compared with days or times such as '2019-12-31', got {value!r:.40}."
            )
        value = float(moment)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unanswerable(f"Column {name} is compared with numbers, got {value!r:.40}.")
    if isinstance(column, Codes):
        ends = np.arange(there, dtype=np.float64)
        return _cut(ends, ends, float(value), operator, False)
    low, high = np.array([column.span(code) for code in range(there)]).T
    if column.integral:
        edge = float(np.floor(value)) + (0.5 if operator in ("<=", ">") or value != np.floor(value) else -0.5)
        return _cut(low - 0.5, high + 0.5, edge, operator, column.missing)
    return _cut(low, high, float(value), operator, column.missing)


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
