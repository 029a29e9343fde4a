"""The relay that stands in for netem: its law against a recursion, its routing, its precision in real
namespaces, and its end."""

from __future__ import annotations

import json
import math
import os
import random
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

import pytest

from mpc_protocols.errors import UsageError
from runner.bench.net import netns, relay
from runner.bench.net.netns import Namespaces
from runner.bench.net.network import Net
from runner.bench.net.relay import NETWORK, Relay, WayIn, burst, carry, wire_bytes
from tests.patience import PATIENCE_S


def packet(size: int, to: int = 1, segment: int = 0, headers: int = 52, first: int = 0x45) -> bytes:
    """An IPv4 packet of so many bytes to party `to` - 1; segment: the payload of each of its segments, 0 if
    it is one."""
    vnet = struct.pack("=BBHHHH", 1, 1 if segment else 0, headers, segment, 20, 16)
    return vnet + bytes([first]) + bytes(15) + NETWORK + bytes([to]) + bytes(size - 20)


def test_bytes_on_the_wire_are_those_of_every_segment() -> None:
    assert wire_bytes(packet(1500)) == 1514 and wire_bytes(packet(52)) == 66
    for payload in (1448, 1449, 14_480, 14_479, 1):
        segments = math.ceil(payload / 1448)
        assert wire_bytes(packet(52 + payload, segment=1448)) == payload + segments * (52 + 14)


def test_a_packet_is_as_late_as_the_law_says() -> None:
    """Against max-plus: delivery k = delay + max over j <= k of (arrival j + the time of packets j .. k on
    the wire)."""
    draw = random.Random(3)
    for delay, rate in ((0.02, 12.5e6), (0.0, 1e4), (1.0, math.inf)):
        way, now, seen = WayIn(-1, delay, rate), 0.0, []
        for _ in range(200):
            now += draw.choice((0.0, 1e-5, draw.random() * 1e-3))
            seen.append((now, packet(draw.randrange(20, 60_000))))
            way.take(seen[-1][1], now)
        for k, (due, held) in enumerate(way.queue):
            times = [wire_bytes(each) / rate for _, each in seen[: k + 1]]
            assert held is seen[k][1]
            assert due == pytest.approx(
                delay + max(seen[j][0] + math.fsum(times[j:]) for j in range(k + 1)), abs=1e-9
            )


def test_the_queue_is_bounded_and_loses_nothing_before_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_QUEUE", 10_000)
    sent: list[bytes] = []
    monkeypatch.setattr(os, "write", lambda _, each: sent.append(each))
    way, one = WayIn(-1, 0.0, math.inf), packet(990)
    for number in range(12):
        way.take(one[:-1] + bytes([number]), 0.0)
    assert way.held == 10_000 and way.deliver(0.0) == math.inf and way.held == 0
    assert [each[-1] for each in sent] == list(range(10))


def test_packets_go_where_they_are_addressed_and_strange_ones_nowhere() -> None:
    """Over socket pairs in place of devices; the end of its input ends it."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(3)]
    for ours, theirs in pairs:
        ours.setblocking(False)
        theirs.settimeout(PATIENCE_S)
    reading, writing = os.pipe()
    ways = [WayIn(ours.fileno(), 0.02, math.inf) for ours, _ in pairs]
    thread = threading.Thread(target=carry, args=(ways, reading))
    thread.start()
    began = time.monotonic()
    elsewhere = packet(40)[:26] + bytes((10, 0, 0, 1)) + bytes(20)
    strange = (packet(40, first=0x60), packet(40, to=0), packet(40, to=4), elsewhere, bytes(10) + b"E")
    for each in (*strange, packet(100, to=2), packet(101, to=3), packet(102, to=1)):
        pairs[0][1].send(each)
    got = [theirs.recv(2000) for _, theirs in pairs]
    assert time.monotonic() - began >= 0.02
    assert got == [packet(102, to=1), packet(100, to=2), packet(101, to=3)]
    assert not any(way.queue or way.held for way in ways)
    os.close(writing)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    os.close(reading)
    for ours, theirs in pairs:
        ours.close()
        theirs.close()


ECHO = """
import socket, threading
ping, bulk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.create_server(("10.213.0.1", 5001))
ping.bind(("10.213.0.1", 5000))
def echo():
    while True:
        ping.sendto(*ping.recvfrom(100))
threading.Thread(target=echo, daemon=True).start()
print("up", flush=True)
link, _ = bulk.accept()
while size := int.from_bytes(link.recv(8, socket.MSG_WAITALL), "big"):
    while size:
        size -= len(link.recv(min(size, 1 << 20)))
    link.sendall(b".")
"""
ASK = """
import json, socket, sys, time
ping, link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.create_connection(("10.213.0.1", 5001))
def timed(act):
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
def once():
    ping.sendto(bytes(28), ("10.213.0.1", 5000))
    ping.recv(100)
def much(size=int(sys.argv[1])):
    link.sendall(size.to_bytes(8, "big") + bytes(size))
    link.recv(1)
print(json.dumps([[timed(once) for _ in range(20)], [timed(much) for _ in range(7)][2:]]))
"""


def needs_a_relay(net: Net) -> None:
    """Skip where a relay cannot work, or is not what would be used."""
    if why := netns.problem(net):
        pytest.skip(why)
    with Namespaces(1, net) as made:
        if made.by != "relay":
            pytest.skip("this kernel has netem")


@pytest.mark.parametrize(("delay", "rate", "size"), [(20.0, 100.0, 1_000_000), (1.0, 1000.0, 10_000_000)])
def test_precision_between_namespaces(delay: float, rate: float, size: int, quiet_machine: bool) -> None:
    """Kernel TCP and UDP over it: never early; if quiet, about a quarter of a millisecond late (bounds: 1.5
    ms, a fifth)."""
    net = Net("custom", delay, rate, "netns")
    needs_a_relay(net)
    with Namespaces(2, net) as made:
        server = subprocess.Popen([*made.prefix(0), sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None and server.stdout.readline() == b"up\n"
            asked = subprocess.run(
                [*made.prefix(1), sys.executable, "-c", ASK, str(size)], capture_output=True, check=True
            )
        finally:
            server.kill()
            server.communicate()
    trips, transfers = json.loads(asked.stdout)
    small = 2 * (delay / 1e3 + (28 + 28 + 14) / net.bytes_per_s) if net.bytes_per_s else 0.0
    assert min(trips) >= small
    large = size * (1514 / 1448) * 8 / (rate * 1e6) + 2 * delay / 1e3
    assert 0.99 * large <= statistics.median(transfers), (transfers, large)
    if quiet_machine:
        assert statistics.median(trips) <= small + 0.0015
        assert statistics.median(transfers) <= 1.2 * large, (transfers, large)


def test_what_stands_in_its_way_is_said_and_nothing_is_left() -> None:
    net = Net("custom", 1.0, 1000.0, "netns")
    with pytest.raises(
        UsageError,
        match="no netem, and a relay in its place cannot work: it ended at once; use --net-by shim",
    ):
        Relay(("false",), 1, net)
    needs_a_relay(net)
    with Namespaces(1, Net("loopback", by="netns")) as made:
        hub = made.name("hub")
        subprocess.run(
            ["ip", "-n", hub, "link", "add", "link1", "type", "veth", "peer", "name", "other"], check=True
        )
        with pytest.raises(UsageError, match="/dev/net/tun says 'Invalid argument'"):
            Relay(made.prefix("hub"), 2, net)
        devices = subprocess.run(
            ["ip", "-n", hub, "-o", "link"], capture_output=True, text=True, check=True
        ).stdout
        assert "link0" not in devices


def test_bursts_are_short_for_the_rate() -> None:
    assert burst(Net("x", 1.0)) == burst(Net("x", 1.0, 1e6)) == 1 << 16
    assert burst(Net("x", 1.0, 0.01)) == 3000 and burst(Net("x", 1.0, 100.0)) == 6250
