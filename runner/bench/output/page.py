"""The page of curves (`bench --html`): one self-contained file in the report's style, made from the JSON
lines alone.

A benchmark is a section: a curve for every number that was varied (a parameter, or the network's delay or
rate), cost in seconds and in bytes of the busiest party, one line per combination of what else was varied;
and a table of everything.
"""

# ruff: noqa: RUF001 - typographic signs are meant
from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpc_protocols.backend import BACKENDS
from runner.bench.net.network import KNOWN
from runner.bench.output import table
from runner.bench.output.curves import HUES, Dot, Series, chart
from runner.bench.output.results import Line
from runner.bench.parameters import Value, spelled
from runner.bench.registry import Bench
from runner.report import number_format
from runner.report.plain_page import rendered

_DELAY, _RATE, _NET, _BY = "delay", "rate", "network", "by"
_LEVEL = 1.02
"""Lines that rise less than this say what the table says."""
_ACROSS = {_DELAY: "one-way delay, ms", _RATE: "rate into a party, Mbit/s"}


def write(path: Path, lines: Sequence[Line], benches: Mapping[str, Bench]) -> None:
    """Write the page of these lines."""
    path.write_text(page(lines, benches), encoding="utf-8")


def page(lines: Sequence[Line], benches: Mapping[str, Bench]) -> str:
    """The whole HTML text."""
    names = list(dict.fromkeys(line["bench"] for line in lines))
    sections = [_section(benches[name], [line for line in lines if line["bench"] == name]) for name in names]
    networks = list(dict.fromkeys(_network(line) for line in lines))
    machines = list({json.dumps(_machine(line)): _machine(line) for line in lines}.values())
    loads = [line["machine"]["load"] for line in lines]
    return rendered(
        "bench.html.j2",
        sections=sections,
        networks=networks,
        count=len(lines),
        machines=machines,
        loads=sorted({min(loads), max(loads)}),
        repeats=sorted({line["repeats"] for line in lines}),
    )


def _machine(line: Line) -> dict[str, str]:
    """Where a line was measured, and by which software: the whole page's as a rule."""
    told = {name: str(value) for name, value in line["machine"].items() if name != "load"}
    named = ("processors", "architecture", "cosynth", "commit", "python")
    return {name: told[name] for name in named} | {
        "libraries": ", ".join(f"{name} {version}" for name, version in told.items() if name not in named)
    }


def _network(line: Line) -> str:
    network = line["network"]
    if network["by"] is None:
        return str(line["net"])
    rate = "" if network["rate_mbit"] is None else f", {network['rate_mbit']:g} Mbit/s"
    return f"{line['net']}: {network['delay_ms']:g} ms one way{rate}, emulated by {network['by']}"


def _place(line: Line) -> str:
    """A network by its name, which the page's head explains."""
    return str(line["net"]) if line["net"] in KNOWN else _network(line)


def _section(bench: Bench, lines: Sequence[Line]) -> dict[str, Any]:
    facets = [_facets(line) for line in lines]
    varied = [name for name in facets[0] if len({facet[name] for facet in facets}) > 1]
    charts = []
    for name in varied:
        numeric = all(
            isinstance(facet[name], (int, float)) and not isinstance(facet[name], bool) for facet in facets
        )
        if numeric and not (name == _RATE and any(facet[_RATE] == 0 for facet in facets)):
            charts += _charts(name, varied, list(zip(lines, facets, strict=True)))
    fixed = {
        name: value
        for name, value in lines[0]["params"].items()
        if name not in varied and _worth(name, value)
    }
    shown = [name for name in lines[0]["params"] if name in varied]
    return {
        "name": bench.name,
        "purpose": bench.purpose,
        "counts": bench.counts,
        "fixed": _listed(fixed),
        "varied": shown,
        "networks": len({_network(line) for line in lines}) > 1,
        "predicted": any(line["predicted"] for line in lines),
        "charts": charts,
        "rows": [_row(line, shown) for line in lines],
        "baselines": list(
            {tuple(each.items()): each for line in lines for each in _baselines(line)}.values()
        ),
    }


def _facets(line: Line) -> dict[str, Value]:
    """Everything that can differ between two lines of a benchmark; a rate without a limit counts as 0."""
    network = line["network"]
    facets: dict[str, Value] = dict(line["params"])
    facets |= {
        _DELAY: network["delay_ms"],
        _RATE: network["rate_mbit"] or 0,
        _BY: network["by"] or "loopback",
    }
    return facets


def _charts(
    name: str, varied: Sequence[str], pairs: Sequence[tuple[Line, dict[str, Value]]]
) -> list[dict[str, Any]]:
    """Seconds, and bytes where any are sent, against one number."""
    others = [other for other in varied if other != name]
    if (
        name == _DELAY
    ):  # what emulates the delay, and its rate, go along with it where the networks are named ones
        others = [other for other in others if other not in (_BY, _RATE)]
    elif name != _RATE:
        others = [other for other in others if other not in (_BY, _RATE)] if _DELAY in others else others
    groups: dict[str, list[Line]] = {}
    for line, facet in pairs:
        groups.setdefault(
            ", ".join(_setting_text(other, facet[other]) for other in others) or line["bench"], []
        ).append(line)
    across = _ACROSS.get(name, name)
    found = []
    quantities: list[tuple[str, Callable[[Line], Dot], Callable[[float], str]]] = [
        ("Wall time", lambda line: Dot(_at(line, name), line["wall_s"], *line["wall_spread_s"]), clock),
        (
            "Bytes sent by the busiest party",
            lambda line: Dot(_at(line, name), max(line["bytes_sent"])),
            number_format.size,
        ),
    ]
    for title, dot_of, say in quantities:
        series = [
            Series(label, tuple(sorted(map(dot_of, members), key=lambda dot: dot.x)), number % HUES)
            for number, (label, members) in enumerate(groups.items())
        ]
        if any(
            max(heights) > _LEVEL * min(heights)
            for heights in ([dot.y for dot in one.dots] for one in series)
        ):
            whole = f"{title} against {across}"
            found.append({"title": whole, "drawing": chart(whole, across, series, _tick, say)})
    return found


def _at(line: Line, name: str) -> float:
    return float(_facets(line)[name])


def _setting_text(name: str, value: Value) -> str:
    if name == _DELAY:
        return f"{value:g} ms"
    return value if isinstance(value, str) else f"{name} {spelled(value)}"


def clock(seconds: float) -> str:
    """A time with a no-break space before its unit."""
    text = table.time(seconds)
    return f"{text.rstrip('mus')}\u00a0{text.lstrip('0123456789.')}".replace("\u00a0us", "\u00a0µs")


def _tick(value: float) -> str:
    return table.amount(value).replace(" ", "\u00a0") if value >= 1 else f"{value:g}"


def _worth(name: str, value: Value) -> bool:
    """Whether a reader wants to be told: TLS off is the default on loopback."""
    return name != "tls" or bool(value)


def _listed(params: Mapping[str, Value]) -> str:
    return ", ".join(f"{name} {spelled(value)}" for name, value in params.items() if _worth(name, value))


def _row(line: Line, varied: Sequence[str]) -> dict[str, Any]:
    secure, predicted = line.get("secure_over_fit"), line["predicted"]
    return {
        "params": [spelled(line["params"][name]) for name in varied],
        "net": _place(line),
        "wall": clock(line["wall_s"]),
        "spread": " – ".join(map(clock, line["wall_spread_s"])),
        "throughput": table.amount(line["throughput"]),
        "unit": line["unit"],
        "cpu": " / ".join(map(clock, line["cpu_s"])),
        "sent": " / ".join(map(number_format.size, line["bytes_sent"])),
        "rounds": line["rounds"],
        "told_rounds": "" if predicted is None else predicted["rounds"],
        "told_sent": ""
        if predicted is None
        else " / ".join(map(number_format.size, predicted["bytes_sent"])),
        "memory": " / ".join(f"{mb:.0f}" for mb in line.get("above_mb") or line["peak_mb"]),
        "note": "" if secure is None else f"select and measure take {secure:.2f} of the fit's time",
    }


def _factor(ratio: float) -> str:
    """Times as fast; as slow where that is more."""
    return f"{table.plain(ratio)} ×" if ratio >= 1 else f"1/{table.plain(1 / ratio)}"


def _baselines(line: Line) -> list[dict[str, Any]]:
    names = {"mpyc": "MPyC’s secure arrays", "numpy": "NumPy, in the clear"} | {
        backend.name: f"the same run in the clear ({backend.name})" for backend in BACKENDS if backend.ideal
    }
    found = []
    for name, figures in line["baseline"].items():
        params = figures.get("params", line["params"])
        found.append(
            {
                "name": names.get(name, name),
                "net": _place(line),
                "wall": clock(figures["wall_s"]),
                "params": _listed({key: value for key, value in params.items() if key != "tls"}),
                "ours": clock(figures.get("ours", line)["wall_s"]),
                "ratio": _factor(table.ratio(line, figures)),
            }
        )
    return found
