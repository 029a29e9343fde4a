"""What proofs send, from the sizes of their statements: their own messages (`products.converse`), which say
nothing."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, cast

import numpy as np

from mpc_protocols.backends.replicated.proof.bit_products.form import ProofSizes
from mpc_protocols.backends.replicated.proof.bit_products.products import VARIABLES, BitMessages, converse
from mpc_protocols.backends.replicated.proof.field import BLOCK, Blocks
from mpc_protocols.backends.replicated.proof.matrix_products.galois import RING
from mpc_protocols.backends.replicated.proof.matrix_products.inner import DEGREE, InnerMessages
from mpc_protocols.backends.replicated.proof.tags import Pairs
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements, Words
from mpc_protocols.engine.blank import BlankBytes, blank

Row = Sequence[tuple[int, int]]
"""What every party i sends in a step: (to i + offset, bytes)."""


def proof_steps(
    by_prover: Sequence[ProofSizes],
    latency_bytes: int,
    variables: int = VARIABLES,
    matrices: Sequence[int] = (),
) -> list[list[tuple[int, int, int]]]:
    """What `products.prove` sends, step by step, as (sender, receiver, bytes). by_prover: statements of party
    0, 1, 2.

    matrices: rows of each product of matrices.
    """
    form = reduce(ProofSizes.largest, by_prover).form(variables, latency_bytes)

    def sent_by(me: int) -> list[list[tuple[int, int]]]:
        wire = _Mirror(me)
        trio = Trio(cast(Any, wire), latency_bytes=latency_bytes)
        trio.turn = wire.turn
        of_bits = _Bits(trio, [by_prover[(me + 1) % 3], by_prover[me - 1]], variables, form)
        converse(trio, of_bits, [_Inner(trio, sum(matrices), DEGREE)] if matrices else [], b"")
        return wire.steps[:-1]

    return [
        [(me, (me + offset) % 3, size) for me, sent in enumerate(step) for offset, size in sent]
        for step in zip(*map(sent_by, range(3)), strict=True)
    ]


class _Mirror:
    """A wire on which a party hears from each neighbour what it has sent to the other one, or a blank of the
    size that is due."""

    computing, session_id = 3, bytes(32)

    def __init__(self, me: int) -> None:
        self.me = me
        self.steps: list[list[tuple[int, int]]] = [[]]
        """As `Row`."""
        self._sent = defaultdict[int, deque[bytes]](deque)
        self._heard = self._sent
        """Of the step before."""

    def key(self, _: int) -> bytes:
        return BlankBytes(32)

    def send(self, peer: int, payload: bytes) -> None:
        self.steps[-1].append(((peer - self.me) % 3, len(payload)))
        self._sent[3 - self.me - peer].append(payload)

    def receive(self, peer: int, size: int) -> bytes:
        heard = self._heard[peer].popleft() if self._heard[peer] else b""
        return heard if len(heard) == size else BlankBytes(size)

    def turn(self) -> None:
        self.steps.append([])
        self._heard, self._sent = self._sent, defaultdict(deque)

    def count_proof(self) -> None:
        """Whoever counts messages counts proofs."""


class _Bits(BitMessages):
    def challenge(self, coin: bytes) -> None:
        pass

    def fold_at(self, coin: bytes) -> None:
        pass

    def _values(self, seed: bytes) -> Blocks:
        return blank((self._right_sizes.first_values(self.form, self.variables), BLOCK), np.uint8)

    def _second(self) -> Blocks:
        return blank((self._right_sizes.second_values(self.form), BLOCK), np.uint8)

    def _hidden(self) -> Sequence[Words]:
        shapes = self._right_sizes.hidden_shapes(self.form, self.variables)
        return [blank(shape, np.uint64) for shape in shapes for _ in "xy"]

    def _share(self) -> bytes:
        return bytes(BLOCK)

    def _tag(self) -> bytes:
        return bytes(BLOCK)

    def _seen(self, hidden: Iterator[tuple[Words, Words]]) -> Pairs:
        return list(hidden)

    def _judged(self, *_: object) -> tuple[bool, bool]:
        return True, True


class _Inner(InnerMessages):
    def _values(self, coin: bytes) -> Elements:
        return blank(self._values_shape, RING)

    def _hidden(self, coin: bytes) -> Sequence[Elements]:
        return [blank((self._width, self._degree), RING)] * 2

    def _share_of_right(self) -> Elements:
        return blank(self._degree, RING)

    def _tag(self) -> bytes:
        return bytes(BLOCK)

    def _judged(self, *_: object) -> tuple[bool, bool]:
        return True, True
