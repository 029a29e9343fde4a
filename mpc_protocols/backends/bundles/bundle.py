"""A bundle: one contributor's counts for one run, sealed to two of the three computing parties
(`docs/design/federated.md` 3).

    magic       "cosynth-bundle-1"
    header      length (4 bytes), then canonical JSON: public facts (`Header`)
    digests     SHA-256 of the sealed parts a and b
    signature   the contributor's, Ed25519, over magic, header and digests
    part a      length (4 bytes), then sealed to receiver a: a seed of 32 bytes; length 0: not in this file
    part b      length (4 bytes), then sealed to receiver b: counts - stream(seed) modulo 2^32, 4 bytes a cell, little endian

Lengths are big endian. The stream is AES-CTR under a key derived from the seed, the study's digest and the
bundle's id. Each part alone is uniform: whoever opens one of them learns nothing. The info of each part is
magic, header and its letter, so that no part fits another bundle or place. Everything before the parts is the
bundle's `public`: every computing party keeps it, and its hash stands for the bundle in the agreed list.

A file holds one part, both or none: what each computing party needs may travel by itself (`for_receiver`).

Nothing here is believed: sizes are those that the study fixes, the header must be the canonical encoding of
exactly these fields. Who signs lies at most about its own data.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.bundles.sealing import (
    OVERHEAD,
    SIGNATURE_BYTES,
    ReceiverKey,
    ReceiverSecret,
    seal,
)
from mpc_protocols.engine.prg import KeyStream, derive
from mpc_protocols.errors import ProtocolAborted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAGIC: Final = b"cosynth-bundle-1"
SEED_BYTES: Final = 32
MAX_HEADER: Final = 4096
MAX_YEAR: Final = 9000
"""Of a date, so that what is added to it is a date, too."""
HASH: Final = 32
_DIGESTS: Final = 2 * HASH
Letter = Literal["a", "b"]
_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Header:
    """What everybody may read. study, layout, id: 32 bytes. key: SHA-256 of the contributor's public key.
    receivers: names of the computing parties that get part a and part b. created, expires: UTC, whole
    seconds. runs: in how many runs it may be used."""

    study: bytes
    layout: bytes
    cells: int
    contributor: str
    key: bytes
    id: bytes
    receivers: tuple[str, str]
    created: datetime
    expires: datetime
    runs: int = 1

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        return json.dumps(
            {
                "study": self.study.hex(),
                "layout": self.layout.hex(),
                "cells": self.cells,
                "contributor": {"name": self.contributor, "key": self.key.hex()},
                "id": self.id.hex(),
                "receivers": list(self.receivers),
                "created": self.created.strftime(_TIME),
                "expires": self.expires.strftime(_TIME),
                "runs": self.runs,
            },
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        ).encode()

    @classmethod
    def from_bytes(cls, encoded: bytes) -> Header:
        """Raises `ProtocolAborted` for anything but the canonical encoding of a header."""
        try:
            form = json.loads(encoded)
            first, second = form["receivers"]
            header = cls(
                _hash(form["study"]),
                _hash(form["layout"]),
                _integer(form["cells"]),
                _text(form["contributor"]["name"]),
                _hash(form["contributor"]["key"]),
                _hash(form["id"]),
                (_text(first), _text(second)),
                _time(form["created"]),
                _time(form["expires"]),
                _integer(form["runs"]),
            )
            if header.to_bytes() == encoded:
                return header
        except (KeyError, TypeError, ValueError, RecursionError):
            pass
        raise ProtocolAborted("Its header cannot be read.")


@dataclass(frozen=True)
class Bundle:
    """header: as signed. digests: of parts a and b. parts: those of them that are here, sealed, by letter."""

    encoded_header: bytes
    digests: tuple[bytes, bytes]
    signature: bytes
    parts: Mapping[Letter, bytes]

    @property
    def header(self) -> Header:
        """Raises `ProtocolAborted`."""
        return Header.from_bytes(self.encoded_header)

    @property
    def signed(self) -> bytes:
        """What the signature is over."""
        return MAGIC + self.encoded_header + b"".join(self.digests)

    @property
    def public(self) -> bytes:
        """All but the parts, as it stands in a file."""
        length = len(self.encoded_header).to_bytes(4, "big")
        return MAGIC + length + self.encoded_header + b"".join(self.digests) + self.signature

    @property
    def name(self) -> bytes:
        """The hash that stands for the bundle in the agreed list, 32 bytes."""
        return hashlib.sha256(self.public).digest()

    def to_bytes(self) -> bytes:
        """A file's content."""
        parts = [self.parts.get("a", b""), self.parts.get("b", b"")]
        return self.public + b"".join(len(part).to_bytes(4, "big") + part for part in parts)

    def for_receiver(self, receiver: str) -> Bundle:
        """What this computing party needs of it: its own part, and none for the party that gets no part."""
        letters = letters_of(self.header, receiver)
        return replace(self, parts={letter: self.parts[letter] for letter in letters})

    def opened(self, letter: Letter, receiver: ReceiverSecret) -> bytes:
        """The content of a part that is here. Raises `ProtocolAborted`."""
        return receiver.open(self.parts[letter], _info(self.encoded_header, letter))


def letters_of(header: Header, receiver: str) -> tuple[Letter, ...]:
    """Which of a bundle's parts a computing party gets."""
    return tuple(
        letter for letter, name in zip(_letters(), header.receivers, strict=True) if name == receiver
    )


def seal_bundle(
    header: Header,
    counts: NDArray[np.integer[Any]],
    receivers: Sequence[ReceiverKey],
    sign: Callable[[bytes], bytes],
) -> Bundle:
    """A contributor's bundle with both parts. counts: (cells,), at least 0 and below 2^32. receivers: keys of
    a and b.

    sign: the contributor's signature of a message, 64 bytes.
    """
    if counts.shape != (header.cells,):
        raise ValueError(f"A bundle of {header.cells} cells was given counts of shape {counts.shape}.")
    encoded, seed = header.to_bytes(), secrets.token_bytes(SEED_BYTES)
    masked = counts.astype(np.uint32) - stream(header, seed)
    first, second = receivers
    parts: dict[Letter, bytes] = {
        "a": seal(seed, first, _info(encoded, "a")),
        "b": seal(masked.astype("<u4").tobytes(), second, _info(encoded, "b")),
    }
    digests = (hashlib.sha256(parts["a"]).digest(), hashlib.sha256(parts["b"]).digest())
    unsigned = Bundle(encoded, digests, b"", parts)
    return replace(unsigned, signature=sign(unsigned.signed))


def stream(header: Header, seed: bytes) -> NDArray[np.uint32]:
    """The mask of a bundle's counts: uint32 of (cells,)."""
    key = derive(seed, b"bundle", header.study, header.id)
    drawn: NDArray[np.uint32] = KeyStream(key).draw(header.cells, np.uint32, 0)
    return drawn


def content_of(header: Header, letter: Letter, opened: bytes) -> NDArray[np.uint32]:
    """What an opened part adds to its receiver's sum: uint32 of (cells,). Raises `ProtocolAborted` for
    another length."""
    expected = SEED_BYTES if letter == "a" else 4 * header.cells
    if len(opened) != expected:
        raise ProtocolAborted(f"Its part {letter} holds {len(opened)} bytes instead of {expected}.")
    if letter == "a":
        return stream(header, opened)
    return np.frombuffer(opened, "<u4").astype(np.uint32)


def part_bytes(cells: int) -> dict[Letter, int]:
    """Sealed sizes of both parts."""
    return {"a": SEED_BYTES + OVERHEAD, "b": 4 * cells + OVERHEAD}


def file_bytes(cells: int) -> int:
    """The most bytes that a bundle of so many cells takes in a file."""
    fixed = len(MAGIC) + 4 + MAX_HEADER + _DIGESTS + SIGNATURE_BYTES + 8
    return fixed + sum(part_bytes(cells).values())


def parse(content: bytes) -> Bundle:
    """A bundle from a file. Raises `ProtocolAborted` for what is none, or is damaged; the sentence begins
    with "It"."""
    if not content.startswith(MAGIC):
        raise ProtocolAborted("It is not a bundle.")
    at = len(MAGIC)

    def take(size: int) -> bytes:
        nonlocal at
        if size > len(content) - at:
            raise ProtocolAborted("It is cut off.")
        at += size
        return content[at - size : at]

    size = int.from_bytes(take(4), "big")
    if size > MAX_HEADER:
        raise ProtocolAborted(f"Its header is said to have {size} bytes, at most {MAX_HEADER} are allowed.")
    header = take(size)
    digests = (take(HASH), take(HASH))
    signature = take(SIGNATURE_BYTES)
    parts: dict[Letter, bytes] = {}
    for letter in _letters():
        if size := int.from_bytes(take(4), "big"):
            parts[letter] = take(size)
    if at != len(content):
        raise ProtocolAborted("It is longer than it says.")
    for letter, digest in zip(_letters(), digests, strict=True):
        if letter in parts and hashlib.sha256(parts[letter]).digest() != digest:
            raise ProtocolAborted(f"Its part {letter} is damaged, or belongs to another bundle.")
    return Bundle(header, digests, signature, parts)


def _letters() -> tuple[Letter, Letter]:
    return "a", "b"


def _info(encoded_header: bytes, letter: Letter) -> bytes:
    return MAGIC + encoded_header + letter.encode()


def _hash(text: object) -> bytes:
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ValueError("A hash is 64 hexadecimal digits.")
    return bytes.fromhex(text)


def _integer(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 31:
        raise ValueError("A number is whole, at least 0 and below 2^31.")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("A name or time is a text.")
    return value


def _time(text: object) -> datetime:
    told = datetime.strptime(_text(text), _TIME).replace(tzinfo=UTC)
    if told.year > MAX_YEAR:
        raise ValueError(f"A year is at most {MAX_YEAR}.")
    return told
