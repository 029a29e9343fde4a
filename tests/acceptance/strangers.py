"""A start among strangers: 500 connections a second from 200 sockets, with garbage, half greetings and
replays. Figures.

    python -m tests.acceptance.strangers [--after 20]

One party of the demo's study waits; `audit --target` floods it for 60 s; after so many seconds the others
start, in the middle of the flood. Exit 1 unless the run succeeds at all parties.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from runner.review.audit.subjects.processes.deployment import deployed, wait_for


def main() -> int:
    """Flood, start, wait."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--after", type=float, default=20)
    arguments = parser.parse_args()
    with deployed(connect_s=300) as deployment:
        north, *others = deployment.parties
        north.start()
        wait_for(lambda: north.happened("connect", "waiting"), "That party north waits")
        study = str(north.folder / "study.toml")
        command = [sys.executable, "-m", "runner", "audit", "--target", study, "--deep", "--only", "X.flood"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as flood:
            time.sleep(arguments.after)
            began = time.monotonic()
            for party in others:
                party.start()
            wait_for(lambda: north.happened("connect", "connected", 2), "That the parties meet")
            met = time.monotonic() - began
            flooded = flood.poll() is None
            ends = {party.name: party.end() for party in deployment.parties}
            flood.kill()
    print(f"met after {met:.1f} s, the flood still on: {flooded}")
    for name, end in ends.items():
        print(f"{name}: {end.code} {end.complaint.strip()}")
    return 0 if flooded and not any(end.code for end in ends.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
