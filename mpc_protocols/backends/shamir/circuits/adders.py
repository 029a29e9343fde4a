"""Adders over columns of shared bits: any number of addends, carry-save down to two, then a ripple or a
prefix tree.

A column is what stands at one bit position: a list of words of shared bits. Three bits a, b, c of a column
become a ^ b ^ c there and a ^ (a ^ b)(a ^ c) one position up (Wallace 1964): one AND. The sum is local, so the next
two bits of the column are added to it in the same round, and a round leaves half of a column's bits, one of them
its own and the others carries. Positions that no addend uses are no columns and cost nothing. The last two numbers
are added by a ripple, one AND and one round a position, or by a prefix tree, ceil(log2) rounds, whichever is
cheaper (`engine.bitwise.adders`). Everything is modulo 2^positions.

Which gates there are depends on the columns' heights only.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.backends.shamir.circuits.bit_gates import ShamirBitGates
from mpc_protocols.engine.bitwise.adders import adder_for, merge_planes, prefix_adder, prefix_carries
from mpc_protocols.engine.bitwise.bits import Bits, concatenate, stack

Columns = list[list[Bits]]


def carry_save(gates: ShamirBitGates, columns: Columns) -> Columns:
    """Columns of at most two words each with the same sum modulo 2^(number of columns)."""
    while max(map(len, columns)) > 2:
        positions, triples, left = list[int](), list[tuple[Bits, Bits, Bits]](), list[list[Bits]]()
        for position, (total, *others) in enumerate(columns):
            whole = len(others) // 2 * 2 if len(others) > 1 else 0
            for b, c in zip(others[:whole:2], others[1:whole:2], strict=True):
                positions.append(position)
                triples.append((total, total ^ b, total ^ c))
                total = total ^ b ^ c
            left.append([total, *others[whole:]])
        carried = sum(position < len(columns) - 1 for position in positions)  # the first ones
        if carried:
            a, first, second = (stack([of[k] for of in triples[:carried]]) for k in range(3))
            for position, words in zip(positions, a ^ gates.and_bits(first, second), strict=False):
                left[position + 1].append(words)
        columns = left
    return columns


def _lowest(heights: Sequence[int]) -> int:
    """The first column of two words; the number of columns if there is none."""
    return next((p for p, height in enumerate(heights) if height > 1), len(heights))


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
        adder = prefix_adder(carries, words, gates.latency_bytes)
        into = prefix_carries(gates, a[:carries], total[:carries], adder)
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
