"""Adders over columns of shared bits: any number of addends, carry-save down to two, then a ripple or a
prefix tree.

A column is what stands at one bit position: a list of words of shared bits. Three bits a, b, c of a column
become a ^ b ^ c there and a ^ (a ^ b)(a ^ c) one position up: one AND, and all columns of a layer in one
round (Wallace 1964). Positions that no addend uses are no columns and cost nothing. The last two numbers are
added by a ripple, one AND and one round a position, or by a prefix tree (Sklansky 1960), ceil(log2) rounds,
whichever is cheaper. Everything is modulo 2^positions.

Which gates there are depends on the columns' heights only.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.backends.shamir.circuits.bit_gates import ShamirBitGates
from mpc_protocols.engine.bitwise.adders import Adder, adder_for, merge_planes
from mpc_protocols.engine.bitwise.bits import Bits, concatenate, stack

Columns = list[list[Bits]]


def carry_save(gates: ShamirBitGates, columns: Columns) -> Columns:
    """Columns of at most two words each with the same sum modulo 2^(number of columns)."""
    while max(map(len, columns)) > 2:
        triples = [
            (position, column[start : start + 3])
            for position, column in enumerate(columns)
            for start in range(0, len(column) - 2, 3)
        ]
        left: Columns = [column[len(column) // 3 * 3 :] for column in columns]
        a, b, c = (stack([triple[k] for _, triple in triples]) for k in range(3))
        differs = a ^ b
        total = differs ^ c
        for (position, _), words in zip(triples, total, strict=True):
            left[position].append(words)
        carried = sum(position < len(columns) - 1 for position, _ in triples)  # the first ones
        if carried:
            carries = a[:carried] ^ gates.and_bits(differs[:carried], a[:carried] ^ c[:carried])
            for (position, _), words in zip(triples, carries, strict=False):
                left[position + 1].append(words)
        columns = left
    return columns


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


def _lowest(heights: Sequence[int]) -> int:
    """The first column of two words; the number of columns if there is none."""
    return next((p for p, height in enumerate(heights) if height > 1), len(heights))


def tree_gates(planes: int) -> list[int]:
    """AND planes of each round of the prefix tree over so many carries."""
    return [planes, *(len(high) + len(needed) for high, _, needed in prefix_steps(planes))]


def sum_adder(planes: int, words: int, latency_bytes: int) -> Adder:
    """Ripple or tree for so many carries: the least rounds * latency_bytes + bytes, 8 a word of ANDs."""
    tree = tree_gates(planes)
    return "tree" if (planes - len(tree)) * latency_bytes > 8 * words * (sum(tree) - planes) else "ripple"


def add_up(gates: ShamirBitGates, columns: Columns) -> Bits:
    """The sum of all columns: planes (positions, words). Every column has at least one word."""
    columns = carry_save(gates, columns)
    lowest = _lowest([len(column) for column in columns])
    first = stack([column[0] for column in columns])
    carries = len(columns) - 1 - lowest
    if lowest == len(columns):
        return first
    zero = first[0] ^ first[0]
    second = stack([column[1] if len(column) > 1 else zero for column in columns[lowest:]])
    a, total = first[lowest:], first[lowest:] ^ second
    if carries > 0:
        words = first.shape[1]
        adder = sum_adder(carries, words, gates.latency_bytes)
        into = (_ripple if adder == "ripple" else _prefix)(gates, a[:carries], total[:carries])
        total = concatenate([total[:1], total[1:] ^ into])
    return concatenate([first[:lowest], total])


def top_bit(gates: ShamirBitGates, columns: Columns, carry_in: bool) -> Bits:
    """The highest bit of the sum of all columns, and of 1 if carry_in: words of shape (words,)."""
    columns = carry_save(gates, columns)
    zero = columns[0][0] ^ columns[0][0]
    first = stack([column[0] for column in columns])
    second = stack([column[1] if len(column) > 1 else zero for column in columns])
    carries = len(columns) - 1
    top = first[carries] ^ second[carries]
    if carries == 0:
        return gates.complement(top) if carry_in else top
    a, propagate = first[:carries], first[:carries] ^ second[:carries]
    if adder_for(carries, first.shape[1], gates.latency_bytes) == "ripple":
        carry = _ones(gates, zero) if carry_in else zero
        for j in range(carries):
            carry = a[j] ^ gates.and_bits(propagate[j], a[j] ^ carry)
        return top ^ carry
    generate = gates.and_bits(a, second[:carries])
    if carry_in:  # a + b + 1 carries out of plane 0 where a OR b
        generate = concatenate([generate[:1] ^ propagate[:1], generate[1:]])
    return top ^ merge_planes(gates, generate, propagate)


def _ones(gates: ShamirBitGates, zero: Bits) -> Bits:
    return gates.complement(zero)


def _ripple(gates: ShamirBitGates, a: Bits, differs: Bits) -> Bits:
    """The carries into planes 1.. of a + b, differs = a ^ b: (planes, words) of as many planes."""
    carry = a[0] ^ gates.and_bits(differs[0], a[0])
    carries = [carry]
    for j in range(1, len(a)):
        carry = a[j] ^ gates.and_bits(differs[j], a[j] ^ carry)
        carries.append(carry)
    return stack(carries)


def _prefix(gates: ShamirBitGates, a: Bits, differs: Bits) -> Bits:
    """As `_ripple`, by a prefix tree."""
    generate = gates.and_bits(a, a ^ differs)
    propagate = Bits(*(part.copy() for part in differs.parts))
    for high, low, needed in prefix_steps(len(a)):
        of_needed = [low[high.index(i)] for i in needed]
        carried, both = gates.and_pairs(
            [(propagate[high], generate[low]), (propagate[needed], propagate[of_needed])]
        )
        for mine, part in zip(generate.parts, carried.parts, strict=True):
            mine[high] ^= part
        for mine, part in zip(propagate.parts, both.parts, strict=True):
            mine[needed] = part
    return generate
