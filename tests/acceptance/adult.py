"""Adult, end to end: error, agreement of backends with `ideal`, wall time, bytes of a contributor. Not a
test: figures.

    python -m tests.acceptance.adult error --runs 10 --rounds 10 --backend ideal shamir pair
    python -m tests.acceptance.adult error --runs 5 --backend paillier --input shares
    python -m tests.acceptance.adult wall --pairs 5
    python -m tests.acceptance.adult malicious --pairs 5
    python -m tests.acceptance.adult bytes
    python -m tests.acceptance.adult cost --algorithm mosaic --rounds 40 --delay-ms 20 --rate-mbit 100

The table is adult.csv (48,842 rows, 14 columns; not shipped) in the folder `DATA`, rows dealt at random to
the custodians with seed 7; workload: 64 random three-way marginals (seed 123), epsilon 1, delta 1e-5. Error:
mean L1 distance of the 64 normalised marginals, synthetic rows against the rows used, by an independent
histogram. Runs are `cosynth run` commands.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from runner.bench.within import command_of
from runner.launch.fork_server import PROGRAM
from runner.results.outdir import PARTY_FOLDERS, USAGE

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"

STUDY = """\
[study]
name = "adult"
algorithm = "{algorithm}"
backend = "{backend}"
security = "{security}"
partition = "horizontal"
[privacy]
epsilon = 1.0
delta = 1e-5
adjacency = "add-remove"
max_rows = 65536
[workload]
degree = 3
count = 64
seed = 123
[{algorithm}]
rounds = {rounds}
{prune}{input}[domain]
file = "{domain}"
"""
PARTY = '[[party]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\ndata = "{name}.csv"\n'


def deal(directory: Path, custodians: int) -> None:
    """One CSV file per custodian."""
    rows = pd.read_csv(DATA / "adult.csv")
    owner = np.random.default_rng(7).integers(custodians, size=len(rows))
    for number in range(custodians):
        rows[owner == number].to_csv(directory / f"c{number}.csv", index=False)


def study(
    directory: Path,
    backend: str,
    rounds: str,
    prune: bool,
    custodians: int,
    algorithm: str = "aim",
    input_: str | None = None,
    security: str = "semi-honest",
) -> Path:
    """The study file of one variant. prune: AIM's. input_: how custodians that do not compute contribute to
    `paillier`."""
    path = directory / f"{backend}-{security}.toml"
    path.write_text(
        STUDY.format(
            backend=backend,
            security=security,
            rounds=rounds if rounds.isdigit() else f'"{rounds}"',
            algorithm=algorithm,
            prune=f"prune = {str(prune).lower()}\n" if algorithm == "aim" else "",
            input=f'[paillier]\ninput = "{input_}"\n' if backend == "paillier" and input_ else "",
            domain=DATA / "adult-domain.json",
        )
        + "".join(PARTY.format(name=f"c{number}", port=7311 + number) for number in range(custodians))
    )
    return path


def run(path: Path, out: Path, program: tuple[str, ...] = PROGRAM) -> tuple[float, dict[str, Any]]:
    """One run; wall seconds with start-up, and its run.json."""
    began = time.monotonic()
    subprocess.run(
        [*program, "run", str(path), "--out", str(out), "--replace"],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"COSYNTH_LEDGER": str(path.parent / "ledger.db")},
    )
    return time.monotonic() - began, json.loads((out / "run.json").read_text())


def cost(arguments: argparse.Namespace, directory: Path) -> None:
    """Cells, rounds, bytes and CPU seconds of runs over a network, and their wall time beside that of
    `ideal`."""
    program: tuple[str, ...] = PROGRAM
    if arguments.delay_ms or arguments.rate_mbit:
        rate = {"bytes_per_s": arguments.rate_mbit * 125_000} if arguments.rate_mbit else {}
        program = command_of(json.dumps({"network": {"delay_s": arguments.delay_ms / 1000, **rate}}))
    for _ in range(arguments.runs):
        walls = {}
        for backend in ("ideal", "replicated"):
            path = study(directory, backend, arguments.rounds, True, 3, arguments.algorithm)
            out = directory / f"out-{backend}"
            walls[backend], facts = run(path, out, program if backend == "replicated" else PROGRAM)
        phases: dict[str, float] = {}
        for phase in facts["phases"]:
            phases[phase["name"]] = phases.get(phase["name"], 0.0) + phase["wall_s"]
        used = [
            json.loads((out / PARTY_FOLDERS / party["name"] / USAGE).read_text())["cpu_s"]
            for party in facts["parties"]
        ]
        print(
            f"rounds {max(party['rounds'] for party in facts['parties'])}, "
            f"{sum(party['bytes_sent'] for party in facts['parties']) / 1e6:.0f} MB in all, "
            f"CPU {' '.join(f'{seconds:.1f}' for seconds in used)} s, wall {walls['replicated']:.1f} s with start-up, "
            f"{facts['wall_s']:.1f} s without ({', '.join(f'{name} {s:.1f}' for name, s in phases.items())}), "
            f"ideal {walls['ideal']:.1f} s, ratio {walls['replicated'] / walls['ideal']:.2f}",
            flush=True,
        )


def error(out: Path, cliques: list[tuple[str, ...]]) -> float:
    """Mean L1 distance of normalised marginals."""
    real, synthetic = pd.read_csv(DATA / "adult.csv"), pd.read_csv(out / "synthetic.csv")

    def distance(clique: tuple[str, ...]) -> float:
        shares = [table.value_counts(list(clique), normalize=True) for table in (real, synthetic)]
        return float(shares[0].sub(shares[1], fill_value=0).abs().sum())

    return statistics.mean(map(distance, cliques))


def beside(errors: list[float], others: list[float]) -> str:
    """Mean and spread, and how many standard errors of the difference the means lie apart."""
    mean, spread = statistics.mean(errors), statistics.stdev(errors) if len(errors) > 1 else float("nan")
    told = f"mean {mean:.4f}, sd {spread:.4f}, n {len(errors)}"
    if errors is others or min(len(errors), len(others)) < 2:
        return told
    apart = (spread**2 / len(errors) + statistics.variance(others) / len(others)) ** 0.5
    return f"{told}, {(mean - statistics.mean(others)) / apart:+.1f} standard errors from the first"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("error", "wall", "malicious", "bytes", "cost"))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rounds", default="10", help='a number or "adaptive"')
    parser.add_argument("--backend", nargs="+", default=["ideal"], help="error: beside the first one")
    parser.add_argument("--input", choices=("paillier", "shares"), help="error: of paillier")
    parser.add_argument("--custodians", type=int, default=3, help="error")
    parser.add_argument("--algorithm", default="aim", help="cost: aim or mosaic")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="cost: one way, emulated in the parties")
    parser.add_argument("--rate-mbit", type=float, default=0.0, help="cost: into a party")
    arguments = parser.parse_args()
    from runner.study import load

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if arguments.what == "bytes":
            deal(directory, 4)
            for prune in (True, False):
                _, summary = run(
                    study(directory, "replicated", arguments.rounds, prune, 4), directory / "out"
                )
                sent = summary["parties"][3]["bytes_sent"]
                print(f"prune = {str(prune).lower()}: a contributor sends {sent / 1e6:.3f} MB")
            return
        deal(directory, arguments.custodians if arguments.what == "error" else 3)
        if arguments.what == "cost":
            cost(arguments, directory)
            return
        if arguments.what == "error":
            first: list[float] = []
            for backend in arguments.backend:
                path = study(
                    directory, backend, arguments.rounds, True, arguments.custodians, input_=arguments.input
                )
                cliques = list(load(path).workload.cliques)
                errors = []
                for number in range(arguments.runs):
                    _, summary = run(path, directory / "out")
                    errors.append(error(directory / "out", cliques))
                    sent = max(party["bytes_sent"] for party in summary["parties"])
                    print(f"run {number + 1}: {errors[-1]:.4f}, {sent / 1e6:.1f} MB sent at most", flush=True)
                first = first or errors
                print(f"{backend}, {arguments.rounds} rounds: {beside(errors, first)}", flush=True)
            return
        compared = (
            (("semi-honest", "replicated"), ("malicious", "replicated"))
            if arguments.what == "malicious"
            else (("ideal", "ideal"), ("replicated", "replicated"))
        )
        securities = {"malicious": "malicious"}
        paths = {
            name: study(
                directory, backend, arguments.rounds, True, 3, security=securities.get(name, "semi-honest")
            )
            for name, backend in compared
        }
        pairs(directory, paths, arguments.pairs)


def pairs(directory: Path, paths: dict[str, Path], count: int) -> None:
    """Runs of two variants in turns: wall times with and without start-up, CPU of the busiest party, bytes of
    all."""
    walls: dict[str, list[float]] = {name: [] for name in paths}
    inner: dict[str, list[float]] = {name: [] for name in paths}
    cpu: dict[str, list[float]] = {name: [] for name in paths}
    sent: dict[str, list[float]] = {name: [] for name in paths}
    for number in range(count):
        for name, path in paths.items():
            out = directory / f"out-{name}"
            wall, summary = run(path, out)
            walls[name].append(wall)
            starting = {"connect", "agree"}
            inner[name].append(
                sum(phase["wall_s"] for phase in summary["phases"] if phase["name"] not in starting)
            )
            used = [json.loads(file.read_text())["cpu_s"] for file in out.glob(f"{PARTY_FOLDERS}/*/{USAGE}")]
            cpu[name].append(max(used, default=0.0))
            sent[name].append(sum(party["bytes_sent"] for party in summary["parties"]) / 1e6)
        print(
            f"pair {number + 1}: " + ", ".join(f"{name} {of[-1]:.2f} s" for name, of in walls.items()),
            flush=True,
        )
    units = {"with start-up": walls, "without start-up": inner, "CPU of the busiest party": cpu}
    for what, figures in {**units, "MB sent in all": sent}.items():
        (first, one), (second, other) = ((name, statistics.median(of)) for name, of in figures.items())
        ratio = f", ratio {other / one:.2f}" if one else ""
        print(f"{what}: {first} {one:.2f}, {second} {other:.2f}{ratio} (medians)")


if __name__ == "__main__":
    main()
