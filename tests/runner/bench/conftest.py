"""Fixtures for the tests of `runner.bench`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from runner.bench.running import processes
from tests.forks import Child


@pytest.fixture(scope="session", autouse=True)
def parties_of_a_bench_are_forked() -> Iterator[None]:
    """Those on this machine's loopback, which would each import everything anew."""

    def started(command: Sequence[str], *, env: Mapping[str, str], **more: Any) -> Any:
        if tuple(command) != processes.PROGRAM or sys.platform != "linux":
            return subprocess.Popen(command, env=env, **more)
        return Child(command[-1], env)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(processes, "subprocess", SimpleNamespace(Popen=started, PIPE=-1, DEVNULL=-3))
        yield
