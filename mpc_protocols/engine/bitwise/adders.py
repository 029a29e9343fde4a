"""Carries and comparisons over bit planes: a ripple of ANDs, or a tree of merged pairs, whichever is cheaper.

A comparison, or a carry out of many planes, folds pairs (g, p) of "generates" and "propagates", plane by
plane (`ripple`: an AND and a round per plane) or pairwise (`tree`): (g, p) = (g_high ^ p_high g_low, p_high
p_low), about three times the ANDs and ceil(log2(planes)) rounds. Where the carries into all planes are wanted,
the tree is a prefix tree (Sklansky 1960, `prefix_steps`) of as many rounds. Works over any `interface.BitGates`;
nothing is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mpc_protocols.engine.bitwise.bits import B, concatenate, on_parts
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


def prefix_steps(planes: int) -> list[tuple[list[int], list[int], list[int]]]:
    """Levels of the prefix tree over so many planes: for each, planes that take in another, those others, and
    the planes of the level whose own p is still needed (they do not reach down to plane 0 yet)."""
    steps = []
    width = 1
    while width < planes:
        high = [i for i in range(planes) if i & width]
        low = [(i // width) * width - 1 for i in high]
        steps.append((high, low, [i for i in high if i >= 2 * width]))
        width *= 2
    return steps


def tree_gates(planes: int) -> list[int]:
    """AND planes of each round of the prefix tree over so many carries."""
    return [planes, *(len(high) + len(needed) for high, _, needed in prefix_steps(planes))]


def prefix_adder(planes: int, words: int, latency_bytes: int, word_bytes: int = 8) -> Adder:
    """Ripple or tree for so many carries: the least rounds * latency_bytes + bytes, word_bytes a word of ANDs."""
    tree = tree_gates(planes)
    saved = (planes - len(tree)) * latency_bytes
    return "tree" if saved > word_bytes * words * (sum(tree) - planes) else "ripple"


def prefix_carries(gates: BitGates[B], a: B, differs: B, adder: Adder) -> B:
    """The carries out of all planes of a + b, differs = a ^ b: (planes, words) of as many planes, lowest first."""
    if adder == "ripple":
        carry = a[:1] ^ gates.and_bits(differs[:1], a[:1])
        found = [carry]
        for j in range(1, len(a)):
            carry = a[j : j + 1] ^ gates.and_bits(differs[j : j + 1], a[j : j + 1] ^ carry)
            found.append(carry)
        return concatenate(found)
    generate, propagate = (_copied(of) for of in (gates.and_bits(a, a ^ differs), differs))
    for high, low, needed in prefix_steps(len(a)):
        of_needed = [low[high.index(i)] for i in needed]
        carried, both = gates.and_pairs(
            [(propagate[high], generate[low]), (propagate[needed], propagate[of_needed])]
        )
        _put(generate, high, generate[high] ^ carried)
        _put(propagate, needed, both)
    return generate


def _copied(planes: B) -> B:
    """To be written into: what was sent must not change."""
    return on_parts(lambda part: part.copy(), planes)


def _put(planes: B, places: Sequence[int], new: B) -> None:
    """Write new planes into these places."""
    for part, of in zip(planes.parts, new.parts, strict=True):
        part[places] = of
