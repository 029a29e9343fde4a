"""Bundles of Adult: sizes, CPU of sealing and of opening, and a whole collection with three processes. Not a
test: figures.

    python -m tests.acceptance.bundles sizes
    python -m tests.acceptance.bundles run --contributors 100 --rounds 10

The table is adult.csv (48,842 rows, 14 columns; not shipped), rows dealt at random to the contributors with
seed 7; workload: 64 random three-way marginals (seed 123), epsilon 1, delta 1e-5, expected_rows 45,000.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import resource
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from mpc_protocols.backends.bundles.bundle import content_of, letters_of, parse, part_bytes
from parties.data.source import many_files
from parties.inbox.store import Inbox
from runner.__main__ import main
from runner.contributors.collection import inbox_folder, layout_of
from runner.contributors.contributing import Contribution, make_key
from runner.party.synthesis import plan_of
from runner.study import load, private_file
from tests.acceptance.adult import DATA, ROOT, STUDY
from tests.worlds.ports import free_ports

PARTIES = ("north", "south", "west")
TABLE = """\
[contributors]
keys = "contributors.txt"
receivers = "receivers.json"
expected_rows = 45000
close = {{ bundles = {bundles} }}
"""


def write(folder: Path, contributors: int, rounds: str, prune: bool = True) -> Path:
    """The study with everybody's keys and tables."""
    rows = pd.read_csv(DATA / "adult.csv")
    owner = np.random.default_rng(7).integers(contributors, size=len(rows))
    text = STUDY.format(
        algorithm="aim",
        backend="replicated",
        rounds=rounds,
        prune=f"prune = {str(prune).lower()}\n",
        domain=DATA / "adult-domain.json",
    ) + TABLE.format(bundles=contributors)
    for name, port in zip(PARTIES, free_ports(3), strict=True):
        text += f'[[party]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n'
    study = folder / "study.toml"
    study.write_text(text)
    lines = []
    for number in range(contributors):
        name = f"c{number:04}"
        rows[owner == number].to_csv(folder / f"{name}.csv", index=False)
        key = base64.b64encode(make_key(folder / f"{name}.key")).decode()
        lines.append(f"{name} ed25519:{key}")
        (folder / f"{name}.toml").write_text(
            f'data = "{name}.csv"\nkey = "{name}.key"\n[ledger]\nfile = "ledgers/{name}.db"\n'
        )
    (folder / "contributors.txt").write_text("\n".join(lines) + "\n")
    for party in PARTIES:
        assert main(["inbox", str(study), "--party", party, "--make-key"]) == 0
    return study


def sizes() -> dict[str, Any]:
    """Bytes of a bundle, by rounds and with or without pruning; CPU of one, in ms."""
    found: dict[str, Any] = {}
    for label, rounds, prune in (
        ("T = 10", "10", True),
        ("adaptive", '"adaptive"', True),
        ("unpruned", "10", False),
    ):
        with tempfile.TemporaryDirectory() as name:
            path = write(Path(name), 10, rounds, prune)
            study = load(path)
            layout = layout_of(study, plan_of(study))
            found[label] = {
                "cliques": len(layout.cliques),
                "cells": layout.cells,
                "bytes": sum(part_bytes(layout.cells).values()),
                **_cpu(path),
            }
    return found


def _cpu(path: Path, repeat: int = 10) -> dict[str, float]:
    """ms of one bundle: to seal; to check, open and add at all three receivers together."""
    from mpc_protocols.backends.bundles.bundle import seal_bundle

    study = load(path)
    one = Contribution(study, "c0000", private_file.load(path.parent / "c0000.toml"), None)
    public, counts = one.collection, np.zeros(one.collection.layout.cells, np.int64)
    header = one._header(datetime.now(UTC).replace(microsecond=0))
    receivers = [public.receivers[name] for name in header.receivers]
    began = process_time()
    for _ in range(repeat):
        content = seal_bundle(header, counts, receivers, one._sign).to_bytes()
    sealed = process_time() - began
    inboxes = [Inbox(inbox_folder(path, name, private_file.Private()), public, name) for name in PARTIES]
    total = np.zeros(public.layout.cells, np.uint32)
    began = process_time()
    for _ in range(repeat):
        for inbox, name in zip(inboxes, PARTIES, strict=True):
            bundle = parse(content)
            public.check(bundle, datetime.now(UTC))
            own = public.own_part(bundle, name)
            for letter in letters_of(header, name):
                total += content_of(header, letter, own.opened(letter, inbox.secret()))
    opened = process_time() - began
    assert not total.any()
    return {"seal_ms": 1e3 * sealed / repeat, "open_ms": 1e3 * opened / repeat}


def run(contributors: int, rounds: str) -> dict[str, Any]:
    """A whole collection: CPU seconds of contributing (all of them), of taking in at three inboxes, of three
    processes' run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["COSYNTH_LEDGER"] = str(folder / "ledger.db")
        path = write(folder, contributors, rounds)
        study = load(path)
        began = process_time()
        files, one = list[Path](), None
        with many_files():
            for number in range(contributors):
                of = f"c{number:04}"
                file = folder / f"{of}.bundle"
                one = Contribution(study, of, private_file.load(folder / f"{of}.toml"), None, one)
                file.write_bytes(one.leave(lambda bundle: None).to_bytes())
                files.append(file)
        assert one is not None
        contributed = process_time() - began
        began = process_time()
        for party in PARTIES:
            inbox = Inbox(inbox_folder(path, party, private_file.Private()), one.collection, party)
            for file in files:
                inbox.add(file, datetime.now(UTC))
        taken = process_time() - began
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "runner", "run", str(path), "--out", str(folder / "out")],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads((folder / "out" / "run.json").read_text())
        return {
            "contributed_cpu_s": contributed,
            "taken_in_cpu_s": taken,
            "run_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "took_part": len(told["contributors"]["took_part"]),
            "noisy_total": told["privacy"]["noisy_total"],
            "bytes_sent": [party["bytes_sent"] for party in told["parties"]],
            "rounds": max(party["rounds"] for party in told["parties"]),
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("sizes", "run"))
    parser.add_argument("--contributors", type=int, default=100)
    parser.add_argument("--rounds", default="10", help='a number or "adaptive" in quotes')
    given = parser.parse_args()
    print(json.dumps(sizes() if given.what == "sizes" else run(given.contributors, given.rounds), indent=1))
