"""The networks of a benchmark: loopback, a LAN, a WAN, or any delay and rate
(`docs/reference/command-line.md`).

    loopback    this machine as it is
    lan         0.25 ms one way, 1 Gbit/s into each party
    wan         20 ms one way, 100 Mbit/s into each party

Emulated in the parties themselves (`shim`: no root needed, see `runner.bench.net.shim`), or between network
namespaces (`netns`: needs root and iproute2, see `runner.bench.net.netns`), by the kernel's `netem` or, where
the kernel has none, by a `relay` of packets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from mpc_protocols.errors import UsageError
from runner.bench.parameters import Parameter

By = Literal["shim", "netns"]
DELAY = Parameter("delay-ms", "one-way delay in milliseconds", (), 0, 10_000, whole=False)
RATE = Parameter("rate-mbit", "rate into each party in Mbit/s", (), 0.01, 1e6, whole=False)


@dataclass(frozen=True)
class Net:
    """One network. delay_ms: one way. rate_mbit: None if not limited. by: who emulates it."""

    name: str
    delay_ms: float = 0.0
    rate_mbit: float | None = None
    by: By = "shim"

    @property
    def emulated(self) -> bool:
        """Whether anything is slower than loopback."""
        return bool(self.delay_ms) or self.rate_mbit is not None

    @property
    def delay_s(self) -> float:
        """One-way delay in seconds."""
        return self.delay_ms / 1e3

    @property
    def bytes_per_s(self) -> float | None:
        """Rate in bytes per second."""
        return None if self.rate_mbit is None else self.rate_mbit * 1e6 / 8

    def __str__(self) -> str:
        if not self.emulated:
            return f"{self.name}, in namespaces" if self.by == "netns" else self.name
        rate = "" if self.rate_mbit is None else f", {self.rate_mbit:g} Mbit/s"
        return f"{self.name} ({self.delay_ms:g} ms one way{rate}, by {self.by})"


KNOWN = {"loopback": Net("loopback"), "lan": Net("lan", 0.25, 1000.0), "wan": Net("wan", 20.0, 100.0)}


def networks(names: str, delays: str | None, rates: str | None, by: By) -> list[Net]:
    """The networks that `--net`, `--delay-ms` and `--rate-mbit` ask for, each a list; delays and rates
    replace the named ones'.

    Raises `UsageError`.
    """
    chosen = []
    for name in dict.fromkeys(part.strip() for part in names.split(",")):
        if name not in KNOWN:
            raise UsageError(
                f"--net: {name!r} is not one of {', '.join(KNOWN)}; or give --delay-ms and --rate-mbit."
            )
        chosen.append(replace(KNOWN[name], by=by))
    if delays is not None:
        chosen = [
            replace(net, name="custom", delay_ms=float(delay))
            for net in chosen
            for delay in DELAY.parse(delays)
        ]
    if rates is not None:
        chosen = [
            replace(net, name="custom", rate_mbit=float(rate)) for net in chosen for rate in RATE.parse(rates)
        ]
    return list(dict.fromkeys(chosen))
