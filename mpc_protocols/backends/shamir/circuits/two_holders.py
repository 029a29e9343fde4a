"""Bits times numbers where one party at most may be bad (t = 1, m = 3 or 4): numbers stay additive among the
two holders.

A carry-save tree over all cells takes a round for each factor of 1.5; with two holders, P0 and P1, and a
helper, P2, a product of a shared bit s and a number d = d_0 + d_1 modulo 2^K takes two rounds, and a sum of
products no more:

    o = s ^ r_0 ^ r_1        opened to P0 and P1 alone; r_h is a stream of holder h and the helper
    s = f_h ^ r_g            f_h = o ^ r_h at holder h, g the other holder
    s d_h = f_h d_h + r_g x_h        x_h = (1 - 2 f_h) d_h at holder h
    x_h = y_h + z_h          y_h a stream of the two holders, z_h sent to the helper
    parts of the sum         holder h: f_h d_h + r_h y_g        helper: r_1 z_0 + r_0 z_1

The helper hands its part of a result to P1, masked by a stream of P0 and the helper, which P0 takes off.

**Views**, one bad party. P0 and P1: all parts of o, which are uniform but for their sum by zeros of pairs
(`mesh`), where P0 lacks r_1 and P1 lacks r_0, so that o is uniform to each; P1 also what the helper hands
over, masked by a stream that P1 lacks. The helper knows r_0 and r_1 and therefore must see nothing of o or of
its parts: nothing is sent to it but z_0 and z_1, masked by y_0 and y_1, which it lacks. A fourth party sends
its part of o and receives nothing. Every stream is drawn once, by its operation's number (`mesh`).

Sent: 1 bit a cell from each party to each holder, and K bits a cell from each holder with an addend. Public
bounds as in `l1_distance`. Where more parties may be bad no single one may know r_0 and r_1: they keep the
trees. Source: the roles are those of `docs/design/engine.md` 2.6. Threat model and assumption: `mesh`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.shamir.circuits.adders import top_bit
from mpc_protocols.backends.shamir.circuits.bit_gates import ShamirBitGates
from mpc_protocols.engine.arrays import sum_segments
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, to_bits, to_planes, words_for
from mpc_protocols.engine.by_shape import by_shape

HOLDERS, HELPER = (0, 1), 2


def serve(gates: ShamirBitGates) -> bool:
    """Whether these gates' parties have two holders."""
    return gates.mesh.scheme.threshold == 1


def times(gates: ShamirBitGates, bits: Bits, own: Elements, known: Sequence[int] = HOLDERS) -> Elements:
    """Parts, additive among ALL parties, of each bit times its number: of the shape of `own`. 2 rounds.

    bits: (..., words). own: (..., cells), the part of the number that this party holds. known: the holders
    that have one.
    """
    mesh, me, ring = gates.mesh, gates.mesh.me, own.dtype.type
    cells = own.shape[-1]
    masks = [mesh.between(holder, HELPER, bits.shape, np.uint64) for holder in HOLDERS]
    pads = {holder: mesh.between(*HOLDERS, own.shape, ring) for holder in known}
    part = gates.opening(bits)
    if me == HELPER:
        part = part ^ masks[0] ^ masks[1]
    for holder in HOLDERS:
        if holder != me:
            mesh.send(holder, part)
    mesh.turn()
    found: Elements = np.zeros_like(own)
    if me in HOLDERS:
        for peer in mesh.peers:
            part = part ^ mesh.receive(peer, bits.shape, np.uint64)
        if me in known:
            found = own * to_bits(part ^ masks[me], cells, ring)
            mesh.send(HELPER, own - found - found - pads[me])
    mesh.turn()
    for holder in known:
        other = HOLDERS[1 - holder]
        if me == other:
            found = found + to_bits(masks[me], cells, ring) * pads[holder]
        elif me == HELPER:
            found = found + to_bits(masks[other], cells, ring) * mesh.receive(holder, own.shape, ring)
    return found


def handed(gates: ShamirBitGates, part: Elements) -> Elements:
    """Numbers of which all parties have parts, as parts of the holders; zeros at all others. 1 round."""
    mesh, ring = gates.mesh, part.dtype.type
    mask = mesh.between(HOLDERS[0], HELPER, part.shape, ring)
    if mesh.me == HELPER:
        mesh.send(HOLDERS[1], part + mask)
    mesh.turn()
    if mesh.me == HOLDERS[0]:
        return part - mask  # type: ignore[no-any-return]
    if mesh.me == HOLDERS[1]:
        return part + mesh.receive(HELPER, part.shape, ring)  # type: ignore[no-any-return]
    return np.zeros_like(part)


@by_shape(lambda gates, cells, lengths, planes: (len(cells), len(lengths), planes))
def distance_sums(
    gates: ShamirBitGates, cells: Elements, lengths: NDArray[np.int64], planes: int
) -> Elements:
    """The holders' parts of the sums of |d| over each candidate's cells: uint32 of shape (candidates,).

    cells: this party's part of d, uint32. planes: k, |d| < 2^(k-1). |d| = d - 2 s d. 1 round, those of the
    sign, and 3.
    """
    own = to_planes(cells, planes) if gates.mesh.me in HOLDERS else None
    operands = gates.inputs(HOLDERS, own, (planes, words_for(len(cells))))
    sign = top_bit(gates, [[operand[p] for operand in operands] for p in range(planes)], carry_in=False)
    moved = times(gates, sign, cells)
    return handed(gates, sum_segments(cells - moved - moved, lengths))


@by_shape(lambda gates, bits, weights, cells, ring: (bits.shape, tuple(weights), cells, ring))
def weighted_sum(
    gates: ShamirBitGates, bits: Bits, weights: Sequence[int], cells: int, ring: UInt
) -> Elements:
    """The holders' parts of sum_j weights[j] * bits[j], modulo the ring: shape (cells,). 3 rounds."""
    modulus = 1 << 8 * np.dtype(ring).itemsize
    each = np.array([weight % modulus for weight in weights], ring)[:, np.newaxis]
    own = np.broadcast_to(each if gates.mesh.me == HOLDERS[0] else ring(0), (len(weights), cells))
    return handed(gates, times(gates, bits, own, HOLDERS[:1]).sum(axis=0, dtype=ring))


@by_shape(lambda gates, held: len(held))
def widened(gates: ShamirBitGates, held: Elements) -> Elements:
    """The holders' parts, modulo 2^32, of numbers below 2^32 as parts modulo 2^64: less 2^32 where the parts
    come to more."""
    planes, words = 8 * held.dtype.itemsize, words_for(len(held))
    zero = gates.public(np.zeros(words, np.uint64))
    own = to_planes(held, planes) if gates.mesh.me in HOLDERS else None
    operands = gates.inputs(HOLDERS, own, (planes, words))
    overflow = top_bit(gates, [*([of[p] for of in operands] for p in range(planes)), [zero]], carry_in=False)
    wide = held.astype(np.uint64)
    return wide + weighted_sum(gates, overflow[np.newaxis], (-(1 << planes),), len(held), np.uint64)


def reveal(gates: ShamirBitGates, held: Elements) -> Elements:
    """The numbers, to all computing parties. 1 round.

    The holders' parts get a fresh stream of theirs first, added to one and taken from the other: to all
    others they are uniform but for their sum, whatever the others know of how a part came about.
    """
    mesh, ring = gates.mesh, held.dtype.type
    fresh = mesh.between(*HOLDERS, held.shape, ring)
    if mesh.me in HOLDERS:
        held = held + fresh if mesh.me == HOLDERS[0] else held - fresh
        for peer in mesh.peers:
            mesh.send(peer, held)
    mesh.turn()
    opened = held if mesh.me in HOLDERS else np.zeros_like(held)
    for holder in HOLDERS:
        if holder != mesh.me:
            opened = opened + mesh.receive(holder, held.shape, ring)
    return opened
