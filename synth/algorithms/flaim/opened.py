"""What a run's questions have opened, as noisy marginals: the same at whoever holds the answers.

The leader fits its model to them; the others that compute check that it reports what they have opened. Public
post-processing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from synth.algorithms.flaim.questions import parse
from synth.synthesis import Measured

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Answered, Clique
    from synth.algorithms.flaim.plan import FlaimPlan


@dataclass
class Opened:
    """Measurements in the order they were opened; selections: the marginals that enough clients chose.

    The measurement of round i is that of the i-th selection; columns and drawn marginals are of round 0. A
    measurement's rows are the noisy rows of the clients that it is about; None where these are all.
    """

    plan: FlaimPlan
    measurements: list[Measured] = field(default_factory=list)
    selections: list[Clique] = field(default_factory=list)
    _cohort_rows: int = 0

    @classmethod
    def of(cls, plan: FlaimPlan, answered: Iterable[Answered]) -> Opened:
        """From all questions of a run. Raises `ProtocolAborted`, ValueError."""
        found = cls(plan)
        for question, answer in answered:
            found.add(question.content, answer)
        return found

    def add(self, content: bytes, answer: NDArray[np.int64] | tuple[int, ...]) -> tuple[Measured, ...]:
        """What one more question has opened. Raises `ProtocolAborted` for content that is no question."""
        asked, before = parse(content), len(self.measurements)
        if asked.kind == "size":
            self._cohort_rows = int(answer[0])
        elif asked.kind in ("register", "columns"):
            sigma2 = self.plan.registration_sigma2 if asked.kind == "register" else self.plan.sigma2
            values = self._split(answer, self.plan.one_way)
            rows = None if asked.kind == "register" else self._rows_of(values)
            for clique, noisy in zip(self.plan.one_way, values, strict=True):
                self._keep(clique, noisy, rows, 0, sigma2)
        elif asked.kind in ("counts", "drawn"):
            for clique, noisy in zip(asked.cliques, self._split(answer, asked.cliques, 1), strict=True):
                if asked.kind == "counts":
                    self.selections.append(clique)
                number = len(self.selections) if asked.kind == "counts" else 0
                self._keep(clique, noisy[:-1], int(noisy[-1]), number, self.plan.sigma2)
        return tuple(self.measurements[before:])

    def _rows_of(self, columns: Sequence[NDArray[np.int64]]) -> int:
        """The cohort's noisy rows; where nobody is asked for its size, what its columns add up to."""
        if self.plan.size_sigma2:
            return self._cohort_rows
        return max(1, round(float(np.mean([values.sum() for values in columns]))))

    def _split(
        self, answer: NDArray[np.int64] | tuple[int, ...], cliques: Sequence[Clique], more: int = 0
    ) -> list[NDArray[np.int64]]:
        sizes = [self.plan.domain.cells(clique) + more for clique in cliques]
        if len(answer) != sum(sizes):
            raise ValueError("An answer must have a number for each cell that was asked for.")
        return np.split(np.asarray(answer, np.int64), np.cumsum(sizes)[:-1])

    def _keep(
        self, clique: Clique, values: NDArray[np.int64], rows: int | None, number: int, sigma2: Fraction
    ) -> None:
        self.measurements.append(Measured(clique, sigma2, number, values, rows=rows))
