"""Flower as courier: a simulated fleet, or SuperLink and SuperNodes over TLS; sums of what arrives against
clear counts. No test.

    make fleet                               20 simulated nodes, 3 arrival rounds
    make fleet NODES=1000 ROUNDS=10 SHARE=0.1
    make fleet DEPLOYED=1                    a SuperLink and 3 SuperNodes with keys of their own, over TLS

Runs in an environment of its own (`requirements-fleet.lock`), with the app of `examples/fleet/`. The tables
are random codes of eight columns, 40 rows a node; the study asks for all triples, 128,128 cells. The three
inboxes take in what lies in their watched folders, and the sum of their parts must be the counts of the nodes
that came, cell by cell. Ends with exit code 1 if it is not. CPU seconds: flower is all processes of Flower
and Ray, with the contributors' work in them; own is this one, which makes the tables and keys, takes in at
three inboxes and compares.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from parties import certificates
from runner.launch.ports import free_ports
from tests.acceptance.fleet_processes import Processes, flower, started, wait_for
from tests.worlds.fleet import Fleet

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "examples" / "fleet"
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}
"""Flower and Ray report their use, and ask for newer versions, unless told not to."""


def environment(folder: Path, mark: str, address: str, ca: Path | None = None) -> dict[str, str]:
    """Of all of Flower's programs. Their settings are in a folder of this run's; nothing is reported to
    anybody."""
    home = folder / "flower"
    home.mkdir(exist_ok=True)
    tls = "insecure = true" if ca is None else f'root-certificates = "{ca}"'
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "fleet"\n[superlink.fleet]\naddress = "{address}"\n{tls}\n'
    )
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {
        **os.environ,
        **QUIET,
        "PATH": programs,
        "PYTHONPATH": str(ROOT),
        "FLWR_HOME": str(home),
        "COSYNTH_FLEET": str(folder),
        "COSYNTH_FLEET_RUN": mark,
        "OPENBLAS_NUM_THREADS": "1",
    }


def journey(fleet: Fleet, options: argparse.Namespace, env: Mapping[str, str], simulated: bool) -> None:
    """`flwr run` until the ServerApp has ended; its lines are shown."""
    run = {
        "study": str(fleet.study),
        "arrivals": str(fleet.folder / "arrivals"),
        "rounds": options.rounds,
        "pause-s": 0.0 if simulated else 10.0,
        "share": options.share,
    }
    command = [flower("flwr"), "run", str(APP), "fleet", "--stream"]
    command += ["--run-config", " ".join(f"{key}={json.dumps(value)}" for key, value in run.items())]
    if simulated:
        command += [
            "--federation-config",
            f"num-supernodes={len(fleet.tables)} client-resources-num-cpus=1 init-args-num-cpus=2",
        ]
    subprocess.run(command, env=env, check=True, cwd=fleet.folder)


def simulate(fleet: Fleet, options: argparse.Namespace) -> None:
    """One SuperLink with the simulation engine."""
    port = free_ports(1)[0]
    env = environment(fleet.folder, options.mark, f"127.0.0.1:{port}")
    command = [
        flower("flower-superlink"),
        "--insecure",
        "--simulation",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    command += ["--disable-runtime-dependency-installation"]
    with started(command, fleet.folder / "superlink.log", env):
        wait_for(f"http://127.0.0.1:{port}")
        journey(fleet, options, env, simulated=True)


def deploy(fleet: Fleet, options: argparse.Namespace) -> None:
    """A SuperLink, and a SuperNode for each contributor, over TLS; nodes are known by their keys."""
    folder, (port, *others) = fleet.folder, free_ports(1 + len(fleet.tables))
    ca = certificates.make_ca("fleet")
    root, _ = certificates.write(folder / "tls", "ca", ca, with_key=False)
    cert, key = certificates.write(folder / "tls", "superlink", certificates.issue(ca, "localhost"))
    address = f"localhost:{port}"
    env = environment(folder, options.mark, address, root)
    link = [flower("flower-superlink"), "--host", "localhost", "--port", str(port), "--enable-supernode-auth"]
    link += ["--ssl-certfile", str(cert), "--ssl-keyfile", str(key), "--ssl-ca-certfile", str(root)]
    link += ["--disable-runtime-dependency-installation"]
    with ExitStack() as running:
        running.enter_context(started(link, folder / "superlink.log", env))
        wait_for(f"https://{address}", ssl.create_default_context(cafile=root))
        for number, other in enumerate(others):
            secret = node_key(folder / "tls", number)
            register = [flower("flwr"), "supernode", "register", str(secret.with_suffix(".pub")), "fleet"]
            subprocess.run(register, env=env, check=True, cwd=folder, stdout=subprocess.DEVNULL)
            node = [flower("flower-supernode"), "--superlink", address, "--root-certificates", str(root)]
            node += ["--auth-supernode-private-key", str(secret), "--port", str(other)]
            node += ["--node-config", f'settings="{fleet.settings(number)}"']
            running.enter_context(started(node, folder / f"node{number}.log", env))
        journey(fleet, options, env, simulated=False)


def node_key(folder: Path, number: int) -> Path:
    """A SuperNode's fresh key, as OpenSSH writes it; its public half beside it."""
    key = ec.generate_private_key(ec.SECP384R1())
    form = serialization.PrivateFormat.OpenSSH
    file = folder / f"node{number}.key"
    file.touch(0o600)
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    public = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    file.with_suffix(".pub").write_bytes(key.public_key().public_bytes(*public))
    return file


def parsed() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, help="(default: 20; 3 with --deployed)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--share", type=float, help="of the nodes that drop by in a round (default: 0.5; 1 with --deployed)"
    )
    parser.add_argument(
        "--deployed", action="store_true", help="SuperLink and SuperNodes instead of the simulation"
    )
    given = parser.parse_args()
    given.nodes = given.nodes or (3 if given.deployed else 20)
    given.share = given.share or (1.0 if given.deployed else 0.5)
    return given


def run() -> None:
    """Print the figures; raise SystemExit(1) if the sums are wrong."""
    options, processes = parsed(), Processes()
    options.mark = processes.mark
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fleet, began = Fleet(folder, options.nodes), time.monotonic()
        with processes.watched():
            (deploy if options.deployed else simulate)(fleet, options)
        wall, agreed = time.monotonic() - began, fleet.take_in()
        exact = bool((fleet.opened(agreed) == fleet.clear(agreed.contributors)).all())
    told = {
        "nodes": options.nodes,
        "bundles": len(agreed.entries),
        "cells": fleet.collection.layout.cells,
        "exact": exact,
        "wall_s": round(wall, 1),
        "flower_cpu_s": round(processes.cpu_s, 1),
        "own_cpu_s": round(time.process_time(), 1),
    }
    print(json.dumps(told, indent=1))
    raise SystemExit(0 if exact and agreed.entries else 1)


if __name__ == "__main__":
    run()
