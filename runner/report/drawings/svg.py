"""Building SVG as escaped markup, and the few things every drawing needs: short numbers for coordinates,
round axis ticks.

Colours are CSS classes (`report.css`), so one drawing serves the light and the dark page and print. Every
text passes through `markupsafe.escape`: a hostile column name is only ever text. Coordinates are rounded to a
hundredth of a unit, which keeps files small and the same inputs at the same bytes.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

from markupsafe import Markup, escape

from mpc_protocols.process.foreign_text import printable
from runner.report.number_format import clipped


def number(value: float) -> str:
    """A coordinate: at most two decimals, no trailing zeros, never -0."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def tag(name: str, *children: Markup | str, **attributes: str | float | None) -> Markup:
    """One element. Attribute names: `_` stands for `-`, a trailing `_` is dropped (class_); None leaves one
    out."""
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is not None:
            text = escape(value) if isinstance(value, str) else number(value)
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{text}"')
    if not children:
        return Markup("".join([*parts, "/>"]))
    parts.append(">")
    parts.extend(child if isinstance(child, Markup) else escape(printable(child)) for child in children)
    parts.append(f"</{name}>")
    return Markup("".join(parts))


def group(children: Iterable[Markup], **attributes: str | float | None) -> Markup:
    """A <g> around the children."""
    return tag("g", Markup("").join(children), **attributes)


def drawing(
    width: float,
    height: float,
    children: Iterable[Markup],
    *,
    title: str,
    description: str = "",
    class_: str = "",
    stretched: bool = False,
    scale: float | None = None,
) -> Markup:
    """An <svg> as wide as its container, which is one named image to a screen reader.

    stretched: fills its container's height too. scale: not wider than so many pixels a unit.
    """
    inside = [tag("title", title)]
    if description:
        inside.append(tag("desc", description))
    inside.extend(children)
    return tag(
        "svg",
        Markup("").join(inside),
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=f"{title}. {description}" if description else title,
        class_=class_ or None,
        preserveAspectRatio="none" if stretched else None,
        width=None if scale is None else width * scale,
    )


def label(
    x: float,
    y: float,
    content: str,
    *,
    class_: str = "label",
    anchor: str | None = None,
    most: int = 0,
    transform: str | None = None,
) -> Markup:
    """A text; longer than `most` characters it is cut, with the whole of it as a tooltip."""
    content = printable(content)
    cut = clipped(content, most) if most else content
    whole = tag("title", content) if cut != content else Markup("")
    return tag("text", whole + escape(cut), x=x, y=y, class_=class_, text_anchor=anchor, transform=transform)


def row_name(right: float, middle: float, content: str, most: int) -> Markup:
    """A line's name, ending at `right`: where it is longer than `most` characters in two smaller lines, cut
    beyond those."""
    content = printable(content)
    if len(content) <= most:
        return label(right, middle + 4, content, anchor="end")
    parts = textwrap.wrap(content, math.ceil(1.25 * most), max_lines=2, placeholder="…") or [content]
    whole = tag("title", content)
    places = (middle + 3.5,) if len(parts) == 1 else (middle - 1.5, middle + 8.5)
    return group(
        tag("text", whole + escape(part), x=right, y=y, class_="label small", text_anchor="end")
        for part, y in zip(parts, places, strict=True)
    )


def path(points: Iterable[tuple[float, float]], *, close: bool = False) -> str:
    """The `d` of a polyline."""
    steps = [f"{number(x)} {number(y)}" for x, y in points]
    return "M" + "L".join(steps) + ("Z" if close else "")


def ticks(low: float, high: float, about: float) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) within low..high, roughly `about` of them."""
    if not high > low:
        return [low]
    raw = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]
