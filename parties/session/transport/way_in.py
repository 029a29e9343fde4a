"""What may stand between a party's sockets and its links: nothing, unless a program that embeds the session
says otherwise.

A session takes a `WayIn` as an argument (`SessionConfig.way_in`); no study, private file, command or message
of a peer can give one. The benchmarks' emulated network is one (`runner.bench.net.shim`). It decides when
bytes are read and nothing else.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
from collections.abc import Callable
from typing import Protocol


class HeldBack(Protocol):
    """The bytes of one link on their way in. Used in the event loop's thread only."""

    def receive_into(self, view: memoryview | bytearray) -> int:
        """As `socket.recv_into` of a non-blocking socket."""


class WayIn(Protocol):
    """A party's way in, shared by all its links."""

    def selector(self) -> selectors.BaseSelector:
        """What the session's loop waits with."""

    def hold_back(
        self, sock: socket.socket, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]
    ) -> HeldBack:
        """What stands between the socket of a link and its reader. wake: to be called when bytes are there."""
