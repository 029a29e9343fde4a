"""Columns of days and of times of day, coded by bins of the calendar.

A day counts as its number in the proleptic Gregorian calendar (1 January of the year 1 is 1), a time as its
second in the same count. Times have no zone: they are what the clock on the wall said.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import MAX_CELLS
from mpc_protocols.process.later import np
from synth.domain.checks import check_flag
from synth.domain.column import Span, Value
from synth.domain.numbers import Binned

if TYPE_CHECKING:
    from numpy.typing import NDArray

DAY = 86_400
"""Seconds."""
DAYS = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}
"""The shortest of each step, in days."""
SECONDS = {"minute": 60, "hour": 3600}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def days(begin: date, end: date, step: str) -> Iterator[date]:
    """Where bins begin after `begin`, up to and with `end`: every so many days, or the first of months,
    quarters, years."""
    if step not in _MONTHS:
        width, current = DAYS[step], begin.toordinal() + DAYS[step]
        while current <= end.toordinal():
            yield date.fromordinal(current)
            current += width
        return
    months = _MONTHS[step]
    number = (begin.year * 12 + begin.month - 1) // months * months
    while (number := number + months) // 12 <= end.year:
        first = date(number // 12, number % 12 + 1, 1)
        if first > end:
            return
        yield first


class Calendar(Binned):
    """What days and times have in common: whole numbers from begin to end, shown as ISO 8601 has them."""

    begin: date
    end: date
    step: str
    quantity: ClassVar[bool] = False
    integral: ClassVar[bool] = True  # type: ignore[misc]
    zero: ClassVar[bool] = False  # type: ignore[misc]
    per_day: ClassVar[int]
    """How many numbers a day has."""

    @abstractmethod
    def _make_edges(self) -> tuple[float, ...]:
        """The edges, from begin to end by `step`."""

    @cached_property
    def _edges(self) -> tuple[float, ...]:
        return self._make_edges()

    def edges(self) -> tuple[float, ...]:
        return self._edges

    @property
    def bins(self) -> int:  # type: ignore[override]
        """Number of bins."""
        return len(self._edges) - 1

    def to_spec(self) -> dict[str, object]:
        low, high = self.begin.isoformat(), self.end.isoformat()
        return {"kind": self.kind, "low": low, "high": high, "step": self.step, "missing": self.missing}

    @property
    def unread(self) -> str:
        return f"the value is not a {self.example}; how it is written can be said under [harmonise] of the private file"

    @property
    def line(self) -> Hashable:
        return self.kind

    @abstractmethod
    def number_of(self, given: object) -> int | None:
        """The number of a day or time, or of one as a table writes it; None for what is none."""

    def read(self, text: str) -> int:
        number = self.number_of(text)
        return -1 if number is None else self.bin_of(number)

    def fits(self, value: Value) -> bool:
        return True

    def numbers(self, name: str) -> list[Span]:
        raise ValueError(
            f"Column {name} holds days or times; ask for shares of it, such as share({name} < ...)."
        )

    def compared(self, value: object, name: str) -> tuple[float, list[Span]]:
        moment = self.number_of(value) if isinstance(value, str) else None
        if moment is None:
            raise ValueError(
                f"Column {name} is compared with days or times such as '2019-12-31', got {value!r:.40}."
            )
        return float(moment), self.spans()

    @abstractmethod
    def value_of(self, number: int) -> date:
        """The day or time of a number."""

    def written(self, value: float) -> str:
        return self.value_of(int(value)).isoformat()

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """Days or times drawn within their bins, None where missing; an object array."""
        return self._values(super().decode(codes, rng))

    def values_of(self, numbers: NDArray[np.float64], codes: NDArray[np.integer[Any]]) -> NDArray[Any]:
        return self._values(super().values_of(numbers, codes))

    def _values(self, numbers: NDArray[Any]) -> NDArray[Any]:
        values = np.empty(len(numbers), dtype=object)
        values[:] = [None if number is None else self.value_of(int(number)) for number in numbers]
        return values


@dataclass(frozen=True)
class Date(Calendar):
    """Days from begin to end, both included; a bin for each day, week, month, quarter or year (`step`)."""

    begin: date
    end: date
    step: str = "day"
    missing: bool = False
    kind: ClassVar[str] = "date"
    noun: ClassVar[str] = "days"
    example: ClassVar[str] = "day such as 2019-12-31"
    value_type: ClassVar[type] = date
    per_day: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_flag(self.missing, "missing")
        for key, value in (("low", self.begin), ("high", self.end)):
            if not isinstance(value, date) or isinstance(value, datetime):
                raise StudyInvalid(f"{key} must be a day such as 2019-12-31, got {value!r}.")
        if self.step not in DAYS:
            raise StudyInvalid(f"step must be one of {', '.join(DAYS)}, got {self.step!r}.")
        _check_span(self.begin, self.end, (self.end - self.begin).days // DAYS[self.step])

    @property
    def low(self) -> int:  # type: ignore[override]
        """The number of the first day."""
        return self.begin.toordinal()

    @property
    def high(self) -> int:  # type: ignore[override]
        """The number of the last day."""
        return self.end.toordinal()

    def _make_edges(self) -> tuple[float, ...]:
        """The last edge is the day after the end."""
        inner = [float(day.toordinal()) for day in days(self.begin, self.end, self.step)]
        return (float(self.low), *inner, float(self.high + 1))

    def number_of(self, given: object) -> int | None:
        """The number of a day written 2019-12-31, also with the time 00:00 behind it."""
        found = _moment(given)
        return None if found is None or found.time() != time() else found.toordinal()

    def value_of(self, number: int) -> date:
        """The day of a number."""
        return date.fromordinal(number)


@dataclass(frozen=True)
class DateTime(Calendar):
    """Times from begin to end, both included, to the second; a bin for each minute, hour, day, week, month,
    quarter or year."""

    begin: datetime
    end: datetime
    step: str = "day"
    missing: bool = False
    kind: ClassVar[str] = "datetime"
    noun: ClassVar[str] = "times"
    example: ClassVar[str] = "time such as 2019-12-31T23:59, without a zone"
    value_type: ClassVar[type] = datetime
    per_day: ClassVar[int] = DAY

    def __post_init__(self) -> None:
        check_flag(self.missing, "missing")
        for key, value in (("low", self.begin), ("high", self.end)):
            if not isinstance(value, datetime) or value.tzinfo is not None or value.microsecond:
                raise StudyInvalid(
                    f"{key} must be a time such as 2019-12-31T23:59:59, to the second and without a zone, got {value!r}."
                )
        if self.step not in (known := (*SECONDS, *DAYS)):
            raise StudyInvalid(f"step must be one of {', '.join(known)}, got {self.step!r}.")
        width = SECONDS.get(self.step) or DAYS[self.step] * DAY
        _check_span(self.begin, self.end, int((self.end - self.begin).total_seconds()) // width)

    @property
    def low(self) -> int:  # type: ignore[override]
        """The number of the first second."""
        return _second(self.begin)

    @property
    def high(self) -> int:  # type: ignore[override]
        """The number of the last second."""
        return _second(self.end)

    def _make_edges(self) -> tuple[float, ...]:
        if self.step in SECONDS:
            inner = [float(second) for second in range(self.low, self.high, SECONDS[self.step])][1:]
        else:
            starts = days(self.begin.date(), self.end.date(), self.step)
            inner = [float(second) for day in starts if (second := day.toordinal() * DAY) < self.high]
        return (float(self.low), *inner, float(self.high))

    def number_of(self, given: object) -> int | None:
        """The number of a time written 2019-12-31T23:59:59 or with a blank, also without seconds, or of a
        day's first second."""
        found = _moment(given)
        return None if found is None else _second(found)

    def value_of(self, number: int) -> datetime:
        """The time of a number."""
        return datetime.combine(date.fromordinal(number // DAY), time()) + timedelta(seconds=number % DAY)

    def written(self, value: float) -> str:
        """A number of this column, for people: without seconds where these are 0."""
        return self.value_of(int(value)).isoformat(sep=" ", timespec="seconds" if value % 60 else "minutes")


def _moment(given: object) -> datetime | None:
    """What ISO 8601's extended form, without a zone, says."""
    text = given.isoformat() if isinstance(given, date) else str(given)
    if len(text) < 10 or text[4] != "-" or text[7] != "-" or not text.isascii():
        return None
    if len(text) > 10 and text[10] not in "T ":  # a zone would be taken for a time
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is not None else found


def _second(moment: datetime) -> int:
    return moment.toordinal() * DAY + moment.hour * 3600 + moment.minute * 60 + moment.second


def _check_span(begin: date, end: date, steps: int) -> None:
    if begin >= end:
        raise StudyInvalid(
            f"low must be before high, got low = {begin.isoformat()} and high = {end.isoformat()}."
        )
    if steps >= MAX_CELLS:
        raise StudyInvalid(f"From low to high there are more than {MAX_CELLS} bins; choose a longer step.")
