"""The small chart of one column, and what is said below it: synthetic rows beside a noisy measurement, or
beside real rows."""
# ruff: noqa: RUF001 - the multiplication sign is meant

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from runner.report import number_format
from runner.report.agreement import OneWay, one_way
from runner.report.drawings import charts
from runner.report.files import Run
from runner.report.words.training_text import training
from synth.domain import Column

MAX_BARS = 12
MAX_GROUPS = 160
MAX_DOTS = 56
LONG_LABEL = 12
"""Letters from which on a text takes the place of two."""
MAX_LABELS = 4
"""Of an axis whose marks are texts."""


def measured(run: Run, one: OneWay) -> dict[str, Any]:
    """A small chart of one column with the sentence below it."""
    column = run.domain[one.name]
    dots = None
    if one.measured is not None:
        dots = charts.Dots(one.measured.tolist(), [one.spread] * column.size, "measured", "measured")
    chart, note = _chart(
        f"{one.name}: synthetic rows and noisy measurement", column, one.synthetic.tolist(), dots
    )
    if one.source is None:
        maker = "model filled this column in" if training(run.facts) is None else "generator made this column"
        note.append(f"Not measured: the {maker}.")
    elif len(one.source) > 1:
        note.append(f"Measured as part of {' × '.join(one.source)}.")
    count = column.size - column.missing - column.zero
    also = [what for what, there in (("0", column.zero), ("missing", column.missing)) if there]
    kind = " or ".join([f"{number_format.whole(count)} {column.unit}{'s' * (count != 1)}", *also])
    return {"name": one.name, "kind": kind, "chart": chart, "notes": note}


def real_and_synthetic(run: Run, counts: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """A chart of each column with its real counts, one per code: name, chart, notes."""
    return with_real(run, one_way(run), counts)


def with_real(
    run: Run, columns: Sequence[OneWay], counts: Mapping[str, Sequence[int]]
) -> list[dict[str, Any]]:
    """See `real_and_synthetic`. columns: of `one_way`."""
    drawn = []
    for one in columns:
        if one.name in counts:
            real = np.asarray(counts[one.name], dtype=np.float64)
            shares = real / max(real.sum(), 1.0)
            dots = charts.Dots(shares.tolist(), [0.0] * len(shares), "of the real rows", "real")
            chart, notes = _chart(
                f"{one.name}: synthetic and real rows", run.domain[one.name], one.synthetic.tolist(), dots
            )
            drawn.append({"name": one.name, "chart": chart, "notes": notes})
    return drawn


def _chart(
    title: str, column: Column, shares: list[float], dots: charts.Dots | None
) -> tuple[Markup, list[str]]:
    """Bars for few values and for the largest of many categories, a stepped area for numbers and long codes;
    and notes."""
    count = column.size
    notes: list[str] = []
    if column.textual or (not column.binned and count <= MAX_BARS):
        ranked = (
            sorted(range(count), key=lambda code: (-shares[code], code))
            if count > MAX_BARS
            else list(range(count))
        )
        groups, rest = [[code] for code in ranked[:MAX_BARS]], ranked[MAX_BARS:]
        if rest:
            notes.append(
                _amount(f"{number_format.spelled(len(rest))} more values".capitalize(), shares, dots, rest)
            )
        names = [column.label(code) for code in ranked[:MAX_BARS]]
        return charts.bars(title, names, _sums(shares, groups), _grouped(dots, groups)), notes
    if column.missing:
        count -= 1
        notes.append(_amount("Missing", shares, dots, [count]))
    codes, axis, edges = list(range(count)), None, list(column.edges())
    if column.binned:
        if column.zero:
            notes.append(_amount("Exactly 0", shares, dots, [column.zero_code]))
            codes.remove(column.zero_code)
            count -= 1
        if not column.even:
            most = MAX_LABELS if len(column.written(edges[0])) <= LONG_LABEL else MAX_LABELS // 2
            axis = [(float(at), column.written(edges[at])) for at in range(0, count, -(-count // most))]
            edges = [float(at) for at in range(count + 1)]
    per = -(-count // MAX_GROUPS)
    groups = [codes[at : at + per] for at in range(0, count, per)]
    borders = [edges[at] for at in range(0, count, per)] + [edges[count]]
    if per > 1:
        notes.append(f"Drawn with {per} neighbouring values summed.")
    return charts.steps(
        title,
        borders,
        _sums(shares, groups),
        _grouped(dots, groups),
        dotted=len(groups) <= MAX_DOTS,
        axis=axis,
    ), notes


def _amount(what: str, shares: Sequence[float], dots: charts.Dots | None, codes: Sequence[int]) -> str:
    """Shares that stand below the chart."""
    said = f"{what}: {number_format.percent(_sums(shares, [codes])[0])} of the synthetic rows"
    return said + (f", {number_format.percent(_sums(dots.shares, [codes])[0])} {dots.name}." if dots else ".")


def _sums(shares: Sequence[float], groups: Sequence[Sequence[int]]) -> list[float]:
    return [math.fsum(shares[code] for code in group) for group in groups]


def _grouped(dots: charts.Dots | None, groups: Sequence[Sequence[int]]) -> charts.Dots | None:
    if dots is None:
        return None
    spread = [math.sqrt(math.fsum(dots.spread[code] ** 2 for code in group)) for group in groups]
    return charts.Dots(_sums(dots.shares, groups), spread, dots.name, dots.class_)
