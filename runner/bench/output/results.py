"""From the parties' figures to one JSON line per point (`--json`): medians and spreads over the repetitions.

bench, params, net, network     what ran where; network: delay_ms (one way), rate_mbit (null: not limited), by
                                (shim, netem or relay: `runner.bench.net.network`; null where nothing is slowed down)
wall_s, wall_spread_s           median, and [least, most]: from the first party's beginning to the last one's end
wall_s_per_party, cpu_s         medians per party; CPU of the whole process, all threads
bytes_sent, bytes_received      payload per party and repetition; rounds: the longest chain of messages
peak_mb, above_mb               most resident memory per party, and how much of that came after the input was there
throughput, unit                amount / wall_s, in unit; amount: what one repetition does
predicted                       {"rounds", "bytes_sent"} by the cost model behind `plan`, null where it does not tell
repeats, warmup, baseline       baseline: {"numpy": {...}, "mpyc": {"params": {...}, "ours": {...}, ...}} where there are such,
                                with wall_s; ours: the point's own protocol at the parameters of MPyC's
machine                         processors, architecture, load (of the last minute, at the end of the measurement), commit,
                                Python and libraries
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from typing import Any

from runner.bench.net.network import Net
from runner.bench.parameters import Params
from runner.bench.registry import Bench, Predicted
from runner.party.record.software import software
from runner.version import VERSION

Line = dict[str, Any]


def summary(answers: Sequence[dict[str, Any]]) -> Line:
    """Medians of one job over its repetitions; `answers` by wire number, as `repeat.repeat` gives them."""
    repetitions = list(zip(*(answer["repetitions"] for answer in answers), strict=True))
    walls = [
        max(party["ended"] for party in one) - min(party["began"] for party in one) for one in repetitions
    ]
    # bytes of one and the same repetition, so that what was sent is what was received (compressed answers
    # differ in size)
    middle = repetitions[walls.index(statistics.median_low(walls))]

    def per_party(value: Any) -> list[float]:
        return [
            statistics.median(value(one[number]) for one in repetitions) for number in range(len(answers))
        ]

    return {
        "wall_s": statistics.median(walls),
        "wall_spread_s": [min(walls), max(walls)],
        "wall_s_per_party": per_party(lambda party: party["ended"] - party["began"]),
        "cpu_s": per_party(lambda party: party["cpu_s"]),
        "bytes_sent": [party["bytes_sent"] for party in middle],
        "bytes_received": [party["bytes_received"] for party in middle],
        "rounds": round(statistics.median(max(party["rounds"] for party in one) for one in repetitions)),
        "peak_mb": [answer["peak_mb"] for answer in answers],
        "above_mb": [answer["above_mb"] for answer in answers],
    }


def runs(found: Sequence[dict[str, Any]]) -> Line:
    """Medians over whole runs of a program; keys that are not numbers are those of the run with the median
    wall."""
    walls = [one["wall_s"] for one in found]
    middle = min(found, key=lambda one: abs(one["wall_s"] - statistics.median(walls)))
    line = dict(middle) | {"wall_s": statistics.median(walls), "wall_spread_s": [min(walls), max(walls)]}
    for key in ("cpu_s", "bytes_sent", "bytes_received", "peak_mb"):
        line[key] = [statistics.median(values) for values in zip(*(one[key] for one in found), strict=True)]
    return line


def baseline_runs(found: Sequence[dict[str, dict[str, Any]]]) -> Line:
    """For each baseline the run with the median wall, with the median and the spread of all."""
    line: Line = {}
    for name in found[0] if found else ():
        walls = [one[name]["wall_s"] for one in found]
        wall = statistics.median(walls)
        middle = min((one[name] for one in found), key=lambda one: abs(one["wall_s"] - wall))
        line[name] = middle | {
            "wall_s": wall,
            "wall_spread_s": [min(walls), max(walls)],
            "throughput": 1 / wall,
        }
    return line


def line_of(
    bench: Bench,
    params: Params,
    net: Net,
    by: str | None,
    figures: Line,
    repeats: int,
    warmup: int,
    baseline: Line,
    predicted: Predicted | None,
) -> Line:
    """The whole line, times to the microsecond. by: what slowed the network down, None if nothing did."""
    network = {"delay_ms": net.delay_ms, "rate_mbit": net.rate_mbit, "by": by}
    amount = bench.amount(params)
    return {
        "bench": bench.name,
        "params": dict(params),
        "net": net.name,
        "network": network,
        **rounded(figures),
        "amount": amount,
        "throughput": _digits(amount / figures["wall_s"]),
        "unit": f"{bench.counts}/s",
        "predicted": predicted and {"rounds": predicted.rounds, "bytes_sent": list(predicted.bytes_sent)},
        "repeats": repeats,
        "warmup": warmup,
        "baseline": baseline,
        "machine": {
            "processors": os.cpu_count(),
            "architecture": platform.machine(),
            "load": round(os.getloadavg()[0], 1),
            "cosynth": VERSION,
            **software(),
        },
    }


def rounded(value: Any) -> Any:
    """Floats to six decimals, throughout."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return round(value, 6) if isinstance(value, float) else value


def _digits(value: float) -> float:
    return float(f"{value:.6g}")
