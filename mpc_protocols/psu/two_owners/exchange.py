"""The conversation of two owners: lists in blocks, both ways at once, every byte checked and hashed.

Lists are exchanged block by block, a few blocks ahead of what has been received: neither side ever waits for
a whole list before it computes, and neither fills the other's window, however long the lists are. Sizes are
announced first, checked against the study's limits before anything is allocated, and every later message must
have exactly the length that follows from them (`wire.receive`). A message that breaks a rule ends the run
with `ProtocolAborted`, one sentence that names the owner and the rule and holds no value.

Each direction has a running hash over all messages, begun with the run's salt (study, both identities,
session). `transcript` joins the two in the owners' order, so both sides hold the same value exactly if they
saw the same conversation.

Messages are public to the two owners and inside TLS; an observer of the network sees their lengths.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.psu.dummies import list_size, longest_list
from mpc_protocols.psu.functionality import AlignmentSpec, Context
from mpc_protocols.psu.groups.group import Elements, InvalidElement, has_duplicates
from mpc_protocols.psu.groups.hashing import digest
from mpc_protocols.wire import Wire

BLOCK = 1 << 15
"""Entries per message of a list: 1 MiB of ristretto255 elements."""
AHEAD = 4
"""Blocks sent before one must have come."""
COUNT_BYTES = 8


def blocks(count: int) -> list[slice]:
    """The slices in which a list of `count` entries is worked on and sent."""
    return [slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]


def turns(mine: int, theirs: int) -> Iterator[tuple[slice | None, slice | None]]:
    """In which order two lists of `mine` and `theirs` entries are exchanged: which own ones are sent next, and
    then which of the other's are waited for."""
    sending, ahead = blocks(mine), [None] * AHEAD
    return zip_longest(sending, [*ahead, *blocks(theirs)] if theirs else [])


class Exchange:
    """One owner's end of the conversation with the other."""

    def __init__(self, wire: Wire, context: Context, spec: AlignmentSpec) -> None:
        numbers = [owner.number for owner in context.owners]
        if wire.me not in numbers:
            raise ValueError(f"Party {wire.me} is no owner of this alignment.")
        self.side = numbers.index(wire.me)
        self.own = context.owners[self.side]
        self.peer = context.owners[1 - self.side]
        self.spec = spec
        self.sid = context.salt(spec, wire.session_id)
        self.wire = wire
        self._sent = hashlib.blake2b(self.sid, digest_size=32, person=b"psu transcript")
        self._received = self._sent.copy()

    def send(self, payload: bytes | memoryview) -> None:
        """One message."""
        self._sent.update(payload)
        self.wire.send(self.peer.number, payload)

    def receive(self, size: int) -> memoryview:
        """One message of exactly `size` bytes."""
        payload = self.wire.receive(self.peer.number, size)
        self._received.update(payload)
        return payload

    def swap(self, payload: bytes) -> bytes:
        """One message of the same length each way."""
        self.send(payload)
        return bytes(self.receive(len(payload)))

    def announce(self, count: int, extra: bytes = b"", expected: int = 0) -> tuple[int, bytes]:
        """Sizes of the two lists, and `extra`: the other's count, checked, and its extra, of `expected`
        bytes."""
        self.send(count.to_bytes(COUNT_BYTES, "big") + extra)
        theirs = bytes(self.receive(COUNT_BYTES + expected))
        other = int.from_bytes(theirs[:COUNT_BYTES], "big")
        self.check_size(other)
        return other, theirs[COUNT_BYTES:]

    def check_size(self, count: int) -> None:
        """Abort unless the study allows the other owner a list of `count` entries."""
        fixed = list_size(self.spec, 1 - self.side)
        least, most = (self.spec.min_size, longest_list(self.spec)) if fixed is None else (fixed, fixed)
        if not least <= count <= most:
            self.abort(f"announced a list of {count} entries where {least} to {most} are allowed")

    def stream(
        self,
        mine: int,
        theirs: int,
        produce: Callable[[slice], bytes | memoryview],
        consume: Callable[[slice, memoryview], None],
        width: int,
        trailer: int = 0,
    ) -> None:
        """Exchange two lists of `mine` and `theirs` entries of `width` bytes, each block followed by
        `trailer` bytes.

        `produce(part)` makes the block of entries `part`; `consume(part, payload)` takes one of the other's.
        Own entries may have another width than the other's.
        """
        for sending, receiving in turns(mine, theirs):
            if sending is not None:
                self.send(produce(sending))
            if receiving is not None:
                consume(receiving, self.receive((receiving.stop - receiving.start) * width + trailer))

    def lists(self, own: NDArray[np.uint8], theirs: int, width: int) -> NDArray[np.uint8]:
        """Exchange whole lists of rows of `width` bytes that are there already; of the other's only the size
        is checked."""
        out = np.empty((theirs, width), np.uint8)

        def consume(part: slice, payload: memoryview) -> None:
            out[part] = np.frombuffer(payload, np.uint8).reshape(-1, width)

        self.stream(len(own), theirs, lambda part: own[part].tobytes(), consume, width)
        return out

    def distinct(self, rows: Elements, what: str) -> None:
        """Abort if the other's list holds two equal rows."""
        if has_duplicates(rows):
            self.abort(f"sent {what} with duplicates")

    @contextmanager
    def judging(self, what: str) -> Iterator[None]:
        """Work on elements that the other sent: one that is invalid aborts."""
        try:
            yield
        except InvalidElement as error:
            self.abort(f"sent {what} of which {error}")

    @property
    def sent(self) -> bytes:
        """Hash of everything sent so far: what the other has as `received`."""
        return self._sent.digest()

    @property
    def received(self) -> bytes:
        """Hash of everything received so far."""
        return self._received.digest()

    @property
    def transcript(self) -> bytes:
        """Hash of the whole conversation, the same at both owners."""
        both = [self.sent, self.received]
        return digest(b"psu transcript", *(both if self.side == 0 else reversed(both)))

    def agree(self, result: bytes, what: str) -> None:
        """Both owners must hold the same `result` after the same conversation.

        Committed, then opened: whoever saw the other's hash first could try what it is missing until its own
        hash fits. Each side hashes its role, so that nobody can pass by sending back what came.
        """
        transcript = self.transcript
        mine, theirs = (
            digest(b"psu agreement", self.sid, transcript, bytes([side]), result)
            for side in (self.side, 1 - self.side)
        )
        nonce = secrets.token_bytes(32)
        commitment = self.swap(digest(b"psu commitment", nonce, mine))
        opened = self.swap(nonce + mine)
        if digest(b"psu commitment", opened[:32], opened[32:]) != commitment:
            self.abort(f"opened another hash of the {what} than it had committed to")
        if opened[32:] != theirs:
            self.abort(f"did not arrive at the same {what}; one of the two did not follow the protocol")

    def abort(self, what: str) -> NoReturn:
        """Raise `ProtocolAborted`: the other owner did something that the protocol does not allow."""
        raise ProtocolAborted(f"Party {self.peer.name} {what}; the alignment was stopped.")
