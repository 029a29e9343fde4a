"""The picture of a column's resolutions: its synthetic rows above, and below them a strip for each number of
bins asked for.

An algorithm that asks marginals over bins (`synth.algorithms.mosaic`) is hard to follow from names and
numbers; where the bins lie, and how often each resolution was worth its price, is seen at once. Values stand
in the order in which bins cut them: by size where they have one, else from the most frequent bin on.
"""
# ruff: noqa: RUF001 - the multiplication sign is meant

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from runner.report.agreement import synthetic_counts
from runner.report.drawings.svg import drawing, label, path, tag, ticks
from runner.report.number_format import percent, plain
from synth.domain import Column

if TYPE_CHECKING:
    import numpy as np
    from markupsafe import Markup
    from numpy.typing import NDArray

    from runner.report.files import Run

WIDTH, LEFT, RIGHT = 320.0, 26.0, 290.0
HILL, ROW, GAP = 52.0, 18.0, 0.8
MAX_NAMED, MAX_PARTS, MAX_STEPS, MAX_LABELS = 5, 100, 160, 4


@dataclass(frozen=True)
class Resolution:
    """A resolution of a column. bins: of every value; size: their number. times: of how many marginals it was
    part."""

    size: int
    bins: tuple[int, ...]
    times: int


def resolutions(run: Run) -> dict[str, list[Resolution]]:
    """Of each column that was measured over bins, in domain order: from coarse to fine, its own values last
    if they were part of a marginal of several columns."""
    found: dict[str, dict[tuple[int, ...], int]] = {}
    for measured in run.measurements:
        for column in measured.columns:
            if column in measured.bins or len(measured.clique) > 1:
                bins = measured.bins.get(column, tuple(range(run.domain.sizes[column])))
                times = found.setdefault(column, {})
                times[bins] = times.get(bins, 0) + 1
    return {
        name: sorted(
            (Resolution(max(bins) + 1, bins, n) for bins, n in found[name].items()), key=lambda a: a.size
        )
        for name in run.domain.names
        if any(max(bins) + 1 < len(bins) for bins in found.get(name, ()))
    }


def strips(run: Run, name: str, found: Sequence[Resolution]) -> Markup:
    """The drawing of one column. found: as `resolutions` says."""
    column, finest = run.domain[name], max((a for a in found if a.size < len(a.bins)), key=lambda a: a.size)
    order = sorted(range(column.size), key=lambda code: (finest.bins[code], code))
    shares = (synthetic_counts(run, (name,)) / max(len(run.codes), 1))[order]
    bottom, step = 4 + HILL, (RIGHT - LEFT) / column.size
    marks = [tag("path", d=_hill(shares, bottom), class_="synthetic area")]
    for row, one in enumerate(found):
        y = bottom + 6 + ROW * row
        marks.append(label(LEFT - 6, y + 11, str(one.size), class_="figure", anchor="end"))
        parts = _parts([one.bins[code] for code in order])
        heaviest = max(max(float(shares[start:stop].sum()) for start, stop in parts), 1e-9)
        for start, stop in parts if len(parts) <= MAX_PARTS else [(0, column.size)]:
            share = float(shares[start:stop].sum())
            marks.append(
                tag(
                    "rect",
                    tag(
                        "title",
                        f"{_in_words(column, order[start:stop])}: {percent(share, 1)} of the synthetic rows",
                    ),
                    x=LEFT + step * start,
                    y=y,
                    width=max(step * (stop - start) - GAP, 0.4),
                    height=ROW - 4,
                    class_="cell",
                    fill_opacity=0.12 + 0.7 * min(1.0, share / heaviest),
                )
            )
        marks.append(label(WIDTH - 2, y + 11, f"×\u2009{one.times}", class_="figure", anchor="end"))
    bottom += 6 + ROW * len(found)
    for text, place in _ticks(column):
        x = LEFT + step * place
        marks.append(tag("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis"))
        marks.append(label(min(x, RIGHT), bottom + 15, text, class_="figure", anchor="middle"))
    described = "; ".join(f"{one.size} in {one.times} marginals" for one in found)
    return drawing(
        WIDTH, bottom + 20, marks, title=f"{name}: numbers of bins asked for", description=described
    )


def _hill(shares: NDArray[np.float64], bottom: float) -> str:
    """The outline of the rows over all values; neighbours are averaged where there are many."""
    per = -(-len(shares) // MAX_STEPS)
    heights = [float(shares[at : at + per].mean()) for at in range(0, len(shares), per)]
    most, width = max(*heights, 1e-9), (RIGHT - LEFT) / len(shares)
    corners = [(LEFT, bottom)]
    for number, height in enumerate(heights):
        y = bottom - HILL * height / most
        corners += [
            (LEFT + width * per * number, y),
            (LEFT + width * min(per * (number + 1), len(shares)), y),
        ]
    return path([*corners, (RIGHT, bottom)], close=True)


def _parts(bins: Sequence[int]) -> list[tuple[int, int]]:
    """Stretches of equal bins."""
    edges = [0, *(i for i in range(1, len(bins)) if bins[i] != bins[i - 1]), len(bins)]
    return list(pairwise(edges))


def _in_words(column: Column, codes: Sequence[int]) -> str:
    """The values of a bin in words."""
    if not column.ordered or len(codes) == 1:
        named = ", ".join(column.label(code) for code in codes[:MAX_NAMED])
        return named + (f" and {len(codes) - MAX_NAMED} more" if len(codes) > MAX_NAMED else "")
    return f"{column.label(codes[0])} … {column.label(codes[-1])}"


def _ticks(column: Column) -> list[tuple[str, float]]:
    """(text, place in values from the left); none where values have no order."""
    if column.binned and (column.scale != "linear" or column.zero):
        places = range(0, column.size - column.missing, -(-column.size // MAX_LABELS))
        bins = [(place, column.bin(place)) for place in places]
        return [
            ("0" if at is None else column.written(column.edges()[at]), float(place)) for place, at in bins
        ]
    if column.binned:
        span = column.high - column.low
        return [
            (plain(value, 6), column.bins * (value - column.low) / span)
            for value in ticks(column.low, column.high, 4)
        ]
    if column.textual:
        return []
    return [(plain(value, 6), value + 0.5) for value in ticks(0, column.size - 1, 4) if value == round(value)]
