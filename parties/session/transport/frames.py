"""Frames of the link between two parties: header, kinds, and the sizes nobody may exceed
(`docs/design/session.md` 5).

Everything after the TLS handshake is a sequence of frames: a fixed 36-byte header and a payload. A message of
a protocol is one DATA frame per MiB; the header of each carries the message's whole size, its number within
stream and direction, and the sender's logical clock, from which rounds are counted. Control frames carry
zeros there.

Threat model: the peer is authenticated but may send anything. A header is accepted only if every field is in
range for its kind; sizes are checked against these constants before a byte is stored. Nothing is unpickled or
evaluated. Who learns what: the header is visible to the two ends only (it travels inside TLS); a network
observer sees lengths.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

PROTOCOL = 2
"""Version of this format, greeted with before anything else can be compared; who raises it raises the
protocol version, too (`docs/reference/versions.md`)."""

CHUNK = 1 << 20
"""Most payload bytes of one frame. 1 MiB: smaller frames cost calls, larger ones memory and latency
(`docs/design/engine.md` 3)."""

MAX_MESSAGE = 1 << 30
"""Most bytes of one message."""

FRAME_COST = 64
"""What a frame costs of the window besides its payload, so that empty messages cannot fill memory either."""

WINDOW = 16 << 20
"""Bytes a peer may have under way: bandwidth x round trip of a fast wide-area link."""

UNREAD_SOFT = 64 << 20
"""Unread bytes of one peer above which a party that computes grants no more (it will come back and read)."""

UNREAD_HARD = 256 << 20
"""The same for a party that waits; what it waits for from this very peer comes on top."""

QUEUED = 32 << 20
"""Bytes not yet sent to one peer above which `send` blocks (one message of any size is always accepted)."""

UNOPENED = 1024
"""Most streams of one peer that this party has not opened itself."""

MAX_DEPTH = 1 << 24
"""The largest logical clock: senders stop counting there, so that only who lies sends more. It is a counter
for reports; a peer can still overstate it, up to this."""

HEADER = struct.Struct("<IB3xIQQQ")


class Kind(IntEnum):
    """What a frame is."""

    HELLO = 1
    CONFIRM = 2
    KEYS = 3
    DATA = 4
    CREDIT = 5
    PING = 6
    ABORT = 7
    BYE = 8


MAX_PAYLOAD = {
    Kind.HELLO: 1 << 16,
    Kind.CONFIRM: 1 << 20,
    Kind.KEYS: 1 << 16,
    Kind.DATA: CHUNK,
    Kind.CREDIT: 8,
    Kind.PING: 0,
    Kind.ABORT: 4,
    Kind.BYE: 0,
}
"""Largest payload of each kind."""

KINDS = {int(kind): (kind, most) for kind, most in MAX_PAYLOAD.items()}
"""By the number on the link: the kind and its largest payload."""


class Header(NamedTuple):
    """A frame's header: payload length, kind, message number, stream, logical clock, size of the whole
    message."""

    length: int
    kind: Kind
    sequence: int = 0
    stream: int = 0
    depth: int = 0
    total: int = 0

    def pack(self) -> bytes:
        """The 36 bytes that go on the link."""
        return HEADER.pack(self.length, self.kind, self.sequence, self.stream, self.depth, self.total)


class BadFrame(Exception):
    """The peer's bytes are not a frame that this format allows; the text says which rule, never the bytes."""


def parse(raw: bytes | bytearray | memoryview) -> Header:
    """Read and check the 36 bytes of a header. Raises `BadFrame`."""
    length, number, sequence, stream, depth, total = HEADER.unpack(raw)
    known = KINDS.get(number)
    if known is None:
        raise BadFrame("an unknown kind of frame")
    kind, most = known
    if length > most:
        raise BadFrame(f"a {kind.name} frame of {length} bytes; at most {most} are allowed")
    if kind is Kind.DATA:
        if total > MAX_MESSAGE:
            raise BadFrame(f"a message of {total} bytes; at most {MAX_MESSAGE} are allowed")
        if depth > MAX_DEPTH:
            raise BadFrame(f"a message of round {depth}; at most {MAX_DEPTH} are counted")
        if length > total or (length == 0) != (total == 0):
            raise BadFrame("a frame that does not fit its message")
    elif sequence or stream or depth or total:
        raise BadFrame(f"a {kind.name} frame with the fields of a message")
    return Header(length, kind, sequence, stream, depth, total)


def control(kind: Kind, payload: bytes = b"") -> bytes:
    """A whole control frame."""
    if len(payload) > MAX_PAYLOAD[kind]:
        raise ValueError(f"{kind.name} frame of {len(payload)} bytes")
    return Header(len(payload), kind).pack() + payload


_CREDIT = struct.Struct("<Q")
_ABORT = struct.Struct("<HH")


def credit(amount: int) -> bytes:
    """Grant the peer `amount` more bytes (payload plus FRAME_COST per frame)."""
    return control(Kind.CREDIT, _CREDIT.pack(amount))


def parse_credit(payload: bytes | memoryview) -> int:
    """The amount of a CREDIT frame."""
    if len(payload) != _CREDIT.size:
        raise BadFrame("a CREDIT frame of the wrong size")
    amount: int = _CREDIT.unpack(payload)[0]
    return amount


def abort(code: int, culprit: int) -> bytes:
    """Tell the peer why this party stops: an exit code and the number of the party that caused it; no text
    travels."""
    return control(Kind.ABORT, _ABORT.pack(code, culprit))


def parse_abort(payload: bytes | memoryview) -> tuple[int, int]:
    """Exit code and culprit of an ABORT frame."""
    if len(payload) != _ABORT.size:
        raise BadFrame("an ABORT frame of the wrong size")
    code, culprit = _ABORT.unpack(payload)
    return code, culprit
