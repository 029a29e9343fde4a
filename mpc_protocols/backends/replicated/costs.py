"""Rounds and bytes of a few protocols on replicated shares, as functions of public sizes: for cohorts and
alignments.

A run's own costs are derived (`blank`). Each function replays the message pattern of its protocol on an
`engine.tally.Tally`. Nothing here is secret: every argument is a size that the protocol's messages show
anyway.
"""

from __future__ import annotations

from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.engine.bitwise.adders import Adder, merge_schedule
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.noise.alias import AliasTable, alias_table, schedule
from mpc_protocols.engine.noise.sampling import batches, noise_adder
from mpc_protocols.engine.tally import AGREEMENT, Tally
from mpc_protocols.mechanisms import gaussian
from mpc_protocols.mechanisms.gaussian import Sampler

WORD = 8
"""Bytes of a word of 64 bits."""


def sharing(tally: Tally, cells: int, element: int = 4) -> None:
    """Input of all three parties at once (`ring.share_own`)."""
    tally.step([(i, (i + 1) % 3, cells * element) for i in range(3)])


def opening(tally: Tally, cells: int, element: int = 4) -> None:
    """`ring.open_ring`, and `boolean.open_bits` with element = WORD: a component to the right, the other's
    hash to the left."""
    tally.step(
        [
            transfer
            for i in range(3)
            for transfer in ((i, (i + 1) % 3, cells * element), (i, (i - 1) % 3, DIGEST_BYTES * (cells > 0)))
        ]
    )


def products(tally: Tally, results: int, element: int = 4) -> None:
    """`ring.multiply`, `ring.dot`, `ring.reshare`; `boolean.and_bits` with element = WORD."""
    tally.step([(i, (i - 1) % 3, results * element) for i in range(3)])


def carries(tally: Tally, cells: int, planes: int, adder: Adder) -> None:
    """`sign.carry` out of the low `planes` planes."""
    words = words_for(cells)
    gates = [1] * planes if adder == "ripple" else [planes, *merge_schedule(planes)]
    for gate in gates:
        products(tally, gate * words, WORD)


def signs(tally: Tally, cells: int, planes: int, adder: Adder) -> None:
    """`sign.signs`."""
    tally.step([(0, 1, planes * words_for(cells) * WORD)])
    carries(tally, cells, planes - 1, adder)


def weighted_sum(tally: Tally, bits: int, cells: int, element: int = 4) -> None:
    """`conversion.weighted_sum`."""
    turns = [len(range(party, bits, 3)) for party in range(3)]
    tally.step([(party, (party + 1) % 3, of * cells * element) for party, of in enumerate(turns) if of])
    products(tally, cells, element)


def draws(tally: Tally, table: AliasTable, words: int, adder: Adder) -> None:
    """`alias.draw`."""
    for gates in schedule(table, adder):
        products(tally, gates * words, WORD)


def gaussian_noise(
    tally: Tally, sampler: Sampler, cells: int, element: int = 4, latency_bytes: int = LATENCY_BYTES
) -> None:
    """`sampling.gaussian_noise`."""
    for _, half in sampler.parts:
        table = alias_table(half.thresholds, gaussian.BITS)
        adder = noise_adder(table, cells, latency_bytes)
        for size in batches(cells):
            draws(tally, table, words_for(size), adder)
            weighted_sum(tally, table.index_bits + 1, size, element)


def agreement(tally: Tally) -> None:
    """The hash that every computing party sends to both others before it computes, and again before it opens."""
    tally.step([(i, j, AGREEMENT) for i in range(3) for j in range(3) if i != j])
