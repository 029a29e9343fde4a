"""Which rows of the common table are in which step: never a function of who holds them, nor of the order of a
file.

    held out   a row of the common table by a public coin of its own, made from the session and the number of the row, which an
               alignment deals out at random (`mpc_protocols.psu.functionality`): one in `held_out`
    epoch e    a uniform permutation of all other rows, from the seed to which both owners contributed; batches follow in order

Public to both owners; nobody else learns it. Local, no messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.noise.permutation import uniform_permutation
from mpc_protocols.engine.prg import KeyStream

_EPOCH_STREAMS = 1 << 32  # tries of one epoch's permutation


class Schedule:
    """rows: u, of the common table. session: 32 public bytes of the run. seed: 32 bytes common to both
    owners. held_out: one row in so many is; at least 2."""

    def __init__(self, rows: int, session: bytes, seed: bytes, batch: int, held_out: int) -> None:
        coins = _stream(b"held out", session).draw(rows, np.uint64, 0)
        out = coins < np.uint64((1 << 64) // held_out)
        self.held_out: NDArray[np.int64] = np.flatnonzero(out).astype(np.int64)
        self.trained: NDArray[np.int64] = np.flatnonzero(~out).astype(np.int64)
        self._keys, self._batch = _stream(b"epochs", seed), batch

    def epoch(self, number: int) -> Iterator[NDArray[np.int64]]:
        """The rows of every step of an epoch; the last step may have fewer."""
        tries = iter(range(number * _EPOCH_STREAMS, (number + 1) * _EPOCH_STREAMS))

        def fill(keys: NDArray[np.uint64]) -> None:
            keys[:] = self._keys.draw(len(keys), np.uint64, next(tries))

        order = self.trained[uniform_permutation(len(self.trained), fill)]
        yield from self.blocks(order)

    def blocks(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Rows in their order, a batch at a time."""
        for start in range(0, len(rows), self._batch):
            yield rows[start : start + self._batch]


def _stream(purpose: bytes, secret: bytes) -> KeyStream:
    return KeyStream(hashlib.sha256(b"cosynth split learning " + purpose + secret).digest()[:16])
