"""Shares of groups of values within groups of values, with intervals: what a picture of two columns shows.

They are of the rows that were counted, for the noise: the relations that a report draws were selected, and of the people what was
selected is too strong at times (`docs/design/inference.md` 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from synth.domain import Domain
from synth.inference import intervals
from synth.inference.answers import Reading
from synth.inference.estimands import EMPTY, Estimand
from synth.inference.licence import Unanswerable, readable
from synth.inference.moments import Moment, Moments, Part, Scalar
from synth.inference.read_off import ReadOff
from synth.inference.variance import Disturbance
from synth.mrf import Model
from synth.run import Measured

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

    def __call__(
        self, of: str, groups: Sequence[Codes], by: str, lines: Sequence[Codes]
    ) -> list[list[Interval | None]]:
        """Of the rows of each line (codes of `by`), the share whose code of `of` is in a group or in one before it: a list for
        each line, an entry for each group but the last. None where the release leaves it open."""
        moments = Moments(self._sizes, self._evaluate, self._read_off.table)
        try:
            rows = max(1.0, self._evaluate(Moment.product({}, self._sizes)))
            disturbance = Disturbance(self._read_off, self._model, moments.asked, rows)
            return [
                [
                    self._interval(
                        moments, disturbance, of, [c for group in groups[: k + 1] for c in group], by, line
                    )
                    for k in range(len(groups) - 1)
                ]
                for line in lines
            ]
        except Unanswerable:
            return [[None] * (len(groups) - 1) for _ in lines]

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
