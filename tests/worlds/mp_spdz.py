"""A folder that looks like a compiled tree of MP-SPDZ and computes in the clear: for tests of `bench peers` where MP-SPDZ is not.

Its virtual machine reads its neighbours' inputs, waits at the gates, and writes timers and results as MP-SPDZ's do. A file
`mood` in the folder makes it err.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

COMPILER = """\
import pathlib, sys
here = pathlib.Path(__file__).parent
if (here / "mood").exists() and (here / "mood").read_text() == "no compiler":
    sys.exit("CompilerError: no such type")
place = pathlib.Path("Programs")
at = sys.argv.index("cosynth_peers")
assert (place / "Source/cosynth_peers.mpc").read_text().startswith("# Written by")
name = "-".join(sys.argv[at:])
for folder in "Bytecode", "Schedules":
    (place / folder).mkdir(exist_ok=True)
(place / "Schedules" / f"{name}.sch").write_text(" ".join(sys.argv[1:]))
with (here / "log").open("a") as log:
    log.write(f"compile {' '.join(sys.argv[1:])}\\n")
"""
CERTIFICATES = """\
#!/bin/sh
for party in `seq 0 $(($1 - 1))`; do echo certificate > $2/P$party.pem; done
"""
MACHINE = """\
import pathlib, sys
tree = pathlib.Path(__file__).parent
mood = (tree / "mood").read_text() if (tree / "mood").exists() else ""
arguments = sys.argv[1:]
me, name = int(arguments[arguments.index("-p") + 1]), arguments[-1]
_, step, cells, candidates, bits, repeated, opened = name.split("-")
cells, candidates, repeated = int(cells), int(candidates), int(repeated)
assert pathlib.Path("Player-Data/P0.pem").exists() and pathlib.Path(f"Programs/Schedules/{name}.sch").exists()
hosts = pathlib.Path(arguments[arguments.index("-ip") + 1]).read_text().split()
with (tree / "log").open("a") as log:
    log.write(f"run P{me} of {len(hosts)} {' '.join(arguments[arguments.index('-o'):])}\\n")
if mood == "dies" and me == 1:
    sys.exit("Client-side handshake failed.")
gate = open(f"Programs/Public-Input/{name}")
print("Starting timer 10 at 0 (0 MB, 0 rounds) after 0", flush=True)
print("Stopped timer 10 at 1e-06 (0 MB, 0 rounds)", flush=True)
for timer, seconds, megabytes, rounds in (1, 0.5, 4.0, 30), (2, 0.25, 2.0, 20):
    assert gate.readline() == "1\\n"
    if mood == "dies later" and me == 0 and timer == 2:
        sys.exit("mac_fail")
    print(f"Stopped timer {timer} at {seconds + me / 100} ({megabytes} MB, {rounds} rounds)", flush=True)
assert gate.readline() == "1\\n"
if me:
    sys.exit()
import numpy as np
x, y = (np.fromfile(next(pathlib.Path("..").glob(f"{name}-P{p}-*/in-Binary-P{p}-0")), "<i8") for p in (0, 1))
assert len(x) == len(y) == cells
firsts = [q * cells // candidates for q in range(candidates)]
sums = np.add.reduceat(abs(x - y), firsts)
power = x.astype(np.uint64)
if step == "rounds":
    for _ in range(repeated):
        power = power * x.astype(np.uint64)
first, second = x.astype(np.uint64), y.astype(np.uint64)
found = {"scores": sums, "select": [sums.argmax()], "multiply": [(first * second * first).sum()], "rounds": power}[step]
for number in found:
    print(f"cosynth result {int(number) + (mood == 'wrong')}")
"""


def make(path: Path, *protocols: str) -> Path:
    """Make such a tree, in which these protocols are built."""
    (path / "Scripts").mkdir(parents=True)
    (path / "Compiler").mkdir()
    (path / "compile.py").write_text(COMPILER)
    (path / "Scripts/setup-ssl.sh").write_text(CERTIFICATES)
    for protocol in protocols:
        machine = path / f"{protocol}-party.x"
        machine.write_text(f"#!{sys.executable}\n{MACHINE}")
        os.chmod(machine, 0o755)
    return path


def log_of(tree: Path) -> list[str]:
    """What the tree's programs noted of their starts."""
    return (tree / "log").read_text().splitlines()
