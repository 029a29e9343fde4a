"""The report's charts: shares of one column, associations of all pairs, the budget, phases over time, bars in
table cells.

Each function returns one SVG (`svg.py`) whose colours come from CSS classes: `synthetic` for the released
rows, `measured` for noisy measurements, `real` for what only a demo knows. Marks carry their figures as
tooltips; nothing is told by colour alone (rows are bars or areas, measurements are dots with whiskers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from runner.report.drawings.svg import drawing, group, label, path, row_name, tag, ticks
from runner.report.files import Moment
from runner.report.number_format import duration, percent, plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH, LETTER, DIGIT = 320.0, 6.6, 6.7
"""Of a picture, a letter of a name and a digit of a figure, in units."""
MAX_LETTERS, MAX_NAME = 21, 24
"""Of a line's name before it takes two lines, and of a name in the table of all pairs."""
NARROW, ROW = 370.0, 15.0
"""Of a heat map on a phone: its width, and the height of a line."""
MAX_WRITTEN = 16  # columns of a heat map whose cells have room for their figures


@dataclass(frozen=True)
class Dots:
    """Shares drawn as dots over the bars; `spread` is their standard error (0: exact), `name` and `class_`
    say what they are."""

    shares: Sequence[float]
    spread: Sequence[float]
    name: str
    class_: str


def _dot(x: float, y: float, low: float, high: float, upright: bool, class_: str, tip: str) -> Markup:
    """A dot with its whisker of two standard errors along the value axis, given in page coordinates."""
    whisker = (
        tag(
            "line",
            x1=x if upright else low,
            x2=x if upright else high,
            y1=low if upright else y,
            y2=high if upright else y,
            class_=f"whisker {class_}",
        )
        if high != low
        else Markup("")
    )
    return group((whisker, tag("circle", tag("title", tip), cx=x, cy=y, r=3.2, class_=f"dot {class_}")))


def bars(title: str, labels: Sequence[str], shares: Sequence[float], dots: Dots | None) -> Markup:
    """One horizontal bar per value: the synthetic share, and beside its end the measured one."""
    letters = min(MAX_LETTERS, max(map(len, labels), default=0))
    left, right, pitch = max(60.0, 16 + LETTER * letters), WIDTH - 46.0, 21.0
    tops = (
        [share + 2 * spread for share, spread in zip(dots.shares, dots.spread, strict=True)] if dots else []
    )
    most = max([*shares, *tops, 1e-9])
    reach = (right - left) / most
    marks = []
    for i, (name, share) in enumerate(zip(labels, shares, strict=True)):
        y = 4 + pitch * i
        marks.append(row_name(left - 8, y + 8.5, name, MAX_LETTERS))
        marks.append(
            tag(
                "rect",
                tag("title", f"{name}: {percent(share, 2)} of the synthetic rows"),
                x=left,
                y=y + 2,
                width=max(0.0, share * reach),
                height=pitch - 7,
                rx=1.5,
                class_="synthetic",
            )
        )
        if dots:
            low, value, high = (
                min(right, left + reach * max(0.0, dots.shares[i] + k * dots.spread[i])) for k in (-2, 0, 2)
            )
            marks.append(
                _dot(
                    value,
                    y + pitch / 2 - 1.5,
                    low,
                    high,
                    False,
                    dots.class_,
                    f"{name}: {percent(dots.shares[i], 2)} {dots.name}",
                )
            )
        marks.append(label(WIDTH - 2, y + 12.5, percent(share, 1), class_="figure", anchor="end"))
    base = tag("line", x1=left, x2=left, y1=2, y2=4 + pitch * len(labels), class_="axis")
    return drawing(WIDTH, 8 + pitch * len(labels), [*marks, base], title=title)


def steps(
    title: str,
    edges: Sequence[float],
    shares: Sequence[float],
    dots: Dots | None,
    *,
    dotted: bool,
    axis: Sequence[tuple[float, str]] | None = None,
) -> Markup:
    """A histogram over a numeric axis as one stepped area; measurements as dots, or as a thin line when there
    are many.

    axis: places and their texts, where the edges are no numbers that people read.
    """
    right, top, bottom, height = WIDTH - 6.0, 10.0, 132.0, 156.0
    tops = (
        [share + 2 * spread for share, spread in zip(dots.shares, dots.spread, strict=True)] if dots else []
    )
    most = max([*shares, *tops, 1e-9])
    levels = ticks(0, most, 3)
    left = max(34.0, 6 + DIGIT * max(len(percent(share, 1)) for share in levels))
    span = edges[-1] - edges[0] or 1.0

    def across(value: float) -> float:
        return left + (right - left) * (value - edges[0]) / span

    def up(share: float) -> float:
        return bottom - (bottom - top) * min(max(share, 0.0), most) / most

    marks = []
    for share in levels:
        marks.append(tag("line", x1=left, x2=right, y1=up(share), y2=up(share), class_="grid"))
        marks.append(label(left - 6, up(share) + 3.5, percent(share, 1), class_="figure", anchor="end"))
    corners = [(across(edges[0]), bottom)]
    for i, share in enumerate(shares):
        corners += [(across(edges[i]), up(share)), (across(edges[i + 1]), up(share))]
    corners.append((across(edges[-1]), bottom))
    marks.append(tag("path", d=path(corners, close=True), class_="synthetic area"))
    if dots:
        if dotted:
            for i, share in enumerate(dots.shares):
                x, y = across((edges[i] + edges[i + 1]) / 2), up(share)
                low, high = (up(dots.shares[i] + k * dots.spread[i]) for k in (-2, 2))
                span_text = "" if axis is not None else f"{plain(edges[i], 4)} to {plain(edges[i + 1], 4)}: "
                tip = f"{span_text}{percent(dots.shares[i], 2)} {dots.name}"
                marks.append(_dot(x, y, low, high, True, dots.class_, tip))
        else:
            outline = [
                (across(edge), up(share)) for i, share in enumerate(dots.shares) for edge in edges[i : i + 2]
            ]
            marks.append(tag("path", d=path(outline), class_=f"trace {dots.class_}"))
    marks.append(tag("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    shown = [(value, plain(value, 6)) for value in ticks(edges[0], edges[-1], 5)] if axis is None else axis
    written = 0.0  # where the last text ends
    for value, text in shown:
        marks.append(tag("line", x1=across(value), x2=across(value), y1=bottom, y2=bottom + 4, class_="axis"))
        long = DIGIT * len(text)
        begin = min(across(value) - long / 2, WIDTH - long)
        if begin > written + 4 or not written:
            marks.append(label(begin + long / 2, bottom + 16, text, class_="figure", anchor="middle"))
            written = begin + long
    return drawing(WIDTH, height, marks, title=title)


def heat_map(
    names: Sequence[str],
    strength: NDArray[np.float64],
    title: str = "Association of every two columns in the model",
    *,
    narrow: bool = False,
) -> Markup:
    """The lower triangle of a symmetric matrix in 0..1; each name stands on the diagonal, for its row and its
    column.

    narrow: for phones, with flat cells and without figures, so that names can be read there.
    """
    longest = min(MAX_NAME, max(map(len, names)))
    wide, high = 26.0, 26.0
    if narrow:
        wide, high = min(26.0, (NARROW - 8 - LETTER * longest) / len(names)), ROW
    gap = min(1.5, wide / 6)
    marks = []
    for i, row in enumerate(names):
        for j, column in enumerate(names[:i]):
            value = float(strength[i, j])
            tip = tag("title", f"{column} and {row}: {value:.2f}")
            marks.append(
                tag(
                    "rect",
                    tip,
                    x=j * wide,
                    y=i * high,
                    width=wide - gap,
                    height=high - gap,
                    rx=gap,
                    class_="cell",
                    fill_opacity=0.05 + 0.95 * value,
                )
            )
            if len(names) <= MAX_WRITTEN and not narrow:
                marks.append(
                    label(
                        (j + 0.5) * wide - 0.75,
                        (i + 0.62) * high - 0.75,
                        f"{value:.2f}".removeprefix("0"),
                        class_="figure strong" if value > 0.6 else "figure",
                        anchor="middle",
                    )
                )
        marks.append(label(i * wide + 3, i * high + (high - gap) / 2 + 4, row, most=MAX_NAME))
    pairs = [(float(strength[i, j]), names[j], names[i]) for i in range(len(names)) for j in range(i)]
    said = "; ".join(f"{one} and {two} {value:.2f}" for value, one, two in sorted(pairs, reverse=True)[:5])
    return drawing(
        NARROW if narrow else len(names) * wide + 7.2 * longest,
        len(names) * high,
        marks,
        title=title,
        description=f"Strongest: {said}." if said else "",
        class_=f"heat {'narrow' if narrow else 'wide'}",
        scale=None if narrow else 1.25,
    )


def budget(spends: Sequence[tuple[str, str, float]], cap: float) -> Markup:
    """One bar of the whole budget, a slice per event (class, tooltip, rho); what is left stays hollow."""
    width, height = 1000.0, 34.0
    cap = max(cap, sum(rho for _, _, rho in spends), 1e-300)
    marks, x = (
        [
            tag(
                "rect",
                tag("title", "not spent"),
                x=0.5,
                y=0.5,
                width=width - 1,
                height=height - 1,
                class_="unspent",
            )
        ],
        0.0,
    )
    for kind, tip, rho in spends:
        piece = width * rho / cap
        marks.append(
            tag(
                "rect",
                tag("title", tip),
                x=x,
                y=0,
                width=max(piece - (1.2 if piece > 4 else 0), 0.4),
                height=height,
                class_=kind,
            )
        )
        x += piece
    return drawing(
        width,
        height,
        marks,
        title="The privacy budget, one slice per release",
        class_="budget",
        stretched=True,
    )


def timeline(moments: Sequence[Moment], phases: Sequence[str], *, width: float, class_: str) -> Markup:
    """A lane per phase over the run's seconds: the stretch from its first to its last event, and a mark for
    each."""
    lane, left = 24.0, 70.0
    start = min(moment.t for moment in moments)
    span = max(moment.t for moment in moments) - start or 1.0
    reach = (width - left - 10) / span
    order = [*phases, *dict.fromkeys(moment.phase for moment in moments if moment.phase not in phases)]
    marks = []
    for value in ticks(0, span, width / 100):
        x = left + reach * value
        marks.append(tag("line", x1=x, x2=x, y1=2, y2=lane * len(order) + 4, class_="grid"))
        marks.append(
            label(
                x, lane * len(order) + 19, duration(value) if value else "0", class_="figure", anchor="middle"
            )
        )
    for i, phase in enumerate(order):
        y = lane * i + lane / 2 + 2
        marks.append(label(left - 12, y + 4, phase, anchor="end", most=12))
        places = sorted(
            {round(left + reach * (moment.t - start), 1) for moment in moments if moment.phase == phase}
        )
        if places:
            marks.append(
                tag(
                    "rect",
                    x=places[0],
                    y=y - 6,
                    width=max(places[-1] - places[0], 2),
                    height=12,
                    rx=2,
                    class_="stretch",
                )
            )
            strokes = "".join(f"M{x:g} {y - 6:g}v12" for x in places)
            marks.append(tag("path", d=strokes, class_="strokes"))
    return drawing(
        width, lane * len(order) + 26, marks, title="When each phase was at work", class_=f"timeline {class_}"
    )


def meter(value: float, most: float, mark: float | None, class_: str) -> Markup:
    """A bar for a table cell, with an upright mark for what to compare it with; the figures stand in the
    cells beside."""
    width, height = 100.0, 10.0
    pieces = [
        tag(
            "rect",
            x=0,
            y=1.5,
            width=width * min(value / most, 1.0) if most else 0.0,
            height=height - 3,
            class_=class_,
        )
    ]
    if mark is not None:
        at = width * min(mark / most, 1.0) if most else 0.0
        pieces.append(tag("rect", x=min(at, width - 1), y=0, width=1, height=height, class_="mark"))
    return tag(
        "svg",
        Markup("").join(pieces),
        viewBox=f"0 0 {width:g} {height:g}",
        preserveAspectRatio="none",
        class_="meter",
        aria_hidden="true",
    )
