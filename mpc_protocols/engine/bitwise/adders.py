"""Carries and comparisons over bit planes: a ripple of ANDs, or a tree of merged pairs, whichever is cheaper.

A comparison, or a carry out of many planes, folds pairs (g, p) of "generates" and "propagates", plane by
plane (`ripple`: an AND and a round per plane) or pairwise (`tree`): (g, p) = (g_high ^ p_high g_low, p_high
p_low), about three times the ANDs and ceil(log2(planes)) rounds. Works over any `interface.BitGates`; nothing
is opened.
"""

from __future__ import annotations

from typing import Literal

from mpc_protocols.engine.bitwise.bits import B, concatenate
from mpc_protocols.engine.interface import BitGates

Adder = Literal["ripple", "tree"]


def merge_schedule(planes: int) -> list[int]:
    """AND planes of each round of `merge_planes`."""
    rounds = []
    while planes > 1:
        rounds.append(2 * (planes // 2) - 1)
        planes -= planes // 2
    return rounds


def adder_for(planes: int, words: int, latency_bytes: int, batches: int = 1) -> Adder:
    """For one AND per plane or a tree over them: the least rounds * latency_bytes + bytes, from public sizes,
    alike at all parties.

    words: of a plane, over all batches; a tree begins with one AND per plane, too.
    """
    tree = [planes, *merge_schedule(planes)]
    saved = (planes - len(tree)) * batches * latency_bytes
    return "tree" if saved > (sum(tree) - planes) * 8 * words else "ripple"


def merge_planes(gates: BitGates[B], generate: B, propagate: B) -> B:
    """Fold planes (axis 0, lowest first) of g and p to the g of all: ceil(log2(planes)) rounds.

    Pairs are merged lowest first and an odd plane at the top waits; the lowest pair needs no p. A comparison
    folds the same way with g = "less here", p = "equal here".
    """
    while len(generate) > 1:
        count = len(generate)
        pairs = count // 2
        high, low = slice(1, 2 * pairs, 2), slice(0, 2 * pairs, 2)
        upper = propagate[high]
        carried, both = gates.and_pairs([(upper, generate[low]), (upper[1:], propagate[low][1:])])
        generate_merged = [generate[high] ^ carried]
        propagate_merged = [
            upper[:1],
            both,
        ]  # p of the lowest plane is never used: any plane keeps the positions
        if count % 2:
            generate_merged.append(generate[count - 1 :])
            propagate_merged.append(propagate[count - 1 :])
        generate, propagate = concatenate(generate_merged), concatenate(propagate_merged)
    return generate[0]
