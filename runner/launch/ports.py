"""Ports for parties that this machine runs for a moment: a demo's, a benchmark's. Standard library only."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

_LOW, _HIGH = 20_000, 32_768
"""Below the ports that Linux, the BSDs and Windows give to outgoing connections: a port that is free when it
is chosen and taken when the party comes to listen on it would end the run."""
_ATTEMPTS = 1_000
MAX_SHARES = (_HIGH - _LOW) // 100
_share = (0, 1)


def draw_from(number: int, of: int) -> None:
    """Let `free_ports` of this process draw from the `number`th (from 0) of so many shares of all ports.

    Processes that look for ports at the same time would else find the same one free. Raises `ValueError`.
    """
    global _share
    if not 0 <= number < of <= MAX_SHARES:
        raise ValueError(f"There is no share {number} of {of} of the ports.")
    _share = number, of


def share() -> tuple[int, int]:
    """The share that this process draws from, and of how many."""
    return _share


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody holds at this moment, all different. Raises OSError if there are none."""
    ports = set[int]()
    for _ in range(_ATTEMPTS):
        if len(ports) == count:
            break
        number, of = _share
        port = _LOW + number + of * secrets.randbelow((_HIGH - _LOW) // of)
        if is_free(port):
            ports.add(port)
    else:
        raise OSError("This machine has no free port left between 20000 and 32767; end what holds them.")
    return list(ports)


def is_free(port: int) -> bool:
    """Whether nobody on this machine holds the port."""
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False
