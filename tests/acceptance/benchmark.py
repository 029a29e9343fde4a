"""Cosynth beside what others have made, same rows, same machine, one command: `docs/benchmark.md`. Not a
test: figures.

    make benchmark                          writes build/benchmark.md, on the demo's survey
    make benchmark DATA=DIR TABLES=adult    also on tables of `bench utility`
    make benchmark MINUTES=60               for longer than 25 minutes

It ends by itself: what has not begun when its minutes are over is left out, and what runs then is stopped, but for
a table of ours, of seconds of CPU. What another program needs more than LIMIT_S seconds of CPU for is stopped and
not asked for again. The page lists each of these, and what is not installed, with the reason. Ours come first, then
what others take the least for; the first epsilon of all tables before the second.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from runner.bench.output.table import amount
from runner.bench.output.table import time as seconds
from runner.bench.utility.runs import Result, Row, run
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
LIMIT_S = 150.0
"""Seconds of CPU for one run of another's."""
MINUTES = 25.0
FOR_TABLES = 0.5
"""Share of the minutes that secure steps and whole runs leave to the tables."""
PROTOCOLS = (("scores",), ("select",), ("multiply", "--bits", "64"), ("gaussian", "--sigma", "100"))
BACKENDS = ("replicated", "pair", "shamir")
REPEATS = "1"
ON_ITS_OWN = "whoever has compiled it measures it by `cosynth bench peers --mp-spdz DIR`, which writes a page of its own"


@dataclass(frozen=True)
class Figures:
    """A row of a table: who, whether it is ours, and what was measured (less is better)."""

    who: str
    ours: bool
    values: tuple[float, ...]


class Clock:
    """The minutes of one benchmark, and what they were not enough for."""

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes
        self._end = time.monotonic() + 60 * minutes
        self.left_out: dict[str, str] = {}
        """By what was left out, why; in the order in which it was."""

    @property
    def left_s(self) -> float:
        """Seconds that are left; 0 when it is over."""
        return max(0.0, self._end - time.monotonic())

    @property
    def before_tables_s(self) -> float:
        """Seconds that are left for what comes before the tables."""
        return max(0.0, self.left_s - FOR_TABLES * 60 * self.minutes)

    def over(self, what: str) -> None:
        """Note that this was not begun, or not finished."""
        self.left_out[what] = f"its part of the {self.minutes:g} minutes of this benchmark was over"


def measured(clock: Clock, *arguments: str) -> list[dict[str, Any]]:
    """The JSON lines of `bench` with these arguments; none if there was no time."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines.jsonl")
        with subprocess.Popen(
            [sys.executable, "-m", "runner", "bench", *arguments, "--json", str(file)],
            stdout=subprocess.DEVNULL,
        ) as bench:
            try:
                if bench.wait(clock.before_tables_s):
                    raise subprocess.CalledProcessError(bench.returncode, bench.args)
            except subprocess.TimeoutExpired:
                bench.terminate()  # it says so on standard error, and ends its parties
                clock.over(f"`bench {' '.join(arguments)}`")
                return []
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def protocols(clock: Clock) -> Iterator[str]:
    """Secure steps beside MPyC's and NumPy's."""
    yield from table(
        "step",
        "one cell: Cosynth, wall",
        "CPU",
        "MPyC, wall",
        "CPU",
        "times as fast",
        "NumPy",
        "rounds",
    )
    for name, *options in PROTOCOLS:
        for line in measured(clock, name, *options, "--repeats", "3"):
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
                f"{theirs['wall_s'] / ours_there:.0f}" if theirs else "-",
                seconds(baseline["numpy"]["wall_s"] / line["amount"]) if "numpy" in baseline else "-",
                str(line["rounds"]),
            )


def whole_runs(clock: Clock) -> Iterator[str]:
    """Runs as a user starts them, secure and by a trusted curator."""
    yield from table("backend", "wall", "CPU of the busiest party", "MB sent by all", "rounds")
    for name in BACKENDS:
        parties = "2" if name == "pair" else "3"
        once = () if name == BACKENDS[0] else ("--no-baseline",)
        asked = (
            "end-to-end",
            "--backend",
            name,
            "--parties",
            parties,
            "--repeats",
            REPEATS,
            "--warmup",
            "0",
            *once,
        )
        for line in measured(clock, *asked):
            if not once:
                clear = line["baseline"]["ideal"]
                yield row(
                    "`ideal`: a trusted curator",
                    seconds(clear["wall_s"]),
                    seconds(max(clear["cpu_s"])),
                    "-",
                    "-",
                )
            yield row(
                f"`{name}`",
                seconds(line["wall_s"]),
                seconds(max(line["cpu_s"])),
                f"{sum(line['bytes_sent']) / 1e6:.1f}",
                str(line["rounds"]),
            )


def synthesizers(
    of: Table, others: dict[str, Path], epsilon: float, seeds: Sequence[int], clock: Clock
) -> Iterator[str]:
    """Tables by us and by others, which have one run each. others: interpreters by name."""
    rows = [
        Figures(who, who.startswith("Cosynth"), _ours(text, of, epsilon, seeds, clock))
        for who, text in OURS.items()
    ]
    for name, figures in _theirs(of, epsilon, others, seeds[0], clock):
        rows.append(Figures(name, False, figures))
    yield f"\n**{of.name}**, {len(of.codes):,} rows, {len(of.domain)} columns, epsilon {epsilon:g}, delta {DELTA:g}\n"
    yield from table("who", "asked triples", "all pairs", "CPU s to fit")
    for one in rows:
        yield row(one.who, *(f"{value:.3f}" for value in one.values[:2]), f"{one.values[2]:.1f}")
    yield "\n" + losses(rows, ("asked triples", "all pairs", "CPU"))


def _ours(text: str, of: Table, epsilon: float, seeds: Sequence[int], clock: Clock) -> tuple[float, ...]:
    done: list[Result] = []
    for seed in seeds:
        if done and not clock.left_s:
            clock.over(f"{text} on {of.name} at epsilon {epsilon:g}, from seed {seed} on")
            break
        done.append(run(Row.parse(text), of, epsilon, DELTA, seed))
    means = [statistics.mean(one.scores[key] for one in done) for key in ("err", "all2")]
    return *means, statistics.mean(one.cpu_s[0] for one in done)


def _theirs(
    of: Table, epsilon: float, others: dict[str, Path], seed: int, clock: Clock
) -> Iterator[tuple[str, tuple[float, ...]]]:
    asked: dict[str, tuple[str, str, tuple[float, ...]]] = {
        "SDV, Gaussian copula (**not private**)": ("sdv_side.py", "sdv", (seed,)),
        "dpmm, AIM": ("dpmm_side.py", "dpmm", (epsilon, DELTA, seed, MODEL_MB, ITERATIONS)),
        "SmartNoise, MST": ("smartnoise_side.py", "smartnoise-synth", (epsilon, DELTA, 0)),
        "SmartNoise, AIM": ("smartnoise_side.py", "smartnoise-synth", (epsilon, DELTA, 1)),
    }
    pairs = list(itertools.combinations(of.domain.names, 2))
    for name, (side, key, numbers) in asked.items():
        here = f"{name} on {of.name}"
        if key not in others or here in clock.left_out:
            continue
        left = clock.left_s
        made = peers.table_of(others[key], FOLDER / side, of, numbers, LIMIT_S, left) if left else None
        if made is not None:
            errors = [
                workload_error(of.codes, made.codes, of.domain, cliques)
                for cliques in (of.workload.cliques, pairs)
            ]
            yield name, (*errors, made.cpu_s)
        elif clock.left_s:
            clock.left_out[here] = (
                f"it had not ended after {LIMIT_S:g} seconds of CPU at epsilon {epsilon:g}, and was not asked again"
            )
        else:
            clock.over(f"{here} at epsilon {epsilon:g}")


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
    tables: Sequence[Table],
    others: dict[str, Path],
    epsilons: Sequence[float],
    seeds: Sequence[int],
    clock: Clock,
) -> Iterator[str]:
    """The lines of the page."""
    yield "# Beside others\n"
    yield "Same rows, same machine, one command: `make benchmark` writes this page anew, and nothing in it is written by hand.\n"
    yield machine() + "".join(f", {version(python, name)}" for name, python in others.items()) + "."
    yield "\n## 1. Secure steps\n"
    yield from protocols(clock)
    yield "\nTimes as fast: walls, both at MPyC's size. NumPy: in the clear.\n"
    yield "## 2. Whole runs\n"
    yield "AIM, 10 rounds, a table like Adult of 48,000 rows, start-up, TLS and files in; loopback; one run each.\n"
    yield from whole_runs(clock)
    yield "\n## 3. Tables\n"
    yield f"Mean L1 distance (0..2) from the rows, seeds {', '.join(map(str, seeds))} (others: seed {seeds[0]} alone)."
    yield "By a trusted curator for all: noise on shares has the same law."
    for epsilon in epsilons:
        for of in tables:
            if clock.left_s:
                yield from synthesizers(of, others, epsilon, seeds, clock)
            else:
                clock.over(f"{of.name} at epsilon {epsilon:g}")
    yield "\n## 4. Left out\n"
    yield from table("what", "why")
    for what, why in clock.left_out.items():
        yield row(what, why)
    yield row("MP-SPDZ", ON_ITS_OWN)


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
    parser.add_argument(
        "--epsilon", default="1,0.3,3", help="the first is measured first (default: %(default)s)"
    )
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="after which nothing is begun (default: %(default)s)"
    )
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    epsilons, seeds = [float(text) for text in options.epsilon.split(",")], range(options.seeds)
    tables = [demo(), *(chosen(options.data, options.tables.split(","))[0] if options.data else [])]
    named = {name: Path(python) for name, _, python in (text.partition("=") for text in options.peer)}
    others = {name: python for name, python in named.items() if version(python, name)}
    began, lines, clock = time.monotonic(), [], Clock(options.minutes)
    clock.left_out |= {name: "it is not installed here" for name in named if name not in others}
    for line in page(tables, others, epsilons, seeds, clock):
        print(line, flush=True)
        lines.append(line)
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{options.page}, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
