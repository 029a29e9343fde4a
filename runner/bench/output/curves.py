"""Curves of cost on two logarithmic axes, as SVG in the report's style (`runner.report.drawings.svg`).

A series is a line with a dot per measurement, whiskers from the least to the most of its repetitions, and its
name at its end; figures are tooltips. Zero (a delay of 0 ms) has no logarithm: it stands alone at the left
edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from runner.report.drawings.svg import drawing, group, label, path, tag

WIDTH, HEIGHT = 420.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 300.0, 12.0, 210.0
HUES = 6


@dataclass(frozen=True)
class Dot:
    """One measurement: where, how much, and the least and most of its repetitions (None: no whisker)."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """Measurements that differ in x only. hue: 0..5."""

    name: str
    dots: tuple[Dot, ...]
    hue: int


class _Axis:
    """A logarithmic axis over the positive values, with a place for zero before them if it occurs."""

    def __init__(self, values: Sequence[float], low: float, high: float) -> None:
        positive = [value for value in values if value > 0]
        self._zero = len(positive) < len(values)
        self._low = math.log10(min(positive)) if positive else 0.0
        self._high = math.log10(max(positive)) if positive else 1.0
        if self._high - self._low < 0.3:
            middle = (self._high + self._low) / 2
            self._low, self._high = middle - 0.15, middle + 0.15
        self._start, self._edge = low, low + (high - low) * 0.12 if self._zero else low
        self._end = high

    def __call__(self, value: float) -> float:
        if value <= 0:
            return self._start
        return self._edge + (self._end - self._edge) * (math.log10(value) - self._low) / (
            self._high - self._low
        )

    def ticks(self) -> list[float]:
        """At most seven round values, three if possible, and zero if it has a place."""
        for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
            found = [
                step * 10.0**power
                for power in range(math.floor(self._low), math.ceil(self._high) + 1)
                for step in steps
                if self._low - 1e-9 <= math.log10(step * 10.0**power) <= self._high + 1e-9
            ]
            if len(found) >= 3:
                break
        every = max(1, -(-len(found) // 7))
        return ([0.0] if self._zero else []) + found[::every]


def chart(
    title: str,
    across: str,
    series: Sequence[Series],
    say_x: Callable[[float], str],
    say_y: Callable[[float], str],
) -> Markup:
    """One drawing; `across` names the horizontal axis."""
    dots = [dot for one in series for dot in one.dots]
    x_axis = _Axis([dot.x for dot in dots], _LEFT, _RIGHT)
    y_axis = _Axis(
        [value for dot in dots for value in (dot.y, dot.low or dot.y, dot.high or dot.y)], _BOTTOM, _TOP
    )
    marks = []
    for value in y_axis.ticks():
        marks.append(tag("line", x1=_LEFT, x2=_RIGHT, y1=y_axis(value), y2=y_axis(value), class_="grid"))
        marks.append(label(_LEFT - 6, y_axis(value) + 3.5, say_y(value), class_="figure", anchor="end"))
    marks.append(tag("line", x1=_LEFT, x2=_RIGHT, y1=_BOTTOM, y2=_BOTTOM, class_="axis"))
    for value in x_axis.ticks():
        marks.append(
            tag("line", x1=x_axis(value), x2=x_axis(value), y1=_BOTTOM, y2=_BOTTOM + 4, class_="axis")
        )
        marks.append(label(x_axis(value), _BOTTOM + 16, say_x(value), class_="figure", anchor="middle"))
    marks.append(label((_LEFT + _RIGHT) / 2, _BOTTOM + 33, across, anchor="middle"))
    ends = _spaced([(y_axis(one.dots[-1].y), number) for number, one in enumerate(series)])
    for number, one in enumerate(series):
        marks.append(_line(one, x_axis, y_axis, say_x, say_y))
        marks.append(label(_RIGHT + 8, ends[number] + 3.5, one.name, class_="label", most=22))
    said = "; ".join(
        f"{one.name}: {', '.join(f'{say_x(dot.x)} {say_y(dot.y)}' for dot in one.dots)}" for one in series
    )
    return drawing(WIDTH, HEIGHT, marks, title=title, description=said, class_="curve")


def _line(
    one: Series, x_axis: _Axis, y_axis: _Axis, say_x: Callable[[float], str], say_y: Callable[[float], str]
) -> Markup:
    marks = []
    joined = [dot for dot in one.dots if dot.x > 0]
    if len(joined) > 1:
        marks.append(tag("path", d=path((x_axis(dot.x), y_axis(dot.y)) for dot in joined), class_="line"))
    for dot in one.dots:
        if dot.low is not None and dot.high is not None and dot.high > dot.low:
            marks.append(
                tag(
                    "line",
                    x1=x_axis(dot.x),
                    x2=x_axis(dot.x),
                    y1=y_axis(dot.low),
                    y2=y_axis(dot.high),
                    class_="reach",
                )
            )
        tip = tag("title", f"{one.name}: {say_y(dot.y)} at {say_x(dot.x)}")
        marks.append(tag("circle", tip, cx=x_axis(dot.x), cy=y_axis(dot.y), r=3.4, class_="point"))
    return group(marks, class_=f"series hue{one.hue}")


def _spaced(heights: Sequence[tuple[float, int]], least: float = 13.0) -> dict[int, float]:
    """Heights of the names at the ends of the lines, moved apart so that they can be read; by series."""
    placed: dict[int, float] = {}
    last = -math.inf
    for y, number in sorted(heights):
        last = max(y, last + least)
        placed[number] = last
    over = max(0.0, last - _BOTTOM)
    return {number: y - over for number, y in placed.items()}
