"""Random kills: runs whose processes get SIGKILL at any moment, resumed until they end. Not a test: figures.

    python -m tests.acceptance.kills --runs 200 [--first 0] [--seed 1]
        [--kinds replicated,contributors,vertical,pair,shamir,additive,ideal]

Each run is a tiny study on this machine. Up to three times, at a random number of lines in its parties'
events and some milliseconds later, one party, all parties, or the launcher are killed, and the run is
resumed; then it is left to end. Afterwards: one table, the same run.json at all parties, its events those of
ledgers and journals, none twice, no shares on disk. It prints a line a run, with the exit code after each
kill, and at the end how many of how many ended well. Exit 1 if one did not.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from parties.budget.journal import read
from parties.budget.ledger import Ledger
from runner.results import outdir
from tests.runner import small, split
from tests.runner.processes import Program, gone, parties

KINDS = ("replicated", "contributors", "vertical", "pair", "shamir", "additive", "ideal")
MAX_KILLS = 3
MOST_LINES = 70
"""More lines of events than all parties of a run write before the last of them is ready."""


def write(kind: str, directory: Path) -> small.Trial | split.Trial:
    """A study of a kind."""
    if kind == "vertical":
        changes = [
            ('adjacency = "replace"', 'adjacency = "add-remove"'),
            ("epsilon = 4.0", "epsilon = 400.0"),
        ]
        return split.write(directory, changes=changes)
    backend = kind if kind in ("pair", "shamir", "additive", "ideal") else "replicated"
    count = {"contributors": 5, "pair": 2}.get(kind, 3)
    return small.write(directory, parties=count, changes=[('"replicated"', f'"{backend}"')])


def lines(out: Path) -> int:
    """Of events so far, at all parties."""
    found = 0
    for path in [*out.glob("parties/*/*.jsonl"), *out.glob("*.jsonl")]:
        if not path.name.startswith("journal"):
            with suppress(OSError):
                found += path.read_bytes().count(b"\n")
    return found


def kill(program: Program, out: Path, rng: random.Random) -> str:
    """Kill something at a random moment; what it was."""
    target, pause = rng.randrange(1, MOST_LINES), rng.random() * 0.05
    while lines(out) < target and program.process.poll() is None:
        time.sleep(0.002)
    time.sleep(pause)
    alive = parties(out)
    victims = rng.choice(["one", "one", "all", "launcher"]) if alive else "launcher"
    if victims == "launcher":
        program.send(signal.SIGKILL)
        return f"launcher at {target}"
    chosen = rng.sample(sorted(alive), 1 if victims == "one" else len(alive))
    for name in chosen:
        with suppress(ProcessLookupError):
            os.kill(alive[name], signal.SIGKILL)
    return f"{'+'.join(chosen)} at {target}"


def problem(kind: str, out: Path, names: tuple[str, ...], ledger: Path) -> str | None:
    """What is wrong with what a run has left; None if nothing is."""
    directories = [out] if kind == "ideal" else [out / "parties" / name for name in names]
    for file in ("synthetic.csv", "run.json", "measurements.json"):
        if len({(directory / file).read_bytes() for directory in directories}) != 1:
            return f"different {file}"
    if (out / "synthetic.csv").read_bytes() != (directories[0] / "synthetic.csv").read_bytes():
        return "another table in DIR"
    newest = [
        max(d.glob(outdir.JOURNALS), key=lambda p: p.stat().st_mtime_ns)
        for d in directories
        if [*d.glob(outdir.JOURNALS)]
    ]
    journals = [read(path) for path in newest]
    if any(journal.code != 0 for journal in journals):
        return "a journal that has not ended"
    told = [[release.event for release in journal.releases] for journal in journals]
    if any(events != told[0] for events in told) or any(
        len({release.inputs for release in journal.releases}) != len(journal.releases) for journal in journals
    ):
        return "journals that differ, or an event twice"
    events = json.loads((directories[0] / "run.json").read_text(encoding="utf-8"))["privacy"]["events"]
    released = [(event["what"], f"{event['rho']:.9g}") for event in events]
    accounts = collections.defaultdict(list)
    for entry in Ledger(ledger).entries():
        accounts[entry.reservation.dataset].append(entry)
    for dataset, entries in accounts.items():
        spent = [
            [e.event for e in entry.events if not e.event.what.startswith("alignment.")] for entry in entries
        ]
        full = [events for events in spent if events]
        if len(full) != 1 or (told and full[0] != told[0]):
            return f"{dataset} has {len(full)} runs with events, or others than the journals"
        if [(event.what, f"{float(event.rho):.9g}") for event in full[0]] != released:
            return f"{dataset} has other events than run.json"
        if entries[-1].state != "settled":
            return f"{dataset} is not settled"
    for path in out.rglob(outdir.STATES):
        if b'"held"' in path.read_bytes():
            return f"shares in {path}"
    return None


def attempt(kind: str, rng: random.Random) -> tuple[bool, str, int]:
    """One run of a kind: whether it ended well, its story, and how many of its kills came before its end."""
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        root = Path(name)
        trial, out, ledger, story = write(kind, root / "study"), root / "out", root / "ledger.db", []
        interrupted = 0
        for number in range(rng.randint(1, MAX_KILLS) + 1):
            resume = ["--resume"] * (number > 0)
            program = Program(
                "run",
                trial.path,
                "--out",
                out,
                "--allow-retry",
                *resume,
                ledger=ledger,
                scratch=root / f"scratch{number}",
            )
            try:
                killed = rng.random() < 0.9 or number == 0
                if killed:
                    story.append(kill(program, out, rng))
                code = program.end().code
            finally:
                program.kill()
            if killed:
                story[-1] += f" -> {code}"
                interrupted += code != 0
            if not gone(out):
                return False, "; ".join([*story, "processes are left"]), interrupted
        last = Program(
            "run", trial.path, "--out", out, "--allow-retry", "--resume", ledger=ledger, scratch=root / "last"
        )
        end = last.end()
        if end.code != 0:
            return False, "; ".join([*story, f"{end.code}: {end.complaint.strip()}"]), interrupted
        wrong = problem(kind, out, trial.names, ledger)
        return wrong is None, "; ".join([*story, wrong or "well"]), interrupted


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first run; those before it are left out"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    arguments = parser.parse_args()
    kinds, good, interruptions = arguments.kinds.split(","), 0, 0
    for number in range(arguments.first, arguments.runs):
        kind = kinds[number % len(kinds)]
        well, story, interrupted = attempt(kind, random.Random(f"{arguments.seed} {number}"))
        good, interruptions = good + well, interruptions + interrupted
        print(f"{number:4d} {kind:12} {'ok  ' if well else 'FAIL'} {story}", flush=True)
    tried = arguments.runs - arguments.first
    print(f"{good} of {tried} ended well, after {interruptions} kills that ended an attempt")
    return 0 if good == tried else 1


if __name__ == "__main__":
    sys.exit(main())
