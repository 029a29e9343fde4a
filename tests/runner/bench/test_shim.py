"""The emulated network: never too fast, nothing lost or reordered, and only in sessions that are given it."""

from __future__ import annotations

import asyncio
import math
import re
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.bench.net.shim import EmulatedWayIn, Network, way_in
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]


def pass_through(network: Network, messages: Sequence[bytes], take: int = 1000) -> tuple[bytes, float]:
    """Send messages and the end of the stream through a held-back socket; what came out, and seconds until
    the end did."""
    emulated = EmulatedWayIn(network)
    here, there = socket.socketpair()
    there.setblocking(False)
    loop = asyncio.SelectorEventLoop(emulated.selector())
    came, over, view = bytearray(), loop.create_future(), bytearray(take)

    def readable() -> None:
        while not over.done():
            try:
                count = held.receive_into(view)
            except BlockingIOError:
                return
            came.extend(view[:count])
            if count == 0:
                loop.remove_reader(there.fileno())
                over.set_result(None)

    held = emulated.hold_back(there, loop, readable)
    loop.add_reader(there.fileno(), readable)
    began = time.monotonic()

    def send() -> None:
        for message in messages:
            here.sendall(message)
        here.close()

    sender = threading.Thread(target=send)
    sender.start()
    try:
        loop.run_until_complete(asyncio.wait_for(over, PATIENCE_S))
    finally:
        sender.join()
        there.close()
        loop.close()
    return bytes(came), time.monotonic() - began


def test_delay_and_rate_are_lower_bounds() -> None:
    payload = bytes(range(256)) * 800
    for network in (Network(0.05), Network(0.0, 1e6), Network(0.05, 1e6)):
        came, seconds = pass_through(network, [payload], take=1 << 17)
        assert came == payload
        assert seconds >= network.delay_s + (
            len(payload) / network.bytes_per_s if math.isfinite(network.bytes_per_s) else 0
        )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=70_000), max_size=6), st.integers(1, 70_000))
def test_nothing_is_lost_or_reordered(messages: list[bytes], take: int) -> None:
    came, _ = pass_through(Network(0.001, 1e8), messages, max(take, sum(map(len, messages)) // 200))
    assert came == b"".join(messages)


def test_the_way_in_is_shared() -> None:
    """Two links of one party take turns on its way in: together they are no faster than one."""
    emulated = EmulatedWayIn(Network(0.0, 1e6))
    loop = asyncio.SelectorEventLoop(emulated.selector())
    pairs = [socket.socketpair() for _ in range(2)]
    came, over = [0, 0], loop.create_future()
    holders: list[Any] = []
    for number, (here, there) in enumerate(pairs):
        here.sendall(bytes(50_000))
        there.setblocking(False)

        def wake(number: int = number) -> None:
            try:
                while True:
                    came[number] += holders[number].receive_into(bytearray(4096))
            except BlockingIOError:
                if sum(came) == 100_000 and not over.done():
                    over.set_result(None)

        held = emulated.hold_back(there, loop, wake)
        holders.append(held)
        loop.add_reader(there.fileno(), wake)
    began = time.monotonic()
    loop.run_until_complete(asyncio.wait_for(over, PATIENCE_S))
    assert time.monotonic() - began >= 0.099  # 100 kB at 1 MB/s, less the clock's grain
    for pair in pairs:
        for sock in pair:
            sock.close()
    loop.close()


def test_a_network_that_slows_nothing_down_is_not_emulated() -> None:
    assert way_in(Network()) is None and isinstance(way_in(Network(0.01)), EmulatedWayIn)


@pytest.mark.parametrize(
    "wrong", [(-1.0, math.inf), (11.0, math.inf), (math.nan, math.inf), (0.0, 10.0), (0.0, math.nan)]
)
def test_impossible_networks_are_refused(wrong: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"delay|rate"):
        Network(*wrong)


def test_only_benchmarks_emulate_a_network() -> None:
    """No study, private file, option of `run` or message of a peer can slow a session down: nothing else
    makes a way in."""
    makers = {
        path.relative_to(ROOT).as_posix()
        for package in ("mpc_protocols", "synth", "parties", "runner")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"\bshim\b.*import|import.*\bshim\b|EmulatedWayIn", path.read_text(encoding="utf-8"))
    }
    assert makers == {"runner/bench/net/shim.py", "runner/bench/running/party.py", "runner/bench/within.py"}
