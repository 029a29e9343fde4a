"""Signs and carries of integers that two parties share additively: one AND per bit.

Of x = x_0 + x_1 mod 2^K party 0 knows a = x_0 and party 1 b = x_1, so their bit planes ARE shares of a ^ b, without a message:

    carry' = a ^ ((a ^ b) & (a ^ carry))            sign = a ^ b ^ carry in plane k - 1

`ripple`: k - 1 ANDs a cell in k - 1 rounds. `tree`: generate/propagate pairs, about three times the ANDs in
1 + ceil(log2(k - 1)) rounds. Products of what one party knows with what the other knows take a transfer in one direction only
(`gmw.and_known`): the first AND of a ripple, all first ones of a tree. k needs to be only bitlength(max |x|) + 1; the caller
asserts that bound from public numbers, a value beyond it gets a wrong sign silently.

Nothing is opened. Cost per AND, threat model: `gmw`.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.engine.bitwise.adders import Adder, merge_schedule
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, to_planes
from mpc_protocols.pair.circuits.gmw import and_bits, and_known, and_pairs
from mpc_protocols.pair.transfers.random_ot import Demand, Transfers

AND_BYTES = 264
"""Bytes of a word of ANDs: a transfer each way and two opened bits."""
ADDERS: tuple[Adder, ...] = ("ripple", "tree")


def signs_cost(planes: int, words: int, latency_bytes: int, adder: Adder | None = None) -> float:
    """Rounds * latency_bytes + bytes sent for signs of so many planes; of the cheaper adder, if none is named."""
    if adder is None:
        return min(signs_cost(planes, words, latency_bytes, of) for of in ADDERS)
    low = planes - 1
    merged = merge_schedule(low)
    rounds = low if adder == "ripple" else 1 + len(merged)
    gates = low - 0.5 if adder == "ripple" else low / 2 + sum(merged)
    return rounds * latency_bytes + gates * AND_BYTES * words


def score_adder(planes: int, words: int, latency_bytes: int) -> Adder:
    """The adder that costs least for signs of so many planes, alike at both parties."""
    return min(ADDERS, key=lambda adder: signs_cost(planes, words, latency_bytes, adder))


def carry_demand(planes: int, words: int, adder: Adder) -> Demand:
    """Transfers for `carry`: in both directions but for the products of known operands, in which party 0 chooses."""
    if adder == "ripple":
        return Demand(bits=(planes * words, (planes - 1) * words))
    merged = sum(merge_schedule(planes)) * words
    return Demand(bits=(planes * words + merged, merged))


def carry(transfers: Transfers, mine: Words, adder: Adder) -> Words:
    """The carry of a + b out of the planes of a at party 0, of b at party 1: (planes, words) to (words,), planes >= 1."""
    transfers.reserve(carry_demand(len(mine), mine.shape[1], adder))
    return _ripple(transfers, mine) if adder == "ripple" else _tree(transfers, mine)


def signs(transfers: Transfers, x: Elements, planes: int, adder: Adder) -> Words:
    """1 where x, read modulo 2^planes as a signed integer, is negative: a plane of shape (words,); planes >= 2."""
    mine = to_planes(x, planes)
    negative: Words = mine[planes - 1] ^ carry(transfers, mine[: planes - 1], adder)
    return negative


def _ripple(transfers: Transfers, mine: Words) -> Words:
    found = and_known(transfers, mine[0])
    nothing = np.zeros_like(mine[0])
    for plane in mine[1:]:
        first = plane if transfers.link.me == 0 else nothing
        found = first ^ and_bits(transfers, plane, first ^ found)
    return found


def _tree(transfers: Transfers, mine: Words) -> Words:
    """(g, p) of neighbours merge to (g_high ^ p_high g_low, p_high p_low); the lowest pair needs no p."""
    generate, propagate = and_known(transfers, mine), mine
    while len(generate) > 1:
        pairs = len(generate) // 2
        high, low = slice(1, 2 * pairs, 2), slice(0, 2 * pairs, 2)
        upper = propagate[high]
        carried, both = and_pairs(transfers, [(upper, generate[low]), (upper[1:], propagate[low][1:])])
        generate = np.concatenate((generate[high] ^ carried, generate[2 * pairs :]))
        propagate = np.concatenate((upper[:1], both, propagate[2 * pairs :]))
    top: Words = generate[0]
    return top
