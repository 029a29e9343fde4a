"""Vertically split tables, end to end: error against `ideal`, wall, bytes, memory. Not a test: figures.

    python -m tests.acceptance.vertical adult --runs 5                       8 & 7 columns, all 2-way cliques, epsilon 1, replace
    python -m tests.acceptance.vertical adult --degree 3 --count 64          64 random 3-way cliques (seed 123)
    python -m tests.acceptance.vertical adult --delay-ms 20 --rate 100       the same run, 20 ms one way, 100 Mbit/s
    python -m tests.acceptance.vertical nltcs --runs 5                       8 & 8 columns, epsilon 0.8, all 3-way cliques
    python -m tests.acceptance.vertical adult --algorithm vertimrf --epsilon 0.8    another algorithm: TVD of 3-way sets
    python -m tests.acceptance.vertical three --runs 5                       Adult, 5 & 5 & 5, cliques across all three owners
    python -m tests.acceptance.vertical malicious --runs 3                   Adult row by row: malicious against semi-honest
    python -m tests.acceptance.vertical joined --runs 1                      the same, joined by identifiers (--via)

Tables are adult-vfl.csv (45,222 x 15) and nltcs.csv (21,574 x 16) in the folder `DATA`, not shipped: without
them this says so and ends with 0. A person is a row of the file; each owner of Adult holds 90 % of the
people, drawn independently with seed 20260101 (NLTCS: all of them), and a third party computes without data
(`three`: the third owner does). The reference is the same study on `ideal`, and the error is taken against
the joined intersection, which only this script knows: mean L1 distance of the workload's normalised marginals
for Adult, mean total variation distance of 300 random 3-way marginals (seed 0) for NLTCS.

CPU seconds are of whole processes with one thread of BLAS. What starting costs (imports, session, files) is
that of the same study on the first 1,200 people and two columns of each owner. Told are the busiest party and
all together, beside the one process of `ideal`, with starting and without.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.worlds.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
HELD_SEED = 20260101

STUDY = """\
[study]
name = "{name}"
algorithm = "{algorithm}"
backend = "{backend}"
security = "{security}"
partition = "vertical"
[privacy]
epsilon = {epsilon}
delta = 1e-5
adjacency = "{adjacency}"
max_rows = 65536
[workload]
{workload}
{table}
[domain]
file = "{domain}"
[alignment]
{alignment}
"""
BY_IDENTIFIER = 'method = "psu"\nvia = "{via}"\nid = "person"'


@dataclass(frozen=True)
class Trial:
    """One table and how it is split. counts: columns of each owner, in order. share: of the people at each
    owner."""

    table: str
    counts: tuple[int, ...]
    share: float
    epsilon: float
    adjacency: str
    aligned: bool = False
    """Whether every owner holds everybody, in the same order."""


TRIALS = {
    "adult": Trial("adult-vfl", (8, 7), 0.9, 1.0, "replace"),
    "nltcs": Trial("nltcs", (8, 8), 1.0, 0.8, "add-remove"),
    "malicious": Trial("adult-vfl", (8, 7), 1.0, 1.0, "replace", aligned=True),
    "joined": Trial("adult-vfl", (8, 7), 0.9, 1.0, "replace"),
    "three": Trial("adult-vfl", (5, 5, 5), 0.9, 1.0, "replace"),
}


STARTED = 1200
"""People of the study that shows what starting costs."""


def split(trial: Trial, directory: Path, small: bool = False) -> pd.DataFrame:
    """Domain, and one CSV file per owner, its rows in an order of its own; returns the joined intersection."""
    rows = pd.read_csv(DATA / f"{trial.table}.csv")[: STARTED if small else None]
    sizes = json.loads((DATA / f"{trial.table}-domain.json").read_text())
    rng, common, start = np.random.default_rng(HELD_SEED), np.ones(len(rows), bool), 0
    names: list[str] = []
    for number, count in enumerate(trial.counts):
        held = rng.random(len(rows)) < trial.share
        common &= held
        order, own = np.flatnonzero(held), list(sizes)[start : start + count]
        if not trial.aligned:
            order = rng.permutation(order)
        own = own[: 2 if small else None]
        brought = rows.iloc[order][own]
        if not trial.aligned:
            brought = brought.assign(person=order)
        brought.to_csv(directory / f"c{number}.csv", index=False)
        start, names = start + count, names + own
    (directory / "domain.json").write_text(json.dumps({name: sizes[name] for name in names}))
    return rows.loc[common, names]


def study(
    trial: Trial, directory: Path, backend: str, options: argparse.Namespace, security: str = "semi-honest"
) -> Path:
    """The study file of one backend."""
    workload = f"degree = {options.degree}" + (
        f"\ncount = {options.count}\nseed = 123" if options.count else ""
    )
    rounds = options.rounds if options.rounds.isdigit() else f'"{options.rounds}"'
    text = STUDY.format(
        name=f"{trial.table}-vertical",
        backend=backend,
        epsilon=options.epsilon or trial.epsilon,
        adjacency=trial.adjacency,
        workload=workload,
        algorithm=options.algorithm,
        table=f"[aim]\nrounds = {rounds}" if options.algorithm == "aim" else "",
        domain=directory / "domain.json",
        security=security,
        alignment='method = "row-order"' if trial.aligned else BY_IDENTIFIER.format(via=options.via),
    )
    for number, port in enumerate(free_ports(3)):
        text += f'[[party]]\nname = "c{number}"\naddress = "127.0.0.1:{port}"\n'
        text += f'data = "c{number}.csv"\n' if number < len(trial.counts) else ""
    path = directory / f"{backend}-{security}.toml"
    path.write_text(text)
    return path


def run(path: Path, out: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One run: wall and CPU seconds with start-up, its run.json, what its parties' private logs say of the
    traffic."""
    program = [sys.executable, "-m", "runner"]
    if options.delay_ms and "ideal" not in path.name:
        network = {"network": {"delay_s": options.delay_ms / 1e3, "bytes_per_s": options.rate * 1e6 / 8}}
        program = [sys.executable, "-m", "runner.bench.within", json.dumps(network)]
    began, before = time.monotonic(), _used()
    subprocess.run(
        [*program, "run", str(path), "--out", str(out), "--replace"],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        env=os.environ
        | {"COSYNTH_LEDGER": str(path.parent / "ledger.db")}
        | {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")},
    )
    found: dict[str, Any] = {"wall": time.monotonic() - began, "cpu": [_used() - before], "sent": []}
    found["run"] = json.loads((out / "run.json").read_text())
    for party in found["run"]["parties"] if "ideal" not in path.name else []:
        party |= json.loads((out / "parties" / party["name"] / "usage.json").read_text())
    if "ideal" not in path.name:
        found["cpu"] = [party["cpu_s"] for party in found["run"]["parties"]]
    for party in sorted((out / "parties").iterdir()) if "ideal" not in path.name else []:
        phases = ast.literal_eval(re.findall(r"by phase: (\[.*\])", (party / "private.log").read_text())[-1])
        found["sent"].append({phase["name"]: phase["bytes_sent"] for phase in phases})
    return found


def _used() -> float:
    """CPU seconds of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def distance(
    real: pd.DataFrame, synthetic: pd.DataFrame, cliques: list[tuple[str, ...]], scale: float
) -> float:
    """Mean over the cliques of the L1 distance of normalised marginals, times `scale`."""

    def one(clique: tuple[str, ...]) -> float:
        shares = [table.value_counts(list(clique), normalize=True) for table in (real, synthetic)]
        return scale * float(shares[0].sub(shares[1], fill_value=0).abs().sum())

    return statistics.mean(map(one, cliques))


def told(what: str, found: list[dict[str, Any]]) -> None:
    """Medians of a backend's runs."""
    phases: dict[str, list[float]] = {}
    for one in found:
        for phase in one["run"]["phases"]:
            phases.setdefault(phase["name"], []).append(phase["wall_s"])
    words = ", ".join(f"{name} {statistics.median(walls):.2f}" for name, walls in phases.items())
    print(
        f"{what}: wall {statistics.median(one['wall'] for one in found):.1f} s (median of {len(found)}); phases, s: {words}"
    )
    if found[0]["sent"]:
        for number, sent in enumerate(found[0]["sent"]):
            party = found[0]["run"]["parties"][number]
            print(
                f"  c{number}: {party['rounds']} rounds, {sum(sent.values()) / 1e6:.1f} MB sent, "
                f"{(sum(sent.values()) - sent.get('align', 0)) / 1e6:.1f} MB beside joining ("
                + ", ".join(f"{name} {count / 1e6:.1f}" for name, count in sent.items() if count > 5e4)
                + f"); CPU {party['cpu_s']:.1f} s, peak {party['peak_rss_mb']:.0f} MiB"
            )


def compared(used: dict[str, list[list[float]]], starting: dict[str, list[float]]) -> str:
    """CPU seconds against the ideal process's. used: of each run's processes, by backend; starting: of one
    small run."""
    medians = {
        backend: [statistics.median(one) for one in zip(*runs, strict=True)] for backend, runs in used.items()
    }
    words = []
    for what, taken in (
        ("with starting", {backend: [0.0] * len(gone) for backend, gone in starting.items()}),
        ("without", starting),
    ):
        real, ideal = (
            [max(0.0, one - gone) for one, gone in zip(medians[backend], taken[backend], strict=True)]
            for backend in ("replicated", "ideal")
        )
        each = " + ".join(f"{one:.1f}" for one in real)
        words.append(
            f"{what} {each} s against {ideal[0]:.1f} s: busiest {max(real) / ideal[0]:.2f} x, all {sum(real) / ideal[0]:.2f} x"
        )
    return f"CPU, parties against ideal: {'; '.join(words)}"


def malicious(trial: Trial, options: argparse.Namespace) -> None:
    """Runs of both securities in turn: wall, CPU of the busiest party, bytes of all; of both, and their
    ratios."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        split(trial, directory)
        figures: dict[str, list[tuple[float, ...]]] = {"semi-honest": [], "malicious": []}
        for _ in range(options.runs):
            for security, found in figures.items():
                path = study(trial, directory, "replicated", options, security)
                one = run(path, directory / f"out-{security}", options)
                traffic = (sum(sum(party.values()) for party in one["sent"]), one["sent"][0]["input"])
                found.append((one["wall"], max(one["cpu"]), *traffic))
                print(
                    f"{security}: wall {one['wall']:.1f} s, CPU {max(one['cpu']):.2f} s, {traffic[0] / 1e6:.1f} MB of all",
                    flush=True,
                )
                print(f"  phases: {one['sent']}", flush=True)
        plain, proved = (
            [statistics.median(column) for column in zip(*found, strict=True)] for found in figures.values()
        )
        for what, before, after in zip(("wall s", "CPU s", "bytes of all"), plain, proved, strict=False):
            print(f"{what}: {before:,.1f} to {after:,.1f}, {after / before:.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=tuple(TRIALS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--algorithm", default="aim", help="with the defaults of its table")
    parser.add_argument("--epsilon", type=float, help="default: the table's")
    parser.add_argument("--ideal-runs", type=int, help="default: as many")
    parser.add_argument("--degree", type=int)
    parser.add_argument("--count", type=int, help="random cliques of the degree; default: all (three: 64)")
    parser.add_argument("--rounds", help='a number or "adaptive"')
    parser.add_argument("--via", default="auto")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="one way")
    parser.add_argument("--rate", type=float, default=100.0, help="Mbit/s, with --delay-ms")
    options = parser.parse_args()
    trial = TRIALS[options.what]
    if not (DATA / f"{trial.table}.csv").exists():
        print(f"skipped: {DATA / trial.table}.csv is not here")
        return
    options.degree = options.degree or {"nltcs": 3, "three": 3}.get(options.what, 2)
    options.count = options.count or (64 if options.what == "three" else None)
    options.rounds = options.rounds or ("adaptive" if options.what == "nltcs" else "10")
    from runner.study import load

    if options.what in ("malicious", "joined"):
        malicious(trial, options)
        return
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        joined = split(trial, directory)
        paths = {backend: study(trial, directory, backend, options) for backend in ("replicated", "ideal")}
        domain = load(paths["ideal"]).domain
        cliques, scale = list(load(paths["ideal"]).workload.cliques), 1.0
        if options.what == "nltcs" or options.algorithm != "aim":
            sets = list(itertools.combinations(domain.names, 3))
            cliques = [sets[i] for i in np.random.default_rng(0).choice(len(sets), 300, replace=False)]
            scale = 0.5
        (directory / "small").mkdir()
        split(trial, directory / "small", small=True)
        errors: dict[str, list[float]] = {}
        used: dict[str, list[list[float]]] = {}
        starting: dict[str, list[float]] = {}
        for backend, count in (("replicated", options.runs), ("ideal", options.ideal_runs or options.runs)):
            found = []
            for number in range(count):
                found.append(run(paths[backend], directory / f"out-{backend}", options))
                synthetic = pd.read_csv(directory / f"out-{backend}" / "synthetic.csv")
                errors.setdefault(backend, []).append(distance(joined, synthetic, cliques, scale))
                print(
                    f"{backend} {number + 1}: error {errors[backend][-1]:.4f}, wall {found[-1]['wall']:.1f} s",
                    flush=True,
                )
            told(backend, found)
            used[backend] = [one["cpu"] for one in found]
            small = study(trial, directory / "small", backend, options)
            starting[backend] = run(small, directory / "small" / f"out-{backend}", options)["cpu"]
        print(compared(used, starting))
        spread = [
            statistics.stdev(own) / math.sqrt(len(own)) if len(own) > 1 else math.nan
            for own in errors.values()
        ]
        real, ideal = (statistics.mean(own) for own in errors.values())
        print(
            f"{len(joined)} records in common; error replicated {real:.4f}, ideal {ideal:.4f}; difference "
            f"{(real - ideal) / math.hypot(*spread):+.1f} standard errors"
            if not math.isnan(sum(spread))
            else f"{len(joined)} records in common; error replicated {real:.4f}, ideal {ideal:.4f}"
        )


if __name__ == "__main__":
    main()
