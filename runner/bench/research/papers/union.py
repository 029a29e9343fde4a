"""FLORIST's tables, by `bench utility --florist`, and what its private set union sends
(`docs/design/sources.md`)."""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, Final

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.process.installation import pip_install
from runner.bench.benches.psu import BENCH
from runner.bench.parameters import Params
from runner.bench.research.florist.command import measure
from runner.bench.research.florist.printed import BY_FEATURES, BY_LABELS, CHANGE, DRAWN
from runner.bench.research.florist.runs import Split, strategy
from runner.bench.research.papers.paper import Figure, Item, Paper, Settings, number
from runner.bench.utility.tables import chosen

POINT_BYTES: Final = 32
IDENTIFIERS: Final = (10_000, 100_000)
COMMON: Final = 0.5
INVENTED: Final = 0.5
"""alpha, beta."""
ELSEWHERE: Final = "Criteo and Avazu are public, but not among the tables here; on Adult, signs and order compare, sizes do not"


def _lines(settings: Settings, table: str) -> list[dict[str, Any]]:
    """What the benchmark writes for each training."""
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        file = Path(folder, "lines.jsonl")
        arguments = ["--florist", "--data", str(settings.data), "--table", table, "--json", str(file)]
        arguments += ["--shares", "0.5"] if settings.quick else ["--full", "--seeds", str(settings.seeds)]
        with redirect_stdout(nowhere):
            measure(arguments)
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _of(lines: Sequence[dict[str, Any]], method: str, metric: str, share: float) -> list[float]:
    return [line[metric] for line in lines if (line["training"], line["share"]) == (method, share)]


def _trainings(settings: Settings) -> Iterator[Figure]:
    """Tables 3, 8 and 5."""
    table = "adult-vfl@12000" if settings.quick else "adult-vfl"
    lines = _lines(settings, table)
    for share in sorted({line["share"] for line in lines if line["training"] == "tr"}):
        pairs = zip(_of(lines, "tr", "auc", share), _of(lines, "partial", "auc", share), strict=True)
        told = [CHANGE[data][share] for data in CHANGE if share in CHANGE[data]]
        changes = tuple(100 * (auc / base - 1) for auc, base in pairs)
        yield Figure(
            f"{table}, lacking {share:g}: change of AUC, %", changes, (min(told), max(told)) if told else None
        )
    for count, (auc, attack) in DRAWN.items():
        for metric, told_of in (("auc", auc), ("attack", attack)):
            ours = [line[metric] for line in lines if line["training"] == f"draws={count}" and metric in line]
            if ours:
                yield Figure(f"{table}, {count} draws: {metric}", tuple(ours), number(told_of))


def _strategies(side: str, settings: Settings) -> Iterator[Figure]:
    """The attack by strategy. side: "labels" or "features", half of which are invented."""
    if importlib.util.find_spec("torch") is None:
        raise StudyInvalid(f"FLORIST trains with PyTorch, which is not installed; {pip_install(['torch'])}.")
    shares = (0.0, INVENTED) if side == "labels" else (INVENTED, 0.0)
    for table in chosen(settings.data, ["adult-vfl@12000" if settings.quick else "adult-vfl"])[0]:
        for name, told in (BY_LABELS if side == "labels" else BY_FEATURES).items():
            ours = tuple(
                strategy(Split.of(table, "income", *shares, seed), seed, {side: name}).scores["attack"]
                for seed in range(1 if settings.quick else settings.seeds)
            )
            yield Figure(f"{table.name}, {side} {name}: attack", ours, (min(told), max(told)))


def _union(settings: Settings) -> Iterator[Figure]:
    """Bytes of both parties, from the protocol's own forecast; printed: 4 |Ia| + 4 |Ip| + 2 |U| elements,
    here of 32 bytes."""
    for count in IDENTIFIERS[: 1 if settings.quick else None]:
        params: Params = {
            "identifiers": count,
            "owners": 2,
            "common": COMMON,
            "via": "florist",
            "group": "ristretto255",
            "proofs": False,
        }
        told = BENCH.predicted(params)
        if told is not None:
            union = round(2 * count - COMMON * count)
            elements = 8 * count + 2 * union
            ours = sum(told.bytes_sent) / 1e6
            yield Figure(
                f"{count:,} identifiers each, MB sent", (ours,), number(POINT_BYTES * elements / 1e6)
            )


FLORIST: Final = Paper(
    "florist",
    "Sun and others: Vertical federated learning without revealing intersection membership, 2021",
    (
        Item(
            "tables 1 and 6",
            "spectral attack on labels, by the strategy that invents them",
            f"{ELSEWHERE}; what is read off besides: docs/design/florist.md 6",
            partial(_strategies, "labels"),
        ),
        Item(
            "tables 2 and 7",
            "spectral attack on features, by the strategy that invents them",
            f"{ELSEWHERE}; what is read off besides: docs/design/florist.md 6",
            partial(_strategies, "features"),
        ),
        Item(
            "tables 3, 8 and 5",
            "change of AUC by the share that is lacking; labels by the model's probability, by draws",
            f"{ELSEWHERE}; thousands of rows where theirs are millions, so that training on common rows alone is starved here",
            _trainings,
        ),
        Item("table 4", "a diagram", "nothing to run"),
        Item(
            "figures 2 and 3",
            "AUC and calibration by strategy and share, and convergence",
            "curves without figures, of Criteo and Avazu, of millions of rows; AUC by share on Adult: tables 3, 8 and 5",
        ),
        Item(
            "cost of the private set union",
            "elements sent, by the paper's protocol",
            "forecast by the protocol's own sizes, not timed; `bench psu --via florist` runs it",
            _union,
        ),
    ),
)
