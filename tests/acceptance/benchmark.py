"""Cosynth beside what others have made, same rows, same machine, one command: `docs/benchmark.md`. Not a
test: figures.

    make benchmark                          writes build/benchmark.md, on the demo's survey
    make benchmark DATA=DIR TABLES=adult    also on tables of `bench utility`

Protocols: party processes of this machine over loopback, beside MPyC's own secure arrays (at the size that
they manage; per cell, never extrapolated; CPU is the busiest party's, which a busy machine tells of too) and plain
NumPy in the clear. Whole runs: by the secure backends
and by a trusted curator. Tables: mean L1 distance (0..2) of marginals, the table against the rows it was made
of, of the 64 triples that were asked and of all pairs; dpmm and SmartNoise are private at the same epsilon
and delta with a trusted curator (SmartNoise reads each column's values off the rows), SDV's copula is not
private. Where somebody else's figure is the better one, the page says so below the table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from runner.bench.output.table import amount
from runner.bench.output.table import time as seconds
from runner.bench.utility.runs import Row, run
from runner.bench.utility.tables import Table, chosen
from runner.party.record.software import software
from synth.judgement.metrics import workload_error
from tests.acceptance import peers
from tests.acceptance.second_opinion import DELTA, ITERATIONS, MODEL_MB, demo

FOLDER = Path(__file__).parent
OURS = {
    "Cosynth, `mosaic`": "mosaic",
    "Cosynth, `aim`": "aim:rounds=adaptive",
    "independent columns": "independent",
}
LIMIT_S = 600.0
PROTOCOLS = (("scores",), ("select",), ("multiply", "--bits", "64"), ("gaussian", "--sigma", "100"))
BACKENDS = ("replicated", "pair", "shamir")


@dataclass(frozen=True)
class Figures:
    """A row of a table: who, whether it is ours, and what was measured (less is better)."""

    who: str
    ours: bool
    values: tuple[float, ...]


def measured(*arguments: str) -> list[dict[str, Any]]:
    """The JSON lines of `bench` with these arguments."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines.jsonl")
        subprocess.run(
            [sys.executable, "-m", "runner", "bench", *arguments, "--json", str(file)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def protocols() -> Iterator[str]:
    """Secure steps beside MPyC's and NumPy's."""
    yield from table(
        "step",
        "one cell: Cosynth, wall",
        "CPU",
        "MPyC, wall",
        "CPU",
        "wall, times as fast",
        "NumPy in the clear",
        "rounds",
    )
    for name, *options in PROTOCOLS:
        for line in measured(name, *options, "--repeats", "3"):
            baseline = line["baseline"]
            theirs = baseline.get("mpyc")
            ours_there = theirs and theirs["ours"]["wall_s"]
            yield row(
                f"`{name}`, {amount(line['amount'])} {line['unit'].removesuffix('/s')}",
                seconds(line["wall_s"] / line["amount"]),
                seconds(max(line["cpu_s"]) / line["amount"]),
                f"{seconds(theirs['wall_s'] / theirs['amount'])}, of {amount(theirs['amount'])}"
                if theirs
                else "-",
                seconds(max(theirs["cpu_s"]) / theirs["amount"]) if theirs else "-",
                f"{theirs['wall_s'] / ours_there:.0f} at MPyC's size" if theirs else "-",
                seconds(baseline["numpy"]["wall_s"] / line["amount"]) if "numpy" in baseline else "-",
                str(line["rounds"]),
            )


def whole_runs() -> Iterator[str]:
    """Runs as a user starts them, secure and by a trusted curator."""
    yield from table("backend", "wall", "CPU of the busiest party", "MB sent by all", "rounds")
    for name in BACKENDS:
        parties = "2" if name == "pair" else "3"
        (line,) = measured("end-to-end", "--backend", name, "--parties", parties, "--repeats", "3")
        if name == BACKENDS[0]:
            clear = line["baseline"]["ideal"]
            yield row(
                "`ideal`: a trusted curator", seconds(clear["wall_s"]), seconds(max(clear["cpu_s"])), "-", "-"
            )
        yield row(
            f"`{name}`",
            seconds(line["wall_s"]),
            seconds(max(line["cpu_s"])),
            f"{sum(line['bytes_sent']) / 1e6:.1f}",
            str(line["rounds"]),
        )


def synthesizers(
    of: Table, others: dict[str, Path], epsilons: Sequence[float], seeds: Sequence[int]
) -> Iterator[str]:
    """Tables by us and by others. others: interpreters by name."""
    for epsilon in epsilons:
        rows = [
            Figures(who, who.startswith("Cosynth"), _ours(text, of, epsilon, seeds))
            for who, text in OURS.items()
        ]
        for name, figures in _theirs(of, epsilon, others, seeds):
            rows.append(Figures(name, False, figures))
        yield f"\n**{of.name}**, {len(of.codes):,} rows, {len(of.domain)} columns, epsilon {epsilon:g}, delta {DELTA:g}\n"
        yield from table("who", "asked triples", "all pairs", "CPU s to fit")
        for one in rows:
            yield row(one.who, *(f"{value:.3f}" for value in one.values[:2]), f"{one.values[2]:.1f}")
        yield "\n" + losses(rows, ("asked triples", "all pairs", "CPU"))


def _ours(text: str, of: Table, epsilon: float, seeds: Sequence[int]) -> tuple[float, ...]:
    done = [run(Row.parse(text), of, epsilon, DELTA, seed) for seed in seeds]
    means = [statistics.mean(one.scores[key] for one in done) for key in ("err", "all2")]
    return *means, statistics.mean(one.cpu_s[0] for one in done)


def _theirs(
    of: Table, epsilon: float, others: dict[str, Path], seeds: Sequence[int]
) -> Iterator[tuple[str, tuple[float, ...]]]:
    asked = {
        "dpmm, AIM": ("dpmm_side.py", "dpmm", lambda seed: (epsilon, DELTA, seed, MODEL_MB, ITERATIONS)),
        "SmartNoise, AIM": ("smartnoise_side.py", "smartnoise-synth", lambda seed: (epsilon, DELTA, 1)),
        "SmartNoise, MST": ("smartnoise_side.py", "smartnoise-synth", lambda seed: (epsilon, DELTA, 0)),
        "SDV, Gaussian copula (**not private**)": ("sdv_side.py", "sdv", lambda seed: (seed,)),
    }
    pairs = list(itertools.combinations(of.domain.names, 2))
    for name, (side, key, numbers) in asked.items():
        if key not in others:
            continue
        made = [peers.table_of(others[key], FOLDER / side, of, numbers(seed), LIMIT_S) for seed in seeds]
        if not (done := [one for one in made if one is not None]):
            print(f"{of.name}: {name} took longer than {LIMIT_S:g} s", file=sys.stderr)
            continue
        errors = [
            statistics.mean(workload_error(of.codes, one.codes, of.domain, cliques) for one in done)
            for cliques in (of.workload.cliques, pairs)
        ]
        yield name, (*errors, statistics.mean(one.cpu_s for one in done))


def losses(rows: Sequence[Figures], names: Sequence[str]) -> str:
    """Where somebody else has the least."""
    lost = []
    for place, name in enumerate(names):
        best = min(rows, key=lambda one: one.values[place])
        if not best.ours:
            lost.append(f"{name}: {best.who}")
    return f"Better than Cosynth: {'; '.join(lost)}." if lost else "Nobody here is better in any of these."


def table(*names: str) -> Iterator[str]:
    """The head of a Markdown table."""
    yield row(*names)
    yield row(*("---" for _ in names))


def row(*cells: str) -> str:
    """A row of it."""
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    """What this ran on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [
            line for line in info.read_text(encoding="utf-8").splitlines() if line.startswith("model name")
        ]
        model = named[0].partition(":")[2].strip() if named else model
    versions = ", ".join(f"{name} {version[:12]}" for name, version in software().items() if version)
    load = f"load {os.getloadavg()[0]:.1f} at the start"
    return f"{date.today().isoformat()}: {os.cpu_count()} processors ({model}), {load}; {versions}"


def version(python: Path, package: str) -> str:
    """Of a package of another environment; "" if it is not there."""
    program = f"import importlib.metadata as m; print(m.version({package!r}))"
    try:
        said = subprocess.run(
            [str(python), "-c", program],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{package} {said.stdout.strip()}"


def page(
    tables: Iterable[Table], others: dict[str, Path], epsilons: Sequence[float], seeds: Sequence[int]
) -> Iterator[str]:
    """The lines of the page."""
    yield "# Beside others\n"
    yield "Same rows, same machine, one command: `make benchmark` writes this page anew, and nothing in it is written by hand.\n"
    yield machine() + "".join(f", {version(python, name)}" for name, python in others.items()) + "."
    yield "\n## 1. Secure steps\n"
    yield from protocols()
    yield "\n## 2. Whole runs\n"
    yield "AIM, 10 rounds, a table like Adult of 48,000 rows, start-up, TLS and files in; loopback.\n"
    yield from whole_runs()
    yield "\n## 3. Tables\n"
    yield f"Mean L1 distance (0..2) from the rows, seeds {', '.join(map(str, seeds))}."
    yield "By a trusted curator for all: noise on shares has the same law."
    for of in tables:
        yield from synthesizers(of, others, epsilons, seeds)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", type=Path, help="the Markdown file to write")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=PYTHON", help="dpmm, smartnoise-synth, sdv"
    )
    parser.add_argument("--data", type=Path, help="a folder of tables, beside the demo's survey")
    parser.add_argument("--tables", default="", help="of the folder, with commas between them")
    parser.add_argument("--epsilon", default="0.3,1,3")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    epsilons, seeds = [float(text) for text in options.epsilon.split(",")], range(options.seeds)
    tables = [demo(), *(chosen(options.data, options.tables.split(","))[0] if options.data else [])]
    named = {name: Path(python) for name, _, python in (text.partition("=") for text in options.peer)}
    others = {name: python for name, python in named.items() if version(python, name)}
    if absent := named.keys() - others.keys():
        print(f"not installed here, left out: {', '.join(sorted(absent))}", file=sys.stderr)
    began, lines = time.monotonic(), []
    for line in page(tables, others, epsilons, seeds):
        print(line, flush=True)
        lines.append(line)
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{options.page}, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
