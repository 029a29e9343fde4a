"""Which computing party deals for which cells of a marginal (`replicated.dealing`), and what it may be told of the answers there.

Public, alike at every party, for the whole run. Every third cell of a marginal belongs to the same dealer, so that the zeros of
the model's answers, which cluster, burden all alike. A marginal of few cells is one dealer's as a whole, in turn by its handle:
cutting it up would only add messages.

A dealer needs the model's answers of all cells but its own, of which it needs only the zeros. So the hash of the answers that a
step announces is made of three: each dealer gets, in place of the answers of its own cells, their hash and their sums (`Part`),
and checks range, sums and hash of all answers with them. What one party cannot check itself, both others do, against the same
hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Handle

Cells = NDArray[np.integer[Any]]
THIRDS = 3
SPLIT = 1024
"""Cells from which on a marginal is cut up: its thirds fill at least five words of 64 cells."""


def pieces(handle: Handle, cells: int) -> list[tuple[int, slice]]:
    """The dealers of a marginal, each with its cells; together they are all cells, once."""
    if cells < SPLIT:
        return [(handle % THIRDS, slice(None))]
    return [(third, slice(third, None, THIRDS)) for third in range(THIRDS)]


@dataclass(frozen=True)
class Part:
    """The answers of one dealer's cells, in short. content: 32 bytes, their hash. sums: (candidates,), int64."""

    content: bytes
    sums: NDArray[np.int64]


def part(third: int, handles: Sequence[Handle], answers: Sequence[Cells]) -> Part:
    """The part of dealer `third` in the answers of these candidates, integers in [0, 2^32)."""
    owned = [(q, answer[piece]) for q, (handle, answer) in enumerate(zip(handles, answers, strict=True))
             for owner, piece in pieces(handle, len(answer)) if owner == third]
    lengths, sums = [len(cells) for _, cells in owned], np.zeros(len(handles), np.int64)
    hashed = hashlib.sha256(b"".join(number.to_bytes(8, "big") for number in (len(owned), *lengths)))
    if owned:
        flat = np.concatenate([cells for _, cells in owned], dtype="<u4", casting="unsafe")
        hashed.update(flat.data)
        starts = np.cumsum([0, *lengths[:-1]], dtype=np.int64)  # no piece is empty
        sums[[q for q, _ in owned]] = np.add.reduceat(flat, starts, dtype=np.int64)
    return Part(hashed.digest(), sums)


def digest(parts: Sequence[Part]) -> bytes:
    """The hash that a step announces, 32 bytes, from the three parts."""
    hashed = hashlib.sha256(b"cosynth answers in thirds\0")
    for each in parts:
        hashed.update(len(each.sums).to_bytes(8, "big") + each.content + each.sums.astype("<i8").tobytes())
    return hashed.digest()
