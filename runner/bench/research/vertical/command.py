"""`bench utility --vertical`: systems for columns that two owners hold: rows are systems, columns tables, for
each epsilon.

    cosynth bench utility --vertical --data DIR --tables nltcs,adult-vfl,br2000 --epsilon 0.8,3.2 --seeds 5
    cosynth bench utility --vertical --data DIR --systems vertimrf,vertimrf:encoder=fo:adjacency=replace --json FILE

Means with standard errors over runs, and in brackets what the papers print. The studies run as a user's
would, on `ideal`; add backend=replicated to a system to have three processes compute. Data must be public.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import IO, Any, Final

from mpc_protocols.errors import StudyInvalid, UsageError
from runner.bench.output import files
from runner.bench.parameters import number
from runner.bench.research.vertical.printed import cited, printed
from runner.bench.research.vertical.runs import Row, run
from runner.bench.utility.options import parser, spread
from runner.bench.utility.tables import chosen

DEFAULT_SYSTEMS: Final = (
    "aim:rounds=adaptive,mosaic,privmrf,vertimrf,vertimrf:adjacency=replace,"
    "vertimrf:encoder=fo:adjacency=replace,vertimrf:encoder=fm:adjacency=replace,vertigan"
)
HEADINGS: Final = {
    **{f"tvd{k}": f"mean total variation distance of {k}-way marginals" for k in (1, 2, 3, 4)},
    "auc": "AUC of predicting the label on real rows",
    "wall_s": "seconds of a run, with the start of processes",
}
_WIDTH = 30


def compare(arguments: Sequence[str]) -> None:
    """Run and print. Raises `UsageError`."""
    options = _parser().parse_args(arguments)
    rows = [Row.parse(text) for text in options.systems.split(",")]
    epsilons = [number(text) or 0.0 for text in options.epsilon.split(",")]
    if min(epsilons) <= 0 or options.seeds < 1:
        raise UsageError("--epsilon takes numbers above 0, --seeds a number of at least 1.")
    tables, absent = chosen(options.data, options.tables.split(","))
    if absent:
        print(f"not in {options.data}, left out: {', '.join(absent)}")
    if not tables:
        raise UsageError(f"--data {options.data} holds none of the tables asked for.")
    with files.opened(options) as lines:
        for epsilon in epsilons:
            found = [[_cell(row, table, epsilon, options, lines) for table in tables] for row in rows]
            _show(epsilon, options, [row.text for row in rows], [table.name for table in tables], found)
    print("", *cited(), sep="\n")


def _cell(
    row: Any, table: Any, epsilon: float, options: argparse.Namespace, lines: IO[str]
) -> Mapping[str, list[float]]:
    """The figures of all runs; nothing where the system cannot run."""
    found: dict[str, list[float]] = {}
    for _ in range(options.seeds):
        try:
            result = run(row, table, epsilon, options.delta)
        except StudyInvalid as refused:
            print(f"{row.text} on {table.name}: {refused.sentence}", flush=True)
            return {}
        for name, value in {**result.scores, "wall_s": result.wall_s}.items():
            found.setdefault(name, []).append(value)
        line = {"bench": "utility", "vertical": row.text, "table": table.name, "epsilon": epsilon}
        lines.write(json.dumps({**line, "delta": options.delta, **result.scores, "wall_s": result.wall_s}))
        lines.write("\n")
        lines.flush()
    return found


def _show(
    epsilon: float,
    options: argparse.Namespace,
    rows: Sequence[str],
    tables: Sequence[str],
    found: Sequence[Sequence[Mapping[str, list[float]]]],
) -> None:
    width = max(map(len, rows)) + 2
    for metric, words in HEADINGS.items():
        if not any(metric in cell for line in found for cell in line):
            continue
        print(f"\nepsilon {epsilon:g}, delta {options.delta:g}, {options.seeds} runs: {metric}, {words}")
        print(" " * width + "".join(f"{name:>{_WIDTH}}" for name in tables))
        for row, line in zip(rows, found, strict=True):
            cells = []
            for table, cell in zip(tables, line, strict=True):
                paper = printed(row, table, metric)
                text = spread(cell.get(metric, []))
                cells.append(text if paper is None else f"{text} [{paper[0]:g}-{paper[1]:g}]")
            print(f"{row:{width}}" + "".join(f"{text:>{_WIDTH}}" for text in cells), flush=True)


def _parser() -> argparse.ArgumentParser:
    made = parser(__doc__)
    made.add_argument("--vertical", action="store_true", required=True, help="columns of two owners")
    made.add_argument(
        "--tables", metavar="NAME,..", default="nltcs,adult-vfl,br2000", help="default: %(default)s"
    )
    made.add_argument(
        "--systems",
        metavar="NAME,..",
        default=DEFAULT_SYSTEMS,
        help="NAME or NAME:KEY=VALUE with keys of its table in a study, adjacency or backend (default: %(default)s)",
    )
    made.add_argument("--epsilon", metavar="N,..", default="0.8", help="default: %(default)s")
    made.add_argument("--delta", metavar="N", type=float, default=1e-5, help="default: %(default)s")
    made.add_argument("--seeds", metavar="N", type=int, default=5, help="runs of each (default: %(default)s)")
    return made
