"""The figures of an evaluation of linked tables. OFFLINE ONLY, like `judge`, whose comparisons these are, of
tables made of both:

    people     a row a person: the parent's columns, and how many children there are
    rows       a row a child, with its person's columns: what goes with whom, and within a child
    within     two children of a person, next to each other or a step farther: likeness (Cramer's V), and its distance
    sums       of the numbers of a person's children, bins by their middles: their distribution over people
    nearest    from a person (its columns, its count, the shares of its children's values) to the nearest real one

Beside a table stand real people, and the same children dealt to people at random: what is left of a person's
children in a flat table of children, which does not know whose they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import UsageError
from parties.data.linked.rows import CodedTables
from runner.review.evaluation.figure import Figure
from runner.review.evaluation.judge import (
    SEED,
    Draw,
    Evaluation,
    Table,
    figure_of,
    judge,
)
from runner.review.evaluation.linked_words import lines
from runner.review.evaluation.prediction import Prediction, predicted, questions
from runner.study.declared.table import nearest
from synth.domain import Column, Domain
from synth.judgement.against_rows import PairBeside, beside
from synth.linked.folding import Children

if TYPE_CHECKING:
    from runner.report.files import Run
    from synth.linked.tables import ChildTable, LinkedTables

LAGS = (1, 2)
"""Steps from a child to another of the person."""
NEAR = 1000, 4000
"""People whose nearest real one is looked for, and real ones looked at, at most."""


@dataclass(frozen=True)
class Within:
    """A column of two children of a person, `lag` steps apart. likeness: in the real tables and in the
    synthetic ones."""

    column: str
    lag: int
    likeness: PairBeside
    distance: Figure


@dataclass(frozen=True)
class Sums:
    """Of a column over a person's children, 0 without any. mean, sd: over people, synthetic and real.
    distance: Kolmogorov-Smirnov's, 0 to 1."""

    column: str
    mean: tuple[float, float]
    sd: tuple[float, float]
    distance: Figure


@dataclass(frozen=True)
class ChildEvaluation:
    """One table of children. counts: how far the distributions of their numbers are apart; mean: of these,
    synthetic and real."""

    name: str
    counts: Figure
    mean: tuple[float, float]
    rows: Evaluation
    within: Sequence[Within]
    sums: Sequence[Sums]


@dataclass(frozen=True)
class LinkedEvaluation:
    """prediction: of a column of people, from their counts and their children's most frequent values; None if
    not asked. beneath: of each table of children whose rows have rows of their own, the same with these
    children as people."""

    parent: str
    people: Evaluation
    children: Sequence[ChildEvaluation]
    nearest: Figure
    label: str | None
    prediction: Prediction | None
    beneath: Sequence[LinkedEvaluation] = ()

    def __str__(self) -> str:
        return "\n".join(lines(self))


@dataclass(frozen=True)
class _Compared:
    """known, fresh: real people that a run may have seen, and those compared with. dealt: synthetic, with
    children at random."""

    synthetic: CodedTables
    dealt: CodedTables
    real: CodedTables
    known: CodedTables
    fresh: CodedTables


def judge_linked(
    run: Run,
    linked: LinkedTables,
    synthetic: CodedTables,
    real: CodedTables,
    held_out: CodedTables | None = None,
    label: str | None = None,
) -> LinkedEvaluation:
    """Judge a run's linked tables by real ones. label: of the people, or TABLE_COLUMN of children. Raises
    `UsageError`."""
    if min(len(synthetic.people), len(real.people)) < 4:
        raise UsageError("An evaluation needs at least four synthetic and four real people.")
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(real.people))
    half = len(order) // 2
    known = real.of_people(order[:half]) if held_out is None else real
    fresh = real.of_people(order[half:]) if held_out is None else held_out
    dealt = CodedTables(
        synthetic.people,
        {name: replace(own, codes=rng.permutation(own.codes)) for name, own in synthetic.children.items()},
    )
    both = _Compared(synthetic, dealt, real, known, fresh)
    domain = _with_counts(linked)
    counted = [_counted(tables, linked) for tables in (synthetic, real)]
    test = None if held_out is None else _counted(held_out, linked)
    people = judge(replace(run, domain=domain, codes=counted[0].astype(np.int32)), counted[1], test)
    children = [_child(run, linked, child, both, held_out, label, rng) for child in linked.children]
    told = label in linked.people
    if label is not None and not told and all(one.rows.prediction is None for one in children):
        names = [child.first(name) for child in linked.children for name in child.domain.names]
        names = [*linked.people.names, *names]
        raise UsageError(
            f"--label {label}: the run has no such column{nearest(label, names)}; its columns are {', '.join(names)}."
        )
    prediction = _from_children(linked, both, str(label)) if told else None
    beneath = [
        judge_linked(
            run,
            own,
            synthetic.beneath[own.parent],
            real.beneath[own.parent],
            None if held_out is None else held_out.beneath[own.parent],
        )
        for own in (child.beneath for child in linked.children)
        if own is not None
    ]
    return LinkedEvaluation(
        linked.parent, people, children, _nearest(linked, both, rng), label, prediction, beneath
    )


def _with_counts(linked: LinkedTables) -> Domain:
    counts = {child.count: child.unfolded[child.count] for child in linked.children}
    return Domain((*linked.people.names, *counts), (*linked.people.columns, *counts.values()))


def _counted(tables: CodedTables, linked: LinkedTables) -> Table:
    columns = [tables.people]
    for child in linked.children:
        column: Any = child.unfolded[child.count]
        codes = np.array([column.bin_of(count) for count in range(child.max_rows + 1)])
        columns.append(codes[tables.counts(child.name)][:, None])
    return np.hstack(columns)


def _child(
    run: Run, linked: LinkedTables, child: ChildTable, both: _Compared, held_out: CodedTables | None,
    label: str | None, rng: np.random.Generator,
) -> ChildEvaluation:  # fmt: skip
    synthetic, real, fresh = (each.children[child.name] for each in (both.synthetic, both.real, both.fresh))
    if min(len(one.person) for one in (synthetic, real, fresh)) < 2:
        raise UsageError(f"An evaluation needs at least two rows of {child.name} in each table.")
    domain = Domain(
        (*linked.people.names, *(child.first(name) for name in child.domain.names)),
        (*linked.people.columns, *child.domain.columns),
    )
    rows = judge(
        replace(run, domain=domain, codes=_joined(both.synthetic, child.name).astype(np.int32)),
        _joined(both.real, child.name),
        None if held_out is None else _joined(held_out, child.name),
        label if label in domain and label not in linked.people else None,
        real.person,
    )
    own = [each.counts(child.name) for each in (both.synthetic, both.known, both.fresh)]
    many = Domain((child.count,), (child.unfolded[child.count],))
    codes = [_counted(each, linked) for each in (both.synthetic, both.known, both.fresh)]
    place = len(linked.people) + linked.children.index(child)
    alone = [table[:, place : place + 1] for table in codes]
    counts = figure_of(many, many.names, [_cut(alone[0], alone[0], alone[1], alone[2], rng)], alone=True)
    truth = both.real.counts(child.name)
    return ChildEvaluation(
        child.name, counts, (float(own[0].mean()), float(truth.mean())), rows,
        _within(child, both, rng), _sums(child, both),
    )  # fmt: skip


def _joined(tables: CodedTables, name: str) -> Table:
    own = tables.children[name]
    return np.hstack([tables.people[own.person], own.codes])


def _cut(made: Table, apart: Table, known: Table, fresh: Table, rng: np.random.Generator) -> Draw:
    """As many rows of each table, at random."""
    rows = min(len(made), len(known))
    tables = [table[rng.permutation(len(table))[:rows]] for table in (made, apart, known)]
    return Draw(known, fresh, (tables[0], tables[1], tables[2]))


def _within(child: ChildTable, both: _Compared, rng: np.random.Generator) -> list[Within]:
    """Of unordered children, who stand at random, one step says all."""
    found = []
    names = child.domain.names
    columns = dict(zip(names, child.domain.columns, strict=True))
    domain = Domain((*names, *map(child.second, names)), (*columns.values(), *columns.values()))
    pairs = [(name, child.second(name)) for name in names]
    for lag in LAGS if child.order is not None else LAGS[:1]:
        made, dealt, real, known, fresh = (
            _pairs(each.children[child.name], lag)
            for each in (both.synthetic, both.dealt, both.real, both.known, both.fresh)
        )
        if min(map(len, (made, known, fresh))) < 2:
            continue
        draw = _cut(made, dealt, known, fresh, rng)
        alike = beside(real if both.known is not both.real else fresh, made, domain, pairs)
        found += [
            Within(name, lag, likeness, figure_of(domain, pair, [draw], alone=False))
            for name, pair, likeness in zip(names, pairs, alike, strict=True)
        ]
    return found


def _pairs(own: Children, lag: int) -> Table:
    """Two children of a person in a row."""
    same = own.person[lag:] == own.person[:-lag]
    return np.hstack([own.codes[lag:][same], own.codes[:-lag][same]])


def _sums(child: ChildTable, both: _Compared) -> list[Sums]:
    from scipy.stats import ks_2samp

    found = []
    for place, (name, column) in enumerate(zip(child.domain.names, child.domain.columns, strict=True)):
        if not column.quantity:
            continue
        middles = np.array([sum(column.span(code)) / 2 for code in range(column.size)])
        made, dealt, real, known, fresh = (
            _summed(each, child.name, middles, place)
            for each in (both.synthetic, both.dealt, both.real, both.known, both.fresh)
        )
        apart = [float(ks_2samp(each, fresh).statistic) for each in (made, dealt, known)]
        found.append(
            Sums(
                name,
                (float(made.mean()), float(real.mean())),
                (float(made.std()), float(real.std())),
                Figure(*apart),
            )
        )
    return found


def _summed(tables: CodedTables, name: str, middles: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    own = tables.children[name]
    return np.bincount(own.person, middles[own.codes[:, place]], len(tables.people)).astype(np.float64)


def _from_children(linked: LinkedTables, both: _Compared, label: str) -> Prediction:
    """How well a person's column is told from the rest of its row and what its children are like."""
    base = _with_counts(linked)
    more: dict[str, Column] = {}
    for child in linked.children:
        more |= {child.first(name): child.unfolded[child.first(name)] for name in child.domain.names}
    domain = Domain((*base.names, *more), (*base.columns, *more.values()))
    made, real, known, fresh = (
        np.hstack([_counted(each, linked), *(_most_frequent(each, child) for child in linked.children)])
        for each in (both.synthetic, both.real, both.known, both.fresh)
    )
    return predicted(domain, label, questions(domain, label, real), [(made, known, fresh)])


def _most_frequent(tables: CodedTables, child: ChildTable) -> Table:
    """Of each column, a person's most frequent code; the code of none where there is no child."""
    columns = []
    for place, name in enumerate(child.domain.names):
        times = _times(tables, child, place, child.unfolded[child.first(name)].size)
        columns.append(np.where(times.any(axis=1), times.argmax(axis=1), times.shape[1] - 1))
    return np.column_stack(columns)


def _times(tables: CodedTables, child: ChildTable, place: int, size: int) -> NDArray[np.int64]:
    """How often each code of a column is among a person's children, (people, size)."""
    own = tables.children[child.name]
    cells = own.person * size + own.codes[:, place]
    return np.bincount(cells, minlength=len(tables.people) * size).reshape(-1, size)


def _nearest(linked: LinkedTables, both: _Compared, rng: np.random.Generator) -> Figure:
    """Mean distance to the nearest person that a run may have seen: the mean over columns of total variation."""
    from scipy.spatial.distance import cdist

    def some(tables: CodedTables, most: int) -> NDArray[np.float64]:
        people = tables.of_people(rng.permutation(len(tables.people))[:most])
        return _features(linked, people)

    known = some(both.known, NEAR[1])
    found = [
        float(cdist(some(each, NEAR[0]), known, "cityblock").min(axis=1).mean())
        for each in (both.synthetic, both.dealt, both.fresh)
    ]
    return Figure(*found)


def _features(linked: LinkedTables, tables: CodedTables) -> NDArray[np.float64]:
    """Of each person the shares of each column's codes, over twice the number of columns."""
    domain, codes = _with_counts(linked), _counted(tables, linked)
    parts = [np.eye(size)[codes[:, place]] for place, size in enumerate(domain.sizes.values())]
    for child in linked.children:
        for place, column in enumerate(child.domain.columns):
            times = _times(tables, child, place, column.size)
            parts.append(times / np.maximum(times.sum(axis=1, keepdims=True), 1))
    return np.hstack(parts) / (2 * len(parts))
