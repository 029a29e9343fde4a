"""Programs of Flower as processes, and what all processes of a run have used, Ray's daemons among them."""

from __future__ import annotations

import os
import secrets
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path


def flower(program: str) -> str:
    """A program of the environment that this runs in."""
    return str(Path(sys.executable).parent / program)


class Processes:
    """All processes of this run, whoever started them: they carry its mark in their environment. Linux only.

    cpu_s: seconds that they have used, as far as they were looked at (once a second).
    """

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        self._used: dict[tuple[int, str], float] = {}
        self._ended = threading.Event()

    @property
    def cpu_s(self) -> float:
        """Of all of them together."""
        return sum(self._used.values())

    def look(self) -> list[int]:
        """Those that are there."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                process = int(folder.name), stat[19]  # a number may come again, its time of start does not
                ours = process in self._used or self.mark.encode() in (folder / "environ").read_bytes()
                if ours and stat[0] != "Z":
                    self._used[process] = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
                    found.append(process[0])
        return found

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look once a second; in the end nothing is left."""
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            for pid in self.look():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self.look()


@contextmanager
def started(command: list[str], log: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """A process, which is asked to end in the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(address: str, context: ssl.SSLContext | None = None) -> None:
    """Until the SuperLink answers. Raises TimeoutError."""
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{address}/health", timeout=5, context=context).close()
            return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(f"{address} does not answer.")
