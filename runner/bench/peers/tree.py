"""A compiled tree of MP-SPDZ, as its owner made it: what is built in it, its compiler, its certificates.

Nothing is written into it: programmes are compiled in a folder of the benchmark's own, and run there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mpc_protocols.errors import UsageError
from runner.bench.peers import programme
from runner.bench.peers.protocols import PROTOCOLS, PeerProtocol
from runner.party.record.software import commit_of

COMPILER: Final = "compile.py"
CERTIFICATES: Final = "Scripts/setup-ssl.sh"
MIN_BUDGET: Final = 100_000
"""Instructions up to which the compiler unrolls loops: what its own manual names for few rounds."""
_MAX_PARTIES: Final = max(protocol.parties for protocol in PROTOCOLS)


@dataclass(frozen=True)
class Tree:
    """The folder."""

    path: Path

    @classmethod
    def of(cls, path: Path) -> Tree:
        """Raises `UsageError` unless it is a tree of MP-SPDZ in which something is built that this benchmark knows."""
        tree = cls(path.resolve())
        for part in (COMPILER, "Compiler", CERTIFICATES):
            if not (tree.path / part).exists():
                raise UsageError(
                    f"--mp-spdz {path} is no tree of MP-SPDZ: {part} is not in it; name the folder that MP-SPDZ was compiled in."
                )
        if not tree.built():
            known = ", ".join(protocol.executable for protocol in PROTOCOLS)
            raise UsageError(
                f"--mp-spdz {path} has none of {known}; compile one or several as MP-SPDZ's own documentation says."
            )
        return tree

    def built(self) -> list[PeerProtocol]:
        """Protocols whose virtual machines are there."""
        return [protocol for protocol in PROTOCOLS if os.access(self.path / protocol.executable, os.X_OK)]

    @property
    def commit(self) -> str:
        """Of its working copy, "" if there is none."""
        return commit_of(self.path)[:12]

    def make_certificates(self, place: Path) -> None:
        """Keys and certificates of as many parties as any protocol has, in `place`/Player-Data, by MP-SPDZ's script. Raises
        `UsageError`."""
        (place / "Player-Data").mkdir(exist_ok=True)
        command = ["bash", str(self.path / CERTIFICATES), str(_MAX_PARTIES), "Player-Data"]
        said = _run(command, place, f"{CERTIFICATES}, which makes certificates")
        if not all((place / f"Player-Data/P{party}.pem").exists() for party in range(_MAX_PARTIES)):
            raise UsageError(f"MP-SPDZ's {CERTIFICATES} made no certificates: {_last(said)}.")

    def compile(self, place: Path, protocol: PeerProtocol, arguments: Sequence[str], cells: int) -> str:
        """Compile the programme in `place`; its name for the virtual machine. Raises `UsageError`."""
        source = place / "Programs/Source"
        source.mkdir(parents=True, exist_ok=True)
        (source / f"{programme.NAME}.mpc").write_text(programme.TEXT, encoding="ascii")
        budget = str(max(MIN_BUDGET, cells))
        command = [sys.executable, str(self.path / COMPILER), *protocol.compiled_for, "-b", budget]
        said = _run([*command, programme.NAME, *arguments], place, f"{COMPILER} for {protocol.executable}")
        name = "-".join((programme.NAME, *arguments))
        if not (place / f"Programs/Schedules/{name}.sch").exists():
            raise UsageError(
                f"MP-SPDZ's {COMPILER} wrote no programme for {protocol.executable}: {_last(said)}."
            )
        return name


def _run(command: Sequence[str], place: Path, what: str) -> str:
    """What it said. Raises `UsageError` if it fails."""
    compiled_beside = {"PYTHONPYCACHEPREFIX": str(place / "pycache")}  # else Python writes it into the tree
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env=os.environ | compiled_beside,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise UsageError(f"MP-SPDZ's {what} cannot be started: {error.strerror}.") from None
    said = f"{done.stdout}\n{done.stderr}"
    if done.returncode:
        raise UsageError(f"MP-SPDZ's {what} failed: {_last(said)}.")
    return said


def _last(said: str) -> str:
    """The last line of it."""
    return next(
        (line.strip().rstrip(".") for line in reversed(said.splitlines()) if line.strip()), "it said nothing"
    )
