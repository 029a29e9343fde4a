"""Bits in XOR shares between two parties: AND, many ANDs at once, and one bit with a string (Goldreich,
Micali, Wigderson).

    x = x_0 ^ x_1,   party i holds words of 64 bits of x_i;   XOR and NOT (by party 0) are local

An AND needs x_0 y_1 and x_1 y_0 in shares, each from one random transfer (`random_ot`; Beaver 1995). With a,
m[a] of the transfer in which party i chooses and m'[0], d' of the one in which it offers, both parties open e
= x_i ^ a and f = y_i ^ d', in one message, and

    share of i = x_i y_i  ^  x_i f_peer ^ m[a]  ^  m'[0] ^ e_peer d'

which is proven in `docs/design/pair.md` 1. One bit with a string: the same transfer with more bits of its
strings, so y may have up to 128 planes where x has one, and a sum over such products, or over ANDs, costs
nothing more.

Who learns what: nothing; e is masked by a, which the peer knows nothing of, f by the d that the peer, knowing
one string, knows nothing of. Every transfer is used once. Cost: 1 round; 2 bits an AND and party, 1 + w bits
one bit with w; besides the transfers. Threat model and assumptions: `ot_extension`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.pair.transfers.bit_matrix import planes_of
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.bitwise.bitslice import Words

MAX_WIDTH = 128
"""Bits of a string."""
_ROWS = 1 << 13
"""Words of transfers of one message of `string_sums`: some 25 MB while they are worked on."""


def and_bits(transfers: Transfers, x: Words, y: Words) -> Words:
    """x AND y, broadcast over leading axes. 1 round."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    (product,) = and_pairs(transfers, [(np.broadcast_to(x, shape), np.broadcast_to(y, shape))])
    return product


def and_pairs(transfers: Transfers, pairs: Sequence[tuple[Words, Words]]) -> list[Words]:
    """x AND y of several pairs, each of like shapes, in ONE round and message."""
    left = np.concatenate([x.reshape(-1) for x, _ in pairs])
    right = np.concatenate([y.reshape(-1) for _, y in pairs])
    transfers.need(Demand(bits=(left.size, left.size)))
    chosen, offered = transfers.chosen_bits(left.size), transfers.offered_bits(left.size)
    opened = np.empty((2, left.size), np.uint64)
    np.bitwise_xor(left, chosen.choices, out=opened[0])
    np.bitwise_xor(right, offered.difference, out=opened[1])
    others = transfers.link.exchange(opened)
    product = right ^ others[1]
    product &= left
    product ^= chosen.values
    product ^= offered.base
    product ^= others[0] & offered.difference
    ends = np.cumsum([x.size for x, _ in pairs])
    return [
        product[int(end) - x.size : int(end)].reshape(x.shape)
        for end, (x, _) in zip(ends, pairs, strict=True)
    ]


def string_sums_demand(terms: int, words: int) -> Demand:
    """Transfers for `string_sums` of so many terms of so many words."""
    return Demand(rows=(terms * words, terms * words))


def string_pieces(terms: int, words: int) -> list[int]:
    """Words of each message of `string_sums`."""
    step = max(1, _ROWS // max(terms, 1))
    return [min(step, words - start) for start in range(0, words, step)]


def string_sums(transfers: Transfers, x: Words, y: Words) -> Words:
    """XOR over terms of x AND y, x one plane and y a string of planes: (terms, words), (terms, w, words) to
    (w, words).

    w <= 128. 1 round for each _ROWS words; 1 + w bits a term from each party.
    """
    terms, width, words = y.shape
    if x.shape != (terms, words) or not 1 <= width <= MAX_WIDTH:
        raise ValueError(f"Planes of shape {x.shape} do not select strings of shape {y.shape}.")
    total = np.zeros((width, words), np.uint64)
    start = 0
    for size in string_pieces(terms, words):
        piece = slice(start, start + size)
        total[:, piece] = _string_sums(transfers, x[:, piece], y[:, :, piece])
        start += size
    return total


def _string_sums(transfers: Transfers, x: Words, y: Words) -> Words:
    terms, width, words = y.shape
    transfers.need(string_sums_demand(terms, words))
    chosen, offered = transfers.chosen_rows(terms * words), transfers.offered_rows(terms * words)
    shape = (width, terms, words)
    difference = planes_of(offered.difference, width).reshape(shape)
    strings = y.swapaxes(0, 1)
    opened = np.empty((1 + width, terms, words), np.uint64)
    np.bitwise_xor(x, chosen.choices.reshape(terms, words), out=opened[0])
    np.bitwise_xor(strings, difference, out=opened[1:])
    others = transfers.link.exchange(opened)
    product = strings ^ others[1:]
    product &= x
    difference &= others[0]
    product ^= difference
    masks = planes_of(chosen.values ^ offered.base, width).reshape(shape)
    product ^= masks
    total: Words = np.bitwise_xor.reduce(product, axis=1)
    return total
