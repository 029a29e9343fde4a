"""An evaluation of linked tables in words: a sentence a part, lines for a terminal, JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from runner.review.evaluation import words
from runner.review.evaluation.figure import Figure

if TYPE_CHECKING:
    from runner.review.evaluation.linked import ChildEvaluation, LinkedEvaluation, Sums, Within

MARGIN = 0.02
"""Of a distance, beside twice that of real people: what is farther is the table's doing."""
MEAN = 0.1
"""Of a mean of sums: how far it may be off, relative to it."""
STEPS = {1: "the next", 2: "the next but one"}


PEOPLE = "person", "people"
"""What a row of the parent's table is called, and several: where it is one of children itself, see
`_beneath`."""


def _beneath(found: LinkedEvaluation) -> list[tuple[LinkedEvaluation, tuple[str, str]]]:
    return [(one, (f"row of {one.parent}", f"rows of {one.parent}")) for one in found.beneath]


def verdict(found: LinkedEvaluation, called: tuple[str, str] = PEOPLE) -> list[str]:
    """What the figures come to: a sentence or two of each part."""
    one, several = called
    said = [f"{found.parent}: {' '.join(words.verdict(found.people))}"]
    for child in found.children:
        far = _far(child.counts)
        said.append(
            f"Numbers of {child.name} {'are not right' if far else 'are right'}: {child.mean[0]:.2f} a {one} where "
            f"{child.mean[1]:.2f} are real, distributions {child.counts.value:.3f} apart."
        )
        said.append(f"{child.name}, each with its {one}: {' '.join(words.verdict(child.rows))}")
        said.append(_within(child, one))
        said += _sums(child, one)
    ours, real = found.nearest.value, found.nearest.real
    said.append(
        f"Synthetic {several} are {'closer to' if ours < 0.9 * real else 'no closer to'} real ones than real {several} are to "
        f"each other ({ours:.3f}, {real:.3f})" + (": look for copies." if ours < 0.9 * real else ".")
    )
    if found.prediction is not None:
        said.append(
            f"A model of {found.label}, by a person's row and what its children are like, reaches {found.prediction.value:.2f} "
            f"on real people if trained on the tables, {found.prediction.real:.2f} if trained on real ones."
        )
    return [*said, *(line for own, names in _beneath(found) for line in verdict(own, names))]


def _far(figure: Figure) -> bool:
    return figure.value > 2 * figure.real + MARGIN


def _within(child: ChildEvaluation, one: str) -> str:
    alike = [pair for pair in child.within if pair.lag == 1 and pair.likeness.carried is not None]
    if not alike:
        return f"{child.name} of one {one} are no more alike than any: there is no likeness to keep."
    lost = [pair.column for pair in alike if not pair.likeness.kept]
    named = f"; lost: {', '.join(lost)}" if lost else ""
    return (
        f"Likeness of {child.name} of one {one} kept: {len(alike) - len(lost)} of {len(alike)} columns whose value goes with "
        f"the next one's{named}."
    )


def _sums(child: ChildEvaluation, one: str) -> list[str]:
    return [
        f"Sums of {child.name}' {own.column} over a {one} {'are right' if _right(own) else 'are not right'}: mean "
        f"{own.mean[0]:.4g} where {own.mean[1]:.4g} is real, spread (sd) {own.sd[0]:.4g} where {own.sd[1]:.4g}."
        for own in child.sums
    ]


def _right(one: Sums) -> bool:
    return not _far(one.distance) and abs(one.mean[0] - one.mean[1]) <= MEAN * abs(one.mean[1])


def _rows(found: LinkedEvaluation, called: tuple[str, str] = PEOPLE) -> list[tuple[str, Figure, str]]:
    """The figures: what, the figure (its `apart` is of children dealt at random), which are better."""
    rows = [(f"{found.parent}: {what}", figure, good) for what, figure, good in words.rows_of(found.people)]
    for child in found.children:
        rows.append((f"{child.name} a {called[0]}: distance of distributions", child.counts, "lower"))
        rows += [
            (f"{child.name} with {called[1]}: {what}", figure, good)
            for what, figure, good in words.rows_of(child.rows)
        ]
        rows += [(_named(child, one), one.distance, "lower") for one in child.within]
        rows += [
            (f"{child.name}: sum of {one.column} a {called[0]} (KS)", one.distance, "lower")
            for one in child.sums
        ]
    rows.append((f"distance to the nearest real {called[0]}", found.nearest, "as real rows"))
    if found.prediction is not None:
        rows.append((f"prediction of {found.label} by children", found.prediction, "higher"))
    return [*rows, *(row for own, names in _beneath(found) for row in _rows(own, names))]


def _named(child: ChildEvaluation, one: Within) -> str:
    return f"{child.name}: {one.column} and {STEPS[one.lag]}"


def lines(found: LinkedEvaluation) -> list[str]:
    """For a terminal."""
    likeness = [
        f"{_named(child, one)} {one.likeness.real:.2f} / {one.likeness.table:.2f}"
        for each in (found, *found.beneath)
        for child in each.children
        for one in child.within
    ]
    return [
        words.NOT_PRIVATE,
        f"{found.people.rows[0]:,} synthetic people against {found.people.rows[1]:,} real ones.",
        "",
        *verdict(found),
        "",
        *words.table(_rows(found)),
        "",
        f"Likeness, Cramer's V of the real rows / of the tables: {'; '.join(likeness)}.",
        "Columns apart: without any relation; within a person, sums and nearest: the same children dealt to people at random, as "
        "a flat table has them.",
        *([] if found.prediction is None else words.asked(str(found.label), found.prediction)),
        words.FAR,
    ]


def to_json(found: LinkedEvaluation) -> str:
    """One object."""

    def child(of: ChildEvaluation) -> dict[str, Any]:
        return {
            "counts": {**words.figure(of.counts), "mean": list(of.mean)},
            "rows": words.facts(of.rows),
            "within": [{**asdict(one), "distance": words.figure(one.distance)} for one in of.within],
            "sums": [{**asdict(one), "distance": words.figure(one.distance)} for one in of.sums],
        }

    def facts(of: LinkedEvaluation) -> dict[str, Any]:
        return {
            "people": words.facts(of.people),
            "tables": {one.name: child(one) for one in of.children},
            "nearest": words.figure(of.nearest),
        }

    label = None if found.prediction is None else words.prediction_facts(found.label, found.prediction)
    return json.dumps(
        {
            "note": words.NOT_PRIVATE,
            "verdict": verdict(found),
            **facts(found),
            **({} if label is None else {"prediction": label}),
            **({"beneath": {one.parent: facts(one) for one in found.beneath}} if found.beneath else {}),
        },
        indent=1,
    )
