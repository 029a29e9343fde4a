"""Keys that several computing parties share, to which each of them contributes.

For MPyC's pseudorandom secret sharing every set of m - t parties (t: the largest minority) shares a key, and
every pair shares one for the protocols (`wire.key`); with three parties the two are the same. Each member of
a set draws 16 bytes and sends them to the other members; the key is a hash of all members' bytes, of the
session and of the set:

    key = SHA-256("cosynth shared key" | session id | set | bytes of the first member | .. | bytes of the last)

So no member alone determines a key, and one whose random numbers are bad is protected by the others'. Who
sends last may choose its bytes in view of the others', which lets it choose among hashes, not a key.

Who learns what: what a party draws for a set goes to its members only, inside TLS. A member that tells others
different bytes is left with keys that do not fit, and the protocols with garbage: exit 40 or wrong results,
which semi-honest parties do not cause.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from itertools import combinations

PART = 16
"""Bytes that a party contributes to a key."""
PRSS_KEY = 16
"""Bytes of one of MPyC's keys."""

Members = tuple[int, ...]


def minority(computing: int) -> int:
    """t: the largest minority of so many parties."""
    return (computing - 1) // 2


class SharedKeys:
    """One computing party's side."""

    def __init__(self, me: int, computing: int) -> None:
        self._me, self._computing = me, computing
        self._prss = [
            each for each in combinations(range(computing), computing - minority(computing)) if me in each
        ]
        pairs = [each for each in combinations(range(computing), 2) if me in each]
        self._sets = sorted({*self._prss, *pairs})
        self._parts: dict[tuple[Members, int], bytes] = {
            (members, me): secrets.token_bytes(PART) for members in self._sets
        }

    def size(self, peer: int) -> int:
        """Bytes of what goes to this peer, and of what comes from it."""
        return PART * len(self._with(peer))

    def contribution(self, peer: int) -> bytes:
        """What this party contributes to the keys that it shares with `peer`."""
        return b"".join(self._parts[members, self._me] for members in self._with(peer))

    def take(self, peer: int, payload: bytes) -> None:
        """The same of the peer's, of `size(peer)` bytes."""
        for number, members in enumerate(self._with(peer)):
            self._parts[members, peer] = payload[number * PART : (number + 1) * PART]

    def prss(self, session_id: bytes) -> Mapping[Members, bytes]:
        """MPyC's keys, by the set that shares each."""
        return {members: self._key(members, session_id)[:PRSS_KEY] for members in self._prss}

    def pairs(self, session_id: bytes) -> dict[int, bytes]:
        """The key of the pair with each other party."""
        size = PRSS_KEY if len(self._prss[0]) == 2 else hashlib.sha256().digest_size
        others = (peer for peer in range(self._computing) if peer != self._me)
        return {peer: self._key(tuple(sorted((self._me, peer))), session_id)[:size] for peer in others}

    def _with(self, peer: int) -> list[Members]:
        return [members for members in self._sets if peer in members]

    def _key(self, members: Members, session_id: bytes) -> bytes:
        parts = b"".join(self._parts[members, member] for member in members)
        return hashlib.sha256(
            b"cosynth shared key" + session_id + bytes([len(members), *members]) + parts
        ).digest()
