"""Random faults: runs that meet two of them at any moment, are resumed, and end. Not a test: figures. Linux,
as root, with gcc.

    python -m tests.acceptance.faults --runs 60 [--first 0] [--seed 1] [--kinds shamir,additive,paillier,bundles]

Faults: `kill` (SIGKILL) and `stop` (SIGSTOP, then SIGCONT) of a party, all or the launcher; `full`, a disk
without room, or nearly, under the study, the run, the ledger and the temporary files; `closed`, a folder of
these in which nothing may be made or removed; `clock`, the time of day of one party or all that jumps by up
to years. Each lasts for a moment or until its attempt has ended.

Each attempt must end in time, with 0 or the code of a fault and one sentence, which tells no row or count of
rows; no process is left; tables are whole and the same; the ledger has all that was opened. Afterwards
`--resume` must end with 0, and all that `tests.acceptance.kills` looks for hold. Prints a line a run and a
table. Exit 1 if one ended otherwise.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import io
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from parties.budget.journal import read
from parties.budget.ledger import Ledger
from runner.results import outdir
from tests.acceptance.kills import MOST_LINES, lines, problem
from tests.runner import small
from tests.runner.processes import Program, gone, parties
from tests.worlds import collecting

KINDS = ("shamir", "additive", "paillier", "bundles")
CODES = {0, 20, 21, 40, 41, 60}
"""What a fault may end an attempt with; -9 is a launcher that was killed."""
ROWS = 307
SHORT = [("silence_s = 200", "silence_s = 6"), ("connect_s = 300", "connect_s = 30")]
HOLDS_S = (0.3, 2.0, 9.0)
LIMIT_S = 150.0
DISK = 48 << 20
SHIFTS_S = (-400 * 86400, -86400, -3600, -5, 5, 3600, 86400, 400 * 86400)
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long shift(void) {
    char path[500]; long by = 0;
    snprintf(path, sizeof path, "%s/%d", getenv("FAULT_CLOCK"), getpid());
    FILE *file = fopen(path, "r");
    if (file) { if (fscanf(file, "%ld", &by) != 1) by = 0; fclose(file); }
    return by;
}
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, at);
    if (id == CLOCK_REALTIME) at->tv_sec += shift();
    return code;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""

Undo = Callable[[], object]


@dataclass
class Scene:
    """An attempt under way. disk: all its files; undoing: when, by the monotonic clock, which fault ends."""

    rng: random.Random
    disk: Path
    program: Program
    undoing: list[tuple[float, Undo]] = field(default_factory=list)

    @property
    def out(self) -> Path:
        return self.disk / "out"

    def wait(self, condition: Callable[[], bool]) -> bool:
        """Whether this comes true before the attempt ends; faults end meanwhile."""
        until = time.monotonic() + LIMIT_S
        while self.program.process.poll() is None and time.monotonic() < until:
            self.undo(time.monotonic())
            if condition():
                return True
            time.sleep(0.003)
        return False

    def moment(self) -> bool:
        """Wait for a random one; False if the attempt ends before it."""
        target, pause = self.rng.randrange(MOST_LINES // 2), self.rng.random() * 0.4
        if not self.wait(lambda: lines(self.out) >= target):
            return False
        until = time.monotonic() + pause
        return self.wait(lambda: time.monotonic() >= until)

    def undo(self, now: float) -> None:
        for entry in [entry for entry in self.undoing if entry[0] <= now]:
            self.undoing.remove(entry)
            entry[1]()

    def victims(self) -> dict[str, int]:
        """One party, all of them, or the launcher."""
        alive = parties(self.out)
        chosen = self.rng.choice(["one", "one", "all", "launcher"]) if alive else "launcher"
        if chosen == "launcher":
            return {"launcher": self.program.pid}
        return {
            name: alive[name] for name in self.rng.sample(sorted(alive), 1 if chosen == "one" else len(alive))
        }


def signalled(pids: dict[str, int], number: int) -> str:
    for pid in pids.values():
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return "+".join(pids)


def kill(scene: Scene) -> tuple[str, Undo]:
    return signalled(scene.victims(), signal.SIGKILL), lambda: None


def stop(scene: Scene) -> tuple[str, Undo]:
    pids = scene.victims()
    return signalled(pids, signal.SIGSTOP), lambda: signalled(pids, signal.SIGCONT)


def full(scene: Scene) -> tuple[str, Undo]:
    filler, room = scene.disk / "filler", scene.rng.choice([0, 0, scene.rng.randrange(200_000)])
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 12))
    os.truncate(filler, max(0, filler.stat().st_size - room))
    return f"but {room}", lambda: filler.unlink(missing_ok=True)


def closed(scene: Scene) -> tuple[str, Undo]:
    """The immutable flag stands in for a mode, which root need not heed."""
    folders = ["out", "ledger", "tmp", "study/inbox/*", "out/parties", "out/parties/*", "out/parties/*"]
    there = sorted(path for each in folders for path in scene.disk.glob(each) if path.is_dir())
    folder = scene.rng.choice(there)
    subprocess.run(["chattr", "+i", folder], check=True)

    def undo() -> None:
        if folder.exists():
            subprocess.run(["chattr", "-i", folder], check=True)

    return str(folder.relative_to(scene.disk)), undo


def clock(scene: Scene) -> tuple[str, Undo]:
    pids, shift = scene.victims(), scene.rng.choice(SHIFTS_S)
    files = [Path(os.environ["FAULT_CLOCK"]) / str(pid) for pid in pids.values()]
    for file in files:
        file.write_text(str(shift))

    def undo() -> None:
        for file in files:  # of two that one party has met, the first to end ends both
            file.unlink(missing_ok=True)

    return f"{'+'.join(pids)} by {shift}", undo


FAULTS = {"kill": kill, "stop": stop, "full": full, "closed": closed, "clock": clock}


@contextmanager
def disk(root: Path) -> Iterator[Path]:
    """A small disk of its own, with the clock's library in force for what is started meanwhile."""
    place, watch = root / "disk", root / "clock"
    place.mkdir()
    watch.mkdir()
    (root / "clock.c").write_text(CLOCK)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", root / "clock.so", root / "clock.c"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", place], check=True)
    before = dict(os.environ)
    try:
        for name in ("ledger", "tmp"):
            (place / name).mkdir()
        os.environ |= {
            "FAULT_CLOCK": str(watch),
            "LD_PRELOAD": str(root / "clock.so"),
            "TMPDIR": str(place / "tmp"),
        }
        yield place
    finally:
        os.environ.clear()
        os.environ.update(before)
        subprocess.run(["umount", "--lazy", place], check=True)


def write(kind: str, directory: Path) -> small.Trial:
    """A study of a kind."""
    if kind == "bundles":
        with redirect_stdout(io.StringIO()):
            world = collecting.write(directory, 3, own=ROWS, changes=SHORT)
        world.everybody()
        return world.trial
    return small.write(directory, count=ROWS, changes=[*SHORT, ('"replicated"', f'"{kind}"')])


def charged(out: Path, ledger: Path) -> bool:
    """Whether each custodian's account has at least what its parties' journals have opened."""
    spent, opened = collections.defaultdict[str, Fraction](Fraction), [Fraction(0)]
    for entry in Ledger(ledger).entries():
        spent[entry.reservation.dataset] += entry.spent.rho
    for path in out.glob(f"parties/*/{outdir.JOURNALS}"):
        if path.read_bytes().count(b"\n") > 1:
            opened.append(sum((each.event.rho for each in read(path).releases if each.opened), Fraction(0)))
    return max(opened) == 0 or (bool(spent) and min(spent.values()) >= max(opened))


def tables(out: Path) -> set[str]:
    """Digests of the tables that a run has left so far."""
    return {hashlib.sha256(path.read_bytes()).hexdigest() for path in out.rglob(outdir.TABLE)}


def complaints(scene: Scene, killed: bool, private: set[str]) -> list[str]:
    """What is wrong with how an attempt has ended."""
    found, code = [], scene.program.process.wait()
    output, said = scene.program.said()
    words = [line for line in said.splitlines() if not line.startswith("WARNING: ")]
    if code not in CODES and not (killed and code == -signal.SIGKILL):
        found.append(f"code {code}")
    if len(words) != (code > 0):
        found.append(f"{len(words)} lines")
    for word in ("Traceback", "nternal error", "Logging error", "Exception ignored"):
        if word in said + output:
            found.append(word)
    if re.search(rf"\b{ROWS}\b", said) or any(line in said + output for line in private):
        found.append("private")
    if not gone(scene.out):
        found.append("processes are left")
    if not charged(scene.out, scene.disk / "ledger" / "ledger.db"):
        found.append("opened and not charged")
    return [f"{each}: {said[:400]!r}" for each in found]


def attempt(kind: str, rng: random.Random, codes: collections.Counter[int]) -> tuple[str, str]:
    """One run of a kind: what is wrong ("" if nothing is), and its story."""
    with tempfile.TemporaryDirectory(prefix="faults-") as name, disk(Path(name)) as place:
        trial, ledger, story = write(kind, place / "study"), place / "ledger" / "ledger.db", []
        private = {
            line for path in trial.path.parent.glob("*.csv") for line in path.read_text().splitlines()[1:]
        }
        pending, found, seen = [rng.choice(sorted(FAULTS)) for _ in range(2)], list[str](), set[str]()
        for number in range(4):
            faults, killed = pending if number < 3 else [], False
            options = ["--allow-retry", *["--resume"] * (number > 0)]
            program = Program(
                *("run", trial.path, "--out", place / "out", *options),
                ledger=ledger,
                scratch=Path(name) / f"scratch{number}",
            )
            scene = Scene(rng, place, program)
            last = not faults
            try:
                while faults:
                    if not scene.moment():
                        break
                    fault = faults.pop(0)
                    what, undo = FAULTS[fault](scene)
                    killed |= fault == "kill"
                    hold = rng.choice(HOLDS_S if fault == "stop" else [*HOLDS_S, LIMIT_S])
                    scene.undoing.append((time.monotonic() + hold, undo))
                    story.append(f"{fault} {what} for {hold:g}")
                if scene.wait(lambda: False) or program.process.poll() is None:
                    found.append("still running")
            finally:
                scene.undo(float("inf"))
                program.kill()
            code = program.process.wait()
            story.append(f"-> {code}")
            if not last:
                codes[code] += 1
            found += complaints(scene, killed, private)
            seen |= tables(scene.out)
            if found or last:
                break
        if not found and code != 0:
            found.append(f"not resumed: {program.said()[1].strip()}")
        if len(seen) > 1:
            found.append("different tables")
        if not found and (wrong := problem(kind, place / "out", trial.names, ledger)):
            found.append(wrong)
        return "; ".join(found), " ".join(story)


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # no disk stays mounted
    good, kinds = collections.Counter[str](), arguments.kinds.split(",")
    codes = {kind: collections.Counter[int]() for kind in kinds}
    for number in range(arguments.first, arguments.runs):
        for kind in kinds:
            wrong, story = attempt(kind, random.Random(f"{arguments.seed} {kind} {number}"), codes[kind])
            good[kind] += not wrong
            print(f"{number:4d} {kind:9} {story} {'FAIL ' + wrong if wrong else 'ok'}", flush=True)
    tried = arguments.runs - arguments.first
    print("| kind | runs | ended well | codes of attempts with faults | violations |\n|---|---|---|---|---|")
    for kind in kinds:
        told = ", ".join(f"{code}: {count}" for code, count in sorted(codes[kind].items()))
        print(f"| {kind} | {tried} | {good[kind]} | {told} | {tried - good[kind]} |")
    return 0 if good.total() == tried * len(kinds) else 1


if __name__ == "__main__":
    sys.exit(main())
