"""What disturbs a function of moments: the noise, the drawing of people, and what bins leave open.

With q a smooth function of moments T_k and dq_k its gradient, all to first order:

    noise       sum_i sigma_i^2 |sum_k dq_k J_ik|^2, J_ik the weights of T_k's estimate (`read_off.py`)
    people      N Var_p(f), f(x) = sum_k dq_k g_k(x): that of a multinomial of N rows; p is the estimate of the measurements where
                one holds all columns of f and its noise leaves that clear, else the model
    bins        between the values of two functions that are measured (`corners`); of coefficients a bound beside
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from synth.inference.coupled import MAX_COUPLED_CELLS, most_varying
from synth.inference.licence import Uncertain
from synth.inference.moments import Array, Moment, Scalar
from synth.inference.read_off import Clique, Coarse, ReadOff
from synth.inference.strength import Strength, strength
from synth.mrf import Model

MAX_JOINT_CELLS = 1 << 20
"""Of the marginal of all columns of a question; of more the variance is taken over rows drawn from the model."""
DRAWN_ROWS = 100_000
MAX_WEIGHTS = 1 << 22
"""Weights of single moments that are remembered, 32 MB: an interval asks for those of the same moments many
times."""
SURE = 4.0
"""Standard errors that a divisor must be away from 0 where the answer is linearised: what that leaves out is
then of the order of a quarter of its standard error. By the noise of a group's size, which a ratio is
conditional on; by all of other numbers."""
OPEN = 0.25
"""Standard error of a variance, as a share of it, up to which it is taken from the measurements."""
MAY_DIVIDE_BY_0 = (
    "Within the bins that were counted the question may divide by 0; ask about values of whole bins."
)
Gradient = Mapping[int, float]


@dataclass(frozen=True)
class People:
    """What the drawing of people does to a function. variance: of it. most: what that is at most, whatever the
    columns that were not measured together have to do with each other; the same where they were, and above
    `MAX_COUPLED_CELLS`. third, fourth: the sums of these powers of what each of the people adds, the fourth's with
    one more who may be in any cell.
    """

    variance: float = 0.0
    most: float = 0.0
    third: float = 0.0
    fourth: float = 0.0


class Disturbance:
    """Of functions of some moments, by their gradients. moments: may grow while a question is being read, and by those
    that enclose what bins leave open."""

    def __init__(self, read_off: ReadOff, model: Model, moments: list[Moment], rows: float) -> None:
        """rows: about how many there are."""
        self._read_off, self._model, self._moments, self.rows = read_off, model, moments, rows
        self._coarse: dict[int, Coarse] = {}
        self._weights: dict[int, Array] = {}
        self._enclosed: dict[tuple[int, bool], tuple[Scalar, Scalar]] = {}
        self._of_people: dict[tuple[frozenset[tuple[int, float]], bool], People] = {}
        self._variances = np.repeat(
            [float(m.sigma2) for m in read_off.measured], [m.values.size for m in read_off.measured]
        )
        self._released = len(self._variances)
        self._sample: NDArray[np.int64] | None = None

    def coarse(self, key: int) -> Coarse:
        """A moment at the resolution at which it is read."""
        if key not in self._coarse:
            self._coarse[key] = self._read_off.coarse(self._moments[key])
        return self._coarse[key]

    def columns(self, gradient: Gradient) -> frozenset[str]:
        """The columns of a function."""
        return frozenset(
            name for key, slope in gradient.items() if slope for name in self._moments[key].columns
        )

    def weights(self, gradient: Gradient) -> Array:
        """The weight of every released count in a function: flat, one measurement after the other."""
        total = np.zeros(self._released)
        tables: dict[Clique, Array] = {}
        for key, slope in gradient.items():
            if not slope:
                continue
            if key in self._weights or (len(self._weights) + 1) * self._released <= MAX_WEIGHTS:
                total += slope * self._weights_of(key)
            else:
                coarse = self.coarse(key)
                tables[coarse.names] = tables.get(coarse.names, 0.0) + slope * coarse.values
        for names, table in tables.items():
            total += np.concatenate(self._read_off.estimate(names).weights(table))
        return total

    def _weights_of(self, key: int) -> Array:
        if key not in self._weights:
            coarse = self.coarse(key)
            self._weights[key] = np.concatenate(self._read_off.estimate(coarse.names).weights(coarse.values))
        return self._weights[key]

    def noise(self, first: Array, second: Array) -> float:
        """The covariance of two functions by the noise; their weights."""
        return float(first @ (self._variances * second))

    def _union(self, gradient: Gradient) -> tuple[Clique, int]:
        """The columns of a function in domain order, and the cells of their marginal."""
        columns = self.columns(gradient)
        union = tuple(name for name in self._model.sizes if name in columns)
        return union, math.prod(self._model.sizes[name] for name in union)

    def is_bounded(self, gradient: Gradient) -> bool:
        """Whether what the drawing of people does to a function is known, or the most of it is."""
        union, cells = self._union(gradient)
        return cells <= MAX_COUPLED_CELLS or union in self._read_off.resolutions(union)

    def people(self, gradient: Gradient, *, at_most: bool = True) -> People:
        """Of a function of what N people, drawn from many, have. at_most: False: with the variance for the most
        that it may be, which takes a linear program."""
        of = frozenset(gradient.items()), at_most
        if of not in self._of_people:
            self._of_people[of] = self._people(gradient, at_most)
        return self._of_people[of]

    def _people(self, gradient: Gradient, at_most: bool) -> People:
        used = {key: slope for key, slope in gradient.items() if slope}
        union, cells = self._union(gradient)
        if cells > MAX_JOINT_CELLS:
            return self._people_drawn(used)
        influence = np.zeros([self._model.sizes[name] for name in union])
        for key, slope in used.items():
            moment = self._moments[key]
            shape = [self._model.sizes[n] if n in moment.columns else 1 for n in union]
            influence = influence + slope * moment.centre.reshape(shape)
        is_together = union in self._read_off.resolutions(union)
        measured = self._people_measured(union, influence) if is_together else None
        if measured is not None:
            return measured
        counts = self._model.marginal(union)
        influence = influence.reshape(-1)
        influence -= float(counts @ influence) / float(counts.sum())
        squares, most = np.square(influence), counts
        if at_most and not is_together and counts.size <= MAX_COUPLED_CELLS:
            read = {self.coarse(key).names for key in used}
            most = most_varying(counts, squares, [self._read_off.cells_of(names, union) for names in read])
        one = self.rows / float(counts.sum())
        third = one * float(most @ (influence * squares))
        fourth = one * float(most @ np.square(squares)) + float(np.mean(np.square(squares)))
        variance = one * float(counts @ squares)
        return People(variance, max(variance, one * float(most @ squares)), third, fourth)

    def _people_drawn(self, gradient: Gradient) -> People:
        """The same by rows drawn from the model, where there are too many cells."""
        rows = self._rows_drawn()
        place = {name: j for j, name in enumerate(self._model.sizes)}
        influence = np.zeros(len(rows))
        for key, slope in gradient.items():
            moment = self._moments[key]
            influence += slope * moment.centre[tuple(rows[:, place[name]] for name in moment.columns)]
        influence -= influence.mean()
        squares = np.square(influence)
        variance, third, fourth = (
            self.rows * float(of.mean()) for of in (squares, influence * squares, np.square(squares))
        )
        return People(variance, variance, third, fourth)

    def _people_measured(self, columns: Clique, influence: Array) -> People | None:
        """The same by a released marginal of all columns, whatever the model made of it: the estimate of a
        moment, of the squares. None where its noise leaves the variance of the function open by more than
        `OPEN` of it."""
        estimate = self._read_off.estimate(columns)
        total = float(estimate.values.sum())
        if total <= 0:
            return None
        centred = influence - float((estimate.values * influence).sum()) / total
        squares = np.square(centred)
        value, third, fourth = (
            self.rows * float((estimate.values * of).sum()) / total
            for of in (squares, centred * squares, np.square(squares))
        )
        value, fourth = max(0.0, value), max(0.0, fourth)
        error = math.sqrt(max(0.0, float((squares * estimate.solved(squares)).sum())))
        noise = float((influence * estimate.solved(influence)).sum())
        if error > OPEN * (value + noise):
            return None
        return People(value, value, third, fourth + float(np.mean(np.square(squares))))

    def strength(self, columns: Clique, z: float, sure: float, *, of_people: bool) -> Strength:
        """Cramer's V of two columns (`strength.py`). Raises `Uncertain` where they were counted together over
        bins only."""
        if columns not in self._read_off.resolutions(columns):
            raise Uncertain(
                f"{' and '.join(columns)} were counted together over bins only, and Cramer's V depends on these; ask for shares."
            )
        return strength(self._read_off.estimate(columns), self.rows, z, sure, of_people=of_people)

    def _rows_drawn(self) -> NDArray[np.int64]:
        """Seeded, so that the same release gives the same interval."""
        if self._sample is None:
            self._sample = self._model.sample(DRAWN_ROWS, np.random.default_rng(0), sweeps=0)
        return self._sample

    def is_open(self, scalar: Scalar, *, valued: bool) -> bool:
        """Whether bins that join codes, or the codes' own, leave it open."""
        for key, slope in scalar.gradient.items():
            coarse = self.coarse(key)
            if slope and any(coarse.valued if valued else coarse.coded):
                return True
        return False

    def corners(self, scalar: Scalar, *, valued: bool) -> tuple[Scalar, Scalar]:
        """Two numbers that are measured, between which this one is, wherever in bins that join codes the rows are; valued:
        and wherever in the codes' own bins. A ratio is between what a numerator and a divisor at their ends make it, a
        sum, difference or quotient of two between what these make it; everything else to first order.

        Raises `Uncertain` if it divides by a ratio that could be 0.
        """
        if not self.is_open(scalar, valued=valued):
            return scalar, scalar
        if scalar.line is not None:
            slope, part = scalar.line
            ends = [
                one.on_line(slope, scalar.value + slope * (one.value - part.value))
                for one in self.corners(part, valued=valued)
            ]
            return (ends[0], ends[1]) if slope > 0 else (ends[1], ends[0])
        if scalar.pair is not None:
            sign, left, right = scalar.pair
            mine, theirs = self.corners(left, valued=valued), self.corners(right, valued=valued)
            if sign != "+":
                theirs = theirs[::-1]
            return self._paired(sign, mine[0], theirs[0]), self._paired(sign, mine[1], theirs[1])
        if scalar.ratio is not None:
            return self._quotients(scalar, *(self._ends(part, valued) for part in scalar.ratio))
        if scalar.fraction is not None and scalar.solution is None:
            return self._fractions(scalar, *scalar.fraction, valued)
        return self._ends(scalar, valued)

    def _ends(self, scalar: Scalar, valued: bool) -> tuple[Scalar, Scalar]:
        """Least and most of it, to first order."""
        found = []
        for side in (0, 1):
            value, gradient = scalar.value, dict[int, float]()
            for key, slope in scalar.gradient.items():
                end = self._enclosing(key, valued)[side if slope > 0 else 1 - side]
                value += slope * (end.value - self._value(key))
                for own, weight in end.gradient.items():
                    gradient[own] = gradient.get(own, 0.0) + slope * weight
            found.append(replace(scalar, value=value, gradient=gradient, fraction=None))
        return found[0], found[1]

    def _enclosing(self, key: int, valued: bool) -> tuple[Scalar, Scalar]:
        """Of a moment, the sums of functions that are nowhere above and nowhere below its own, which are measured."""
        if (key, valued) not in self._enclosed:
            coarse = self.coarse(key)
            if any(coarse.valued if valued else coarse.coded):
                ends = self._read_off.enclosing(self._moments[key], coarse.names, valued=valued)
                self._enclosed[key, valued] = self._summed(ends[0]), self._summed(ends[1])
            else:
                self._enclosed[key, valued] = (Scalar(self._value(key), {key: 1.0}),) * 2
        return self._enclosed[key, valued]

    def _summed(self, parts: Sequence[Moment]) -> Scalar:
        total = Scalar(0.0)
        for moment in parts:
            key = len(self._moments)
            self._moments.append(moment)
            total = total + Scalar(self._value(key), {key: 1.0})
        return total

    def _value(self, key: int) -> float:
        """The estimate of a moment."""
        coarse = self.coarse(key)
        return float((self._read_off.estimate(coarse.names).values * coarse.values).sum())

    def _is_clear(self, divisor: Scalar) -> bool:
        weights = self.weights(divisor.gradient)
        return divisor.value > SURE * math.sqrt(self.noise(weights, weights))

    def _quotients(
        self, scalar: Scalar, above: tuple[Scalar, Scalar], below: tuple[Scalar, Scalar]
    ) -> tuple[Scalar, Scalar]:
        """A ratio at its ends; of a group that may be empty within its bins, those of its range."""
        if not self._is_clear(below[0]):
            return Scalar(scalar.low), Scalar(scalar.high)
        found = []
        for side, top in enumerate(above):
            divisor = below[1 - side if top.value >= 0 else side]
            ratio = top / divisor
            found.append(replace(scalar, value=ratio.value, gradient=ratio.gradient, ratio=(top, divisor)))
        return found[0], found[1]

    def _fractions(self, scalar: Scalar, top: Scalar, bottom: Scalar, valued: bool) -> tuple[Scalar, Scalar]:
        """Any other quotient at its ends."""
        if bottom.value < 0:
            top, bottom = (
                part.on_line(-1.0, -part.value) if part.has_own_interval else part * Scalar(-1.0)
                for part in (top, bottom)
            )
        above, below = self.corners(top, valued=valued), self.corners(bottom, valued=valued)
        found = []
        for side, end in enumerate(above):
            divisor = below[1 - side if end.value >= 0 else side]
            if not self._is_clear(divisor):
                raise Uncertain(MAY_DIVIDE_BY_0)
            ratio = end / divisor
            found.append(replace(scalar, value=ratio.value, gradient=ratio.gradient, fraction=(end, divisor)))
        return found[0], found[1]

    def _paired(self, sign: str, one: Scalar, other: Scalar) -> Scalar:
        if sign == "/" and not self._is_clear(other):
            raise Uncertain(MAY_DIVIDE_BY_0)
        found = {"+": one.__add__, "-": one.__sub__, "/": one.__truediv__}[sign](other)
        return replace(found, pair=(sign, one, other))

    def beyond(self, scalar: Scalar, halves: Callable[[], Sequence[float]], *, valued: bool) -> float:
        """By how much more than to first order the bins may move a coefficient (`docs/design/inference.md` 6): with the
        matrix M = L L', D what its entries could be off and g what L' times the coefficients is off to first order, they
        are off by x with L' x = g - L^-1 D L'^-1 L' x. halves: of the intervals of L' times the coefficients.

        Raises `Uncertain` where they leave it open.
        """
        solution = scalar.solution
        if solution is None:
            return 0.0
        if not solution.matrix:
            if self.is_open(scalar, valued=valued):
                raise Uncertain(
                    "A logistic regression depends by more than can be told on what lies within bins, and columns of this one "
                    "were counted together over bins only; register the question, or fit a linear one."
                )
            return 0.0
        off = np.array([[self._off(one, valued) for one in row] for row in solution.matrix])
        if not off.any():
            return 0.0
        root = np.abs(solution.root)
        growth = root.T @ off @ root
        if np.abs(np.linalg.eigvalsh(growth)).max() >= 1:
            raise Uncertain(
                "Within the bins that regressors were counted together over they may be collinear: leave out one, or register "
                "the question."
            )
        sizes = np.array([self._off(one, valued) for one in solution.parts]) + np.array(halves())
        return float((root @ growth @ np.linalg.solve(np.eye(len(sizes)) - growth, sizes))[solution.place])

    def _off(self, scalar: Scalar, valued: bool) -> float:
        """By how much at most it may be off, to first order."""
        if not self.is_open(scalar, valued=valued):
            return 0.0
        least, most = self._ends(scalar, valued)
        return max(0.0, scalar.value - least.value, most.value - scalar.value)
