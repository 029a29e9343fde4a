"""One party's secret bit times the other's secret number, as shares of an integer: one correlated transfer
each, 1 round.

The choosing party has bits s, the offering one ring elements y; wanted are shares modulo 2^K of s y. With a
random transfer of strings (w_0, w_1), read as ring elements, D = w_1 - w_0, choice a, the parties open e = s
^ a and f = y - D at once, and

    choosing    s f + (1 - 2e) w_a            offering    e D - (1 - 2e) w_0

Proof: the sum is s f + (1 - 2e) a D + e D = s f + s D = s y, since a (1 - 2e) + e = s.

Who learns what: nothing; e is masked by a, f by D, which is uniform to whoever knows one of the strings.
Every transfer is used once. Cost: 1 bit from the choosing party and K bits from the offering one, besides the
transfer. Threat model: `ot_extension`.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.pair.transfers.bit_matrix import cells_of
from mpc_protocols.backends.pair.transfers.fixed_key import Blocks
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, Words, to_bits, words_for


def products_demand(rows: tuple[int, int], cells: int) -> Demand:
    """Transfers for `products` where party 0 brings rows[0] planes of bits and party 1 rows[1], of so many
    cells."""
    words = words_for(cells)
    return Demand(rows=(rows[0] * words, rows[1] * words))


def products(transfers: Transfers, bits: Words, values: Elements, cells: int) -> tuple[Elements, Elements]:
    """Shares of this party's bits times the peer's numbers, and of its own numbers times the peer's bits.

    bits: planes (r, words). values: (q, cells), for the peer's q planes; the peer brings q planes and (r,
    cells) numbers of the same dtype. Returns (r, cells) and (q, cells). 1 round.
    """
    link, dtype = transfers.link, values.dtype.type
    words, mine, others = words_for(cells), len(bits), len(values)
    transfers.need(products_demand((mine, others) if link.me == 0 else (others, mine), cells))
    chosen, offered = transfers.chosen_rows(mine * words), transfers.offered_rows(others * words)
    base = _elements(offered.base, others, cells, dtype)
    difference = _elements(offered.base ^ offered.difference, others, cells, dtype)
    difference -= base
    link.send(link.peer, bits.reshape(-1) ^ chosen.choices)
    link.send(link.peer, values - difference)
    link.give_way()
    flips = _flags(link.receive(link.peer, (others, words), np.uint64), cells, dtype)
    masked = link.receive(link.peer, (mine, cells), dtype)
    product = _elements(chosen.values, mine, cells, dtype)
    _negate_where(product, _flags(bits ^ chosen.choices.reshape(mine, words), cells, dtype))
    product += _flags(bits, cells, dtype) * masked
    difference *= flips
    _negate_where(base, flips)
    difference -= base
    return product, difference


def _negate_where(values: Elements, flags: Elements) -> None:
    """values (1 - 2 flags), in place."""
    values *= values.dtype.type(1) - (flags << values.dtype.type(1))


def _flags(planes: Words, cells: int, dtype: UInt) -> Elements:
    """The bits of no or more planes as ring elements: (.., cells)."""
    return to_bits(planes, cells, dtype) if len(planes) else np.empty((0, cells), dtype)


def _elements(rows: Blocks, count: int, cells: int, dtype: UInt) -> Elements:
    """The first element of every row, as `count` vectors of `cells` cells, whose planes stand one after the
    other."""
    words = words_for(cells)
    first = rows.view(dtype)[:, :, 0].reshape(len(rows), count, words)
    found: Elements = np.empty((count, cells), dtype)
    for number in range(count):
        found[number] = cells_of(first[:, number], cells)
    return found
