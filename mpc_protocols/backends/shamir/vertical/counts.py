"""Counts whose parts modulo p the evaluators hold, as additive parts modulo 2^32 of the holders
(`held_marginals`).

The parts are masked by a fresh sum of zeros. Evaluators t + 1 .. 2t hand theirs to the holders 1 .. t, one
each, so that t + 1 numbers d_j below p are left; holder 0 adds 15 t to its own. With T the count,

    S = sum of d_j = T + 15 t + k p,  0 <= k <= t        S = k 2^16 + (T + 15 (t - k)),  and the bracket is in [0, 2^16)

for T <= MAX_ROWS: k is what the bits of S from 16 on say. The holders share the bits of their d_j and add
them up on shared bits; k becomes additive by masks: holders 1 .. t share the bits of random r_j, the adder
gives k - sum of r_j modulo 2^32, opened to holder 0 ALONE. Then

    holder 0    d_0 - 15 t - p (k - sum r_j)             holder j    d_j - p r_j             modulo 2^32

add up to S - 15 t - p k = T.

Who learns what: nothing. Any t parties miss the part of one evaluator at least: of 2t + 1 they get no more
than t besides their own, and those of the others are uniform but for the sum, by the zeros. Bits are masked
as every input is (`bit_gates`), and what holder 0 sees by the r_j of a holder that is not among the t. Proof:
`docs/design/shamir.md` 6. 4 rounds and those of two adders.
"""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np

from mpc_protocols.backends.shamir.circuits.adders import Columns, add_up
from mpc_protocols.backends.shamir.circuits.gates import ShamirGates, holders
from mpc_protocols.backends.shamir.vertical.dealer import receive_residues
from mpc_protocols.backends.shamir.vertical.prime import PRIME, Residues, combination
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Elements, from_planes, to_planes, words_for
from mpc_protocols.engine.prg import KeyStream

BATCH: Final = 1 << 18
"""Cells converted at a time."""
PART_BITS, RING_BITS = 16, 32


def wrap_bits(threshold: int) -> int:
    """Bits of k."""
    return threshold.bit_length()


def held_counts(gates: ShamirGates, parts: Residues | None, cells: int) -> Elements:
    """This party's additive part of so many counts, zeros at one that is no holder. parts: masked ones, at an
    evaluator."""
    mesh, threshold = gates.mesh, gates.mesh.scheme.threshold
    me = mesh.me
    if parts is not None and me > threshold:
        mesh.send(me - threshold, parts)
    if not 0 <= me <= threshold:
        own = np.zeros(cells, np.uint16)
    else:
        assert parts is not None
        offset = np.full(cells, 15 * threshold, np.uint16)
        more = receive_residues(mesh.wire, me + threshold, (cells,)) if me else offset
        own = combination([1, 1], [parts, more])
    held: Elements = np.zeros(cells, np.uint32)
    for start in range(0, cells, BATCH):
        batch = slice(start, start + BATCH)
        held[batch] = _held(gates, own[batch])
    if me == 0:
        held -= np.uint32(15 * threshold)
    return held


def _held(gates: ShamirGates, own: Residues) -> Elements:
    """own: d_j at holder j."""
    mesh, threshold = gates.mesh, gates.mesh.scheme.threshold
    me, words = mesh.me, words_for(len(own))
    every, masking = holders(threshold), holders(threshold)[1:]
    part: Elements = own.astype(np.uint32)
    mask: Elements = np.zeros(len(own), np.uint32)
    if me in masking:
        mask = KeyStream(secrets.token_bytes(16)).draw(len(own), np.uint32, 0)
    operands = gates.inputs(every, to_planes(part, PART_BITS) if me in every else None, (PART_BITS, words))
    zero = gates.public(np.zeros(words, np.uint64))
    columns: Columns = [[of[position] for of in operands] for position in range(PART_BITS)]
    wraps: Bits = add_up(gates, [*columns, *([zero] for _ in range(wrap_bits(threshold)))])[PART_BITS:]
    masks = gates.inputs(
        masking, to_planes(np.negative(mask), RING_BITS) if me in masking else None, (RING_BITS, words)
    )
    columns = [[of[position] for of in masks] for position in range(RING_BITS)]
    for position in range(wrap_bits(threshold)):
        columns[position].append(wraps[position])
    opened = gates.reveal_to(0, add_up(gates, columns))
    if opened is not None:
        mask = from_planes(opened, len(own))
    held: Elements = part - np.uint32(PRIME) * mask
    return held
