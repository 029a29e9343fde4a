"""The measured marginals as a picture: a name per column, and a line between every two that were measured
together, the heavier and stronger in colour the more the one tells of the other in the model.

Columns measured together are drawn close: stress majorisation (Gansner, Koren, North 2004, SMACOF) of graph
distances, started from classical scaling, so there is no random start and the same cliques give the same
picture. Names are then pushed apart until no two overlap. Two shapes are drawn, for wide pages and for
phones; CSS shows one.
"""
# ruff: noqa: RUF001 - the multiplication sign is meant

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from runner.report.drawings.svg import drawing, group, label, tag
from runner.report.files import Clique
from runner.report.number_format import clipped

CHARACTER, PILL = 7.8, 26.0
MAX_LABEL = 24
STEP = 210.0


def picture(
    columns: Sequence[str],
    cliques: Sequence[Clique],
    strengths: Mapping[Clique, float],
    *,
    width: float,
    height: float,
    class_: str,
) -> Markup:
    """cliques: every measured one of two or more columns. strengths: of every two columns of one, 0 to 1."""
    linked = [name for name in columns if any(name in clique for clique in cliques)]
    apart = [name for name in columns if name not in linked]
    shown = {name: clipped(name, MAX_LABEL) for name in columns}
    rows = _lines(apart, shown, width)
    room = height if linked else PILL
    places = _place(linked, cliques, {name: _pill(shown[name]) for name in linked}, width, room)
    if linked:  # the picture is as high as what it shows
        top = min(y for _, y in places.values()) - PILL
        places = {name: (x, round(y - top, 1)) for name, (x, y) in places.items()}
        room = max(y for _, y in places.values()) + PILL
    for i, row in enumerate(rows):
        across = sum(_pill(shown[name]) + 10 for name in row) - 10
        x = (width - across) / 2
        for name in row:
            places[name] = (x + _pill(shown[name]) / 2, room + 18 + 34 * i)
            x += _pill(shown[name]) + 10
    marks = _threads(strengths, places)
    for name in columns:
        x, y = places[name]
        wide = _pill(shown[name])
        lone = " lone" if name in apart else ""
        marks.append(
            group(
                (
                    tag("title", name),
                    tag(
                        "rect",
                        x=x - wide / 2,
                        y=y - PILL / 2,
                        width=wide,
                        height=PILL,
                        rx=PILL / 2,
                        class_=f"pill{lone}",
                    ),
                    label(x, y + 4.3, shown[name], class_="node", anchor="middle"),
                )
            )
        )
    total = room + 34 * len(rows) + 6
    described = "; ".join(" × ".join(clique) for clique in cliques) or "no two columns were measured together"
    return drawing(
        width, total, marks, title="Columns that were measured together", description=described, class_=class_
    )


def _pill(text: str) -> float:
    return CHARACTER * len(text) + 20


def _lines(names: Sequence[str], shown: Mapping[str, str], width: float) -> list[list[str]]:
    """The names as centred rows no wider than the picture."""
    rows: list[list[str]] = []
    used = width
    for name in names:
        wide = _pill(shown[name]) + 10
        if used + wide > width:
            rows.append([])
            used = 0.0
        rows[-1].append(name)
        used += wide
    return rows


def _threads(strengths: Mapping[Clique, float], places: Mapping[str, tuple[float, float]]) -> list[Markup]:
    """A line for every two columns of a common clique, the strongest on top."""
    return [
        tag(
            "line",
            tag("title", f"{one} × {two}: {strength:.2f}"),
            x1=places[one][0],
            y1=places[one][1],
            x2=places[two][0],
            y2=places[two][1],
            class_="thread",
            stroke_width=0.8 + 5.2 * strength,
            stroke_opacity=min(1.0, 0.25 + 1.2 * strength),
        )
        for (one, two), strength in sorted(strengths.items(), key=lambda item: item[1])
    ]


def _place(
    names: Sequence[str], cliques: Sequence[Clique], pills: Mapping[str, float], width: float, height: float
) -> dict[str, tuple[float, float]]:
    """Coordinates within the box, no two pills overlapping if there is room for that."""
    if not names:
        return {}
    if len(names) == 1:
        return {names[0]: (width / 2, height / 2)}
    distances = _distances(names, cliques)
    found = {tuple(np.flatnonzero(np.isfinite(row)).tolist()) for row in distances}
    parts = sorted(found, key=lambda part: (-len(part), part[0]))
    half = np.array([pills[name] / 2 for name in names])
    at = np.empty((len(names), 2))
    for part, (x, y, w, h) in zip(
        parts, _boxes([len(part) for part in parts], (0.0, 0.0, width, height)), strict=True
    ):
        index = list(part)
        at[index] = np.array([x, y]) + _fit(
            _spread(_stress(distances[np.ix_(index, index)]), w, h), half[index], w, h
        )
    at = _part(at, half, width, height)
    return {name: (round(float(x), 1), round(float(y), 1)) for name, (x, y) in zip(names, at, strict=True)}


def _boxes(
    weights: Sequence[int], box: tuple[float, float, float, float]
) -> list[tuple[float, float, float, float]]:
    """The box (x, y, width, height) cut into one for each weight, in proportion, again and again across its
    longer side."""
    if len(weights) == 1:
        return [box]
    x, y, width, height = box
    cut = min(range(1, len(weights)), key=lambda at: abs(sum(weights[:at]) - sum(weights[at:])))
    share = sum(weights[:cut]) / sum(weights)
    if width > 1.5 * height:
        first, second = (x, y, share * width, height), (x + share * width, y, (1 - share) * width, height)
    else:
        first, second = (x, y, width, share * height), (x, y + share * height, width, (1 - share) * height)
    return _boxes(weights[:cut], first) + _boxes(weights[cut:], second)


def _distances(names: Sequence[str], cliques: Sequence[Clique]) -> NDArray[np.float64]:
    """Steps between columns, infinite between unconnected ones; a step leads to any column of a common
    clique."""
    linked = np.eye(len(names), dtype=bool)
    for clique in cliques:
        index = [names.index(name) for name in clique]
        linked[np.ix_(index, index)] = True
    reached = np.eye(len(names), dtype=bool)
    steps = np.where(reached, 0.0, np.inf)
    for step in range(1, len(names)):
        further = (reached @ linked) & ~reached
        if not further.any():
            break
        steps[further] = step
        reached |= further
    return steps


def _stress(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points whose distances come close to these, errors weighted by 1/d^2."""
    count = len(distances)
    centre = np.eye(count) - 1.0 / count
    _, vectors = np.linalg.eigh(-0.5 * centre @ distances**2 @ centre)
    at = vectors[:, [-1, -2]] * np.sqrt(count)
    at *= np.where(at[np.abs(at).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    turn = (
        np.arange(count) * 2.399963
    )  # the golden angle: ties of the spectrum (columns with the same cliques) come apart
    at = at + 0.05 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    weights = np.where(distances > 0, 1.0 / np.maximum(distances, 1e-9) ** 2, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(150):
        gaps = np.linalg.norm(at[:, None] - at[None], axis=2)
        ratio = np.where(gaps > 1e-9, -weights * distances / np.maximum(gaps, 1e-9), 0.0)
        np.fill_diagonal(ratio, 0.0)
        np.fill_diagonal(ratio, -ratio.sum(axis=1))
        at = inverse @ (ratio @ at)
    return np.asarray(at)


def _spread(at: NDArray[np.float64], width: float, height: float) -> NDArray[np.float64]:
    """Turned so that the longest direction lies along the longer side."""
    at = at - at.mean(axis=0)
    _, vectors = np.linalg.eigh(at.T @ at)
    axes = vectors[:, ::-1] if width >= height else vectors
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    return np.asarray(at @ axes)


def _fit(
    at: NDArray[np.float64], half: NDArray[np.float64], width: float, height: float
) -> NDArray[np.float64]:
    """Scaled to the box, leaving room for the names at its edges; a step is never longer than STEP."""
    low, high = at.min(axis=0), at.max(axis=0)
    margin = np.array([half.max() + 8, PILL / 2 + 12])
    room = np.clip(np.array([width, height]) - 2 * margin, 0.0, STEP * np.maximum(high - low, 0.0))
    share = np.where(high - low > 1e-6, (at - low) / np.maximum(high - low, 1e-6), 0.5)
    return np.asarray(np.array([width, height]) / 2 + room * (share - 0.5))


def _part(
    at: NDArray[np.float64], half: NDArray[np.float64], width: float, height: float
) -> NDArray[np.float64]:
    """Names that overlap are pushed apart along the direction that needs the smaller move, within the box."""
    x, y = at.T.tolist()
    halves, edge = half.tolist(), PILL / 2 + 8
    for _ in range(300):
        moved = False
        for i, j in combinations(range(len(x)), 2):
            across, down = x[j] - x[i], y[j] - y[i]
            need_across, need_down = halves[i] + halves[j] + 12 - abs(across), PILL + 14 - abs(down)
            if need_across <= 0 or need_down <= 0:
                continue
            of, gap, need = (y, down, need_down) if need_down < need_across else (x, across, need_across)
            push = (need / 2 + 0.01) * (1.0 if gap >= 0 else -1.0)
            of[i], of[j], moved = of[i] - push, of[j] + push, True
        x = [min(max(place, wide + 4), width - wide - 4) for place, wide in zip(x, halves, strict=True)]
        y = [min(max(place, edge), height - edge) for place in y]
        if not moved:
            break
    return np.array([x, y]).T
