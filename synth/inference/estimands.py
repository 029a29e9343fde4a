"""Questions as functions of moments: each is evaluated by whoever estimates these, the measurements or the
model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth.domain import Domain
from synth.inference.language import Binary, Call, Expression, Fit, Number, Question, Statistic, Table
from synth.inference.licence import Unanswerable, Uncertain
from synth.inference.moments import ZEROS, Moments, Part, Scalar
from synth.inference.parts import Codes_of, joined, kinds, need, number, of_conditions, present
from synth.inference.regression import coefficients
from synth.judgement.relations import cramers_v

MAX_ANSWERS = 1000
"""Of one question."""
EMPTY = (
    "A group that is asked about may be empty, by the measurements and their noise; ask about a larger group."
)
CURVED = (
    "The question multiplies numbers that are known too badly, by the measurements and their noise, for an interval of their "
    "product: ask for each of them."
)
NESTED = (
    "The question multiplies or divides what is itself a quotient of measured numbers, and no interval of that holds: write it "
    "as one quotient, or ask for its parts."
)
MAX_NUMBER = 1e60
"""Of a question's numbers, and one over the least: their fourth powers are summed."""
TINY = 1e-9
"""A number of rows, or a number made of such, that is 0 but for rounding."""
Parts = Mapping[str, Part]


@dataclass(frozen=True, eq=False)
class Estimand:
    """One number that is asked for. cumulative: of a quantile the share of rows up to each code; ends: the
    smallest and the largest number of each code; at: which quantile. strength: of Cramer's V, both columns in
    domain order, with their codes' labels. guards: numbers that must be clearly positive, each with what it
    means if it is not. products: factors whose product must
    not depend on what both are off together. reason: why there is no answer, if
    there is none."""

    name: str
    scalar: Scalar
    cumulative: tuple[Scalar, ...] = ()
    ends: tuple[tuple[float, float], ...] = ()
    at: float = 0.0
    strength: tuple[tuple[str, tuple[str, ...]], ...] = ()
    guards: tuple[tuple[Scalar, str], ...] = ()
    products: tuple[tuple[Scalar, Scalar], ...] = ()
    reason: str = ""


def estimands(
    question: Question, text: str, domain: Domain, codes_of: Codes_of, moments: Moments
) -> list[Estimand]:
    """What a question asks for.

    Raises `Unanswerable` or another `UsageError` for what does not fit the domain, and what `moments` raises.
    """
    asker = _Asker(domain, codes_of, moments)
    if isinstance(question, Table):
        return asker.table(question.columns)
    if isinstance(question, Fit):
        return [
            Estimand(f"{text}: {name}", scalar, guards=guards)
            for name, scalar, guards in coefficients(question, domain, codes_of, moments)
        ]
    return asker.statistic(question, text)


class _Asker:
    def __init__(self, domain: Domain, codes_of: Codes_of, moments: Moments) -> None:
        self._domain, self._codes_of, self._moments = domain, codes_of, moments
        self._guards: list[tuple[Scalar, str]] = []
        self._products: list[tuple[Scalar, Scalar]] = []

    def table(self, columns: Sequence[str]) -> list[Estimand]:
        self._listed(columns)
        labelled = [kinds(self._domain[name], name) for name in columns]
        found = []
        for place in itertools.product(*(range(len(labels)) for labels, _ in labelled)):
            parts = {name: labelled[k][1][place[k]] for k, name in enumerate(columns)}
            label = ", ".join(labelled[k][0][place[k]] for k in range(len(columns)))
            scalar = self._moments.product(parts)
            found.append(Estimand(label, Scalar(scalar.value, scalar.gradient, is_share=True, low=0.0)))
        return found

    def _distinct(self, columns: Sequence[str]) -> None:
        need(self._domain, columns)
        if len(set(columns)) != len(columns):
            raise Unanswerable(f"The columns {', '.join(columns)} hold one twice; name each once.")

    def _listed(self, columns: Sequence[str]) -> None:
        self._distinct(columns)
        cells = math.prod(self._domain[name].size for name in columns)
        if cells > MAX_ANSWERS:
            raise Unanswerable(
                f"{' x '.join(columns)} has {cells:,} cells; at most {MAX_ANSWERS:,} numbers can be asked at once."
            )

    def statistic(self, question: Statistic, text: str) -> list[Estimand]:
        if not question.by:
            return [self._estimand(question.expression, text, {})]
        self._listed(question.by)
        labelled = [kinds(self._domain[name], name) for name in question.by]
        found = []
        for place in itertools.product(*(range(len(labels)) for labels, _ in labelled)):
            given = {name: labelled[k][1][place[k]] for k, name in enumerate(question.by)}
            label = ", ".join(f"{name} = {labelled[k][0][place[k]]}" for k, name in enumerate(question.by))
            name = f"{text.rpartition('|')[0].strip()}: {label}"
            try:
                found.append(self._estimand(question.expression, name, given))
            except Uncertain as error:  # this group alone
                found.append(Estimand(name, Scalar(math.nan), reason=error.sentence))
        return found

    def _estimand(self, expression: Expression, name: str, given: Parts) -> Estimand:
        if isinstance(expression, Call) and expression.name in ("median", "quantile"):
            return self._quantile(expression, name, given)
        if isinstance(expression, Call) and expression.name == "cramers_v":
            return self._cramers_v(expression.columns, name, given)
        self._guards, self._products = [], []
        scalar = self._value(expression, given)
        return Estimand(
            name,
            scalar,
            guards=tuple(self._guards),
            products=tuple(self._products),
        )

    def _value(self, expression: Expression, given: Parts) -> Scalar:
        if isinstance(expression, Number):
            return Scalar(expression.value)
        if isinstance(expression, Binary):
            left, right = self._value(expression.left, given), self._value(expression.right, given)
            operations = {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__}
            found, sign = operations[expression.operator](right), expression.operator
            size = max(map(abs, (found.value, *found.gradient.values())))
            if not (size == 0 or 1 / MAX_NUMBER < size < MAX_NUMBER):
                if sign == "/" and right.gradient and abs(right.value) < TINY:
                    raise Uncertain(ZEROS)  # but for rounding
                raise Unanswerable(
                    "The question makes numbers that are too large or too small to be reckoned with; write it in other units."
                )
            is_positive = left.low >= 0 and right.value > 0
            are_both = bool(left.gradient and right.gradient)
            if left.ratio and right.ratio and (sign in "+-" or (sign == "/" and is_positive)):
                least = 0.0 if sign == "/" else -math.inf
                return Scalar(found.value, found.gradient, pair=(sign, left, right), low=least)
            if (line := _line(left, right, sign, found)) is not None:
                return line
            if sign == "/" and right.gradient and not left.gradient:
                return Scalar(found.value, found.gradient, fraction=(left, right))
            if are_both and (left.divides or right.divides):
                if sign in "*/":
                    raise Unanswerable(NESTED)
                return Scalar(found.value, found.gradient, pair=(sign, left, right))
            for part in (left, right):
                for ratio in part.ratios():
                    if ratio.ratio is not None:
                        self._guards.append((ratio.ratio[1], EMPTY))
            if sign == "/" and right.gradient:
                return Scalar(found.value, found.gradient, fraction=(left, right))
            if sign == "*" and left.gradient and right.gradient:
                self._products.append((left, right))
            return found
        return self._call(expression, given)

    def _conditions(self, call: Call, given: Parts) -> dict[str, Part]:
        found = joined(of_conditions(self._domain, call.given, self._codes_of), given)
        self._possible(found)
        return found

    def _possible(self, parts: Parts) -> None:
        for name, part in parts.items():
            if not (part.most > 0).any():
                raise Unanswerable(
                    f"No row can meet the conditions on {name}, so there is nothing to answer from."
                )

    def _call(self, call: Call, given: Parts) -> Scalar:
        need(self._domain, call.columns)
        if call.name in ("median", "quantile", "cramers_v"):
            what = "Cramer's V" if call.name == "cramers_v" else "A quantile"
            raise Unanswerable(
                f"{what} stands by itself; it has no place in a sum, a difference or a quotient."
            )
        if call.name == "corr":
            return self._correlation(call.columns[0], call.columns[1], given)
        group = self._conditions(call, given)
        if call.name in ("share", "count"):
            wanted = joined(of_conditions(self._domain, call.of, self._codes_of), group)
            self._possible(wanted)
            hits = self._moments.product(wanted)
            if call.name == "count":
                return Scalar(hits.value, hits.gradient, is_share=True, low=0.0)
            whole = self._moments.product(group)
            return self._ratio(hits, whole, True, 0.0, 1.0)
        [name] = call.columns
        values, there = number(self._domain[name], name), present(self._domain[name])
        sums = self._moments.product(joined({name: values * there}, group))
        if call.name == "sum":
            return sums
        whole = self._moments.product(joined({name: there}, group))
        inside = there.centre > 0
        if name in group:
            inside = inside & (group[name].most > 0)
        return self._ratio(
            sums, whole, False, float(values.least[inside].min()), float(values.most[inside].max())
        )

    @staticmethod
    def _ratio(a: Scalar, b: Scalar, is_share: bool, low: float, high: float) -> Scalar:
        if not b.value > 0:
            raise Uncertain(EMPTY)
        found = a / b
        return Scalar(found.value, found.gradient, ratio=(a, b), is_share=is_share, low=low, high=high)

    def _correlation(self, one: str, other: str, given: Parts) -> Scalar:
        self._distinct([one, other])
        domain, of = self._domain, self._moments.product
        x, y = number(domain[one], one), number(domain[other], other)
        there = joined({one: present(domain[one]), other: present(domain[other])}, given)
        n = of(there)
        sx, sy = of(joined({one: x}, there)), of(joined({other: y}, there))
        sxx, syy = of(joined({one: x * x}, there)), of(joined({other: y * y}, there))
        sxy = of(joined({one: x, other: y}, there))
        vx, vy = sxx - sx * sx / n, syy - sy * sy / n
        if vx.value <= 0 or vy.value <= 0:
            raise Uncertain(_spread(one if vx.value <= 0 else other))
        for of_one, name in ((vx, one), (vy, other)):
            self._guards.append((of_one, _spread(name)))
        product = vx * vy
        scale = product.apply(math.sqrt(product.value), 0.5 / math.sqrt(product.value))
        together = sxy - sx * sy / n
        found = together / scale
        return Scalar(found.value, found.gradient, fraction=(together, scale), low=-1.0, high=1.0)

    def _cramers_v(self, columns: Sequence[str], name: str, given: Parts) -> Estimand:
        need(self._domain, columns)
        self._distinct(columns)
        if given:
            raise Unanswerable("Cramer's V is of all rows; it takes no groups.")
        pair = tuple(column for column in self._domain.names if column in columns)
        labelled = tuple(
            (column, tuple(map(self._domain[column].label, range(self._domain[column].size))))
            for column in pair
        )
        return Estimand(name, Scalar(cramers_v(self._moments.table(pair)), high=1.0), strength=labelled)

    def _quantile(self, call: Call, name: str, given: Parts) -> Estimand:
        need(self._domain, call.columns)
        [column] = call.columns
        of = self._domain[column]
        values, there = number(of, column), present(of)
        group = joined({column: there}, self._conditions(call, given))
        order = [code for code in np.argsort(values.centre, kind="stable") if there.centre[code] > 0]
        if len(order) > MAX_ANSWERS:
            raise Unanswerable(
                f"Column {column} has {len(order):,} codes; a quantile is offered of at most {MAX_ANSWERS:,}."
            )
        whole = self._moments.product(group)
        below, shares = np.zeros(of.size), []
        for code in order:
            below[code] = 1.0
            hits = self._moments.product(joined({column: Part.exact(below.copy())}, group))
            shares.append(self._ratio(hits, whole, True, 0.0, 1.0))
        ends = tuple((float(values.least[code]), float(values.most[code])) for code in order)
        fractions = np.maximum.accumulate([share.value for share in shares])
        place = min(int(np.searchsorted(fractions, call.at)), len(order) - 1)
        low, high = ends[place]
        before = float(fractions[place - 1]) if place else 0.0
        step = float(fractions[place]) - before
        inside = min(1.0, max(0.0, (call.at - before) / step)) if step > 0 else 0.5
        return Estimand(name, Scalar(low + inside * (high - low)), tuple(shares), ends, call.at)


def _spread(name: str) -> str:
    """Why there is no correlation."""
    return (
        f"The noise of the counts leaves open how much {name} varies, by which a correlation divides; ask how much it differs "
        "between groups, such as a difference of two means, or register the question for more of the budget."
    )


def _line(left: Scalar, right: Scalar, sign: str, found: Scalar) -> Scalar | None:
    """What a number makes of what has an interval of its own. None of anything else."""
    if not left.gradient and right.has_own_interval and sign != "/":
        part, slope = right, {"+": 1.0, "-": -1.0, "*": left.value}[sign]
    elif not right.gradient and left.has_own_interval:
        part, slope = left, {"*": right.value, "/": 1 / right.value if sign == "/" else 0.0}.get(sign, 1.0)
    else:
        return None
    return part.on_line(slope, found.value) if slope else None
