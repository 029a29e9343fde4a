"""Prediction of a label by a model trained on a table. OFFLINE ONLY, like `judge`.

A model answers yes or no, so a label becomes a few such questions, each with a model of its own, and the figure is
the mean of their areas. A label of up to `MAX_VALUES` values is asked for each against the rest. One of more, whose
order means something (an age), is asked for by three cuts, near the quartiles of the real rows; one without an order
(an occupation), or of codes, which may be names, for those values that most real rows have. So the work is bounded,
and does not go into the rare values, whose areas are mostly chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError
from runner.review.evaluation.figure import Figure, mean_of
from runner.study.declared.table import nearest
from synth.domain import Codes, Column, Domain
from synth.judgement.metrics.prediction import auc

Table = NDArray[np.integer[Any]]

MAX_VALUES = 8
"""Of a label, each of which is asked for."""
QUARTILES = (0.25, 0.5, 0.75)
MAX_TRAINED = 50_000
"""Rows of a table that a model is trained on, at random: many more than its weights."""


@dataclass(frozen=True)
class Question:
    """Codes of the label from `low` to below `high` are a yes. missing: the code of rows that are left out, or None."""

    words: str
    low: int
    high: int
    missing: int | None = None


@dataclass(frozen=True)
class Prediction(Figure):
    """asked: what a yes is, one of each question; empty where every value was asked for."""

    asked: Sequence[str]


def questions(domain: Domain, label: str, real: Table) -> list[Question]:
    """What is asked of a label. real: rows as codes, (rows, columns in domain order).

    Raises `UsageError`: a label that is no column, or of which the rows hold one value only.
    """
    if label not in domain:
        raise UsageError(
            f"--label {label}: the run has no such column{nearest(label, domain.names)}; its columns are "
            f"{', '.join(domain.names)}."
        )
    column = domain[label]
    counts = np.bincount(real[:, domain.names.index(label)], minlength=column.size)
    if np.count_nonzero(counts) < 2 or len(domain) < 2:
        raise UsageError(
            f"--label {label}: the real rows hold one value of it only, so nothing can be predicted."
        )
    if column.size > MAX_VALUES and column.ordered and not column.nominal and (cuts := _cuts(column, counts)):
        return cuts
    most = (
        np.argsort(-counts, kind="stable")[:MAX_VALUES]
        if column.size > MAX_VALUES
        else np.arange(column.size)
    )
    values = [int(code) for code in sorted(most) if counts[code]]
    if column.size == 2:
        values = values[:1]  # the other one has the same area
    return [Question(column.label(code), code, code + 1) for code in values]


def _cuts(column: Column, counts: NDArray[np.intp]) -> list[Question]:
    """Where a line of codes is cut: near the quartiles of the rows, and never beside all of them."""
    known = column.size - column.missing
    rows = counts[:known]
    above = np.flatnonzero(rows)[1:]  # a code at which rows lie on both sides of the cut
    if not len(above):
        return []
    below = (np.cumsum(rows) - rows)[above] / rows.sum()
    codes = sorted({int(above[np.argmin(np.abs(below - share))]) for share in QUARTILES})
    left_out = known if column.missing else None
    return [Question(f"{column.label(code)} and above", code, known, left_out) for code in codes]


def predicted(
    domain: Domain, label: str, asked: Sequence[Question], draws: Sequence[tuple[Table, Table, Table]]
) -> Prediction:
    """The mean area over draws, and over the questions whose yes and no its fresh rows hold.

    draws: synthetic, known and fresh rows; one model is trained on the first, one on the second. Raises
    `UsageError`: no fresh rows hold both.
    """
    found = [figure for draw in draws for figure in _areas(domain, label, asked, *draw)]
    if not found:
        raise UsageError(
            f"--label {label}: the rows that judge hold one value of it only; name more real rows."
        )
    mean = mean_of(found)
    told = [question.words for question in asked] if domain[label].size > MAX_VALUES else []
    return Prediction(mean.value, mean.apart, mean.real, told)


def _areas(
    domain: Domain, label: str, asked: Sequence[Question], synthetic: Table, known: Table, fresh: Table
) -> Iterator[Figure]:
    place = domain.names.index(label)
    yes_or_no = replace(
        domain, columns=tuple(Codes(2) if name == label else domain[name] for name in domain.names)
    )
    rng = np.random.default_rng(len(domain))
    tables = [
        rows if len(rows) <= MAX_TRAINED else rng.choice(rows, MAX_TRAINED, replace=False)
        for rows in (synthetic, known)
    ]
    for question in asked:
        test = _answered(fresh, place, question)
        if len(np.unique(test[:, place])) == 2:
            ours, real = (auc(_answered(rows, place, question), test, yes_or_no, label) for rows in tables)
            yield Figure(ours, 0.5, real)


def _answered(table: Table, place: int, question: Question) -> Table:
    """The rows with 1 for yes and 0 for no in the place of the label."""
    rows = table.copy() if question.missing is None else table[table[:, place] != question.missing]
    rows[:, place] = (rows[:, place] >= question.low) & (rows[:, place] < question.high)
    return rows
