"""Questions to a release, answered: estimate, interval, what it rests on, or the reason why there is none.

The estimate is that of the measurements (`read_off.py`): unbiased whatever the model did with them, so that
marginals that the fit shrank, smoothed or had not yet reached when it stopped are no cases of their own. What
the model says stands beside it as `table`, with a sentence where the two differ by more than the noise
explains. Reads released values only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from synth.domain import Domain
from synth.inference import intervals
from synth.inference.estimands import CURVED, Estimand, estimands
from synth.inference.language import Question, parse
from synth.inference.licence import NoFormulas, NotMeasured, Unanswerable, Uncertain, UnfitRun, readable
from synth.inference.moments import Array, Moment, Moments, Scalar
from synth.inference.needed import AGAIN, again, chosen
from synth.inference.parts import Codes_of
from synth.inference.read_off import ReadOff
from synth.inference.regression import DECIDED, MAY_BE_COLLINEAR
from synth.inference.variance import SURE, Disturbance, People
from synth.mrf import Model
from synth.synthesis import Measured

Target = Literal["population", "rows"]
"""Of whom the answer is: the people that the rows were drawn from, or these rows."""
DISAGREEMENT = 3.0
"""Standard errors by the noise between table and measurements, from which on the answer says so."""
FIRST_ORDER = "What the bins leave open of it is reckoned to first order, and may be somewhat more."
UNBOUNDED = (
    "No released marginal holds all columns of this, and they have too many combinations of values for a bound: how they go "
    "together is as the table has it, and of the people the interval may be too narrow."
)
NOT_COMPUTED = "not computed"
"""The licence of an answer that is missing for want of an optional package, not of measurements."""
CURVATURE = 2.0
"""How many times the standard deviation of what a linearisation leaves out of a product its own must be
(`docs/design/inference.md` 5)."""
CHOSEN = 0.5
"""The share of the noise below which a selection can follow what chance made of the rows
(`docs/design/inference.md` 12)."""


@dataclass(frozen=True)
class Answer:
    """One number. question, name: as asked, and which of its numbers.

    estimate, low, high: None without an interval, then reason says why. bounds: the interval wherever in
    their bins the values are. noise_share: of the variance, the part of the noise. table: what the released
    model says. note: what is to be known. licence: "measured", "measured over bins" (the interval allows for
    what these leave open), "not measured", "open", or `NOT_COMPUTED`. missing: columns that no released
    marginal holds together, where that is the reason. unmeasured_bound: of two such columns, where that says
    something, by how much at most the share of these rows with any of their values differs from the model's
    (`unmeasured.py`).
    """

    question: str
    name: str
    level: float
    target: Target
    licence: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    bounds: tuple[float, float] | None = None
    standard_error: float | None = None
    noise_share: float | None = None
    table: float | None = None
    note: str = ""
    reason: str = ""
    missing: tuple[str, ...] = ()
    unmeasured_bound: float | None = None


def infer(
    questions: Sequence[str],
    domain: Domain,
    model: Model,
    measurements: Sequence[Measured],
    facts: Mapping[str, Any],
    codes_of: Codes_of,
    *,
    level: float = 0.95,
    target: Target = "population",
    joint: bool = False,
    check: Callable[[Sequence[str]], None] = lambda columns: None,
) -> list[Answer]:
    """Answer questions (`language.py`). joint: all intervals hold together at the level. check: is told the columns of
    every number that is read, before it is, and may raise a `UsageError`.

    Raises `Unanswerable` or another `UsageError` for a question that cannot be read or does not fit the
    columns. What the release cannot tell is an answer with a reason.
    """
    if not 0.5 <= level < 1:
        raise Unanswerable(f"The level must be from 0.5 to below 1, got {level:g}.")
    parsed = [parse(text) for text in questions]
    try:
        whole: tuple[Measured, ...] | None = readable(facts, measurements)
        reason = ""
    except UnfitRun as error:
        whole, reason = None, error.sentence
    counts = {name: model.marginal((name,)) for name in domain.names}
    release = _Release(domain, model, ReadOff(domain.sizes, whole or (), counts), codes_of, target, check)
    release.chosen, release.again = chosen(facts, domain, codes_of), again(facts)
    if whole is None:
        for question, text in zip(parsed, questions, strict=True):
            with suppress(NoFormulas):
                release.by_model(question, text)  # a question that does not fit the columns says so first
        return [Answer(text, text, level, target, "not measured", reason=reason) for text in questions]
    asked = [release.read(question, text) for question, text in zip(parsed, questions, strict=True)]
    number = sum(len(each) for each in asked) if joint else 1
    z = intervals.critical(level, max(1, number))
    return [
        replace(answer(z), question=text, level=level)
        for text, each in zip(questions, asked, strict=True)
        for answer in each
    ]


class _Release:
    def __init__(
        self,
        domain: Domain,
        model: Model,
        read_off: ReadOff,
        codes_of: Codes_of,
        target: Target,
        check: Callable[[Sequence[str]], None],
    ) -> None:
        self._check = check
        self._domain, self._model, self._read_off = domain, model, read_off
        self._codes_of, self._target = codes_of, target
        self.chosen: frozenset[frozenset[str]] = frozenset()
        self.again: frozenset[frozenset[str]] = frozenset()

    def by_model(self, question: Question, text: str) -> list[Estimand]:
        """What the released model says. Raises as `estimands`."""
        sizes = self._domain.sizes

        def table(columns: tuple[str, ...]) -> Array:
            self._check(columns)
            return self._model.marginal(columns).reshape([sizes[name] for name in columns])

        def evaluate(moment: Moment) -> float:
            return float((table(moment.columns) * moment.centre).sum())

        return estimands(question, text, self._domain, self._codes_of, Moments(sizes, evaluate, table))

    def read(self, question: Question, text: str) -> list[_Ask]:
        """The numbers of a question, each waiting for a critical value."""
        read_off, disturbances = self._read_off, []

        def evaluate(moment: Moment) -> float:
            self._check(moment.columns)
            coarse = read_off.coarse(moment)
            return float((read_off.estimate(coarse.names).values * coarse.values).sum())

        def table(columns: tuple[str, ...]) -> Array:
            self._check(columns)
            return read_off.table(columns)

        moments = Moments(self._domain.sizes, evaluate, table)
        try:
            found = estimands(question, text, self._domain, self._codes_of, moments)
            rows = max(1.0, evaluate(Moment.product({}, self._domain.sizes)))
        except NoFormulas as error:
            return [_Refusal(Answer(text, text, 0.0, self._target, NOT_COMPUTED, reason=error.sentence))]
        except (NotMeasured, Uncertain) as error:
            self.by_model_or_none(question, text)
            missing = error.columns if isinstance(error, NotMeasured) else ()
            licence = "not measured" if missing else "open"
            refused = Answer(text, text, 0.0, self._target, licence, reason=error.sentence, missing=missing)
            return [_Refusal(refused)]
        disturbances.append(Disturbance(read_off, self._model, moments.asked, rows))
        told = self.by_model_or_none(question, text)
        beside: list[Estimand | None] = (
            list(told) if told is not None and len(told) == len(found) else [None] * len(found)
        )
        return [
            Reading(self._target, disturbances[0], estimand, other, self.chosen, self.again)
            for estimand, other in zip(found, beside, strict=True)
        ]

    def by_model_or_none(self, question: Question, text: str) -> list[Estimand] | None:
        """The same, None where the model leaves it open."""
        try:
            return self.by_model(question, text)
        except Uncertain:
            return None


class _Ask(Protocol):
    def __call__(self, z: float) -> Answer: ...


@dataclass(frozen=True)
class _Refusal:
    answer: Answer

    def __call__(self, z: float) -> Answer:
        return self.answer


@dataclass(frozen=True)
class Reading:
    """An estimand with what disturbs it. beside: the same by the model. chosen: sets of columns that the run
    has selected; again: more than once."""

    target: Target
    disturbance: Disturbance
    estimand: Estimand
    beside: Estimand | None
    chosen: frozenset[frozenset[str]] = frozenset()
    again: frozenset[frozenset[str]] = frozenset()

    def __call__(self, z: float) -> Answer:
        estimand = self.estimand
        if estimand.reason:
            return self._refused(estimand.reason)
        try:
            for guard, sentence in estimand.guards:
                weights = self.disturbance.weights(guard.gradient)
                if guard.value <= SURE * math.sqrt(self.disturbance.noise(weights, weights)):
                    raise Uncertain(sentence)
            for factors in estimand.products:
                if self._is_curved(*factors):
                    raise Uncertain(CURVED)
            if estimand.strength:
                return self._strength(z)
            return self._quantile(z) if estimand.cumulative else self._scalar(z)
        except Uncertain as error:
            return self._refused(error.sentence)

    def _refused(self, reason: str) -> Answer:
        return Answer("", self.estimand.name, 0.0, self.target, "open", reason=reason)

    def _people(self, scalar: Scalar, at_most: bool = True) -> People:
        """What the drawing of people does to it; nothing to these rows."""
        of_people = self.target == "population"
        return self.disturbance.people(scalar.gradient, at_most=at_most) if of_people else People()

    def _variance(self, scalar: Scalar, at_most: bool = True) -> float:
        """By the noise and, at most, by the people."""
        return self._noise(scalar) + self._people(scalar, at_most).most

    def _is_curved(self, one: Scalar, other: Scalar) -> bool:
        """Whether a product varies by less than twice what the products of the deviations of both factors, which
        a linearisation leaves out, vary by."""
        *sizes, correlation = self._sizes(one, other)
        if not min(sizes) > 0:
            return False
        one, other = (
            factor.apply(factor.value / size, 1 / size)
            for factor, size in zip((one, other), sizes, strict=True)
        )
        linear = one.value**2 + other.value**2 + 2 * one.value * other.value * correlation
        return linear < CURVATURE**2 * (1 + correlation**2)

    def _deviates(self, scalar: Scalar, z: float) -> tuple[float, intervals.Deviates]:
        """The variance of a linearisation, and the deviates for it."""
        noise, people = self._noise(scalar), self._people(scalar)
        variance = noise + people.most
        return variance, intervals.student(z, variance, people.third, people.fourth)

    def _noise(self, scalar: Scalar) -> float:
        weights = self.disturbance.weights(scalar.gradient)
        return self.disturbance.noise(weights, weights)

    def _interval(self, scalar: Scalar, z: float, *, within: bool = False) -> tuple[float, float]:
        """low, high; without what bins leave open. within: of an estimate that noise has put beyond what is possible, that of
        the nearest possible one: what is left of its own may be a single point."""
        disturbance, value = self.disturbance, scalar.value
        if within:
            value = scalar.nearest(value)
        if scalar.ratio is not None:
            a, b = scalar.ratio
            first, second = disturbance.weights(a.gradient), disturbance.weights(b.gradient)
            covariances = (
                disturbance.noise(first, first),
                disturbance.noise(first, second),
                disturbance.noise(second, second),
            )
            is_wilson = scalar.is_share and self.target == "population"
            deviates = (z, z) if is_wilson else self._deviates(scalar, z)[1]
            return intervals.ratio(
                a.value if value == scalar.value else value * b.value,
                b.value,
                covariances,
                deviates,
                None if is_wilson else self._people(scalar).most * b.value**2,
                "A group that is asked about",
            )
        if scalar.fraction is not None:
            top, bottom = scalar.fraction
            if not top.gradient:
                ends = self._interval(bottom, z)
                if ends[0] <= 0 <= ends[1]:
                    raise Uncertain(intervals.ZERO)
                low, high = sorted(top.value / end for end in ends)
                return low, high
            variance, deviates = self._deviates(scalar, z)
            zero = intervals.ZERO if scalar.solution is None else MAY_BE_COLLINEAR
            sizes = self._sizes(top, bottom, zero is intervals.ZERO)
            ends = intervals.fraction(value, bottom.value, sizes, variance, deviates, zero)
            bend = scalar.solution.bend if scalar.solution else 0.0
            return intervals.bent(value, ends, bend, self._noise(scalar) / variance if bend else 0.0, DECIDED)
        if scalar.pair is not None:
            return self._pair(scalar, *scalar.pair, z)
        if scalar.line is not None:
            slope, part = scalar.line
            low, high = sorted(
                scalar.value + slope * (end - part.value) for end in self._interval(part, z, within=within)
            )
            return low, high
        if scalar.is_share and self.target == "population":
            return intervals.count(value, self._noise(scalar), z, self.disturbance.rows)
        return intervals.wald(value, *self._deviates(scalar, z))

    def _sizes(self, one: Scalar, other: Scalar, at_most: bool = True) -> tuple[float, float, float]:
        """Standard errors and correlation."""
        sizes = math.sqrt(self._variance(one, at_most)), math.sqrt(self._variance(other, at_most))
        if not min(sizes) > 0:
            return *sizes, 0.0
        one, other = (
            of.apply(of.value / size, 1 / size) for of, size in zip((one, other), sizes, strict=True)
        )
        return *sizes, min(1.0, max(-1.0, self._variance(one + other, at_most) / 2 - 1))

    def _pair(self, scalar: Scalar, sign: str, one: Scalar, other: Scalar, z: float) -> tuple[float, float]:
        """Of the sum, difference or quotient of two numbers."""
        first, second, correlation = self._sizes(one, other)
        mine, theirs = (self._ranged(part, z, within=sign == "/") for part in (one, other))
        if sign == "+":  # the difference to its negative
            theirs, correlation = intervals.Ranged(-theirs.value, -theirs.high, -theirs.low), -correlation
        sizes = (first * theirs.value, second * mine.value) if sign == "/" else (first, second)
        together = intervals.Together(correlation, sizes)
        combined = intervals.quotient if sign == "/" else intervals.difference
        if not together.is_close:
            return combined(mine, theirs, together)
        variance, deviates = self._deviates(scalar, z)  # of those who are in one group alone
        below, above = (deviate / z for deviate in deviates)
        low, high = combined(mine.wider(below, above), theirs.wider(above, below), together)
        ends = intervals.wald(scalar.value, variance, deviates)
        return min(low, ends[0]), max(high, ends[1])

    def _ranged(self, scalar: Scalar, z: float, *, within: bool) -> intervals.Ranged:
        low, high = self._interval(scalar, z, within=within)
        return intervals.Ranged(scalar.nearest(scalar.value) if within else scalar.value, low, high)

    def _scalar(self, z: float) -> Answer:
        scalar = self.estimand.scalar
        low, high = self._interval(scalar, z, within=True)
        noise, people = self._noise(scalar), self._people(scalar).variance
        is_open = self.disturbance.is_open(scalar, valued=False)
        least, most = self._reach(scalar, z, (low, high), valued=False, within=True)

        table = (
            None if self.beside is None or math.isnan(self.beside.scalar.value) else self.beside.scalar.value
        )
        bounds: tuple[float, float] | None = None
        try:
            bounds = self._reach(scalar, z, (least, most), valued=True, within=True)
        except Uncertain:
            if scalar.solution is None:
                raise
        noise_share = noise / (noise + people) if noise + people > 0 else 0.0
        note = self._note(table, scalar.value, math.sqrt(noise), max(low - least, most - high))
        if is_open and not scalar.is_exact_over_bins:
            note = f"{FIRST_ORDER} {note}".rstrip()
        if self.target == "population" and not self.disturbance.is_bounded(scalar.gradient):
            note = f"{note} {UNBOUNDED}".lstrip()
        return Answer(
            "",
            self.estimand.name,
            0.0,
            self.target,
            "measured over bins" if is_open else "measured",
            scalar.nearest(scalar.value),
            scalar.nearest(least),
            scalar.nearest(most),
            None if bounds is None else (scalar.nearest(bounds[0]), scalar.nearest(bounds[1])),
            math.sqrt(noise + people),
            noise_share,
            table,
            " ".join(
                filter(None, (note, self._selection(self.disturbance.columns(scalar.gradient), noise_share)))
            ),
        )

    def _reach(
        self, scalar: Scalar, z: float, own: tuple[float, float], *, valued: bool, within: bool = False
    ) -> tuple[float, float]:
        """Its own interval with those of its ends within bins that join codes; valued: and within the codes' own."""
        low, high = own
        if not self.disturbance.is_open(scalar, valued=valued):
            return own
        least, most = self.disturbance.corners(scalar, valued=valued)
        beyond = self.disturbance.beyond(scalar, lambda: self._halves(scalar, z), valued=valued)
        low = min(low, self._interval(least, z, within=within)[0] - beyond)
        return low, max(high, self._interval(most, z, within=within)[1] + beyond)

    def _halves(self, scalar: Scalar, z: float) -> list[float]:
        """Of the intervals of the parts of a coefficient's system."""
        parts = scalar.solution.parts if scalar.solution else ()
        return [z * math.sqrt(self._variance(one)) for one in parts]

    def _selection(self, columns: frozenset[str], noise_share: float) -> str:
        """What selections do to an answer: of the people one by the rows, and of all one by earlier noise."""
        told = []
        if len(columns) > 1 and any(columns <= clique for clique in self.again):
            told.append(AGAIN)
        is_followed = self.target == "population" and noise_share < CHOSEN and len(columns) > 1
        if is_followed and any(columns <= clique for clique in self.chosen):
            told.append(
                "These columns were selected because they looked related in the rows: of the people the relation may be weaker "
                "than the interval says. That of these rows alone holds; so does a question that the study registers."
            )
        return " ".join(told)

    @staticmethod
    def _note(table: float | None, value: float, error: float, room: float) -> str:
        if table is None or abs(table - value) <= DISAGREEMENT * error + room:
            return ""
        return (
            f"The table says {table:.4g}, which the noise does not explain: its model departs from the measurements here (counts "
            "below 0, smoothing, shrinking, rows that break a constraint, or a fit that stopped early); the interval is by the "
            "measurements."
        )

    def _strength(self, z: float) -> Answer:
        columns, labels = zip(*self.estimand.strength, strict=True)
        found = self.disturbance.strength(columns, z, SURE, of_people=self.target == "population")
        noise, people = found.noise**2, found.people**2
        left_out = "; ".join(
            f"without {name} = {', '.join(told[code] for code in codes)}, which hardly any row may have"
            for name, told, codes in zip(columns, labels, found.left_out, strict=True)
            if codes
        )
        noise_share = noise / (noise + people) if noise + people > 0 else 0.0
        selection = self._selection(frozenset(columns), noise_share)
        return Answer(
            "",
            self.estimand.name,
            0.0,
            self.target,
            "measured",
            found.value,
            found.low,
            found.high,
            (found.low, found.high),
            math.sqrt(noise + people),
            noise_share,
            None if left_out or self.beside is None else self.beside.scalar.value,
            " ".join(filter(None, (left_out and f"{left_out[0].upper()}{left_out[1:]}.", selection))),
        )

    def _quantile(self, z: float) -> Answer:
        """Woodruff's interval (1952): the codes between which the shares up to a code may be the one asked
        for."""
        estimand, lows, highs, widened = self.estimand, [], [], False
        for share in estimand.cumulative:
            low, high = self._interval(share, z)
            widened |= self.disturbance.is_open(share, valued=False)
            if not low < estimand.at <= high:  # else bins could only tell less
                low, high = self._reach(share, z, (low, high), valued=False)
            lows.append(low)
            highs.append(high)
        last = len(lows) - 1
        first = next((code for code in range(last) if highs[code] >= estimand.at), last)
        final = max((code + 1 for code in range(last) if lows[code] < estimand.at), default=0)
        ends = estimand.ends
        low, high = ends[first][0], ends[max(first, final)][1]
        shown = estimand.cumulative[first]
        noise, people = self._noise(shown), self._people(shown).variance
        noise_share = noise / (noise + people) if noise + people > 0 else 0.0
        table = None if self.beside is None else self.beside.scalar.value
        return Answer(
            "",
            estimand.name,
            0.0,
            self.target,
            "measured over bins" if widened else "measured",
            min(max(estimand.scalar.value, low), high),
            low,
            high,
            (low, high),
            noise_share=noise_share,
            table=table,
            note=self._selection(
                frozenset().union(*(self.disturbance.columns(of.gradient) for of in estimand.cumulative)),
                noise_share,
            ),
        )
