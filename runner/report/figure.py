"""The report's drawings as a matplotlib figure, for programs and papers: the same marks, in the light page's
colours.

Drawings consist of little (`drawings.svg`): rectangles, circles, lines, paths of straight strokes, texts. Each is
drawn where it is, as the rules of `report.css` say of its classes. matplotlib is an optional package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from mpc_protocols.errors import UsageError
from mpc_protocols.process.installation import pip_install
from runner.report.drawings.pictures import FOOT, GAP, HALF, HEAD, WIDTH, Part, height_of
from runner.report.plain_page import source_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI: Final = 100
POINT: Final = 72 / DPI
"""Points a pixel."""
MARGIN: Final = 12
KEY: Final = "key"
"""The class of a swatch of a legend."""
ANCHORS: Final = {"middle": "center", "end": "right"}
MOVE, LINE, CLOSE = 1, 2, 79
"""As matplotlib numbers strokes."""
Style = Mapping[str, str]


def figure(parts: Sequence[Part]) -> Figure:
    """These drawings below one another, `WIDTH` pixels wide at 100 dots an inch. Raises `UsageError` without
    matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            "A figure is drawn by matplotlib, which is not installed; "
            f"{pip_install(['plot']) or 'python -m pip install matplotlib'}, "
            "or save the page: picture.save('run.html')."
        ) from None
    size = (WIDTH + 2 * MARGIN, height_of(parts))
    drawn = Figure(figsize=(size[0] / DPI, size[1] / DPI), dpi=DPI, facecolor=_colour("var(--paper)"))

    def write(x: float, y: float, text: str, points: float, **how: Any) -> None:
        drawn.text(x / size[0], 1 - y / size[1], text, size=points * POINT, parse_math=False, **how)

    def keys(x: float, y: float, legend: Sequence[tuple[str, str]]) -> None:
        for name, text in legend:
            write(x, y, "■", 11, color=_style(tuple(name.split()), KEY).get("background", "#888"))
            write(x + 13, y, text, 10.5)
            x += 26 + 6.5 * len(text)

    end = float(MARGIN)
    for part in parts:
        top, end = end, end + part.height
        write(MARGIN, top + HEAD / 2, part.title, 15, weight="bold")
        keys(MARGIN, top + HEAD + 8, part.legend)
        top += 2 * HEAD if part.legend else HEAD
        for at, (of, high) in enumerate(zip(part.figures, part.heights, strict=True)):
            column = at % 2 if part.several else 0
            across, left, y = HALF if part.several else WIDTH, MARGIN + column * (WIDTH - HALF), top
            if of.title:
                write(left, y + HEAD / 2, f"{of.title}   {of.note}", 11.5)
                y += HEAD
            tall = high - (HEAD if of.title else 0) - (FOOT if of.legend else 0)
            axes = drawn.add_axes(
                (left / size[0], 1 - (y + tall) / size[1], across / size[0], tall / size[1])
            )
            _draw(axes, ElementTree.fromstring(str(of.chart)), across)
            keys(left, y + tall + FOOT / 2, of.legend)
            if column or not part.several or at == len(part.figures) - 1:
                top += max(part.heights[at - column : at + 1]) + GAP
    return drawn


def _draw(axes: Axes, root: ElementTree.Element, across: float) -> None:
    """All marks of one drawing. across: its width in pixels."""
    from matplotlib.patches import Circle, FancyBboxPatch, PathPatch
    from matplotlib.path import Path

    _, _, wide, high = map(float, root.attrib["viewBox"].split())
    axes.set(xlim=(0, wide), ylim=(high, 0))
    axes.axis("off")
    scale = across / wide * POINT
    kind = root.get("class", "")
    for mark in root.iter():
        at = {key: float(value) for key, value in mark.attrib.items() if re.fullmatch(r"-?[\d.]+", value)}
        style = _style(tuple(mark.get("class", "").split()), kind, mark.tag)
        look: dict[str, Any] = {
            "facecolor": style.get("fill", "#000"),
            "edgecolor": style.get("stroke", "none"),
            "linewidth": at.get("stroke-width", float(style.get("stroke-width", 1))) * scale,
            "alpha": at.get("fill-opacity", at.get("stroke-opacity", float(style.get("fill-opacity", 1)))),
            "linestyle": "--" if "stroke-dasharray" in style else "-",
            "clip_on": False,
        }
        if mark.tag == "rect":
            corner = (at.get("x", 0.0), at["y"])
            round_ = f"round,pad=0,rounding_size={at.get('rx', 0.0)}"
            axes.add_patch(FancyBboxPatch(corner, at["width"], at["height"], boxstyle=round_, **look))
        elif mark.tag == "circle":
            axes.add_patch(Circle((at["cx"], at["cy"]), at["r"], **look))
        elif mark.tag == "line":
            del look["facecolor"]
            look["color"] = look.pop("edgecolor")
            axes.plot((at["x1"], at["x2"]), (at["y1"], at["y2"]), zorder=1, **look)
        elif mark.tag == "path":
            axes.add_patch(PathPatch(Path(*_strokes(mark.attrib["d"])), **look))
        elif mark.tag == "text":
            text = (mark.text or "") + "".join(child.tail or "" for child in mark)
            axes.text(
                at["x"],
                at["y"],
                text,
                size=float(style.get("font-size", "11.5px").removesuffix("px")) * scale,
                color=style.get("fill", "#000"),
                ha=ANCHORS.get(mark.get("text-anchor", ""), "left"),
                va="baseline",
                parse_math=False,
                zorder=3,
            )


def _strokes(d: str) -> tuple[list[tuple[float, float]], list[int]]:
    """Corners and codes of a path of straight strokes: M, L, H, V, Z, and m, h, v relative to where the pen
    is."""
    found: list[tuple[float, float]] = []
    codes: list[int] = []
    x = y = 0.0
    for letter, rest in re.findall(r"([MLHVmhvZ])([^MLHVmhvZ]*)", d):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", rest)]
        if letter == "Z":
            found.append(found[codes.index(MOVE)])
            codes.append(CLOSE)
            continue
        moved = letter.islower()
        if letter in "Hh":
            x = numbers[0] + (x if moved else 0)
        elif letter in "Vv":
            y = numbers[0] + (y if moved else 0)
        else:
            x, y = numbers[0] + (x if moved else 0), numbers[1] + (y if moved else 0)
        found.append((x, y))
        codes.append(MOVE if letter in "Mm" else LINE)
    return found, codes


@cache
def _style(classes: tuple[str, ...], kind: str, tag: str = "") -> Style:
    """What the style sheet says of a mark, later rules over earlier ones. kind: the classes of its drawing,
    or `KEY`."""
    where = (KEY,) if kind == KEY else ("", *kind.split())
    style: dict[str, str] = {}
    for outer, named, inner, says in _rules():
        if outer in where and named in ("", tag) and set(inner) <= set(classes):
            style |= says
    return style


@cache
def _rules() -> Sequence[tuple[str, str, tuple[str, ...], Style]]:
    """Rules for marks: class of the drawing ("": any), tag ("": any), classes, and what they say with colours
    as numbers."""
    found = []
    text = re.sub(r"@[a-z]+ [^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", source_text("report.css"))
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
        says = {
            key.strip(): _colour(value.strip())
            for key, _, value in (part.partition(":") for part in body.split(";"))
            if value
        }
        for selector in _several(selectors.strip()):
            of_mark = re.fullmatch(
                r"(?:svg|svg\.([a-z]+)|\.(graph)|(?=\.key)) ?(text)?((?:\.[a-z0-9]+)*)", selector
            )
            if of_mark:
                outer, classes = of_mark[1] or of_mark[2] or "", tuple(of_mark[4].split(".")[1:])
                if classes[:1] == (KEY,):
                    outer, classes = KEY, classes[1:]
                found.append((outer, of_mark[3] or "", classes, says))
    return found


def _several(selectors: str) -> Iterator[str]:
    """Selectors of a list, with `:is(a, b)` written out."""
    for selector in re.split(r",(?![^(]*\))\s*", selectors):
        choice = re.search(r":is\(([^)]*)\)", selector)
        for one in choice[1].split(", ") if choice else ("",):
            yield (selector.replace(choice[0], one) if choice else selector).strip()


def _colour(value: str) -> str:
    """A value with the light page's variables, and mixtures of two of them, as numbers."""
    names: dict[str, str] = {}
    for name, number in re.findall(r"--([a-z0-9-]+): (#[0-9a-f]+)", source_text("report.css")):
        names.setdefault(name, number)
    value = re.sub(r"var\(--([a-z0-9-]+)\)", lambda found: names.get(found[1], found[0]), value)
    mixed = re.fullmatch(r"color-mix\(in srgb, #(\w{6}) (\d+)%, #(\w{6})\)", value)
    if mixed is None:
        return value
    share = int(mixed[2]) / 100
    pairs = zip(bytes.fromhex(mixed[1]), bytes.fromhex(mixed[3]), strict=True)
    return "#" + "".join(f"{round(share * one + (1 - share) * other):02x}" for one, other in pairs)
