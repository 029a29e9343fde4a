"""The page of curves: made from lines alone, loads nothing, draws what was varied and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from runner.bench import registry
from runner.bench.output.curves import Dot, Series, chart
from runner.bench.output.page import clock, page
from runner.bench.output.table import amount, heading, row, time


def line(cells: int, delay: float, **changes: Any) -> dict[str, Any]:
    """A line of `scores` as `results.line_of` makes it."""
    wall = cells * 1e-7 + delay / 50
    return {
        "bench": "scores",
        "params": {"cells": cells, "bits": 24, "candidates": 64, "tls": False},
        "net": "custom" if delay else "loopback",
        "network": {"delay_ms": delay, "rate_mbit": None, "by": "shim" if delay else None},
        "wall_s": wall,
        "wall_spread_s": [0.9 * wall, 1.2 * wall],
        "wall_s_per_party": [wall] * 3,
        "cpu_s": [wall] * 3,
        "bytes_sent": [14 * cells, 3 * cells, 3 * cells],
        "bytes_received": [3 * cells, 14 * cells, 3 * cells],
        "rounds": 26,
        "peak_mb": [60.0] * 3,
        "above_mb": [4.0] * 3,
        "amount": float(cells),
        "throughput": cells / wall,
        "unit": "cells/s",
        "repeats": 5,
        "warmup": 1,
        "predicted": {"rounds": 25, "bytes_sent": [14 * cells + 1, 3 * cells, 3 * cells]},
        "baseline": {
            "mpyc": {"params": {"cells": 1000}, "wall_s": 1.0, "throughput": 1e3, "ours": {"wall_s": 0.002}}
        },
        "machine": {
            "processors": 2,
            "architecture": "x86_64",
            "load": cells / 10**6,
            "cosynth": "1.2.3",
            "commit": "0123456789abcdef" * 2 + "01234567",
            "python": "3.13.1",
            "numpy": "2.4.6",
        },
    } | changes


def test_a_curve_for_each_number_that_varies() -> None:
    lines = [line(cells, delay) for cells in (10**4, 10**5, 10**6) for delay in (0.0, 1.0, 20.0)]
    text = page(lines, registry.load())
    titles = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    assert titles == [
        "Wall time against cells",
        "Bytes sent by the busiest party against cells",
        "Wall time against one-way delay, ms",
    ]  # bytes do not depend on the delay
    assert text.count("<circle") == 9 + 9 + 9 and "MPyC" in text
    assert not re.search(r"<script|<link rel=\"stylesheet|https?:|src=", text)


def test_backends_are_drawn_together() -> None:
    lines = [
        line(cells, 0.0, params={"cells": cells, "backend": name, "parties": 3, "tls": False})
        for name in ("one", "other")
        for cells in (10**4, 10**5, 10**6)
    ]
    text = page(lines, registry.load())
    curves = re.findall(r"<figure>.*?</figure>", text, re.DOTALL)
    assert len(curves) == 2 and all(curve.count('class="line"') == 2 for curve in curves)
    assert all(re.search(rf">{name}<", curve) for curve in curves for name in ("one", "other"))


def cells_of(text: str, caption: str) -> list[list[str]]:
    """The texts of a table's rows."""
    (table,) = re.findall(rf"<caption>{caption}</caption>(.*?)</table>", text, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    return [
        [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", one)]
        for one in rows
    ]


def test_rows_hold_what_varies_and_the_rest_is_said_once() -> None:
    text = page([line(cells, 0.0) for cells in (10**4, 10**6)], registry.load())
    head, *rows = cells_of(text, "Measured")
    assert head[:2] == ["cells", "Wall"] and "Network" not in head
    assert [one[0] for one in rows] == ["1e4", "1e6"]
    assert "All with bits 24, candidates 64." in text
    assert "2 processors, x86_64, load 0.01 to 1.0" in text
    assert "Cosynth 1.2.3 (0123456789ab), Python 3.13.1, numpy 2.4.6" in text


def test_what_plan_says_stands_beside_what_was_measured() -> None:
    measured = line(10**4, 0.0)
    head, row = cells_of(page([measured], registry.load()), "Measured")
    beside = dict(zip(head, row, strict=False))
    assert beside["Rounds"] == "26" and row[head.index("Rounds") + 1] == "25"
    assert row.count("140\u00a0kB / 30\u00a0kB / 30\u00a0kB") == 2
    head, _ = cells_of(page([measured | {"predicted": None}], registry.load()), "Measured")
    assert "predicted" not in head


def test_mpyc_is_compared_at_its_own_size() -> None:
    _, row = cells_of(page([line(10**4, 0.0)], registry.load()), "Compared with")
    assert row == ["MPyC’s secure arrays", "cells 1e3", "1\u00a0s", "2\u00a0ms", "500 ×"]  # noqa: RUF001


def test_names_are_text() -> None:
    text = page([line(10**4, 0.0, net="<script>alert(1)</script>")], registry.load())
    assert "<script" not in text and "&lt;script&gt;" in text and "<figure" not in text


def test_dots_stand_where_their_values_are() -> None:
    """Equal factors are equal distances on both axes, and zero is left of everything."""
    dots = (Dot(0, 0.5), Dot(1, 1), Dot(10, 10), Dot(100, 100))
    drawn = str(chart("t", "x", [Series("s", dots, 0)], str, str))
    points = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([0-9.]+)" cy="([0-9.]+)"', drawn)]
    (x0, _), (x1, y1), (x2, y2), (x3, y3) = points
    assert (
        x0 < x1
        and x2 - x1 == pytest.approx(x3 - x2, abs=0.02)
        and y1 - y2 == pytest.approx(y2 - y3, abs=0.02)
        and y3 < y1
    )
    assert len(re.findall(r'class="line"', drawn)) == 1


def test_a_single_dot_has_axes() -> None:
    assert "<circle" in str(chart("t", "x", [Series("s", (Dot(5, 0.1, 0.1, 0.1),), 0)], str, str))


def test_rows_for_a_terminal() -> None:
    bench = registry.load()["scores"]
    head, told = heading(bench).splitlines()[-1], row(line(10**6, 20.0)).splitlines()[-1]
    assert len(head) == len(told) and "x500" in told and "14" in told.split() and "26" in told.split()
    assert [time(0.0000125), time(0.25), time(12.5)] == ["12.5us", "250ms", "12.5s"]
    assert [amount(999.0), amount(1.5e3), amount(2e7)] == ["999", "1.5 k", "20 M"]
    assert clock(0.0000125) == "12.5\u00a0µs" and clock(0.25) == "250\u00a0ms"
