"""A slow network between namespaces on a kernel without netem: one process that carries the packets, each in
its own time.

    kernel of party i  --eth0 (TUN)-->  this process  --eth0 (TUN)-->  kernel of party j

    start = max(arrival, end of the packet before it towards j)     end = start + bits on the wire / rate     there at end + delay

The same formula as netem's `delay` and `rate` on the way in to each party. Everything else is the kernel's:
TCP with its handshake, slow start, acknowledgements and windows. What is counted, what is not emulated, and
how precise it is: `docs/howto/add-a-benchmark.md` 4.

It runs in the hub's namespace as `python -m runner.bench.net.relay JSON`: opens one TUN device per party
(link0, link1 ..), says "ready", and ends when its standard input does, the devices with it. The launcher's
side, `Relay`, moves each into its party's namespace. Needs root and /dev/net/tun. Standard library only.
"""

from __future__ import annotations

import fcntl
import gc
import json
import math
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from mpc_protocols.errors import UsageError
from runner.bench.net.network import Net
from runner.launch.children import environment

NETWORK = bytes((10, 213, 0))
"""Of every party's address; the last byte is its number plus 1."""
_QUEUE = 64 << 20
_BURST_S = 0.0005
_MAX_PACKET = 1 << 16
_SEGMENT = 1500
_ETHERNET = 14
_AT_ONCE = 64
"""Packets taken from one device before the others are looked at again."""
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0  # linux/if_tun.h
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
_TUN_F_CSUM, _TUN_F_TSO4 = 0x01, 0x02
_VNET = struct.Struct("=BBHHHH")
"""struct virtio_net_hdr before every packet: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset.
Passed on as it is."""


def burst(net: Net) -> int:
    """The most bytes of a connection that the kernel may hand over as one packet."""
    rate = net.bytes_per_s
    return _MAX_PACKET if rate is None else int(min(_MAX_PACKET, max(2 * _SEGMENT, rate * _BURST_S)))


class Relay:
    """The process as the launcher sees it. Raises `UsageError` if it cannot do its work here."""

    def __init__(self, prefix: Sequence[str], parties: int, net: Net) -> None:
        """prefix: what starts a command in the hub's namespace."""
        what = json.dumps({"parties": parties, "delay_s": net.delay_s, "bytes_per_s": net.bytes_per_s})
        # a group of its own: Ctrl-C is for the launcher
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-P", "-m", "runner.bench.net.relay", what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            process_group=0,
        )
        try:
            assert self._process.stdout is not None
            said = self._process.stdout.readline().decode(errors="replace").strip()
            if said != "ready":
                raise UsageError(
                    "--net-by netns: this kernel has no netem, and a relay in its place cannot work: "
                    f"{said or 'it ended at once'}; use --net-by shim, which needs no privileges."
                )
        except BaseException:
            self.close()
            raise

    @staticmethod
    def device(number: int) -> str:
        """A party's device, in the hub's namespace."""
        return f"link{number}"

    def close(self) -> None:
        """End the process; its devices go with it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@dataclass
class WayIn:
    """What is on its way to one party. Times are of `time.monotonic`, in seconds."""

    device: int
    delay_s: float
    bytes_per_s: float
    end: float = -math.inf
    held: int = 0
    queue: deque[tuple[float, bytes]] = field(default_factory=deque)

    def take(self, packet: bytes, arrival: float) -> None:
        """A packet with its virtio header sets out; it is lost if the queue is full."""
        if self.held + len(packet) > _QUEUE:
            return
        self.end = max(arrival, self.end) + wire_bytes(packet) / self.bytes_per_s
        self.queue.append((self.end + self.delay_s, packet))
        self.held += len(packet)

    def deliver(self, now: float) -> float:
        """Hand over what is due; when the next will be, infinite if there is none."""
        queue = self.queue
        while queue:
            due, packet = queue[0]
            if due > now:
                return due
            queue.popleft()
            self.held -= len(packet)
            with suppress(OSError):  # the other end's device is down: the packet is lost, as on a cable
                os.write(self.device, packet)
        return math.inf


def wire_bytes(packet: bytes) -> int:
    """Bytes that a packet's segments are on an Ethernet."""
    fields: tuple[int, ...] = _VNET.unpack_from(packet)
    _, gso_type, headers, segment, _, _ = fields
    size = len(packet) - _VNET.size
    if not gso_type or not segment:
        return size + _ETHERNET
    segments = -(-(size - headers) // segment)
    return size + (segments - 1) * headers + segments * _ETHERNET


def carry(ways: Sequence[WayIn], stop: int) -> None:
    """Carry packets until `stop`, a file descriptor, ends."""
    devices = [way.device for way in ways]
    waiting = [stop, *devices]
    while True:
        due = math.inf
        for way in ways:
            due = min(due, way.deliver(time.monotonic()))
        readable, _, _ = select.select(
            waiting, [], [], None if due == math.inf else max(0.0, due - time.monotonic())
        )
        for device in readable:
            if device == stop:
                if not os.read(stop, 1):
                    return
                continue
            with suppress(BlockingIOError):
                for _ in range(_AT_ONCE):
                    packet = os.read(device, _VNET.size + _MAX_PACKET)
                    target = packet[_VNET.size + 16 : _VNET.size + 20]
                    if packet[_VNET.size] >> 4 == 4 and target[:3] == NETWORK and 0 < target[3] <= len(ways):
                        ways[target[3] - 1].take(packet, time.monotonic())


def _open(number: int) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(
        device,
        _TUNSETIFF,
        struct.pack("16sH22x", Relay.device(number).encode(), _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR),
    )
    fcntl.ioctl(device, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4)
    return device


def main() -> None:
    """The process."""
    what = json.loads(sys.argv[1])
    try:
        rate = math.inf if what["bytes_per_s"] is None else what["bytes_per_s"]
        ways = [WayIn(_open(number), what["delay_s"], rate) for number in range(what["parties"])]
    except OSError as error:
        print(f"/dev/net/tun says '{os.strerror(error.errno or 0)}'", flush=True)
        return
    with suppress(OSError):  # to be on time; without it, a little less so
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    with suppress(OSError), open("/proc/self/timerslack_ns", "w", encoding="ascii") as slack:
        slack.write("1")
    gc.disable()  # nothing below makes cycles
    print("ready", flush=True)
    carry(ways, 0)


if __name__ == "__main__":
    main()
