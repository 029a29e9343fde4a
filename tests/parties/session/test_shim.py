"""The emulated network: never too fast, nothing lost or reordered, and off unless this very process asks for it."""

from __future__ import annotations

import asyncio
import math
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parties.session import shim
from parties.session.shim import Network
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def off() -> Iterator[None]:
    """Nothing is emulated before or after a test."""
    shim.emulate(None)
    yield
    shim.emulate(None)


def pass_through(network: Network, messages: Sequence[bytes], take: int = 1000) -> tuple[bytes, float]:
    """Send messages and the end of the stream through a held-back socket; what came out, and seconds until the end did."""
    shim.emulate(network)
    here, there = socket.socketpair()
    there.setblocking(False)
    loop = asyncio.SelectorEventLoop(shim.selector())
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

    held = shim.hold_back(there, loop, readable)
    assert held is not None
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
    shim.emulate(Network(0.0, 1e6))
    loop = asyncio.SelectorEventLoop(shim.selector())
    pairs = [socket.socketpair() for _ in range(2)]
    came, over = [0, 0], loop.create_future()
    holders = []
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

        held = shim.hold_back(there, loop, wake)
        assert held is not None
        holders.append(held)
        loop.add_reader(there.fileno(), wake)
    began = time.monotonic()
    loop.run_until_complete(asyncio.wait_for(over, PATIENCE_S))
    assert time.monotonic() - began >= 0.099  # 100 kB at 1 MB/s, less the clock's grain
    for pair in pairs:
        for sock in pair:
            sock.close()
    loop.close()


def test_off_unless_asked_for() -> None:
    here, there = socket.socketpair()
    loop = asyncio.SelectorEventLoop()
    for network in (None, Network()):
        shim.emulate(network)
        assert shim.selector() is None and shim.hold_back(here, loop, lambda: None) is None
    loop.close()
    here.close()
    there.close()


@pytest.mark.parametrize(
    "wrong", [(-1.0, math.inf), (11.0, math.inf), (math.nan, math.inf), (0.0, 10.0), (0.0, math.nan)]
)
def test_impossible_networks_are_refused(wrong: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"delay|rate"):
        Network(*wrong)


def test_only_benchmarks_emulate_a_network() -> None:
    """No study, private file, option of `run` or message of a peer can slow a session down: nothing else calls it."""
    callers = {
        path.relative_to(ROOT).as_posix()
        for package in ("mpc_protocols", "synth", "parties", "runner")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"\bemulate\(", path.read_text(encoding="utf-8"))
    }
    assert callers == {"parties/session/shim.py", "runner/bench/party.py", "runner/bench/within.py"}
