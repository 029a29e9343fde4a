"""Signs and carries of integers that two parties share additively: one AND per bit, on packed words.

Of x = x_0 + x_1 mod 2^K party 0 knows a = x_0 and party 1 b = x_1, so their bit planes ARE XOR shares, with
zeros at the others:

    carry' = a ^ ((a ^ b) & (a ^ carry))            sign = a ^ b ^ carry in plane k - 1

A ripple takes k - 1 ANDs a cell in as many rounds, a tree (`adders`) about three times the ANDs in 1 +
ceil(log2(k - 1)) rounds. k needs to be only bitlength(max |x|) + 1; the caller asserts that bound from public
numbers, a value beyond it gets a wrong sign silently.

Nothing is opened.
"""

from __future__ import annotations

import numpy as np

from mpc_protocols.engine.bitwise.adders import Adder, adder_for, merge_planes
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, to_planes
from mpc_protocols.engine.interface import BitGates


def score_adder(planes: int, words: int, latency_bytes: int) -> Adder:
    """The adder that costs least for signs of so many planes, alike at all parties. latency_bytes: of the
    gates."""
    return adder_for(planes - 1, words, latency_bytes)


def signs(gates: BitGates[Bits], me: int, x: Elements, planes: int) -> Bits:
    """1 where x, read modulo 2^planes as a signed integer, is negative: a plane of shape (words,); planes >=
    2."""
    mine = to_planes(x, planes)
    adder = score_adder(planes, mine.shape[1], gates.latency_bytes)
    return Bits(mine[planes - 1]) ^ carry(gates, me, mine[: planes - 1], adder)


def carry(gates: BitGates[Bits], me: int, mine: Words, adder: Adder) -> Bits:
    """The carry of a + b out of the planes of a at party 0, of b at party 1: (planes, words) to (words,),
    planes >= 1."""
    nothing = np.zeros_like(mine)
    a, b = Bits(mine if me == 0 else nothing), Bits(mine if me == 1 else nothing)
    if adder == "tree":
        return merge_planes(gates, gates.and_bits(a, b), a ^ b)
    found = gates.and_bits(a[0], b[0])
    for plane in range(1, len(mine)):
        found = a[plane] ^ gates.and_bits(a[plane] ^ b[plane], a[plane] ^ found)
    return found
