"""`conformance KIND NAME`: whether a version of a kind, a plug-in for instance, does what its kind promises."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from mpc_protocols.backend import BACKENDS
from mpc_protocols.errors import UsageError
from mpc_protocols.process.foreign_text import printable
from mpc_protocols.psu.method import METHODS
from mpc_protocols.registry import not_installed
from runner.review import conformance
from runner.review.conformance import NonconformingError
from runner.study.declared.table import nearest
from synth.algorithm import ALGORITHMS, TrainedAlgorithm

if TYPE_CHECKING:
    from runner.review.conformance import Check


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    checks = [check for check in _suite(arguments.kind, arguments.name) if arguments.only in check.name]
    if not checks:
        raise UsageError(f"--only {arguments.only!r} names no check; --list shows them.")
    if arguments.list:
        print("\n".join(check.name for check in checks))
        return
    failed = sum(not _holds(check) for check in checks)
    print(f"{checks[0].subject}: {len(checks) - failed} of {len(checks)} checks hold")
    if failed:
        sys.exit(1)


def _holds(check: Check) -> bool:
    """Run a check and print how it ended."""
    began, verdict, said = time.monotonic(), "holds", ""
    try:
        check()
    except NonconformingError as error:
        verdict, said = "FAILS", f"\n      {printable(str(error))}"
    print(f"{verdict} {time.monotonic() - began:6.1f} s  {check.name}{said}", flush=True)
    return not said


def _suite(kind: str, name: str) -> list[Check]:
    """Raises `UsageError` for what is no such thing, or has no suite."""
    if kind == "algorithm" and (algorithm := ALGORITHMS.get(name)) is not None:
        if isinstance(algorithm, TrainedAlgorithm) or algorithm.cohorts(algorithm.config()) is not None:
            raise UsageError(f"The algorithm {name} asks no oracle, and there is no suite for it.")
        return conformance.check_algorithm(algorithm)
    if kind == "backend" and (backend := BACKENDS.get(name)) is not None:
        if lacks := not_installed(backend):
            raise UsageError(f"The backend {name} {lacks}.")
        return conformance.check_oracle(backend)
    if kind == "alignment" and (method := METHODS.get(name)) is not None:
        return conformance.check_alignment(method)
    names = {"algorithm": ALGORITHMS.names, "backend": BACKENDS.names, "alignment": METHODS.names}[kind]
    raise UsageError(f"There is no {kind} {name!r}{nearest(name, names)}; there are {', '.join(names)}.")
