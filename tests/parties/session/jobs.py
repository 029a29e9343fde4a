"""What the party processes of the session's tests run (imported by them: keep it light)."""

from __future__ import annotations

import resource
import time
from typing import Any

from parties.session import SessionWire


def greet(wire: SessionWire) -> dict[str, Any]:
    """Everybody to everybody they may talk to; what a party knows of the session."""
    peers = [
        p for p in range(len(wire.names)) if p != wire.me and (p < wire.computing or wire.me < wire.computing)
    ]
    for peer in peers:
        wire.send(peer, f"{wire.me} to {peer}".encode())
    heard = {str(peer): bytes(wire.receive_up_to(peer, 100)).decode() for peer in peers}
    keys = (
        {str(p): wire.key(p) for p in range(wire.computing) if p != wire.me}
        if wire.me < wire.computing
        else {}
    )
    return {
        "heard": heard,
        "session": wire.session_id,
        "keys": keys,
        "announcements": dict(wire.announcements),
        "contributors": list(wire.contributors),
        "computing": wire.computing,
    }


def latency(wire: SessionWire, rounds: int, size: int) -> float:
    """Mean seconds of a round in which each party sends to the previous and receives from the next."""
    payload = bytes(size)
    begin = time.perf_counter()
    for _ in range(rounds):
        wire.send((wire.me - 1) % 3, payload)
        wire.receive((wire.me + 1) % 3, size)
    return (time.perf_counter() - begin) / rounds


def transfer(wire: SessionWire, size: int, ring: bool) -> tuple[float, float]:
    """Wall and CPU seconds to move `size` bytes from 0 to 1, or from everybody to the previous."""
    payload = bytes(size)
    before = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    if ring:
        wire.send((wire.me - 1) % 3, payload)
        wire.receive((wire.me + 1) % 3, size)
    elif wire.me == 0:
        wire.send(1, payload)
        wire.receive(1, 1)
    elif wire.me == 1:
        wire.receive(0, size)
        wire.send(0, b"k")
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def swap(wire: SessionWire, size: int, count: int) -> bool:
    """Everybody sends `count` messages to everybody before anybody receives one; checks the content."""
    peers = [p for p in range(3) if p != wire.me]
    for number in range(count):
        for peer in peers:
            wire.send(peer, bytes([wire.me, number % 256]) * (size // 2))
    right = True
    for number in range(count):
        for peer in peers:
            right = bytes(wire.receive(peer, size)) == bytes([peer, number % 256]) * (size // 2) and right
    return right


def run_ahead(wire: SessionWire, size: int, count: int) -> float:
    """Party 0 streams to a party 1 that does not read for a while; how far it got meanwhile, in bytes."""
    if wire.me == 0:
        payload = bytes(size)
        before = wire.traffic().bytes_sent
        ahead = 0
        begin = time.monotonic()
        for _ in range(count):
            wire.send(1, payload)
            if time.monotonic() - begin < 0.8:
                ahead = wire.traffic().bytes_sent - before
        wire.receive(1, 1)
        return ahead
    if wire.me == 1:
        time.sleep(1.0)
        for _ in range(count):
            wire.receive(0, size)
        wire.send(0, b"k")
    return 0


def chain(wire: SessionWire, length: int) -> dict[str, int]:
    """A message travels round the ring `length` times, each time with a proof, while everybody also shouts to everybody once;
    counters of the job."""
    before = wire.traffic()
    peers = [p for p in range(3) if p != wire.me]
    for peer in peers:
        wire.send(peer, bytes(10))
    for peer in peers:
        wire.receive(peer, 10)
    for _ in range(length):
        if wire.me == 0:
            wire.send(1, bytes(100))
            wire.receive(2, 100)
        else:
            wire.receive(wire.me - 1, 100)
            wire.send((wire.me + 1) % 3, bytes(100))
        wire.count_proof()
    after = wire.traffic()
    return {
        "sent": after.bytes_sent - before.bytes_sent,
        "received": after.bytes_received - before.bytes_received,
        "messages": after.messages_sent - before.messages_sent,
        "rounds": after.rounds - before.rounds,
        "proofs": after.proofs - before.proofs,
    }


def beside(wire: SessionWire, count: int) -> bool:
    """Two streams of the same parties in two threads, in different orders at different parties."""
    from threading import Thread

    found: dict[str, list[int]] = {"a": [], "b": []}

    def exchange(stream: SessionWire, name: str, base: int) -> None:
        for number in range(count):
            stream.send((wire.me + 1) % 3, (base + number).to_bytes(4, "little"))
            found[name].append(int.from_bytes(stream.receive((wire.me + 2) % 3, 4), "little"))

    first, second = wire.fork("a"), wire.fork("b")
    threads = [
        Thread(target=exchange, args=(first, "a", 0)),
        Thread(target=exchange, args=(second, "b", 10_000)),
    ]
    if wire.me == 1:
        threads.reverse()
    for thread in threads:
        thread.start()
        time.sleep(0.01 * wire.me)
    for thread in threads:
        thread.join()
    return found == {"a": list(range(count)), "b": list(range(10_000, 10_000 + count))}


def buffers(wire: SessionWire) -> list[bytes]:
    """Payloads of every kind a protocol has, small ones changed right after sending."""
    import numpy as np

    small = np.arange(8, dtype=np.uint32)
    view = memoryview(bytearray(b"view"))
    for payload in (
        b"",
        b"bytes",
        bytearray(b"array"),
        view,
        small.data,
        np.arange(300_000, dtype=np.uint8).data,
    ):
        wire.send((wire.me + 1) % 3, payload)
    small[:] = 0
    view[:] = b"...."
    source = (wire.me + 2) % 3
    got = [bytes(wire.receive_up_to(source, 1 << 20)) for _ in range(5)]
    large = np.frombuffer(wire.receive(source, 300_000), dtype=np.uint8)
    return [*got, bytes([bool((large == np.arange(300_000, dtype=np.uint8)).all())])]


def misuse(wire: SessionWire) -> list[str]:
    """Mistakes of the caller are told to the caller."""
    told = []
    fork = wire.fork("once")
    for mistake in (
        lambda: wire.fork("once"),
        lambda: wire.send(wire.me, b""),
        lambda: wire.key(wire.me),
        lambda: wire.send(17, b""),
        lambda: fork.receive(wire.me, 1),
    ):
        try:
            mistake()
        except ValueError as error:
            told.append(str(error))
    return told


def tapped(wire: SessionWire) -> list[tuple[str, int, str, int, bytes]]:
    """What the tap saw of this job."""
    from tests import trio

    trio.TAPPED.clear()
    stream = wire.fork("counts")
    for number in range(2):
        stream.send((wire.me + 1) % 3, bytes([wire.me, number]))
        stream.receive((wire.me + 2) % 3, 2)
    return trio.TAPPED[:]


def secure_arithmetic(wire: SessionWire) -> dict[str, Any]:
    """MPyC's secure integers and arrays over our links: input, multiply, compare, output, PRSS randomness,
    transfer."""
    import builtins
    import pickle
    import sys

    import numpy as np

    def forbidden(*_: object, **__: object) -> object:
        raise AssertionError("pickle was used")

    before = (pickle.loads, pickle.dumps)
    pickle.loads = pickle.dumps = forbidden  # type: ignore[assignment]
    try:
        mpc = wire.mpyc()
        traffic = wire.traffic()
        secint = mpc.SecInt(32)
        inputs = mpc.input(secint(wire.me + 2))
        product = mpc.run(mpc.output(inputs[0] * inputs[1] * inputs[2]))
        less = mpc.run(mpc.output(inputs[0] < inputs[1]))
        array = mpc.input(secint.array(np.arange(5) - 2), senders=1)
        squares = mpc.run(mpc.output(array * array))
        absolute = mpc.run(mpc.output(mpc.np_absolute(array)))
        bits = mpc.run(mpc.output(mpc.random_bits(secint, 8)))
        transferred = mpc.run(
            mpc.transfer({"me": wire.me, "list": [1, -(2**70), None, True, 0.5, b"raw", (1, "two")]})
        )
        wire.send((wire.me + 1) % 3, b"beside")
        return {
            "product": product,
            "less": less,
            "squares": [int(x) for x in squares],
            "absolute": [int(x) for x in absolute],
            "bits": bits,
            "transferred": transferred,
            "beside": bytes(wire.receive((wire.me + 2) % 3, 6)),
            "sent": wire.traffic().bytes_sent - traffic.bytes_sent,
            "argv": sys.argv[1:],
            "same": wire.mpyc() is mpc,
            "open": builtins.open is open,
        }
    finally:
        pickle.loads, pickle.dumps = before


def after_import() -> dict[str, Any]:
    """What importing MPyC leaves behind in this process."""
    import logging
    import sys

    import mpyc.runtime

    return {
        "argv": sys.argv[1:],
        "handlers": len(logging.getLogger().handlers),
        "parties": len(mpyc.runtime.mpc.parties),
        "pid": mpyc.runtime.mpc.pid,
        "codec": type(mpyc.runtime.pickle).__name__,
    }


def mpyc_state(wire: SessionWire) -> dict[str, Any]:
    """State of the process after the session has loaded MPyC, and whether the wire's keys come from its PRSS
    keys."""
    import mpyc.runtime

    from parties.session.party import hkdf

    keys = mpyc.runtime.mpc._prss_keys
    derived = all(
        wire.key(p) == hkdf(keys[tuple(sorted((wire.me, p)))], wire.session_id, b"cosynth wire key")
        for p in range(3)
        if p != wire.me
    )
    return {**after_import(), "derived": derived, "keys": len(keys)}
