"""Connections that have not proved who they are: how many there may be, and which of them goes when one too
many comes.

Whoever reaches the port can open connections, send half a greeting, or copy a whole one (names and
certificates are public) and go no further. So a place is lent, not given: when there is no room, the
connection that is the least likely to be a party goes.

    1   it has not greeted as a party that is expected here          before  one that has
    2   it comes from an address that the study does not name        before  one from such an address
    3   the older                                                    before  the younger

An address that the study does not name has MAX_PER_ADDRESS places at most; the same rule decides among them.
A party greets at once and proves itself within two round trips, so it keeps its place unless MAX_STRANGERS
connections overtake it in that time; if they do, it dials again.

Who learns what: nobody anything. Used in the event loop's thread only.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Container

log = logging.getLogger("cosynth.session")

MAX_STRANGERS = 512
MAX_PER_ADDRESS = 8


class Stranger:
    """An accepted connection on its way to a proof. host: the address it comes from; greeted: it greeted as
    an expected party."""

    def __init__(self, sock: socket.socket, host: str, number: int) -> None:
        self.sock, self.host, self.number = sock, host, number
        self.greeted = False
        self.task: asyncio.Task[None] | None = None


class Strangers:
    """All of them. named: the addresses from which the study's parties come."""

    def __init__(
        self, named: Container[str], most: int = MAX_STRANGERS, most_per_address: int = MAX_PER_ADDRESS
    ) -> None:
        self._named, self._most, self._most_per_address = named, most, most_per_address
        self._present: dict[int, Stranger] = {}
        self._came = self._dropped = 0

    def __len__(self) -> int:
        return len(self._present)

    def admit(self, sock: socket.socket, host: str) -> Stranger:
        """Give a new connection a place; where there is none left, another one ends."""
        if host not in self._named:
            neighbours = [each for each in self._present.values() if each.host == host]
            if len(neighbours) >= self._most_per_address:
                self._end(min(neighbours, key=self._worth))
        if len(self._present) >= self._most:
            self.end_one()
        self._came += 1
        stranger = self._present[self._came] = Stranger(sock, host, self._came)
        return stranger

    def end_one(self) -> None:
        """Make room: the connection that is the least likely to be a party ends."""
        if self._present:
            self._end(min(self._present.values(), key=self._worth))

    def leave(self, stranger: Stranger) -> None:
        """Count it no longer: it has proved who it is, or has gone. Does nothing the second time."""
        self._present.pop(stranger.number, None)

    def dropped(self, host: str, why: str) -> None:
        """Log a connection that did not become a party's: the first, the second, the fourth, the eighth and
        so on."""
        self._dropped += 1
        if self._dropped & (self._dropped - 1) == 0:
            log.info("dropped a connection from %s: %s (%d so far)", host, why, self._dropped)

    def _worth(self, stranger: Stranger) -> tuple[bool, bool, int]:
        return stranger.greeted, stranger.host in self._named, stranger.number

    def _end(self, stranger: Stranger) -> None:
        self.leave(stranger)
        self.dropped(stranger.host, "others came, and it had not said who it is")
        if stranger.task is not None:
            stranger.task.cancel()
