"""The leading party's answers, rounded group by group (`thirds`, `mechanisms.rounding`).

What a step announces of the answers (bounds of their sums, a hash of each group) and what is computed with later is made of the
model's answers each time it is asked for, unless there is one group only: memory does not grow with the candidates' cells.

Each span is rounded by itself. The law of a cell stays what the proof of `rounding` needs; a candidate's total is kept to within
one for each of its spans, and its sum bound allows for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Handle
from mpc_protocols.mechanisms import rounding
from mpc_protocols.public.answers import SPAN, Answers, Cut, spans

Real = NDArray[np.float64]


def sum_bounds(handles: Sequence[Handle], answers: Sequence[Real], row_bound: int) -> list[int]:
    """For each candidate an integer that the sum of its rounded answers does not exceed.

    Raises `ValueError` for answers that are not finite.
    """
    bounds = [0] * len(handles)
    parts = (
        (q, answer[span.start : span.stop])
        for q, (handle, answer) in enumerate(zip(handles, answers, strict=True))
        for span in spans(handle, len(answer))
    )
    for block in _blocks(parts):
        of_spans = rounding.sum_bounds([part for _, part in block], row_bound)
        for (q, _), bound in zip(block, of_spans, strict=True):
            bounds[q] += bound
    return bounds


class RoundedAnswers:
    """The kept candidates' answers as integers, a group at a time."""

    def __init__(self, cuts: Sequence[Cut], answers: Sequence[Real], row_bound: int, theta: float) -> None:
        """answers: of the candidates kept, in order; finite. theta: of `rounding.theta_of`."""
        self._cuts, self._answers, self._row_bound, self._theta = cuts, answers, row_bound, theta
        self._only = self._of(cuts[0]) if len(cuts) == 1 else None

    def __getitem__(self, group: int) -> Answers:
        """The answers of a group; not kept if there are several groups."""
        return self._only or self._of(self._cuts[group])

    def __len__(self) -> int:
        return len(self._cuts)

    def __iter__(self) -> Iterator[Answers]:
        return map(self.__getitem__, range(len(self)))

    def digests(self) -> tuple[bytes, ...]:
        """The hash of each group."""
        return tuple(answers.digest() for answers in self)

    def _of(self, cut: Cut) -> Answers:
        return Answers.of(cut, self._rounded(cut))

    def _rounded(self, cut: Cut) -> Iterator[NDArray[np.int64]]:
        parts = (
            (q, self._answers[q][span.start : span.stop])
            for q, span in zip(cut.owners, cut.spans, strict=True)
        )
        for block in _blocks(parts):
            yield from rounding.systematic([part for _, part in block], self._row_bound, self._theta)


def _blocks(parts: Iterable[tuple[int, Real]]) -> Iterator[list[tuple[int, Real]]]:
    """Consecutive parts of candidates, together hardly more cells than two spans: what is copied at a time."""
    block: list[tuple[int, Real]] = []
    filled = 0
    for part in parts:
        block.append(part)
        filled += len(part[1])
        if filled >= SPAN:
            yield block
            block, filled = [], 0
    if block:
        yield block
