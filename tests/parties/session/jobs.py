"""What the party processes of the session's tests run (imported by them: keep it light)."""

from __future__ import annotations

import resource
import time
from typing import Any

from parties.session import SessionWire


def greet(wire: SessionWire) -> dict[str, Any]:
    """Everybody to everybody they may talk to; what a party knows of the session."""
    peers = [p for p in range(len(wire.names)) if p != wire.me and (p < wire.computing or wire.me < wire.computing)]
    for peer in peers:
        wire.send(peer, f"{wire.me} to {peer}".encode())
    heard = {str(peer): bytes(wire.receive_up_to(peer, 100)).decode() for peer in peers}
    keys = {str(p): wire.key(p) for p in range(wire.computing) if p != wire.me} if wire.me < wire.computing else {}
    return {"heard": heard, "session": wire.session_id, "keys": keys, "announcements": dict(wire.announcements),
            "contributors": list(wire.contributors), "computing": wire.computing}


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
