"""`bench utility`: how good the tables are, by the ideal functionality: rows are algorithms, columns tables,
for each epsilon.

    cosynth bench utility --data DIR --tables adult,nltcs --epsilon 0.3,1,3 --seeds 5
    cosynth bench utility --data DIR --algorithms aim:rounds=adaptive,mosaic:rounds=40,mosaic,independent --json FILE
    cosynth bench utility --data DIR --tables adult --algorithms mosaic --parts --html FILE

Tables, scores and what is compared: `runner.bench.utility`. A table that DIR lacks is named and left out. The
distribution of every answer is that of the secure backends, so utility is theirs; nothing here is protected,
and the data must be public. --parts tells where the error lies instead (`runner.bench.utility.parts`): four
runs a seed, with this and that made exact.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import IO, Any

from mpc_protocols.errors import StudyInvalid, UsageError
from mpc_protocols.process.installation import program
from runner.bench.output import files
from runner.bench.parameters import number
from runner.bench.registry import Survey
from runner.bench.utility.comparison import COMPARISONS
from runner.bench.utility.options import parser, spread
from runner.bench.utility.page import page
from runner.bench.utility.parts import error_parts
from runner.bench.utility.runs import Row, run
from runner.bench.utility.tables import chosen, names

DEFAULT_ROWS = "independent,mst,mwem,aim,mosaic:rounds=40,mosaic"
HEADINGS = {
    "err": "mean L1 distance of the workload's marginals",
    "out3": "of triples outside the workload",
    "all2": "of all pairs",
    "auc": "AUC of predicting the label on real rows",
}


class Utility(Survey):
    """Means with standard errors over seeds."""

    name, purpose, counts = "utility", "how close each algorithm's tables are to the real ones", "runs"
    parameters = ()

    def command(self, arguments: Sequence[str]) -> None:
        """Run and print. Raises `UsageError`."""
        for comparison in COMPARISONS:
            if comparison.flag in arguments:
                return comparison.command(arguments)
        options = _parser().parse_args(arguments)
        rows = [Row.parse(text) for text in options.algorithms.split(",")]
        epsilons = [number(text) or 0.0 for text in options.epsilon.split(",")]
        if min(epsilons) <= 0 or options.seeds < 1:
            raise UsageError("--epsilon takes numbers above 0, --seeds a number of at least 1.")
        wanted = options.tables.split(",") if options.tables else names(options.data)
        tables, absent = chosen(options.data, wanted)
        if absent:
            print(f"not in {options.data}, left out: {', '.join(absent)}")
        if not tables:
            raise UsageError(f"--data {options.data} holds none of the tables asked for.")
        if options.html and not options.parts:
            raise UsageError("--html goes with --parts: it is the page of where the error lies.")
        with files.opened(options) as lines:
            if options.parts:
                self._parts(rows, tables, epsilons, options, lines)
                return
            for epsilon in epsilons:
                found = [
                    [self._cell(row, table, epsilon, options, lines) for table in tables] for row in rows
                ]
                _show(epsilon, options, [row.text for row in rows], [table.name for table in tables], found)

    def _parts(
        self,
        rows: Sequence[Any],
        tables: Sequence[Any],
        epsilons: Sequence[float],
        options: argparse.Namespace,
        lines: IO[str],
    ) -> None:
        """Where the error lies, in print, in lines and on a page."""
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        found = []
        for epsilon in epsilons:
            for table in tables:
                for row in rows:
                    parts = error_parts(row, table, epsilon, options.delta, seeds)
                    found.append(parts)
                    print(f"\n{row.text} on {table.name}, epsilon {epsilon:g}, {options.seeds} runs")
                    print(f"{'exact':30}{'table':>20}{'model':>20}")
                    for exact, errors in parts.table.items():
                        print(f"{exact!s:30}{spread(errors):>20}{spread(parts.model[exact]):>20}")
                    told = ", ".join(f"{name} {value:.4f}" for name, value in parts.summary.items())
                    print(told, flush=True)
                    of = parts.lines(options.delta, options.first_seed)
                    lines.writelines(json.dumps(line) + "\n" for line in of)
                    lines.flush()
        if options.html:
            options.html.write_text(page(found, options.delta, options.seeds), encoding="utf-8")

    def _cell(
        self, row: Any, table: Any, epsilon: float, options: argparse.Namespace, lines: IO[str]
    ) -> dict[str, list[float]]:
        """The scores of all seeds."""
        found: dict[str, list[float]] = {}
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            began = time.perf_counter()
            try:
                result = run(row, table, epsilon, options.delta, seed)
            except StudyInvalid as refused:
                print(f"{row.text} on {table.name}: {refused.sentence}", flush=True)
                return {}
            for name, value in {**result.scores, "cpu_s": result.cpu_s[0]}.items():
                found.setdefault(name, []).append(value)
            line = {
                "bench": self.name,
                "algorithm": row.text,
                "table": table.name,
                "epsilon": epsilon,
                "delta": options.delta,
                "seed": seed,
                **result.scores,
                "cpu_s": result.cpu_s,
                "selected": result.selected,
                "rho_share": result.rho_share,
                "wall_s": time.perf_counter() - began,
            }
            lines.write(json.dumps(line) + "\n")
            lines.flush()
        return found


def _parser() -> argparse.ArgumentParser:
    made = parser(
        f"{__doc__}\n{_comparisons()}",
        "NAME.csv with NAME-domain.json, NAME.bif",
        "a page of it, self-contained",
    )
    made.add_argument(
        "--tables", metavar="NAME,..", help="NAME, or NAME@ROWS for some of its rows (default: all there are)"
    )
    made.add_argument(
        "--algorithms",
        metavar="NAME,..",
        default=DEFAULT_ROWS,
        help="NAME or NAME:KEY=VALUE with keys of its table in a study; label=DEGREE: sets of so many columns, and the label in "
        "each (default: %(default)s)",
    )
    made.add_argument("--epsilon", metavar="N,..", default="1", help="default: %(default)s")
    made.add_argument("--delta", metavar="N", type=float, default=1e-5, help="default: %(default)s")
    made.add_argument("--seeds", metavar="N", type=int, default=5, help="runs of each (default: %(default)s)")
    made.add_argument("--first-seed", metavar="N", type=int, default=0, help="default: %(default)s")
    made.add_argument(
        "--parts", action="store_true", help="where the error lies, by making parts of the runs exact"
    )
    return made


def _comparisons() -> str:
    """Of the help: what each comparison is of."""
    lines = (
        f"    {program()} bench utility {f'{other.flag} --help':<26}{other.summary}" for other in COMPARISONS
    )
    return "In place of these tables:\n\n" + "\n".join(lines)


def _show(
    epsilon: float,
    options: argparse.Namespace,
    rows: Sequence[str],
    tables: Sequence[str],
    found: Sequence[Sequence[dict[str, list[float]]]],
) -> None:
    width = max(map(len, rows)) + 2
    for metric, words in {**HEADINGS, "cpu_s": "CPU seconds of choosing and fitting"}.items():
        if not any(metric in cell for line in found for cell in line):
            continue
        print(f"\nepsilon {epsilon:g}, delta {options.delta:g}, {options.seeds} runs: {metric}, {words}")
        print(" " * width + "".join(f"{name:>20}" for name in tables))
        for row, line in zip(rows, found, strict=True):
            print(
                f"{row:{width}}" + "".join(f"{spread(cell.get(metric, [])):>20}" for cell in line), flush=True
            )


BENCH = Utility()
