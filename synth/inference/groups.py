"""Shares of groups of values within groups of values, with intervals: what a picture of two columns shows.

They are of the rows that were counted, for the noise: the relations that a report draws were selected, and of
the people what was selected is too strong at times (`docs/design/inference.md` 8).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from synth.domain import Domain
from synth.inference import intervals
from synth.inference.answers import Reading
from synth.inference.estimands import EMPTY, Estimand
from synth.inference.licence import Unanswerable, Uncertain, readable
from synth.inference.moments import Array, Moment, Moments, Part, Scalar
from synth.inference.read_off import ReadOff
from synth.inference.variance import SURE, Disturbance
from synth.mrf import Model
from synth.synthesis import Measured

Codes = Sequence[int]
Interval = tuple[float, float]


class Shares:
    """Intervals for shares of the rows that a run has counted. Reads released values only.

    Raises `UnfitRun` for a run whose measurements do not count all rows (`licence.py`).
    """

    def __init__(
        self,
        domain: Domain,
        model: Model,
        measurements: Sequence[Measured],
        facts: Mapping[str, Any],
        level: float = 0.95,
    ) -> None:
        """facts: run.json."""
        counts = {name: model.marginal((name,)) for name in domain.names}
        self._sizes, self._model = domain.sizes, model
        self._read_off = ReadOff(domain.sizes, readable(facts, measurements), counts)
        self._z = intervals.critical(level, 1)

    def bins(self, pair: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """At the finest resolution at which these columns were counted together, the bin of every value of
        those that were counted over bins; nothing of columns that were not."""

        def cells(m: Measured) -> int:
            sizes = dict(zip(m.columns, m.shape(self._sizes), strict=True))
            return math.prod(sizes[name] for name in pair)

        together = [m for m in self._read_off.measured if set(pair) <= set(m.columns)]
        bins = max(together, key=cells).bins if together else {}
        return {name: of for name, of in bins.items() if name in pair}

    def __call__(
        self, of: str, groups: Sequence[Codes], by: str, lines: Sequence[Codes]
    ) -> list[list[Interval | None]]:
        """Of the rows of each line (codes of `by`), the share whose code of `of` is in a group or in one
        before it: a list for each line, an entry for each group but the last. None where the release leaves
        it open."""
        columns = tuple(name for name in self._sizes if name in (of, by))
        if columns in self._read_off.resolutions(columns):
            return [self._together(columns, of, groups, by, line) for line in lines]
        moments = Moments(self._sizes, self._evaluate, self._read_off.table)
        try:
            rows = max(1.0, self._evaluate(Moment.product({}, self._sizes)))
            disturbance = Disturbance(self._read_off, self._model, moments.asked, rows)
            return [
                [
                    self._interval(moments, disturbance, of, codes, by, line)
                    for codes in itertools.accumulate(
                        groups[:-1], lambda all_codes, more: [*all_codes, *more]
                    )
                ]
                for line in lines
            ]
        except Unanswerable:
            return [[None] * (len(groups) - 1) for _ in lines]

    def _together(
        self, columns: tuple[str, ...], of: str, groups: Sequence[Codes], by: str, line: Codes
    ) -> list[Interval | None]:
        """Where a marginal holds both columns as they are: the noise of g . x and h . x has covariance g'
        M^-1 h (`read_off.py`), so that no weight of a released count is needed."""
        estimate = self._read_off.estimate(columns)
        axis = columns.index(of)

        def indicator(codes: Codes) -> Array:
            table = np.zeros([self._sizes[name] for name in columns])
            table[np.ix_(codes, line) if axis == 0 else np.ix_(line, codes)] = 1.0
            return table

        whole = indicator(range(self._sizes[of]))
        solved = estimate.solved(whole)
        b, bb = float((estimate.values * whole).sum()), float((whole * solved).sum())
        if b <= SURE * math.sqrt(bb):
            return [None] * (len(groups) - 1)
        found: list[Interval | None] = []
        for codes in itertools.accumulate(groups[:-1], lambda all_codes, more: [*all_codes, *more]):
            hits = indicator(codes)
            noise = float((hits * estimate.solved(hits)).sum()), float((hits * solved).sum()), bb
            a = min(max(float((estimate.values * hits).sum()), 0.0), b)  # see `Reading`
            try:
                low, high = intervals.ratio(a, b, noise, (self._z, self._z), 0.0, "A group")
            except Uncertain:
                found.append(None)
            else:
                found.append((min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)))
        return found

    def _evaluate(self, moment: Moment) -> float:
        coarse = self._read_off.coarse(moment)
        return float((self._read_off.estimate(coarse.names).values * coarse.values).sum())

    def _interval(
        self, moments: Moments, disturbance: Disturbance, of: str, codes: Codes, by: str, line: Codes
    ) -> Interval | None:
        group = {by: self._mask(by, line)}
        hits, whole = moments.product(group | {of: self._mask(of, codes)}), moments.product(group)
        if not whole.value > 0:
            return None
        ratio = hits / whole
        share = Scalar(ratio.value, ratio.gradient, ratio=(hits, whole), is_share=True, low=0.0, high=1.0)
        answer = Reading("rows", disturbance, Estimand("", share, guards=((whole, EMPTY),)), None)(self._z)
        return None if answer.low is None or answer.high is None else (answer.low, answer.high)

    def _mask(self, name: str, codes: Codes) -> Part:
        return Part.exact(np.isin(np.arange(self._sizes[name]), list(codes)).astype(np.float64))
