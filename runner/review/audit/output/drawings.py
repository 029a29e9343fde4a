"""The plots of findings, as SVG in the report's style (`runner.report.drawings.svg`): two linear axes, a line
or a comb per curve."""

from __future__ import annotations

from markupsafe import Markup

from runner.bench.output.curves import HEIGHT, HUES, WIDTH
from runner.report.drawings.svg import drawing, group, label, path, tag, ticks
from runner.review.audit.check import Plot

_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 300.0, 28.0, 210.0


def draw_plot(plot: Plot) -> Markup:
    """One plot; every curve is named beside it and told apart by hue and dash."""
    points = [point for curve in plot.curves.values() for point in curve]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(0.0, *(y for _, y in points)), max(y for _, y in points)
    across, up = (right - left) or 1.0, (high - low) or 1.0

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x, y = point
        return _LEFT + (x - left) / across * (_RIGHT - _LEFT), _BOTTOM - (y - low) / up * (_BOTTOM - _TOP)

    marks = []
    for value in ticks(low, high, 4):
        _, y = place((left, value))
        marks.append(tag("line", x1=_LEFT, x2=_RIGHT, y1=y, y2=y, class_="grid"))
        marks.append(label(_LEFT - 6, y + 3.5, f"{value:g}", class_="figure", anchor="end"))
    marks.append(tag("line", x1=_LEFT, x2=_RIGHT, y1=_BOTTOM, y2=_BOTTOM, class_="axis"))
    for value in ticks(left, right, 5):
        x, _ = place((value, low))
        marks.append(label(x, _BOTTOM + 16, f"{value:g}", class_="figure", anchor="middle"))
    marks.append(label((_LEFT + _RIGHT) / 2, _BOTTOM + 33, plot.across, anchor="middle"))
    marks.append(label(0, 10, plot.up))
    for number, (name, curve) in enumerate(plot.curves.items()):
        dash = None if number == 0 else f"{2 + 3 * number} 3"
        line = tag(
            "path", tag("title", name), d=path(map(place, curve)), class_="line", stroke_dasharray=dash
        )
        y = _TOP + 16.0 * number + 8
        sample = tag(
            "line",
            x1=_RIGHT + 8,
            x2=_RIGHT + 24,
            y1=y - 3.5,
            y2=y - 3.5,
            class_="line",
            stroke_dasharray=dash,
        )
        named = label(_RIGHT + 28, y, name, class_="label", most=18)
        marks.append(group((line, sample, named), class_=f"series hue{number % HUES}"))
    said = f"{plot.up} against {plot.across}: {', '.join(plot.curves)}"
    return drawing(WIDTH, HEIGHT, marks, title=plot.title, description=said, class_="curve")
