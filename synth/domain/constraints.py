"""What is known to be impossible, in public: a value of one column that rules out values of others, two
columns in order.

    {if = {married = "never"}, then = {years_married = 0}}       an implication
    {order = ["admitted", "discharged"]}                         the first is at most the second, as long as both are there

A constraint is knowledge about the world, given with the domain and never read off the data
(`docs/design/privacy.md` 6). It is about codes: the cells that it excludes are structural zeros of the model
(`synth/mrf/fit.py`), so that no synthetic row has one of them, and a real row that does is handled by the
study's public rule (`broken_rows`).

Implications say values that have a code of their own, so what holds of codes holds of values. Two ordered
columns may have bins that overlap: their cells are possible, a real row within them is not looked at more
closely, and decoding draws the values of such a row in order (`decoding.py`). If a <= b and b <= c are given,
so is a <= c, whether b is missing or not.

Standard library only at import.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.process.later import np
from synth.domain.categorical import shown_as
from synth.domain.column import Column

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_CONSTRAINT_CELLS = 1 << 20
"""Of the columns of one constraint together."""


@dataclass(frozen=True)
class Implication:
    """Where every column of `when` has one of its codes, every column of `then` has one of its own, or is
    missing."""

    when: tuple[tuple[str, frozenset[int]], ...]
    then: tuple[tuple[str, frozenset[int]], ...]
    text: str
    """For people."""

    @property
    def names(self) -> frozenset[str]:
        """Its columns."""
        return frozenset(name for name, _ in (*self.when, *self.then))


@dataclass(frozen=True)
class Order:
    """The first column is at most the second."""

    first: str
    second: str

    @property
    def names(self) -> frozenset[str]:
        """Its columns."""
        return frozenset({self.first, self.second})

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.first} <= {self.second}"


Constraint = Implication | Order


def constraint_from_spec(spec: object, columns: Mapping[str, Column]) -> Constraint:
    """One constraint as the study writes it. Raises `StudyInvalid`, a sentence that begins after the
    constraint's name."""
    if not isinstance(spec, Mapping) or set(spec) not in ({"if", "then"}, {"order"}):
        raise StudyInvalid('A constraint must be { if = { .. }, then = { .. } } or { order = ["a", "b"] }.')
    if "order" in spec:
        names = spec["order"]
        if (
            not isinstance(names, Sequence)
            or isinstance(names, str)
            or len(names) != 2
            or names[0] == names[1]
        ):
            raise StudyInvalid("Order must list two different columns, the one that is smaller first.")
        first, second = (_known(name, columns) for name in names)
        _check_order(first, columns[first], second, columns[second])
        return Order(first, second)
    sides = []
    for key in ("if", "then"):
        if not isinstance(spec[key], Mapping) or not spec[key]:
            raise StudyInvalid(f"{key} must say of one or more columns which values they have.")
        sides.append(
            tuple(
                (_known(name, columns), _codes(columns[_known(name, columns)], given, f"{key}.{name}"))
                for name, given in spec[key].items()
            )
        )
    when, then = sides
    if {name for name, _ in when} & {name for name, _ in then}:
        raise StudyInvalid("It names a column both in if and in then; say what other columns must be.")
    for name, _ in then:
        if prod(columns[one].size for one in (*(one for one, _ in when), name)) > MAX_CONSTRAINT_CELLS:
            raise StudyInvalid(
                f"Its columns of if and {name} have more than {MAX_CONSTRAINT_CELLS} cells together; bin them coarser."
            )
    words = (
        " and ".join(f"{name} = {_condition_text(given)}" for name, given in spec[key].items())
        for key in ("if", "then")
    )
    return Implication(when, then, " implies ".join(words))


def _condition_text(given: object) -> str:
    if isinstance(given, Mapping):
        return " and ".join(
            "missing" if key == "missing" else f"{key.replace('_', ' ')} {value}"
            for key, value in given.items()
        )
    if isinstance(given, list | tuple):
        return " or ".join(map(_condition_text, given))
    return shown_as(given) if isinstance(given, str | int | float) else str(given)


def _known(name: object, columns: Mapping[str, Column]) -> str:
    if not isinstance(name, str) or name not in columns:
        raise StudyInvalid(f"It names {name!r}, which the domain does not have.")
    return name


def _codes(column: Column, given: object, where: str) -> frozenset[int]:
    """The codes of what a condition says: a value, a list of values, {missing = true}, or {at_least = ..,
    below = ..}."""
    if isinstance(given, list | tuple):
        if not given:
            raise StudyInvalid(f"{where} must list at least one value.")
        return frozenset().union(*(_codes(column, one, where) for one in given))
    if isinstance(given, Mapping):
        if dict(given) == {"missing": True} and column.missing:
            return frozenset({column.size - 1})
        if set(given) <= {"at_least", "below"} and given and column.binned:
            return _between(column, given, where)
        raise StudyInvalid(
            f"{where} must be a value, a list of values, {{ missing = true }} of a column that has missing values, or of one of "
            "numbers or days { at_least = .., below = .. }."
        )
    code = column.code_of(given)
    if code is None:
        raise StudyInvalid(f"{where} is {given!r}, which this column does not have.")
    if column.span(code)[0] != column.span(code)[1]:
        raise StudyInvalid(
            f"{where} is {given}, which shares its bin with other values; give it a code of its own (zero = true, or a bin "
            "a number), or say at_least and below."
        )
    return frozenset({code})


def _between(column: Column, given: Mapping[str, object], where: str) -> frozenset[int]:
    ends = {key: column.number_of(value) for key, value in given.items()}
    if None in ends.values():
        raise StudyInvalid(f"{where} must give at_least and below as values of its column.")
    least, below = ends.get("at_least"), ends.get("below")
    found = set()
    for code in range(column.size - column.missing):
        low, high = column.span(code)
        inside = (least is None or low >= least) and (below is None or high < below)
        outside = (least is not None and high < least) or (below is not None and low >= below)
        if not inside and not outside:
            raise StudyInvalid(
                f"{where} divides the bin {column.label(code)}; choose the limits where bins begin."
            )
        if inside:
            found.add(code)
    if not found:
        raise StudyInvalid(f"{where} holds of no value between the column's limits.")
    return frozenset(found)


def _check_order(first: str, one: Column, second: str, other: Column) -> None:
    if one.binned and other.binned:
        if one.line != other.line:
            raise StudyInvalid(
                f"Order compares {first} with {second}: both must be days, both times, both whole numbers, or neither of these."
            )
        if one.low > other.low or one.high > other.high:
            raise StudyInvalid(
                f"Order needs limits of {first} that are not above those of {second}: what is clamped would seem out of order."
            )
    elif one.line is None or one.line != other.line:
        raise StudyInvalid(
            f"Order compares {first} with {second}: columns of numbers, days, times, codes, or ordinal ones of the same values."
        )
    if one.size * other.size > MAX_CONSTRAINT_CELLS:
        raise StudyInvalid(
            f"{first} and {second} have over {MAX_CONSTRAINT_CELLS} cells together; bin them coarser."
        )


def closed(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """With every order that follows from the others. Raises `StudyInvalid` for orders in a circle."""
    given = list(dict.fromkeys(constraints))
    pairs = {(one.first, one.second) for one in given if isinstance(one, Order)}
    while more := {(a, d) for (a, b), (c, d) in product(pairs, pairs) if b == c} - pairs:
        pairs |= more
    for a, b in sorted(pairs):
        if a == b:
            raise StudyInvalid(f"[domain] constraints order {a} below itself, in a circle.")
    known = {(one.first, one.second) for one in given if isinstance(one, Order)}
    return (*given, *(Order(a, b) for a, b in sorted(pairs - known)))


def impossible_cells(
    constraint: Constraint, columns: Mapping[str, Column]
) -> list[tuple[tuple[str, ...], NDArray[np.bool_]]]:
    """What it excludes: sets of columns in the mapping's order, and which of their cells, one axis a column."""
    place = {name: number for number, name in enumerate(columns)}
    if isinstance(constraint, Order):
        names = tuple(sorted((constraint.first, constraint.second), key=place.__getitem__))
        low, high = (_ends(columns[name]) for name in (constraint.first, constraint.second))
        cells: NDArray[np.bool_] = low[0][:, None] > high[1][None, :]
        return [(names, cells if names[0] == constraint.first else cells.T)]
    found = []
    for name, codes in constraint.then:
        sets = {**dict(constraint.when), name: _forbidden_codes(columns[name], codes)}
        names = tuple(sorted(sets, key=place.__getitem__))
        cells = np.ones([columns[one].size for one in names], np.bool_)
        for axis, one in enumerate(names):
            holds = np.isin(np.arange(columns[one].size), sorted(sets[one]))
            cells &= holds.reshape([-1 if number == axis else 1 for number in range(len(names))])
        found.append((names, cells))
    return found


def _forbidden_codes(column: Column, codes: frozenset[int]) -> frozenset[int]:
    """What a value must not be; that it is missing contradicts nothing, unless that is what the condition is
    about."""
    excluded = frozenset(range(column.size)) - codes
    return excluded - {column.size - 1} if column.missing else excluded


def _ends(column: Column) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each code, the smallest and the largest of its values; of a missing value, anything."""

    spans = column.spans() + [(-np.inf, np.inf)] * column.missing
    low, high = np.array(spans, dtype=np.float64).T
    return low, high
