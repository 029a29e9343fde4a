"""`bench utility --federated`: rows are methods, columns tables and splits; curves over what several values
are given of.

    cosynth bench utility --federated --data DIR --tables adult --splits cluster,label:0.8 --seeds 12
    cosynth bench utility --federated --data DIR --methods collect,private --chance 0.1,0.2,0.5 --html FILE

The first value of --chance, --rounds and --epsilon is that of the table; further values are measured besides,
one changed at a time. All splits are columns. Means with the spread of one run in brackets; the papers'
printed figures beside.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import IO, Any, Final

from mpc_protocols.errors import StudyInvalid, UsageError
from runner.bench.output import files
from runner.bench.parameters import number
from runner.bench.research.federated import show
from runner.bench.research.federated.methods import Row
from runner.bench.research.federated.runs import VARIED, Point, Source, run
from runner.bench.research.federated.splits import Split
from runner.bench.utility.options import parser

DEFAULT_METHODS: Final = (
    "central,collect,collect:rounds=adaptive,collect:register=true:rounds=adaptive,arriving,light,private,"
    "private:participations=all:group=1,naive:group=1,oracle:participations=all:group=1,random,bayes,one-shot,independent"
)


def command(arguments: Sequence[str]) -> None:
    """Run and print. Raises `UsageError`."""
    options = _parser().parse_args(arguments)
    rows = [Row.parse(text) for text in options.methods.split(",")]
    splits = [Split.parse(text).text for text in options.splits.split(",")]
    values: dict[str, list[Any]] = {
        "chance": _numbers(options.chance, "--chance", 1.0),
        "rounds": [int(value) for value in _numbers(options.rounds, "--rounds", 1 << 12)],
        "epsilon": _numbers(options.epsilon, "--epsilon", 1e3),
    }
    if min(options.seeds, options.clients, options.partitions) < 1 or not 0 < options.delta < 1:
        raise UsageError("--seeds, --clients and --partitions are at least 1, --delta lies between 0 and 1.")
    base = [
        Point(
            table,
            split,
            options.clients,
            values["chance"][0],
            values["rounds"][0],
            values["epsilon"][0],
            options.delta,
            options.partitions,
        )
        for table in options.tables.split(",")
        for split in (["own"] if table.startswith("synthfs") else splits)
    ]
    points = [
        *base,
        *(other for name in VARIED for point in base for other in point.varied(name, values[name][1:])),
    ]
    source = Source(options.data)
    with files.opened(options) as lines:
        found = {
            (row.text, point): _cell(row, point, source, options, lines) for point in points for row in rows
        }
    found = {cell: results for cell, results in found.items() if results}
    if not found:
        raise UsageError(f"--data {options.data} holds none of the tables asked for.")
    show.tables(rows, base, found)
    show.curves(rows, base, points, found)
    if options.html:
        show.page(options.html, rows, base, points, found)


def _cell(row: Any, point: Any, source: Any, options: argparse.Namespace, lines: IO[str]) -> list[Any]:
    """The results of all seeds; none of a table that is not there, or where the method cannot run."""
    results = []
    for seed in range(options.seeds):
        world = source.world(point, seed)
        if world is None:
            print(f"{point.table} is not there and left out", flush=True)
            return []
        try:
            result = run(row, world, options.auc)
        except StudyInvalid as refused:
            print(f"{row.text} on {point.table}, {point.split}: {refused.sentence}", flush=True)
            return []
        results.append(result)
        line = {"bench": "utility", "federated": row.text, **asdict(point), "seed": seed}
        line |= {
            **result.scores,
            "cpu_s": result.cpu_s,
            "arrived": result.arrived,
            "rho_share": result.rho_share,
        }
        lines.write(json.dumps(line) + "\n")
        lines.flush()
    return results


def _numbers(text: str, name: str, most: float) -> list[float]:
    values = [number(part) or 0.0 for part in text.split(",")]
    if min(values) <= 0 or max(values) > most:
        raise UsageError(f"{name} takes numbers above 0 and of at most {most:g}.")
    return values


def _parser() -> argparse.ArgumentParser:
    made = parser(__doc__, page="a page with the tables and curves")
    made.add_argument(
        "--federated", action="store_true", required=True, help="many clients, some of which arrive"
    )
    made.add_argument(
        "--tables",
        metavar="NAME,..",
        default="adult",
        help="NAME, NAME@ROWS, or synthfs:BETA (default: %(default)s)",
    )
    made.add_argument(
        "--splits",
        metavar="SPLIT,..",
        default="cluster,label:0.8",
        help="cluster, label:BETA, iid (default: %(default)s)",
    )
    made.add_argument(
        "--methods",
        metavar="NAME,..",
        default=DEFAULT_METHODS,
        help="NAME or NAME:KEY=VALUE, as docs/design/flaim.md lists them (default: %(default)s)",
    )
    made.add_argument("--clients", metavar="N", type=int, default=100, help="default: %(default)s")
    made.add_argument(
        "--chance",
        metavar="P,..",
        default="0.1",
        help="of a client to be there in a round (default: %(default)s)",
    )
    made.add_argument("--rounds", metavar="N,..", default="10", help="of arrivals (default: %(default)s)")
    made.add_argument("--epsilon", metavar="N,..", default="1", help="default: %(default)s")
    made.add_argument("--delta", metavar="N", type=float, default=1e-5, help="default: %(default)s")
    made.add_argument(
        "--seeds", metavar="N", type=int, default=12, help="runs of each (default: %(default)s)"
    )
    made.add_argument(
        "--partitions",
        metavar="N",
        type=int,
        default=3,
        help="the runs take turns with so many ways to split (default: %(default)s)",
    )
    made.add_argument("--auc", action="store_true", help="also predict the label, some seconds a run")
    return made
