"""The wire: all that a protocol may do with the world outside its party.

A protocol is ordinary blocking code that runs in a worker thread; the party's session (`parties/session`)
moves the bytes in its own thread, keeps heartbeats going and makes every pending `receive` raise as soon as a
peer is lost. Messages between two parties are numbered per stream and direction, so there is nothing to name:
the n-th `receive(peer)` of a stream gets the n-th `send` of the peer's stream of the same name.

Rounds are counted as the longest chain of messages (a logical clock carried by every message): what travels
in the same step is one round, whatever its size and however many peers take part.

Sizes are never taken from a peer: the receiver states how many bytes it expects (`receive`) or the most it
accepts (`receive_up_to`), and anything else is a `ProtocolAborted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Traffic:
    """One party's traffic, both ways: payload bytes, messages, the length of the longest chain (rounds),
    batches proved."""

    bytes_sent: int = 0
    bytes_received: int = 0
    messages_sent: int = 0
    rounds: int = 0
    proofs: int = 0


class Wire(Protocol):
    """One party's end of the connections of a run."""

    @property
    def me(self) -> int:
        """This party's number: computing parties are 0, 1, 2 (..); contributors follow."""

    @property
    def computing(self) -> int:
        """The number of computing parties."""

    @property
    def contributors(self) -> Sequence[int]:
        """Numbers of the custodians that contribute but do not compute (they share no key and no link with
        one another)."""

    @property
    def session_id(self) -> bytes:
        """32 public bytes, fresh in each run, to which every computing party contributed."""

    def key(self, peer: int) -> bytes:
        """32 secret bytes known to this party and `peer` only (computing parties only); from MPyC's PRSS
        keys."""

    def set_key(self, members: Sequence[int]) -> bytes:
        """32 secret bytes known to the computing parties `members` only, of whom this is one; from MPyC's
        PRSS keys.

        members: of m computing parties m - t, t the largest minority, ascending. `ValueError` for other sets.
        """

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        """Queue one message. The payload is copied or must not be modified afterwards; blocks while the
        peer's window is full."""

    def receive(self, peer: int, size: int) -> memoryview:
        """The next message of `peer` on this stream, which must have exactly `size` bytes. Blocks.

        Raises `PeerLost` if the peer is gone, `ProtocolAborted` if the size differs or the peer aborted.
        """

    def receive_up_to(self, peer: int, limit: int) -> memoryview:
        """As `receive`, for a message whose size is not known in advance; more than `limit` bytes abort."""

    def fork(self, name: str) -> Wire:
        """A stream of its own over the same connections, for code that runs beside this one (same name at all
        parties).

        Raises `ValueError` for a name that this stream's wire has forked already.
        """

    def count_proof(self) -> None:
        """Count a batch of what was computed that the computing parties prove to each other."""

    def traffic(self) -> Traffic:
        """Counters of the whole party since the start (not of this stream alone)."""
