"""Rounds and bytes of a few protocols on replicated shares, as functions of public sizes: for alignments.

A run's own costs are derived (`blank`). Each function replays the message pattern of its protocol on an
`engine.tally.Tally`. Nothing here is secret: every argument is a size that the protocol's messages show
anyway.
"""

from __future__ import annotations

from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.engine.tally import AGREEMENT, Tally

WORD = 8
"""Bytes of a word of 64 bits."""


def opening(tally: Tally, words: int) -> None:
    """`boolean.open_bits`: a component to the right, the other's hash to the left."""
    tally.step(
        [
            transfer
            for i in range(3)
            for transfer in ((i, (i + 1) % 3, words * WORD), (i, (i - 1) % 3, DIGEST_BYTES * (words > 0)))
        ]
    )


def products(tally: Tally, words: int) -> None:
    """`boolean.and_bits`."""
    tally.step([(i, (i - 1) % 3, words * WORD) for i in range(3)])


def agreement(tally: Tally) -> None:
    """The hash that every computing party sends to both others before it computes, and again before it opens."""
    tally.step([(i, j, AGREEMENT) for i in range(3) for j in range(3) if i != j])
