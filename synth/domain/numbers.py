"""Columns of numbers, coded by bins (the folder's docstring has the exact rule).

Edges are exact rationals rounded to nearest, or correctly rounded decimal powers: every machine has the same.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.process.later import np
from synth.domain.checks import as_number, check_flag, check_size, is_integer
from synth.domain.column import Column, Span, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCALES = ("linear", "log")
_DIGITS = Context(prec=60)


class Binned(Column):
    """What all columns of bins have in common.

    low, high: numbers outside are clamped. bins: how many. integral: whole numbers only. zero: whether the
    number 0 has a code of its own.
    """

    noun: ClassVar[str] = "numbers"
    unit: ClassVar[str] = "bin"
    textual: ClassVar[bool] = False
    binned: ClassVar[bool] = True
    quantity: ClassVar[bool] = True
    ordered: ClassVar[bool] = True

    @abstractmethod
    def edges(self) -> tuple[float, ...]:
        """The bins + 1 edges, float64; the interior ones decide a number's bin."""

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of codes: the bins, one for 0, and one for a missing value."""
        return self.bins + self.zero + self.missing

    @property
    def unread(self) -> str:
        return "the value is not a finite number in plain digits"

    @property
    def value_type(self) -> type:
        return int if self.integral else float

    @property
    def line(self) -> Hashable:
        return self.integral

    def number_of(self, given: object) -> float | None:
        return given if isinstance(given, int | float) and not isinstance(given, bool) else None

    def code_of(self, given: object) -> int | None:
        number = self.number_of(given)
        return None if number is None or not self.low <= number <= self.high else self.bin_of(number)

    def fits(self, value: Value) -> bool:
        try:
            float(value)
        except ValueError:
            return False
        return True

    def numbers(self, name: str) -> list[Span]:
        return self.spans()

    def compared(self, value: object, name: str) -> tuple[float, list[Span]]:
        return as_number(value, name), self.spans()

    @cached_property
    def zero_code(self) -> int:  # type: ignore[override]
        """The code of the number 0, between those of lower and of higher bins; -1 if it has none of its own."""
        return bisect_right(self.edges()[1:], 0) if self.zero else -1

    def bin_of(self, value: float) -> int:
        """The code of a number, after clamping. ValueError for a NaN."""
        if math.isnan(value):
            raise ValueError("A NaN has no bin; it is a missing value.")
        if self.zero and value == 0:
            return self.zero_code
        found = bisect_right(self.edges(), value, 1, self.bins) - 1
        return found + (self.zero and found >= self.zero_code)

    def bin(self, code: int) -> int | None:
        """The bin of a code; None for the code of 0 and that of a missing value."""
        if code == self.zero_code or code == self.bins + self.zero:
            return None
        return code - (self.zero and code > self.zero_code)

    def span(self, code: int) -> tuple[float, float]:
        """The smallest and the largest number that a code decodes to; of the code of a missing value, there
        is none."""
        number = self.bin(code)
        if number is None:
            return 0.0, 0.0
        if self.integral:
            first, last = self._whole_numbers()
            return float(first[number]), float(last[number])
        left, right = self.edges()[number : number + 2]
        return math.nextafter(0, 1) if self.zero and left == 0 else left, math.nextafter(right, left)

    def between(
        self,
        codes: NDArray[np.integer[Any]],
        least: NDArray[np.float64],
        most: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Numbers drawn within their bins and between least and most, which must leave room; 0 where a value
        is missing."""
        there = self.size - self.missing
        spans = np.array([*(self.span(code) for code in range(there)), *([(0.0, 0.0)] * self.missing)])
        low, high = spans[np.asarray(codes, dtype=np.int64)].T
        absent = np.asarray(codes) >= there
        low, high = np.maximum(low, least), np.minimum(high, most)
        low, high = np.where(absent, 0.0, low), np.where(absent, 0.0, high)
        if self.integral:
            return rng.integers(low.astype(np.int64), high.astype(np.int64), endpoint=True).astype(np.float64)
        values = np.clip(self._between(low, high, rng.random(len(low))), low, high)
        steps = self._steps()
        if steps is not None:
            step = np.array([*(steps[self.bin(code) or 0] for code in range(there)), *([1.0] * self.missing)])
            step = step[np.asarray(codes, dtype=np.int64)]
            values = np.maximum(np.floor(values * step) / step, low)
        return values

    def values_of(self, numbers: NDArray[np.float64], codes: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Numbers that were drawn, as `decode` shows them."""
        values: NDArray[Any] = numbers.astype(np.int64) if self.integral else numbers
        absent = np.asarray(codes) >= self.size - self.missing
        if absent.any():
            values = values.astype(object)
            values[absent] = None
        return values

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """Numbers drawn within their bins: int64 if integral, else float64; object with None where a value is
        missing.

        An integral column draws only integers that lie in the bin. A bin that holds none (bins narrower than
        1: no record can have its code, only noise can) gives the integer of [low, high] nearest to its
        middle.
        """
        codes = np.asarray(codes, dtype=np.int64)
        absent, nothing = codes == self.bins + self.zero, codes == self.zero_code
        bins = np.where(absent | nothing, 0, codes - (self.zero & (codes > self.zero_code)))
        values = self._integers(bins, rng) if self.integral else self._floats(bins, rng)
        values[nothing] = 0
        if absent.any():
            values = values.astype(object)
            values[absent] = None
        return values

    def _integers(self, bins: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        first, last = self._whole_numbers()
        drawn: NDArray[Any] = rng.integers(first[bins], last[bins], endpoint=True)
        return drawn

    def _whole_numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last integer of each bin."""
        edges = np.asarray(self.edges())
        floor, ceiling = math.ceil(self.low), math.floor(self.high)
        first = np.clip(np.ceil(edges[:-1]), floor, ceiling).astype(np.int64)
        if self.zero:
            first[first == 0] = 1
        last = np.clip(np.append(np.ceil(edges[1:-1]) - 1, ceiling), floor, ceiling).astype(np.int64)
        nearest = np.clip(np.rint(edges[:-1] / 2 + edges[1:] / 2), floor, ceiling).astype(np.int64)
        if self.zero:
            last[last == 0] = -1
        hollow = last < first
        return np.where(hollow, nearest, first), np.where(hollow, nearest, last)

    def _floats(self, bins: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        edges, share = np.asarray(self.edges()), rng.random(len(bins))
        left, right = edges[bins], edges[bins + 1]
        values = np.clip(self._between(left, right, share), left, np.nextafter(right, left))
        steps = self._steps()
        if steps is not None:  # downwards, and not out of the bin
            step = steps[bins]
            values = np.maximum(np.floor(values * step) / step, left)
            if self.zero:
                values = np.where((values == 0) & (left == 0), 1 / step, values)
        return values

    def _between(
        self, left: NDArray[np.float64], right: NDArray[np.float64], share: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Numbers between the edges of their bins, at shares of the way."""
        return left * (1 - share) + right * share

    def _widths(self) -> list[float]:
        """Of the bins, for the digits that decoded numbers have."""
        edges = self.edges()
        return [right - left for left, right in pairwise(edges)]

    def _steps(self) -> NDArray[np.float64] | None:
        """How many steps to a unit decoded numbers have in each bin: a power of ten, a thousandth of a bin or
        less. None: too fine to matter.

        The position within a bin is invented; more digits would only look like precision.
        """
        decimals = [max(0, 3 - math.floor(math.log10(width))) for width in self._widths()]
        largest = max(abs(self.low), abs(self.high))
        if max(decimals) > 12 or largest * 10 ** max(decimals) >= 2**52:
            return None
        return np.array([10.0**digits for digits in decimals])

    def label(self, code: int) -> str:
        number = self.bin(code)
        if number is None:
            return "0" if code == self.zero_code else "missing"
        edges = self.edges()
        left, right, final = edges[number], edges[number + 1], number == self.bins - 1
        if self.integral:
            first = math.ceil(left) or int(self.zero)
            last = (math.floor(self.high) or -int(self.zero)) if final else math.ceil(right) - 1
            if first <= last:
                return (
                    self.written(first) if first == last else f"{self.written(first)} to {self.written(last)}"
                )
        opened = "(" if self.zero and left == 0 else "["
        return f"{opened}{self.written(left)}, {self.written(right)}{']' if final else ')'}"

    def check_zero(self) -> None:
        """Raise `StudyInvalid` if 0 lies within a bin."""
        if not self.zero:
            return
        edges = self.edges()
        if any(left < 0 < right for left, right in pairwise(edges)):
            raise StudyInvalid(
                "zero = true needs 0 to be an edge of a bin or outside low..high; choose low, high and bins accordingly."
            )


def check_limit(value: object, key: str, *, integral: bool) -> None:
    """Raise `StudyInvalid` unless it is a number that can be an end."""
    if (
        not (is_integer(value) or isinstance(value, float)) or not abs(value) <= 2**1000  # type: ignore[arg-type]  # NaN neither
    ):
        raise StudyInvalid(f"{key} must be a finite number, got {value!r}.")
    if integral and abs(value) > 2**53:  # type: ignore[arg-type]
        raise StudyInvalid(
            f"{key} of an integral column must lie within 2^53, where doubles are exact, got {value!r}."
        )


def _check_order(low: float, high: float) -> None:
    if low >= high:
        raise StudyInvalid(f"low must be smaller than high, got low = {low!r} and high = {high!r}.")


@dataclass(frozen=True)
class Numeric(Binned):
    """Numbers in [low, high], in bins of equal width, or of equal width of their logarithms (scale = "log")."""

    low: int | float
    high: int | float
    bins: int
    integral: bool = False
    missing: bool = False
    scale: str = "linear"
    zero: bool = False
    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        check_size(self.bins, "bins")
        check_flag(self.integral, "integral")
        check_flag(self.missing, "missing")
        check_flag(self.zero, "zero")
        if self.scale not in SCALES:
            raise StudyInvalid(f'scale must be "linear" or "log", got {self.scale!r}.')
        for key in ("low", "high"):
            check_limit(getattr(self, key), key, integral=self.integral)
        _check_order(self.low, self.high)
        if self.scale == "log" and self.low <= 0:
            raise StudyInvalid(
                f'scale = "log" needs low above 0, got {self.low!r}; zero = true gives 0 a code of its own.'
            )
        if self.integral and math.ceil(self.low) > math.floor(self.high):
            raise StudyInvalid(
                f"An integral column needs an integer between low = {self.low!r} and high = {self.high!r}."
            )
        # wider than a unit in the last place of either end: then no two edges round to the same double
        narrow = (Fraction(self.high) - Fraction(self.low)) / self.bins <= max(
            math.ulp(self.low), math.ulp(self.high)
        )
        if narrow or (self.scale == "log" and len(set(self.edges())) <= self.bins):
            raise StudyInvalid(
                f"Bins = {self.bins} between {self.low!r} and {self.high!r} are narrower than double precision."
            )
        self.check_zero()

    @property
    def even(self) -> bool:  # type: ignore[override]
        return self.scale == "linear"

    def edges(self) -> tuple[float, ...]:
        return self._edges

    @cached_property
    def _edges(self) -> tuple[float, ...]:
        if self.scale == "log":
            low, high = Decimal(self.low), Decimal(self.high)
            start, width = low.ln(_DIGITS), _DIGITS.subtract(high.ln(_DIGITS), low.ln(_DIGITS))
            inner = [
                float(
                    (
                        _DIGITS.add(
                            start, _DIGITS.divide(_DIGITS.multiply(width, Decimal(i)), Decimal(self.bins))
                        )
                    ).exp(_DIGITS)
                )
                for i in range(1, self.bins)
            ]
            return (float(self.low), *inner, float(self.high))
        first, whole = Fraction(self.low), Fraction(self.high) - Fraction(self.low)
        return tuple(float(first + whole * i / self.bins) for i in range(self.bins + 1))

    def _widths(self) -> list[float]:
        if self.scale == "log":
            return super()._widths()
        return [float((Fraction(self.high) - Fraction(self.low)) / self.bins)] * self.bins

    def _between(
        self, left: NDArray[np.float64], right: NDArray[np.float64], share: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if self.scale == "linear":
            return super()._between(left, right, share)
        found: NDArray[np.float64] = left * (right / left) ** share
        return found

    def to_spec(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "low": self.low,
            "high": self.high,
            "bins": self.bins,
            "integral": self.integral,
            "missing": self.missing,
            **({} if self.scale == "linear" else {"scale": self.scale}),
            **({"zero": True} if self.zero else {}),
        }


@dataclass(frozen=True)
class Edged(Binned):
    """Numbers in bins whose edges are given."""

    given: tuple[int | float, ...]
    integral: bool = False
    missing: bool = False
    zero: bool = False
    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        for key in ("integral", "missing", "zero"):
            check_flag(getattr(self, key), key)
        if len(self.given) < 2:
            raise StudyInvalid("edges must list at least two numbers, the ends of the first bin.")
        for value in self.given:
            check_limit(value, "each of edges", integral=self.integral)
        if any(left >= right for left, right in pairwise(self.edges())):
            raise StudyInvalid("edges must rise from one to the next.")
        check_size(self.bins, "the number of bins")
        if self.integral and math.ceil(self.low) > math.floor(self.high):
            raise StudyInvalid("An integral column needs an integer between the first and the last of edges.")
        self.check_zero()

    @property
    def low(self) -> int | float:  # type: ignore[override]
        """The first edge."""
        return self.given[0]

    @property
    def high(self) -> int | float:  # type: ignore[override]
        """The last edge."""
        return self.given[-1]

    @property
    def bins(self) -> int:  # type: ignore[override]
        """Number of bins."""
        return len(self.given) - 1

    def edges(self) -> tuple[float, ...]:
        return tuple(map(float, self.given))

    def to_spec(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "edges": list(self.given),
            "integral": self.integral,
            "missing": self.missing,
            **({"zero": True} if self.zero else {}),
        }


@dataclass(frozen=True)
class Integer(Binned):
    """Whole numbers low..high, as evenly among the bins as can be; bins = 0: each its own bin. The last edge
    is high + 1.

    With zero, and 0 at an end, the bins hold the other numbers.
    """

    low: int
    high: int
    count: int = 0
    missing: bool = False
    zero: bool = False
    kind: ClassVar[str] = "integer"
    noun: ClassVar[str] = "integers"
    integral_by: ClassVar[str] = "integers"
    even: ClassVar[bool] = True  # type: ignore[misc]
    integral: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        for key in ("missing", "zero"):
            check_flag(getattr(self, key), key)
        for key in ("low", "high"):
            if not is_integer(getattr(self, key)):
                raise StudyInvalid(f"{key} must be an integer, got {getattr(self, key)!r}.")
            check_limit(getattr(self, key), key, integral=True)
        _check_order(self.low, self.high)
        first, last = self._ends
        numbers = last - first + 1
        if not is_integer(self.count) or not 0 <= self.count <= numbers:
            raise StudyInvalid(
                f"bins must be an integer from 1 to {numbers}, the numbers there are, got {self.count!r}."
            )
        check_size(self.count or numbers, "bins (by default one for each number)")
        if self.zero and first < 0 < last:
            raise StudyInvalid(
                "zero = true has no use where whole numbers on both sides of 0 have bins; leave it out, or bin by edges."
            )
        self.check_zero()

    @property
    def _ends(self) -> tuple[int, int]:
        return self.low + (self.zero and self.low == 0), self.high - (self.zero and self.high == 0)

    @property
    def bins(self) -> int:  # type: ignore[override]
        """Number of bins."""
        first, last = self._ends
        return self.count or last - first + 1

    def edges(self) -> tuple[float, ...]:
        return self._edges

    @cached_property
    def _edges(self) -> tuple[float, ...]:
        first, last = self._ends
        return tuple(float(first + (last - first + 1) * i // self.bins) for i in range(self.bins + 1))

    def to_spec(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "low": self.low,
            "high": self.high,
            "bins": self.bins,
            "missing": self.missing,
            **({"zero": True} if self.zero else {}),
        }
