"""One column's codes as a CASE where the database has numbers, days or times: see `cases.py`.

Bins are compared with their limits, the lowest first. Whole and decimal numbers are compared with limits of
their own scale (`thresholds.py`), doubles with doubles, days with days.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from parties.data.libraries import sa
from parties.data.sql.cases import UNREAD, Cases, Fate, Untranslated, When, number
from parties.data.sql.kinds import Kind
from parties.data.sql.probe import Probe, grouped
from parties.data.sql.thresholds import least
from synth.domain import Calendar, Column
from synth.domain.categorical import DECIMAL
from synth.domain.dates import DAY

if TYPE_CHECKING:
    from parties.data.sql.products import Expression, Product

_MAX_DOUBLE = 1.7976931348623157e308
_WHOLE = 1 << 53  # from here on, every double is whole
_EXACT_DIGITS = 15  # so many digits of a decimal are the same as a double's

Limit = Callable[[float], "Expression"]


class _Line:
    """The column's numbers as a line that limits cut."""

    def __init__(self, x: Expression, kind: Kind, database: Product) -> None:
        self.x, self.kind, self._database = x, kind, database
        digits = kind.precision if kind.precision else 20 + kind.scale
        self._end = 10**digits  # as far as such numbers go

    def below(self, limit: float) -> Expression:
        """Whether a number's nearest double is less than the limit."""
        if self.kind.group == "double":
            return self.x < self._database.given_double(limit)
        place = max(-self._end, min(self._end, least(limit, self.kind.scale)))
        return self.x < number(place, self.kind.scale)

    def above(self, limit: float) -> Expression:
        """Whether it is more than the limit."""
        return ~self.below(math.nextafter(limit, math.inf))

    def fractional(self) -> Expression | None:
        """Whether a number's nearest double is no whole number; None: all are."""
        x, kind = self.x, self.kind
        if kind.group == "integer" or (kind.group == "decimal" and kind.precision and not kind.scale):
            return None
        if kind.group == "decimal" and not 0 < kind.precision <= _EXACT_DIGITS:
            x = self._database.double(x)
        return sa.and_(sa.func.abs(x) < number(_WHOLE), x != sa.func.floor(x))


def binned(whens: list[When], probe: Probe, x: Expression, database: Product) -> Cases:
    """What becomes of numbers."""
    kind, column = probe.kind, probe.column
    if column.dated:  # days are not numbers
        return Cases(tuple(whens), probe(1))
    line = _Line(x, kind, database)
    if kind.group == "double":
        if database.nan is not None:
            whens.append(When(database.nan(x), probe(math.nan)))
        if database.infinite:
            whens.append(When(x > database.given_double(_MAX_DOUBLE), probe(math.inf)))
            whens.append(When(x < database.given_double(-_MAX_DOUBLE), probe(-math.inf)))
    # decimals: written 1e16 in the study, 10000000000000000 by the stream
    texts: list[str | Fraction] = [*probe.listed, *column.decimals]
    values = list(dict.fromkeys(_numbers(texts, kind)))
    whens += _singled(line, values, probe, database)
    if column.textual:
        rest = probe(next(value for value in range(len(values) + 1) if value not in values))
        if rest.reason:
            return Cases(tuple(whens), rest)
        return Cases((*whens, When(x.is_not(None), rest)), UNREAD)
    coded = _bins if column.binned else _codes
    return coded(whens, probe, line, column, values)


def _numbers(texts: Sequence[str | Fraction], kind: Kind) -> Iterator[Any]:
    """Of texts and numbers that are singled out, the numbers of this type that may be written so."""
    for text in texts:
        if kind.group == "double" or (kind.group == "decimal" and not kind.exact):
            with suppress(ValueError):
                if math.isfinite(value := float(text)):
                    yield value
        elif isinstance(text, Fraction) or DECIMAL.fullmatch(text):
            scaled = Fraction(text) * 10**kind.scale
            low, high = (-(1 << 63), 1 << 63) if kind.signed else (0, 1 << 64)
            if scaled.denominator == 1:
                if kind.group == "integer" and low <= scaled < high:
                    yield int(scaled)
                elif kind.group == "decimal" and abs(scaled) < 10**kind.precision:
                    yield Decimal(int(scaled)).scaleb(-kind.scale)


def _singled(line: _Line, values: Sequence[Any], probe: Probe, database: Product) -> Iterator[When]:
    kind = line.kind
    if kind.group == "decimal" and not kind.exact:  # of these, whatever is nearest to a double
        for value in values:
            yield When(sa.and_(~line.below(value), ~line.above(value)), probe(value))
        return
    named = [
        (
            value,
            database.given_double(value)
            if kind.group == "double"
            else number(int(value * 10**kind.scale), kind.scale),
        )
        for value in values
    ]
    yield from grouped(line.x, named, probe)


def _codes(whens: list[When], probe: Probe, line: _Line, column: Column, values: Sequence[Any]) -> Cases:

    inside = sa.and_(~line.below(0.0), line.below(float(column.size)))
    fractional = line.fractional()
    if fractional is not None:
        whens.append(When(fractional, probe(_half(line, values))))
    whens.append(When(inside, Fate(0), sa.cast(line.x, sa.Integer())))
    outside = next(
        value for value in range(column.size, column.size + len(values) + 1) if value not in values
    )
    return Cases(tuple(whens), probe(outside))


def _half(line: _Line, values: Sequence[Any]) -> float | Decimal:
    """A number that is not whole, and not singled out."""
    half = next(value + 0.5 for value in range(len(values) + 1) if value + 0.5 not in values)
    return Decimal(str(half)) if line.kind.exact else half


def _bins(whens: list[When], probe: Probe, line: _Line, column: Column, values: Sequence[Any]) -> Cases:

    if column.zero:
        whens.append(When(sa.and_(~line.below(0.0), ~line.above(0.0)), Fate(column.zero_code)))
    fractional = line.fractional() if column.integral else None
    if fractional is not None:
        whens.append(When(fractional, probe(_half(line, values))))
    whens += _cut(column, line.x, line.below, line.above)
    return Cases(tuple(whens), UNREAD)


def _cut(column: Column, x: Expression, below: Limit, above: Limit) -> Iterator[When]:
    """The bins, the lowest first, behind what is clamped."""
    edges, last = column.edges(), column.bins - 1
    yield When(below(float(column.low)), Fate(_code(column, 0), clamped=True))
    yield When(above(float(column.high)), Fate(_code(column, last), clamped=True))
    for place in range(last):
        yield When(below(edges[place + 1]), Fate(_code(column, place)))
    yield When(x.is_not(None), Fate(_code(column, last)))


def _code(column: Column, place: int) -> int:
    return place + (column.zero and place >= column.zero_code)


def dated(whens: list[When], probe: Probe, x: Expression, database: Product) -> Cases:
    """What becomes of days and times."""
    kind, column = probe.kind, probe.column
    timed = kind.group == "timestamp"
    if timed and not (column.dated and probe.step.plain):
        raise Untranslated(
            "the database has times, which a private file's rules and lists of values would read as text"
        )
    if not (column.dated or column.textual):
        raise Untranslated(f"the database has days where the study has {column.kind}")
    least_day: date = datetime.min if timed else date.min
    last_day: date = datetime.max if timed else date.max
    outside = sa.or_(x < _moment(least_day), x > _moment(last_day))
    if database.broken_days:
        outside = sa.or_(outside, sa.extract("month", x) == number(0), sa.extract("day", x) == number(0))
    whens.append(When(outside, UNREAD))
    values = list(dict.fromkeys(_days(probe.listed)))
    whens += grouped(x, [(value, _moment(value)) for value in values], probe)
    if column.textual:
        rest = probe(
            next(day for day in map(date.fromordinal, range(1, len(values) + 2)) if day not in values)
        )
        if rest.reason:
            return Cases(tuple(whens), rest)
        return Cases((*whens, When(x.is_not(None), rest)), UNREAD)
    calendar = cast(Calendar, column)
    unit = calendar.per_day

    def below(limit: float) -> Expression:
        """limit: a whole number of the column's units."""
        if timed and unit == DAY:
            return _before(x, int(limit), calendar.value_of, _LAST_SECOND)
        day = -(-int(limit) // unit)
        begin = time() if timed else None
        return _before(x, day, lambda day: _day(day, begin), date.max.toordinal())

    if timed and unit == 1:
        whens.append(When(database.day(x) != x, probe(datetime(2000, 1, 1, 12))))
    whens += _cut(column, x, below, lambda limit: ~below(math.floor(limit) + 1))
    return Cases(tuple(whens), UNREAD)


_LAST_SECOND = (date.max.toordinal() + 1) * DAY - 1


def _day(day: int, begin: time | None) -> date:
    found = date.fromordinal(day)
    return found if begin is None else datetime.combine(found, begin)


def _before(x: Expression, place: int, named: Callable[[int], date], last: int) -> Expression:
    """Whether x lies before a day or second that the calendar may not have."""
    if place > last:
        return sa.true()
    return x < _moment(named(max(place, DAY if last == _LAST_SECOND else 1)))


def _moment(value: date) -> Expression:
    """A bound day or time."""
    return sa.literal(value, sa.DateTime() if isinstance(value, datetime) else sa.Date())


def _days(texts: Sequence[str]) -> Iterator[date]:
    for text in texts:
        with suppress(ValueError):
            if (found := date.fromisoformat(text)).isoformat() == text:
                yield found
