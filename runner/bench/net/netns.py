"""The same networks by the kernel: a network namespace per party, joined in a hub that is as slow as the
network is to be.

    cosynth-PID-0 ...   one party each: eth0, 10.213.0.1 and so on; nothing else is reachable from there
    cosynth-PID-hub     by netem    a bridge with one port per party; delay and rate on each port, towards the party
                        by relay    on a kernel without netem: a process that carries the packets (`runner.bench.net.relay`)

Nothing outside these namespaces is touched. They are deleted at the end; those of a benchmark that was
killed, by the next one. Needs root, `ip` and `tc` (iproute2), and netem in the kernel or /dev/net/tun, unless
the network is plain loopback speed. TLS is on, because the parties are not on loopback. Unlike the emulation
in the session it has TCP's own behaviour on a slow network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Literal

from mpc_protocols.errors import UsageError
from runner.bench.net.network import Net
from runner.bench.net.relay import NETWORK, Relay, burst

_QUEUE = 1_000_000
"""Packets that netem may hold: it delays, it does not drop."""
_DEVICE = 10_000
"""Packets that may wait in a party's device for the relay to be given the processor."""


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
        self._relay: Relay | None = None
        self.by: Literal["netem", "relay"] | None = None
        """What makes the network slow; None if it is not."""
        _sweep()
        try:
            hub = self._add("hub")
            _do("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
            if net.emulated:
                self.by = "netem" if _has_netem(hub) else "relay"
            if self.by == "relay":
                _do("ip", "-n", hub, "link", "delete", "bridge")
                self._relay = Relay(self.prefix("hub"), parties, net)
            else:
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
        self._made.append(whole)  # first: an interruption may come between
        _do("ip", "netns", "add", whole)
        return whole

    def _join(self, hub: str, number: int, net: Net) -> None:
        """One party's namespace, its cable to the hub, and how slow that is."""
        party, port = self._add(str(number)), f"port{number}"
        if self.by == "relay":
            most = str(burst(net))
            _do("ip", "-n", hub, "link", "set", Relay.device(number), "netns", party, "name", "eth0")
            _do("ip", "-n", party, "link", "set", "eth0", "txqueuelen", str(_DEVICE), "gso_max_size", most)
        else:
            _do("ip", "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", party)
            _do("ip", "-n", hub, "link", "set", port, "master", "bridge", "up")
        _do("ip", "-n", party, "address", "add", f"{self.address(number)}/16", "dev", "eth0")
        for device in ("lo", "eth0"):
            _do("ip", "-n", party, "link", "set", device, "up")
        if self.by == "netem":
            rate = () if net.rate_mbit is None else ("rate", f"{round(net.rate_mbit * 1e6)}bit")
            _do(
                "tc",
                "-n",
                hub,
                "qdisc",
                "add",
                "dev",
                port,
                "root",
                "netem",
                "limit",
                str(_QUEUE),
                "delay",
                f"{round(net.delay_ms * 1e3)}us",
                *rate,
            )

    @staticmethod
    def address(number: int) -> str:
        """The party's address."""
        return ".".join(map(str, (*NETWORK, number + 1)))

    def prefix(self, number: int | str) -> tuple[str, ...]:
        """What starts a command inside a party's namespace (or the hub's); it keeps the process number."""
        return ("ip", "netns", "exec", self.name(number))

    def __enter__(self) -> Namespaces:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the relay and delete the namespaces."""
        if self._relay is not None:
            self._relay.close()
        for name in self._made:
            with suppress(UsageError):
                _do("ip", "netns", "delete", name)
        self._made = []


def _has_netem(hub: str) -> bool:
    """Whether this kernel has netem: tried on the hub's bridge, which carries nothing yet."""
    try:
        _do("tc", "-n", hub, "qdisc", "add", "dev", "bridge", "root", "netem")
    except UsageError:
        return False
    _do("tc", "-n", hub, "qdisc", "delete", "dev", "bridge", "root")
    return True


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
        # a group of its own: Ctrl-C is for this process, which then deletes what there is
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=30, process_group=0
        )
    except (OSError, subprocess.TimeoutExpired):
        raise UsageError(
            f"--net-by netns: {command[0]} cannot be run; install iproute2, or use --net-by shim."
        ) from None
    if done.returncode:
        words = " ".join(done.stderr.split()).rstrip(".") or f"exit {done.returncode}"
        raise UsageError(
            f"--net-by netns: {command[0]} says '{words}'; use --net-by shim, which needs no privileges."
        )
    return done.stdout
