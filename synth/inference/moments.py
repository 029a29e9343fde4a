"""Numbers of rows as the unknowns of a question, and what is computed with them.

A moment is a sum over all rows of a function of some columns, g(x): the number of women with a high income (g
is 0 or 1), the sum of their ages. Every question here is a smooth function q of a few moments T_k; `Scalar`
carries its value with its gradient by the T_k (forward differentiation), so that the influence of one row on
the answer is sum_k (dq/dT_k) g_k(x).

Of a column that is coded by bins a value is known to within its bin: a moment has, beside the function that
stands for the codes (`centre`: the middle of the bin, or the share of it that a condition takes), the least
and the most that a row of that code can contribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from synth.inference.licence import Unanswerable, Uncertain

Array = NDArray[np.float64]
ZEROS = "The question divides by a number that is estimated as 0."
MAX_MOMENT_CELLS = 1 << 22
"""Of one moment's table."""


@dataclass(frozen=True, eq=False)
class Part:
    """A function of one column by its codes: float64 (size,). least <= centre <= most, equal where the code
    says all."""

    centre: Array
    least: Array
    most: Array

    @classmethod
    def exact(cls, values: Array) -> Part:
        """A function of the code alone."""
        return cls(values, values, values)

    def __mul__(self, other: Part) -> Part:
        return Part(self.centre * other.centre, *_extremes(self.least, self.most, other.least, other.most))


def _extremes(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array]:
    """Least and most of u v for u in [a, b], v in [c, d]."""
    corners = np.stack(np.broadcast_arrays(a * c, a * d, b * c, b * d))
    return corners.min(0), corners.max(0)


@dataclass(frozen=True, eq=False)
class Moment:
    """columns: in the domain's order. centre, least, most: float64, one axis a column, over their codes."""

    columns: tuple[str, ...]
    centre: Array
    least: Array
    most: Array

    @classmethod
    def product(cls, parts: Mapping[str, Part], sizes: Mapping[str, int]) -> Moment:
        """The product of functions of one column each; of none, 1: the number of rows.

        Raises `Unanswerable` if its table is too large.
        """
        columns = tuple(name for name in sizes if name in parts)
        if math.prod(sizes[name] for name in columns) > MAX_MOMENT_CELLS:
            raise Unanswerable(
                f"{' x '.join(columns)} has more than {MAX_MOMENT_CELLS:,} cells; ask about fewer columns."
            )
        centre = least = most = np.ones(())
        for name in columns:
            part = parts[name]
            centre = centre[..., None] * part.centre
            least, most = _extremes(least[..., None], most[..., None], part.least, part.most)
        return cls(columns, centre, least, most)

    @classmethod
    def table(cls, columns: tuple[str, ...], values: Array) -> Moment:
        """Any function of the codes of some columns."""
        return cls(columns, values, values, values)


@dataclass(frozen=True, eq=False)
class Solution:
    """How a coefficient follows from a system of equations with the positive definite matrix M = L L'.

    matrix: its entries; () of a system that is not linear. bend: of that, by how much the logarithm of what is left of the
    coefficient's own information changes as it grows, with the others fitted anew. parts: L' times all coefficients, by their
    gradients. root: the inverse of L', float64 (coefficients, coefficients). place: the coefficient's.
    """

    place: int
    matrix: Sequence[Sequence[Scalar]]
    parts: Sequence[Scalar]
    root: Array
    bend: float = 0.0


@dataclass(frozen=True, eq=False)
class Scalar:
    """A number computed from moments. gradient: by the moments, each by its number in `Moments`.

    ratio: numerator and denominator, where it is one of moments. is_share: of a ratio, that of rows among
    rows; without a ratio, a number of rows. fraction: of any other quotient, a correlation and a linear
    coefficient, numerator and divisor. pair: of what is the sum, difference or quotient of two ratios, or the
    sum or difference of two of which one holds a quotient, its sign and these. line: of what is a number times
    one of these, and another number, the first number and that one. solution: of a coefficient. low, high: the
    range of its values.
    """

    value: float
    gradient: Mapping[int, float] = field(default_factory=dict)
    ratio: tuple[Scalar, Scalar] | None = None
    fraction: tuple[Scalar, Scalar] | None = None
    pair: tuple[str, Scalar, Scalar] | None = None
    line: tuple[float, Scalar] | None = None
    solution: Solution | None = None
    is_share: bool = False
    low: float = -math.inf
    high: float = math.inf

    def _with(self, other: Scalar, value: float, ours: float, theirs: float) -> Scalar:
        gradient = {key: ours * of for key, of in self.gradient.items()}
        for key, of in other.gradient.items():
            gradient[key] = gradient.get(key, 0.0) + theirs * of
        return Scalar(value, gradient)

    def __add__(self, other: Scalar) -> Scalar:
        return self._with(other, self.value + other.value, 1.0, 1.0)

    def __sub__(self, other: Scalar) -> Scalar:
        return self._with(other, self.value - other.value, 1.0, -1.0)

    def __mul__(self, other: Scalar) -> Scalar:
        return self._with(other, self.value * other.value, other.value, self.value)

    def __truediv__(self, other: Scalar) -> Scalar:
        if other.value == 0:
            raise (Uncertain if other.gradient else Unanswerable)(ZEROS)
        return self._with(
            other, self.value / other.value, 1 / other.value, -self.value / other.value / other.value
        )

    def on_line(self, slope: float, value: float) -> Scalar:
        """value: what slope times this one and another number are."""
        low, high = sorted(value + slope * (end - self.value) for end in (self.low, self.high))
        gradient = {key: slope * of for key, of in self.gradient.items()}
        return Scalar(value, gradient, line=(slope, self), low=low, high=high)

    @property
    def is_exact_over_bins(self) -> bool:
        """Whether what bins leave open of it is told without a gradient alone: of ratios, what is made of
        two, coefficients, and moments."""
        if self.fraction is not None and self.solution is None:
            return all(part.is_exact_over_bins for part in self.fraction)
        return bool(self.ratio or self.pair or self.line or self.solution) or len(self.gradient) <= 1

    @property
    def has_own_interval(self) -> bool:
        """Whether its interval is not that of its linearisation."""
        return bool(self.ratio or self.fraction or self.pair or self.line)

    def _made_of(self) -> tuple[Scalar, ...]:
        return (*(self.fraction or ()), *(self.pair or ())[1:], *(self.line or ())[1:])

    def ratios(self) -> Iterator[Scalar]:
        """The ratios that it is made of."""
        if self.ratio is not None:
            yield self
        for part in self._made_of():
            yield from part.ratios()

    @property
    def divides(self) -> bool:
        """Whether there is a quotient in it of other than moments."""
        is_quotient = self.fraction is not None or (self.pair is not None and self.pair[0] == "/")
        return is_quotient or any(part.divides for part in self._made_of())

    def nearest(self, value: float) -> float:
        """Of the values that it may have."""
        return min(max(value, self.low), self.high)

    def apply(self, value: float, slope: float) -> Scalar:
        """A function of it, by its value and derivative here."""
        return Scalar(value, {key: slope * of for key, of in self.gradient.items()})


class Moments:
    """The moments that a question asks for, each evaluated once. evaluate: gives the estimate of one."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        evaluate: Callable[[Moment], float],
        table: Callable[[tuple[str, ...]], Array],
    ) -> None:
        """table: the estimated counts of columns (domain order) by their codes."""
        self.sizes = dict(sizes)
        self._evaluate, self.table = evaluate, table
        self.asked: list[Moment] = []
        self._known: dict[tuple[object, ...], Scalar] = {}

    def of(self, moment: Moment) -> Scalar:
        """Its estimate."""
        key = (moment.columns, moment.centre.tobytes(), moment.least.tobytes(), moment.most.tobytes())
        if key not in self._known:
            self._known[key] = Scalar(self._evaluate(moment), {len(self.asked): 1.0})
            self.asked.append(moment)
        return self._known[key]

    def product(self, parts: Mapping[str, Part]) -> Scalar:
        """Of the product of functions of one column each; a column whose function is 1 throughout is not
        needed."""
        varying = {
            name: part for name, part in parts.items() if (part.least != 1).any() or (part.most != 1).any()
        }
        return self.of(Moment.product(varying, self.sizes))
