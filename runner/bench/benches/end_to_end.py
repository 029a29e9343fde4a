"""Whole runs of AIM on a table like Adult, by any backend and in the clear, as a user starts them; start-up
counts, TLS is on.

Each custodian's part is a Parquet file of its own; the synthetic table has 50,000 rows whatever goes in. The
line holds the seconds of every phase (`phases`), and what the secure part costs beside the public one
(`secure_over_fit`: select and measure over fit).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpc_protocols.backend import BACKENDS
from runner.bench.benches.fit import COLUMNS, sizes_of
from runner.bench.by_backend import backend_of, computing_of, misfit
from runner.bench.parameters import BACKEND, PARTIES, ROWS, Parameter, Params
from runner.bench.registry import Place, Predicted, Program
from runner.bench.running.processes import party_names
from runner.bench.tables.mock_table import write_tables
from runner.bench.within import command_of
from runner.launch.children import environment
from runner.launch.first_failure import Report, as_error
from runner.launch.fork_server import PROGRAM
from runner.launch.ports import free_ports
from runner.launch.watchdog import PR_SET_PDEATHSIG
from runner.results.outdir import PARTY_FOLDERS, USAGE

AIM_ROUNDS = Parameter("aim-rounds", "rounds of AIM", (10,), 1, 100)
CLEAR = next(backend.name for backend in BACKENDS if backend.ideal)
_ENDING_S = 15.0
_STUDY = """\
[study]
name = "bench"
algorithm = "aim"
backend = "{backend}"
partition = "horizontal"
[privacy]
epsilon = 1.0
delta = 1e-9
adjacency = "add-remove"
max_rows = {max_rows}
[workload]
degree = 3
count = 64
seed = 123
[aim]
rounds = {rounds}
synthetic_rows = 50000
[domain]
file = "domain.json"
[session]
tls = "{tls}"
"""
_PARTY = '[[party]]\nname = "{name}"\naddress = "{host}:{port}"\ndata = "{name}.parquet"\n'


class EndToEnd(Program):
    """`cosynth run` on this machine."""

    name, purpose, counts = (
        "end-to-end",
        "whole runs of AIM, beside the same in the clear, start-up included",
        "runs",
    )
    parameters = (ROWS, PARTIES, COLUMNS, AIM_ROUNDS, BACKEND)

    def amount(self, params: Params) -> float:
        return 1.0

    def computing(self, params: Params) -> int:
        return computing_of(params)

    def problem(self, params: Params) -> str | None:
        if why := misfit(backend_of(params), self.processes(params), self.computing(params)):
            return why
        fits = int(params["rows"]) >= int(params["parties"])
        return (
            None
            if fits
            else f"{params['parties']} custodians need at least one row each, got {params['rows']}"
        )

    def prepare(self, params: Params, place: Place) -> None:
        names = party_names(self.processes(params), self.computing(params))
        sizes = sizes_of(int(params["columns"]))
        write_tables(place.directory, sizes, int(params["rows"]), names)
        for backend in (str(params["backend"]), CLEAR):
            (place.directory / f"{backend}.toml").write_text(
                _study(backend, names, params, place), encoding="utf-8"
            )

    def run(self, params: Params, place: Place) -> dict[str, Any]:
        return _run(place, str(params["backend"]), self.computing(params))

    def predicted(self, params: Params, place: Place) -> Predicted:
        from runner.forecast.predict import forecast  # not at every party of every benchmark
        from runner.study import load

        study = load(place.directory / f"{params['backend']}.toml")
        told = forecast(study, int(params["rows"]), delay_us=round(1000 * place.net.delay_ms))
        return Predicted(told.rounds, tuple(party.bytes_sent for party in told.parties))

    def baseline(self, params: Params, place: Place) -> dict[str, dict[str, Any]]:
        found = _run(place, CLEAR, self.computing(params))
        return {CLEAR: {key: found[key] for key in ("wall_s", "cpu_s", "peak_mb", "phases")}}


def _study(backend: str, names: list[str], params: Params, place: Place) -> str:
    spaces = place.namespaces
    rows = 1 << max(10, (2 * int(params["rows"]) - 1).bit_length())
    head = _STUDY.format(
        backend=backend,
        max_rows=rows,
        rounds=params["aim-rounds"],
        tls="mutual" if params["tls"] else "insecure-loopback",
    )
    return head + "".join(
        _PARTY.format(name=name, host=spaces.address(number) if spaces else "127.0.0.1", port=port)
        for number, (name, port) in enumerate(zip(names, free_ports(len(names)), strict=True))
    )


def _program(place: Place, backend: str, computing: int) -> tuple[str, ...]:
    """What to start: the command itself where the network is this machine's own."""
    if BACKENDS[backend].ideal or (place.namespaces is None and not place.net.emulated):
        return PROGRAM
    if place.namespaces is not None:
        spaces = place.namespaces
        names = party_names(spaces.parties, computing)
        where: dict[str, Any] = {
            "namespaces": {name: spaces.name(number) for number, name in enumerate(names)}
        }
    else:
        rate = {} if place.net.bytes_per_s is None else {"bytes_per_s": place.net.bytes_per_s}
        where = {"network": {"delay_s": place.net.delay_s, **rate}}
    return command_of(json.dumps(where))


def _run(place: Place, backend: str, computing: int) -> dict[str, Any]:
    """One run; figures from outside (wall, the ideal's CPU and memory), from its run.json and from its
    parties' own files."""
    out = place.directory / f"out-{backend}"
    command = [
        *_program(place, backend, computing),
        "run",
        str(place.directory / f"{backend}.toml"),
        "--out",
        str(out),
        "--replace",
        "--json",
    ]
    errors = place.directory / "errors"
    began = time.monotonic()
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            process_group=0,
            preexec_fn=_end_with_parent,
            env=environment() | {"COSYNTH_LEDGER": str(place.directory / "ledger.db")},
        )
    try:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        _end(process)
        raise
    wall = time.monotonic() - began
    if process.returncode:
        said = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [
            "the run ended without a word."
        ]
        raise as_error(Report("bench", process.returncode, said[-1], time.monotonic()))
    facts = json.loads((out / "run.json").read_text(encoding="utf-8"))
    phases: dict[str, float] = {}
    for phase in facts["phases"]:
        phases[phase["name"]] = phases.get(phase["name"], 0.0) + phase["wall_s"]
    secure, fitting = phases.get("select", 0.0) + phases.get("measure", 0.0), phases.get("fit", 0.0)
    parties = facts["parties"]
    alone = BACKENDS[backend].ideal
    peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    used = [] if alone else [_used(out, party["name"]) for party in parties]
    return {
        "wall_s": wall,
        "inner_wall_s": facts["wall_s"],
        "cpu_s": [usage.ru_utime + usage.ru_stime] if alone else [party["cpu_s"] for party in used],
        "bytes_sent": [party["bytes_sent"] for party in parties],
        "bytes_received": [party["bytes_received"] for party in parties],
        "rounds": max((party["rounds"] for party in parties), default=0),
        "peak_mb": [peak] if alone else [party["peak_rss_mb"] * 2**20 / 1e6 for party in used],
        "phases": phases,
        "secure_over_fit": secure / fitting if fitting else None,
    }


def _used(out: Path, party: str) -> dict[str, float]:
    """CPU seconds and largest resident memory (MiB) of a party's process."""
    found: dict[str, float] = json.loads((out / PARTY_FOLDERS / party / USAGE).read_text(encoding="utf-8"))
    return found


def _end_with_parent() -> None:
    """In the run's process, before it begins: if this benchmark is killed, the run is interrupted (Linux)."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the run as a user would; its own launcher ends its parties."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


BENCH = EndToEnd()
