"""The lines of a benchmark for people at a terminal: one table per benchmark, a row as soon as it is
measured."""

from __future__ import annotations

from mpc_protocols.backend import BACKENDS
from runner.bench.output.results import Line
from runner.bench.parameters import spelled
from runner.bench.registry import Bench, Program

_COLUMNS = (
    ("wall", 9),
    ("spread", 18),
    ("per second", 12),
    ("CPU max", 9),
    ("B each, max", 13),
    ("rounds", 8),
    ("above MB", 10),
    ("vs MPyC", 12),
    ("vs clear", 10),
)


def heading(bench: Bench) -> str:
    """The line above a benchmark's rows."""
    columns = "".join(f"{name:>{width}}" for name, width in _COLUMNS)
    if isinstance(bench, Program):
        columns = columns.replace("above MB", " peak MB")
    return f"\n{bench.name}: {bench.purpose}; one of its {bench.counts}\n{'':40}{columns}"


def row(line: Line) -> str:
    """One measurement."""
    values = [f"{name} {spelled(value)}" for name, value in line["params"].items() if name != "tls" or value]
    network = line["network"]
    place = (
        line["net"]
        if network["by"] is None
        else f"{line['net']} {network['delay_ms']:g} ms by {network['by']}"
    )
    least, most = line["wall_spread_s"]
    above = line.get("above_mb")
    cells = [
        time(line["wall_s"]),
        f"{time(least)}..{time(most)}",
        amount(line["throughput"]),
        time(max(line["cpu_s"])),
        f"{max(line['bytes_sent']) / line['amount']:.4g}",
        f"{line['rounds']}",
        f"{max(above if above is not None else line['peak_mb']):.0f}",
        *(_against(line, name) for name in ("mpyc", "numpy")),
    ]
    shown = "".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, _COLUMNS, strict=True))
    first = "  " + ", ".join(values)
    return (
        f"{first}\n{'  ' + place:40}{shown}"
        if len(first) + len(place) > 37
        else f"{f'{first}; {place}':40}{shown}"
    )


def _against(line: Line, name: str) -> str:
    """How many times as fast as a baseline: MPyC at the size that it manages, plain NumPy at this one."""
    clear = (of.name for of in BACKENDS if of.ideal) if name == "numpy" else ()
    found = next((line["baseline"][each] for each in (name, *clear) if each in line["baseline"]), None)
    return "-" if found is None else f"x{plain(ratio(line, found))}"


def ratio(line: Line, baseline: Line) -> float:
    """How many times as fast as a baseline this is, both at the baseline's own size."""
    ours = baseline.get("ours", line)
    return float(baseline["wall_s"] / ours["wall_s"])


def plain(ratio: float) -> str:
    """A ratio to three digits, never with an exponent."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def time(seconds: float) -> str:
    """Seconds, milliseconds or microseconds."""
    if seconds >= 0.9995:
        return f"{seconds:.3g}s"
    return f"{1e3 * seconds:.3g}ms" if seconds >= 0.9995e-3 else f"{1e6 * seconds:.3g}us"


def amount(value: float) -> str:
    """A throughput."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g}"
