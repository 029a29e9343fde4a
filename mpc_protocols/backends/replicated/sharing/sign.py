"""Signs and carries of shared integers with one AND per bit (`docs/design/engine.md` 2.4).

A replicated sharing x = x_0 + x_1 + x_2 is a sum of TWO integers from the parties' point of view: P0 knows a
= x_0 + x_1, P1 and P2 know b = x_2. So no carry-save layer is needed: P0 XOR-inputs the bit planes of a (k
bits a cell, P0 to P1 only; P2 derives the other component), b is a free sharing (0, 0, b), and one adder
gives the carry into any plane:

    carry' = a ^ ((a ^ b) & (a ^ carry))            sign = a ^ b ^ carry in plane k-1

`ripple`: k-1 ANDs per cell and k-1 rounds, for throughput. `tree`: generate/propagate pairs, about three
times the ANDs and 1 + ceil(log2(k-1)) rounds, for latency. Shares modulo 2^K reduce to shares modulo 2^k by
dropping planes, so k needs to be only bitlength(max |x|) + 1; the caller asserts that bound from public
numbers, a value beyond it gets a wrong sign silently.

Threat model, masking and assumption: `trio`. Nothing is opened.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.backends.replicated.sharing.boolean import BitShare, and_bits
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.adders import Adder, merge_planes
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, to_planes, words_for


@dataclass(frozen=True)
class Operands:
    """Bit planes of a and b, shape (k, words): `mixed` shares a ^ b, `first` shares a (None: a component that
    is zero)."""

    mixed: BitShare
    first_own: Words | None
    first_next: Words | None


def operand(trio: Trio, x: RingShare) -> Elements:
    """This party's addend of x = a + b: a at P0, b at P1 and P2."""
    if trio.me == 0:
        return x.own + x.next
    return x.next if trio.me == 1 else x.own


def share_operands(trio: Trio, addend: Elements, planes: int) -> Operands:
    """Bit planes of a (`addend` at P0) and b (`addend` at P1 and P2). 1 round: `planes` bits a cell from P0
    to P1."""
    operation = trio.operation()
    mine = to_planes(addend, planes)
    shape = (planes, words_for(len(addend)))
    if trio.me == 0:
        mask = trio.own_mask(shape, np.uint64, operation)
        mine ^= mask
        trio.send(1, mine)
        trio.turn()
        return Operands(BitShare(mask, mine), mask, mine)
    trio.turn()
    if trio.me == 1:
        received = trio.receive(0, shape, np.uint64)
        return Operands(BitShare(received, mine), received, None)
    mask = trio.next_mask(shape, np.uint64, operation)
    return Operands(BitShare(mine, mask), None, mask)


def carry(trio: Trio, operands: Operands, planes: int, adder: Adder) -> BitShare:
    """The carry of a + b out of the low `planes` >= 1 planes, shape (words,)."""
    return _ripple(trio, operands, planes) if adder == "ripple" else _tree(trio, operands, planes)


def signs(trio: Trio, x: RingShare, planes: int, adder: Adder) -> BitShare:
    """1 where x, read modulo 2^planes as a signed integer, is negative: a plane of shape (words,).

    1 round for the planes of a, then `planes` - 1 (ripple) or 1 + ceil(log2(planes - 1)) (tree).
    """
    return sign_of(trio, share_operands(trio, operand(trio, x), planes), planes, adder)


def sign_of(trio: Trio, operands: Operands, planes: int, adder: Adder) -> BitShare:
    """The top plane of a + b; needs `planes` >= 2."""
    return operands.mixed[planes - 1] ^ carry(trio, operands, planes - 1, adder)


def _ripple(trio: Trio, operands: Operands, planes: int) -> BitShare:
    """carry' = a ^ ((a ^ b) & (a ^ carry)), plane by plane; the masks of all rounds are one operation's
    streams."""
    mixed, first_own, first_next = operands.mixed, operands.first_own, operands.first_next
    operation = trio.operation()
    own_masks, next_masks = trio.own_reader(operation), trio.next_reader(operation)
    own = np.zeros(mixed.shape[1], np.uint64)
    following = own
    scratch = np.empty_like(own)
    for j in range(planes):
        other_own = own if first_own is None else own ^ first_own[j]  # a ^ carry
        other_next = following if first_next is None else following ^ first_next[j]
        part = np.empty_like(own)  # one AND per cell, written over its mask
        own_masks.fill(part)
        next_masks.fill(scratch)
        part ^= scratch
        np.bitwise_xor(other_own, other_next, out=scratch)
        scratch &= mixed.own[j]
        part ^= scratch
        np.bitwise_and(mixed.next[j], other_own, out=scratch)
        part ^= scratch
        received = trio.pass_left(part)
        own = part if first_own is None else part ^ first_own[j]
        following = received if first_next is None else received ^ first_next[j]
    return BitShare(own, following)


def _tree(trio: Trio, operands: Operands, planes: int) -> BitShare:
    """Generate g = a & b and propagate p = a ^ b of every plane, merged pairwise: (g, p) = (g_hi ^ p_hi g_lo,
    p_hi p_lo)."""
    shape = operands.mixed.own[:planes].shape
    nothing = np.zeros(shape, np.uint64)
    first = BitShare(
        nothing if operands.first_own is None else operands.first_own[:planes],
        nothing if operands.first_next is None else operands.first_next[:planes],
    )
    propagate = operands.mixed[:planes]
    generate = and_bits(trio, first, propagate ^ first)
    return merge_planes(TrioBitGates(trio), generate, propagate)
