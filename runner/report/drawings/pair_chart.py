"""The picture of two columns together: of each group of rows by one column, how the other one is distributed.

A line is a group of values of the one column, with a bar of the shares of the other's values among its rows.
If the columns have nothing to do with each other, all bars look alike. Values that were counted together with
the other column only in one bin stand in one group: of its parts the release says nothing, and intervals for
them would reach over whole bars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from runner.report.drawings.charts import LETTER, MAX_LETTERS, WIDTH
from runner.report.drawings.svg import drawing, label, row_name, tag
from runner.report.number_format import percent
from synth.domain import Column

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique
    from synth.domain import Domain

Array = NDArray[np.float64]
Intervals = Sequence[Sequence[tuple[float, float] | None]]


class Sure(Protocol):
    """Intervals of the ends of the bars' parts: as `synth.inference.groups.Shares`."""

    def __call__(
        self, of: str, groups: Sequence[Sequence[int]], by: str, lines: Sequence[Sequence[int]]
    ) -> Intervals: ...

    def bins(self, pair: Clique) -> Mapping[str, Sequence[int]]: ...


PITCH, TOP = 21.0, 4.0
MAX_LINES, MAX_SHARES = 7, 4
THIN = 0.01
"""Share of a bar below which the end of a part has no interval of its own: it is where the one before it
ends."""
SMALL = 0.02
"""Share of rows below which a group of its own is not shown for "missing" or "0"."""


@dataclass(frozen=True)
class Group:
    """Values that are drawn as one."""

    name: str
    codes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PairChart:
    """lines, shares: columns of the lines and of the bars. legend: of the shares, (class of the swatch,
    name)."""

    lines: str
    shares: str
    charts: tuple[Markup, ...]
    legend: tuple[tuple[str, str], ...]
    inside: tuple[tuple[int, int], ...] = ()
    """Of each picture, how many ends of parts lie within their intervals, of how many."""

    @property
    def is_sure(self) -> bool:
        """Whether intervals are drawn."""
        return any(of for _, of in self.inside)


def pair_chart(
    domain: Domain,
    pair: Clique,
    tables: Sequence[tuple[str, Array]],
    label_column: str | None = None,
    sure: Sure | None = None,
) -> PairChart:
    """One picture for each table of counts (what it is of, counts with the shape of the pair), with groups
    that all share. sure: intervals of the ends of the parts.

    Bars are of the label column if it is one of the two, else of the one with fewer values.
    """
    sizes = domain.sizes
    other = label_column if label_column in pair else min(reversed(pair), key=lambda name: sizes[name])
    of_lines = pair[1 - pair.index(str(other))]
    found = [np.asarray(counts).reshape([sizes[name] for name in pair]) for _, counts in tables]
    if pair.index(of_lines) == 1:
        found = [counts.T for counts in found]
    weight = sum((counts / max(1.0, counts.sum()) for counts in found), np.zeros_like(found[0], np.float64))
    bins = {} if sure is None else sure.bins(pair)
    lines = groups(domain[of_lines], weight.sum(axis=1), MAX_LINES, bins.get(of_lines))
    shares = groups(domain[str(other)], weight.sum(axis=0), MAX_SHARES, bins.get(str(other)))
    known: Intervals = ()
    if sure is not None:
        known = sure(
            str(other), [group.codes for group in shares], of_lines, [group.codes for group in lines]
        )
    charts = tuple(
        _bars(f"{other} by {of_lines}, {what}", lines, shares, counts, known)
        for (what, _), counts in zip(tables, found, strict=True)
    )
    return PairChart(
        of_lines,
        str(other),
        charts,
        tuple((f"share{i}", group.name) for i, group in enumerate(shares)),
        tuple(_inside(lines, shares, counts, known) for counts in found),
    )


def _inside(
    lines: Sequence[Group], shares: Sequence[Group], counts: Array, known: Intervals
) -> tuple[int, int]:
    hits = number = 0
    for line, intervals in zip(lines, known, strict=False):
        rows = counts[list(line.codes)].sum(axis=0)
        parts = np.array([rows[list(share.codes)].sum() for share in shares]) / max(1.0, float(rows.sum()))
        for end, interval in zip(np.cumsum(parts), intervals, strict=False):
            if interval is not None:
                number += 1
                hits += interval[0] <= end <= interval[1]
    return hits, number


def groups(column: Column, sums: Array, most: int, bins: Sequence[int] | None = None) -> list[Group]:
    """At most `most` groups of a column's values, those that have rows: neighbouring bins of numbers with
    about equal sums, or the most frequent values and the others as one. bins: of each value, those that stay
    together; None: of each its own."""
    total, numbers = max(1e-9, float(sums.sum())), range(column.size) if bins is None else bins
    units = [
        tuple(code for code in range(column.size) if numbers[code] == number)
        for number in dict.fromkeys(numbers)
    ]
    if not column.binned:
        there = [(float(sums[list(unit)].sum()), unit) for unit in units]
        units = [unit for rows, unit in sorted(there, key=lambda one: -one[0]) if rows > 0]
        kept = units if len(units) <= most else units[: most - 1]
        rest = tuple(code for unit in units[len(kept) :] for code in unit if sums[code] > 0)

        def in_order(unit: tuple[int, ...]) -> tuple[bool, tuple[int, ...]]:
            return not column.ordered and len(unit) > 1, unit

        found = [Group(_name(column, unit, sums), unit) for unit in sorted(kept, key=in_order)]
        return found + ([Group(f"{len(rest)} others", rest)] if rest else [])
    names = {column.zero_code: "0"} if column.zero else {}
    names |= {column.size - 1: "missing"} if column.missing else {}
    special = [
        Group(" / ".join(names[code] for code in unit), unit)
        for unit in units
        if names.keys() >= set(unit) and sums[list(unit)].sum() > SMALL * total
    ]
    units = [unit for unit in units if not names.keys() >= set(unit)]
    inside = np.array([sums[list(unit)].sum() for unit in units])
    before, wanted = np.cumsum(inside) - inside / 2, most - len(special)
    place = np.minimum((before / max(1e-9, float(inside.sum())) * wanted).astype(int), wanted - 1)
    found = []
    for at in dict.fromkeys(place.tolist()):
        codes = [code for unit, where in zip(units, place, strict=True) if where == at for code in unit]
        if sums[codes].sum() > 0:
            span = _span(column, [code for code in codes if code not in names])
            beside = (names[code] for code in codes if code in names)
            found.append(Group(" / ".join([span, *beside]), tuple(codes)))
    return [*found, *special]


def _name(column: Column, codes: Sequence[int], sums: Array) -> str:
    """Of values that stand together."""
    there = [code for code in codes if sums[code] > 0]
    if column.ordered and len(there) > 1:
        return f"{column.label(there[0])} to {column.label(there[-1])}"
    first = column.label(max(there, key=lambda code: float(sums[code])))
    return first if len(there) == 1 else f"{first} and {len(there) - 1} more"


def _span(column: Column, codes: Sequence[int]) -> str:
    """The numbers from the first to the last code."""
    if column.integral:
        ends = column.span(codes[0])[0], column.span(codes[-1])[1]
    else:
        edges, bins = column.edges(), [column.bin(code) or 0 for code in (codes[0], codes[-1])]
        ends = edges[bins[0]], edges[bins[1] + 1]
    return " to ".join(dict.fromkeys(map(column.written, ends)))


def _bars(
    title: str, lines: Sequence[Group], shares: Sequence[Group], counts: Array, known: Intervals
) -> Markup:
    letters = min(MAX_LETTERS, max((len(line.name) for line in lines), default=0))
    left = 16 + LETTER * letters
    marks: list[Any] = []
    for i, line in enumerate(lines):
        y = TOP + PITCH * i
        marks.append(row_name(left - 8, y + 8.5, line.name, MAX_LETTERS))
        rows = counts[list(line.codes)].sum(axis=0)
        total, x = float(rows.sum()), left
        for k, share in enumerate(shares):
            part = float(rows[list(share.codes)].sum()) / total if total > 0 else 0.0
            width = part * (WIDTH - left)
            tip = f"{line.name}: {share.name} {percent(part, 1)}"
            marks.append(
                tag(
                    "rect", tag("title", tip), x=x, y=y + 1, width=width, height=PITCH - 4, class_=f"share{k}"
                )
            )
            if width > 30:
                said = percent(part, 0)
                marks.append(label(x + width / 2, y + 13, said, class_=f"figure on{k}", anchor="middle"))
            x += width
        for share, interval in zip(shares, known[i] if known else (), strict=False):
            if interval is not None and rows[list(share.codes)].sum() >= THIN * total:
                marks.append(_whisker(left, y + PITCH - 5.5, interval))
    return drawing(WIDTH, 2 * TOP + PITCH * len(lines), marks, title=title)


def _whisker(left: float, y: float, interval: tuple[float, float]) -> Any:
    """Where the end of a part of a bar may be."""
    low, high = (left + share * (WIDTH - left) for share in interval)
    tip = f"95 % interval: {percent(interval[0], 1)} to {percent(interval[1], 1)}"
    d = f"M{low:.1f} {y - 2.5:.1f}v5m0 -2.5H{high:.1f}m0 -2.5v5"
    return tag("path", tag("title", tip), d=d, class_="whisker")
