"""The same networks by the kernel: a network namespace per party, joined by a bridge, with netem on the way in to each.

    cosynth-PID-hub     the bridge, with one port per party; netem (delay, rate) on each port, towards the party
    cosynth-PID-0 ...   one party each: eth0, 10.213.0.1 and so on; nothing else is reachable from there

Nothing outside these namespaces is touched. They are deleted at the end; those of a benchmark that was killed, by the next one.
Needs root, `ip` and `tc` (iproute2), and netem in the kernel, unless the network is plain loopback speed. TLS is on, because the
parties are not on loopback. Unlike the emulation in the session it has TCP's own behaviour on a slow network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from mpc_protocols.errors import UsageError
from runner.bench.network import Net

_QUEUE = 1_000_000
"""Packets that netem may hold: it delays, it does not drop."""


def problem(net: Net) -> str | None:
    """Why this machine cannot emulate the network by namespaces, as words; None if it can. Tries it."""
    if os.name != "posix" or os.geteuid() != 0:
        return "it needs root"
    if missing := [program for program in ("ip", "tc") if shutil.which(program) is None]:
        return f"it needs the program {missing[0]} (package iproute2)"
    try:
        Namespaces(1, net).close()
    except UsageError as error:
        return error.sentence
    return None


class Namespaces:
    """The namespaces of one benchmark; a context manager. Raises `UsageError` if the machine refuses."""

    def __init__(self, parties: int, net: Net) -> None:
        self._stem = f"cosynth-{os.getpid()}"
        self.parties = parties
        self._made: list[str] = []
        _sweep()
        try:
            hub = self._add("hub")
            _do("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
            _do("ip", "-n", hub, "link", "set", "bridge", "up")
            for number in range(parties):
                self._join(hub, number, net)
        except BaseException:
            self.close()
            raise

    def name(self, of: int | str) -> str:
        """The namespace of a party (or of the hub)."""
        return f"{self._stem}-{of}"

    def _add(self, name: str) -> str:
        whole = self.name(name)
        _do("ip", "netns", "add", whole)
        self._made.append(whole)
        return whole

    def _join(self, hub: str, number: int, net: Net) -> None:
        """One party's namespace, its cable to the bridge, and how slow that is."""
        party, port = self._add(str(number)), f"port{number}"
        _do("ip", "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", party)
        _do("ip", "-n", hub, "link", "set", port, "master", "bridge", "up")
        _do("ip", "-n", party, "address", "add", f"{self.address(number)}/16", "dev", "eth0")
        for device in ("lo", "eth0"):
            _do("ip", "-n", party, "link", "set", device, "up")
        if net.emulated:
            rate = () if net.rate_mbit is None else ("rate", f"{round(net.rate_mbit * 1e6)}bit")
            _do("tc", "-n", hub, "qdisc", "add", "dev", port, "root", "netem", "limit", str(_QUEUE),
                "delay", f"{round(net.delay_ms * 1e3)}us", *rate)

    @staticmethod
    def address(number: int) -> str:
        """The party's address."""
        return f"10.213.0.{number + 1}"

    def prefix(self, number: int) -> tuple[str, ...]:
        """What starts a command inside a party's namespace; it keeps the process number."""
        return ("ip", "netns", "exec", self.name(number))

    def __enter__(self) -> Namespaces:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the namespaces."""
        for name in self._made:
            with suppress(UsageError):
                _do("ip", "netns", "delete", name)
        self._made = []


def _sweep() -> None:
    """Delete what a benchmark left that was killed."""
    for line in _do("ip", "netns", "list").splitlines():
        found = re.match(r"(cosynth-(\d+)-\S+)", line)
        if found and not Path(f"/proc/{found[2]}").exists():
            with suppress(UsageError):
                _do("ip", "netns", "delete", found[1])


def _do(*command: str) -> str:
    """Run one command of iproute2. Raises `UsageError` with its last words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        raise UsageError(f"--net-by netns: {command[0]} cannot be run; install iproute2, or use --net-by shim.") from None
    if done.returncode:
        words = " ".join(done.stderr.split()).rstrip(".") or f"exit {done.returncode}"
        raise UsageError(f"--net-by netns: {command[0]} says '{words}'; use --net-by shim, which needs no privileges.")
    return done.stdout
