"""One computing party's end of a three-party computation: neighbours, masks, and messages of arrays.

Replicated sharing (Araki et al. 2016; `docs/design/engine.md` 2.1): x = x_0 + x_1 + x_2 (or XOR), party i
holds (x_i, x_{i+1}), indices modulo 3. The key k_i is known to parties i-1 and i, so party i can draw the
streams F(k_i) and F(k_{i+1}):

    r_i = F(k_i)               a random sharing of a value nobody knows, without a message
    F(k_i) - F(k_{i+1})        party i's part of a sharing of zero, which masks everything it sends

Every message of the engine goes from ONE sender to ONE receiver and is uniform to that receiver, because it
is masked by a stream whose key the receiver lacks: i+1 does not know k_i, i-1 does not know k_{i+1}. Threat
model: semi-honest, at most one of the three corrupted. A party learns nothing but the sizes, which are
public. Assumption: `prg`.

All three parties call the same operations in the same order; the operation counter then agrees, and with it
the masks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.agreement import announce
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.link import Link
from mpc_protocols.engine.prg import MASK, NOISE, KeyStream, Reader, derive
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.wire import Wire


class Trio(Link):
    """Masks and messages of party `wire.me` in 0, 1, 2."""

    engine = "The replicated backend"

    def __init__(self, wire: Wire, stream: str = "", latency_bytes: int = LATENCY_BYTES) -> None:
        """ONE for a wire's session and `stream`: masks depend on these, so a second one would use the first
        one's again. Forks of a wire have its session and keys: what runs on several of them needs a `stream`
        for each.

        A computation that runs beside another gets its trio, and masks of its own, from `fork`. Raises
        `StudyInvalid` unless exactly three parties compute and this is one of them.
        """
        super().__init__(wire, stream, latency_bytes)
        self.left = (wire.me - 1) % 3
        self.right = (wire.me + 1) % 3
        self.peers = (self.left, self.right)
        context = (wire.session_id, stream.encode())
        self._own = KeyStream(derive(wire.key(self.left), MASK, *context))
        self._next = KeyStream(derive(wire.key(self.right), MASK, *context))
        self._operation = 0

    def _check(self, wire: Wire) -> None:
        if wire.computing != 3 or wire.me not in (0, 1, 2):
            raise StudyInvalid(
                f"The replicated backend needs exactly three computing parties, the study names {wire.computing}."
            )

    def operation(self) -> int:
        """The number of the next operation; each is used for one draw of each stream."""
        self._operation += 1
        return self._operation

    def own_mask(self, shape: int | tuple[int, ...], dtype: UInt, operation: int) -> NDArray[Any]:
        """F(k_me), which party me-1 can draw too (as its `next_mask`)."""
        return self._own.draw(shape, dtype, operation)

    def next_mask(self, shape: int | tuple[int, ...], dtype: UInt, operation: int) -> NDArray[Any]:
        """F(k_{me+1}), which party me+1 can draw too (as its `own_mask`)."""
        return self._next.draw(shape, dtype, operation)

    def own_reader(self, operation: int) -> Reader:
        """The stream of `own_mask`, to be read in pieces."""
        return self._own.reader(operation)

    def next_reader(self, operation: int) -> Reader:
        """The stream of `next_mask`, to be read in pieces."""
        return self._next.reader(operation)

    def zeros(self, count: int, dtype: UInt) -> Elements:
        """Public zeros, to be overwritten; blank where the masks are."""
        return blank(count, dtype) if self._own.is_blank else np.zeros(count, dtype)

    def zero_ring(self, shape: int | tuple[int, ...], dtype: UInt) -> Elements:
        """This party's part of a fresh additive sharing of zeros."""
        operation = self.operation()
        zero = self._own.draw(shape, dtype, operation)
        zero -= self._next.draw(shape, dtype, operation)
        return zero

    def zero_bits(self, shape: int | tuple[int, ...]) -> Words:
        """This party's part of a fresh XOR sharing of zero words."""
        operation = self.operation()
        zero = self._own.draw(shape, np.uint64, operation)
        zero ^= self._next.draw(shape, np.uint64, operation)
        return zero

    def noise_streams(self, release: bytes) -> tuple[KeyStream, KeyStream]:
        """The streams (F(k_me), F(k_{me+1})) of a release's random bits; `release` binds all its public
        inputs."""
        return (
            KeyStream(derive(self.wire.key(self.left), NOISE, release)),
            KeyStream(derive(self.wire.key(self.right), NOISE, release)),
        )

    def differing(self, value: bytes) -> int | None:
        """Compare public bytes with all others: a party that holds different ones of this length. 1 round."""
        theirs = announce(self.wire, value)
        self.turn()
        return theirs()

    def pass_left(self, array: NDArray[Any]) -> NDArray[Any]:
        """One round of a multiplication: send this party's part to party me-1, return the part of party me+1."""
        self.send(self.left, array)
        self.turn()
        return self.receive(self.right, array.shape, array.dtype.type)
