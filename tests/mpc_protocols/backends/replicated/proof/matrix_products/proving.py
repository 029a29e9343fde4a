"""Batches of matrix products that tests prove, honestly or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_protocols.backends.replicated.proof.bit_products.products import prove
from mpc_protocols.backends.replicated.proof.matrix_products.galois import RING
from mpc_protocols.backends.replicated.proof.matrix_products.multiplication import (
    ProductSum,
    multiply_rows,
    reshare_sums,
)
from mpc_protocols.backends.replicated.proof.transcript import Transcript
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from tests.mpc_protocols.backends.replicated.proof.cheating import Alter

PROVED = ["proved"] * 3


@dataclass(frozen=True)
class Batch:
    """Products: rows and columns of both factors; row by row or summed over rows. zero: all shares of factors
    are 0."""

    sizes: Sequence[tuple[int, int, int]]
    by_row: bool = False
    zero: bool = False

    def noted(
        self, trio: Trio, transcript: Transcript
    ) -> list[tuple[list[tuple[RingShare, RingShare]], RingShare]]:
        """Random factors, block by block, and their product."""
        factors = []
        for rows, a, b in self.sizes:
            cuts = [0, rows] if self.by_row else [0, rows // 3, rows]
            factors.append(
                [(self._random(trio, (n, a)), self._random(trio, (n, b))) for n in np.diff(cuts).tolist()]
            )
        if self.by_row:
            results = multiply_rows(trio, transcript, [pair for [pair] in factors])
        else:
            sums = []
            for (_, a, b), blocks in zip(self.sizes, factors, strict=True):
                sums.append(ProductSum((a, b)))
                for x, y in blocks:
                    sums[-1].add(x, y)
            results = reshare_sums(trio, transcript, sums)
        return list(zip(factors, results, strict=True))

    def _random(self, trio: Trio, shape: tuple[int, int]) -> RingShare:
        operation = trio.operation()
        share = RingShare(trio.own_mask(shape, RING, operation), trio.next_mask(shape, RING, operation))
        return share.scaled(0) if self.zero else share


def proved(batch: Batch, variables: int = 6) -> Callable[[Any], str]:
    """A body that multiplies and proves."""

    def body(wire: Any) -> str:
        trio, transcript = Trio(wire), Transcript()
        batch.noted(trio, transcript)
        prove(trio, transcript, variables)
        return "proved"

    return body


def altered(changes: dict[int, Any]) -> Alter:
    """Add ring elements to messages, by their number: each a pair of places and what is added."""

    def alter(number: int, peer: int, payload: bytes) -> bytes | None:
        if number not in changes:
            return None
        places, added = changes[number]
        cells = np.frombuffer(payload, RING).copy()
        cells[places] += np.asarray(added).astype(RING)
        return cells.tobytes()

    return alter
