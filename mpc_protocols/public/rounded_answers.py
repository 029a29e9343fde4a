"""The leading party's answers, rounded group by group (`answers`, `mechanisms.rounding`), and the check of
them elsewhere.

What a step announces of the answers (bounds of their sums, a hash of each group) and what is computed with
later is made of the model's answers each time it is asked for, unless there are few groups (`MAX_KEPT`):
memory does not grow with the candidates' cells beyond those.

Each range is rounded by itself. The distribution of a cell stays what the proof of `rounding` needs; a
candidate's total is kept to within one for each of its ranges, and its sum bound allows for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Handle
from mpc_protocols.mechanisms import rounding
from mpc_protocols.mechanisms.bounds import sign_bits
from mpc_protocols.public.answers import MAX_RANGE, Answers, CellRange, DealerLayout, cell_ranges

Real = NDArray[np.float64]
MAX_KEPT = 4
"""Groups whose rounded answers are kept: 5 bytes a cell, beside the 8 of the answers that whoever asks holds."""


def sum_bounds(handles: Sequence[Handle], answers: Sequence[Real], row_bound: int) -> list[int]:
    """For each candidate an integer that the sum of its rounded answers does not exceed.

    Raises `ValueError` for answers that are not finite.
    """
    if all(len(answer) <= MAX_RANGE for answer in answers):
        return [bound for run in _runs(answers) for bound in rounding.sum_bounds(answers[run], row_bound)]
    bounds = [0] * len(handles)
    ranges = [
        (q, cells)
        for q, (handle, answer) in enumerate(zip(handles, answers, strict=True))
        for cells in cell_ranges(handle, len(answer))
    ]
    parts = _parts(answers, ranges)
    for run in _runs(parts):
        for (q, _), bound in zip(ranges[run], rounding.sum_bounds(parts[run], row_bound), strict=True):
            bounds[q] += bound
    return bounds


class RoundedAnswers:
    """The kept candidates' answers as integers, a group at a time."""

    def __init__(
        self, groups: Sequence[DealerLayout], answers: Sequence[Real], row_bound: int, theta: float
    ) -> None:
        """answers: of the candidates kept, in order; finite. theta: of `rounding.theta_of`."""
        self._groups, self._answers, self._row_bound, self._theta = groups, answers, row_bound, theta
        self._kept = list(map(self._of, groups)) if len(groups) <= MAX_KEPT else None

    def __getitem__(self, group: int) -> Answers:
        """The answers of a group; made anew each time if there are many groups."""
        return self._of(self._groups[group]) if self._kept is None else self._kept[group]

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Answers]:
        return map(self.__getitem__, range(len(self)))

    def digests(self) -> tuple[bytes, ...]:
        """The hash of each group."""
        return tuple(answers.digest() for answers in self)

    def _of(self, layout: DealerLayout) -> Answers:
        parts = _parts(self._answers, zip(layout.owners, layout.ranges, strict=True))
        rounded, filled = np.empty(layout.size, np.uint32), 0
        for run in _runs(parts):
            integers = rounding.systematic_together(parts[run], self._row_bound, self._theta)
            rounded[filled : filled + len(integers)] = integers
            filled += len(integers)
        return Answers.together(layout, rounded)


@dataclass(frozen=True)
class AnnouncedAnswers:
    """What a step says of the rounded answers, group by group. number: of the step. groups: the layout of
    each. sums: what each candidate's answers do not exceed together. digests: of each group. row_bound: what
    no answer exceeds."""

    number: int
    groups: tuple[DealerLayout, ...]
    sums: tuple[int, ...]
    digests: tuple[bytes, ...]
    row_bound: int

    @property
    def planes(self) -> int:
        """Bits of a difference of a count and an answer, its sign included."""
        return sign_bits(self.row_bound)

    def checker(self) -> AnswerChecker:
        """For the answers of one execution of the step."""
        return AnswerChecker(self)


class AnswerChecker:
    """Checks the answers that come against what was announced, groups in order."""

    def __init__(self, announced: AnnouncedAnswers) -> None:
        self._announced = announced
        self._left = np.array(announced.sums, np.int64)
        """Of the sums announced, what is still to come: a candidate in several groups shares what was
        announced."""

    def check(self, group: int, answers: Answers) -> None:
        """Check ranges, sums and hash. A dealer's answers that are known by their digest alone are not looked
        at.

        Raises `ProtocolAborted`.
        """
        announced = self._announced
        fits = int(answers.cells.max(initial=0)) <= announced.row_bound
        if fits:
            left = self._left[announced.groups[group].candidates]
            parts = answers.parts
            fits = (
                all(part.sums.shape == left.shape for part in parts)
                and answers.digest() == announced.digests[group]
            )
            fits = fits and all(bool((part.sums >= 0).all() and (part.sums <= left).all()) for part in parts)
        if fits:
            left -= sum(part.sums for part in parts)
            fits = bool((left >= 0).all())
        if not fits:
            raise ProtocolAborted(
                f"The model's answers of step {announced.number} are not those that were announced; stop the run."
            )


def _parts(answers: Sequence[Real], ranges: Iterable[tuple[int, CellRange]]) -> list[Real]:
    """The answers of ranges of candidates, in order."""
    return [
        answer if stop - start == len(answer := answers[q]) else answer[start:stop]
        for q, (_, start, stop) in ranges
    ]


def _runs(parts: Sequence[Real]) -> Iterator[slice]:
    """Places of consecutive parts, together hardly more cells than two of the largest: what is copied at a time."""
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
    start, filled = 0, 0
    while start < len(parts):
        stop = min(int(np.searchsorted(ends, filled + MAX_RANGE)) + 1, len(parts))
        yield slice(start, stop)
        start, filled = stop, int(ends[stop - 1])
