"""Hashes of the alignment: the session's salt, hash-to-group expansion, entries and names of records.

Every hash is separated by domain and bound to `sid`, the salt of one run: version, method, study, identities
of all parties and the session's fresh nonces. So precomputed tables of identifiers are worthless, elements of
one run mean nothing in another, and two runs cannot be linked (`docs/design/psu.md` 5). The salt is public;
what keeps identifiers secret are the exponents.

`expand` is expand_message_xmd of RFC 9380, section 5.3.1, with SHA-512: the uniform bytes that a group's map
turns into an element or a scalar. Names of records, and what else is compared by hash, are BLAKE2b in its
keyed mode with the salt as key; 16 bytes, so among 10^7 values a collision has probability below 2^-81.

Modelled as random oracles in the arguments of `florist` and `dh2`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

NAME_BYTES = 16
"""Bytes of a record's name, and of what else is compared by hash."""

Names = NDArray[np.bytes_]
"""Names of records and the like: a vector of S16. Comparison pads with zero bytes, which equal lengths make
exact."""


def digest(domain: bytes, *parts: bytes | memoryview) -> bytes:
    """32-byte hash of length-prefixed parts under a domain of at most 16 bytes."""
    state = hashlib.blake2b(digest_size=32, person=domain)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()


def expander(dst: bytes, size: int) -> Callable[[bytes], bytes]:
    """expand_message_xmd with SHA-512 for one domain-separation tag: message -> `size` uniform bytes.

    dst: 1 to 255 bytes. size: 1 to 255 * 64.
    """
    if not 1 <= len(dst) <= 255 or not 1 <= size <= 255 * 64:
        raise ValueError(
            f"expand_message_xmd takes a tag of 1 to 255 bytes and 1 to 16320 bytes, got {len(dst)} and {size}."
        )
    suffix = dst + bytes([len(dst)])
    tail = size.to_bytes(2, "big") + b"\x00" + suffix
    padded = hashlib.sha512(bytes(128))  # the block of zeros is the same for every message
    blocks = -(-size // 64)

    def expand(message: bytes) -> bytes:
        state = padded.copy()
        state.update(message)
        state.update(tail)
        first = state.digest()
        block = hashlib.sha512(first + b"\x01" + suffix).digest()
        out = block
        for i in range(2, blocks + 1):
            mixed = (int.from_bytes(first, "big") ^ int.from_bytes(block, "big")).to_bytes(64, "big")
            block = hashlib.sha512(mixed + bytes([i]) + suffix).digest()
            out += block
        return out[:size]

    return expand


def names(sid: bytes, domain: bytes, values: Iterable[bytes | memoryview]) -> Names:
    """16-byte hash of each value under the salt; domain: at most 16 bytes. About 1 us each."""
    blake2b = hashlib.blake2b
    hashed = b"".join(
        blake2b(value, digest_size=NAME_BYTES, key=sid, person=domain).digest() for value in values
    )
    return np.frombuffer(hashed, f"S{NAME_BYTES}")


def row_names(sid: bytes, domain: bytes, rows: NDArray[np.uint8]) -> Names:
    """`names` of the rows of a (n, width) array."""
    return names(sid, domain, row_bytes(rows))


def row_bytes(rows: NDArray[np.uint8]) -> list[bytes]:
    """The rows of a (n, width) array, each as bytes."""
    raw, width = rows.tobytes(), rows.shape[1]
    return [raw[i : i + width] for i in range(0, len(raw), width)]
