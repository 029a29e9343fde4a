"""Secret search in a public table: how many thresholds does a shared uniform number reach? (`mechanisms.md` 1.5, 3.1)

k = #{j : U >= t_j} for sorted public thresholds and shared bits of U, digit by digit in a mixed radix. At each level the
thresholds that split the remaining range depend on the digits before, which are secret: a shared one-hot vector over the
prefixes picks them from the public table by XORs alone, so the only gates are comparisons and the vector's update:

    th[j] = XOR_v onehot[v] & bits(t[span*radix*v + span*j - 1])      (t beyond the end: never)
    c[j] = [U >= th[j]], j = 1 .. radix-1                             digit bit b = XOR of c[j] over multiples j of 2^b
    onehot'[v, j] = onehot[v] & (c[j] ^ c[j+1])                       c[0] = 1, c[radix] = 0

A threshold "never" is a bit of its own above the others. Comparisons: `tree` has logarithmic depth, `ripple` one AND per bit
(less = majority(not U, t, less)). Large radices and trees for few cells, radix 2 and ripple for many: `layout_for` weighs
rounds against bytes, from public sizes only, alike at all parties.

Everything secret stays shared; sizes, rounds and messages depend on the table and the number of cells. Threat model: `trio`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.replicated.bitslice import Words
from mpc_protocols.replicated.boolean import ALL, BitShare, and_bits, and_public, complement, concatenate, stack, xor_public
from mpc_protocols.replicated.sign import Adder, merge_planes
from mpc_protocols.replicated.trio import Trio

ROUND_BYTES = 1 << 16
"""What a round is worth: choices between rounds and bytes count one round as this many bytes sent by each party."""
_BATCH_WORDS = 1 << 23
_PIECE = 128  # words of the one-hot planes whose sums are tabulated together
_GATHERED = 1 << 17  # words gathered at a time


@dataclass(frozen=True)
class Layout:
    """Radices (powers of two, most significant digit first) and the kind of comparison."""

    radices: tuple[int, ...]
    adder: Adder

    def __post_init__(self) -> None:
        if not self.radices or any(radix < 2 or radix & (radix - 1) for radix in self.radices):
            raise ValueError(f"radices are powers of two from 2 on, got {self.radices}")

    @property
    def digits(self) -> int:
        """Bits of the result."""
        return sum(radix.bit_length() - 1 for radix in self.radices)


def merge_schedule(planes: int) -> list[int]:
    """AND planes of each round of `merge_planes`."""
    rounds = []
    while planes > 1:
        rounds.append(2 * (planes // 2) - 1)
        planes -= planes // 2
    return rounds


def schedule(layout: Layout, thresholds: int, bits: int) -> list[int]:
    """AND planes of each round of `search`, in order."""
    rounds: list[int] = []
    nodes, span = 1, prod(layout.radices)
    for level, radix in enumerate(layout.radices):
        span //= radix
        if level == 0:
            live = sum(span * j <= thresholds for j in range(1, radix))  # the others are never reached
            rounds += [live * gates for gates in merge_schedule(bits)] if layout.adder == "tree" else [live] * (bits - 1)
        else:
            nodes *= layout.radices[level - 1]
            if level > 1:
                rounds.append(nodes // layout.radices[level - 1] * (layout.radices[level - 1] - 1))
            gates = [bits, *merge_schedule(bits + 1)] if layout.adder == "tree" else [1] * (bits + 1)
            rounds += [(radix - 1) * gate for gate in gates]
    return rounds


def batch_words(layout: Layout, bits: int) -> int:
    """Words of 64 cells that are searched together: bounds the memory at about 64 MB."""
    planes = 8 * bits * max(layout.radices) + 2 * prod(layout.radices[:-1])
    return max(1, _BATCH_WORDS // planes)


def layout_for(thresholds: int, bits: int, words: int) -> Layout:
    """The layout with the least rounds * ROUND_BYTES + bytes sent per party; `thresholds` >= 1 in the table, `words` of cells."""
    digits = thresholds.bit_length()
    candidates = [Layout((2,) * digits, "ripple")]
    for levels in range(1, digits + 1):
        wide, rest = digits % levels, digits // levels
        candidates.append(Layout((1 << rest + 1,) * wide + (1 << rest,) * (levels - wide), "tree"))

    def cost(layout: Layout) -> int:
        gates = schedule(layout, thresholds, bits)
        batches = -(-words // batch_words(layout, bits))
        return len(gates) * batches * ROUND_BYTES + 8 * sum(gates) * words

    return min(candidates, key=cost)


def search(trio: Trio, uniform: BitShare, thresholds: tuple[int, ...], layout: Layout) -> BitShare:
    """Digit bits of #{j : U >= t_j}, lowest first: shape (layout.digits, words).

    uniform: planes of U, lowest first, shape (bits, words). thresholds: non-decreasing, below 2^bits, at least half the
    product of the radices and fewer than it. Rounds and AND planes: `schedule`.
    """
    bits, size = len(uniform), prod(layout.radices)
    if not size // 2 <= len(thresholds) < size:
        raise ValueError(f"radices {layout.radices} are for {size // 2} to {size - 1} thresholds, not for {len(thresholds)}")
    inverted = complement(trio, uniform)
    digit_bits: list[BitShare] = []
    onehot: BitShare | None = None
    previous: list[BitShare] | None = None  # the digit before, as one-hot planes 1..radix-1 and the rest
    for level, radix in enumerate(layout.radices):
        if previous is None:
            span = size // radix
            live = [thresholds[span * j - 1] for j in range(1, radix) if span * j <= len(thresholds)]
            reached = _reach_public(trio, inverted, live, radix, layout.adder)
        else:
            onehot = _extend(trio, onehot, previous)
            group, selectors = _selectors(thresholds, layout.radices, level, bits)
            picked = BitShare(_pick(onehot.own, group, selectors), _pick(onehot.next, group, selectors))
            reached = _reach_secret(trio, inverted, picked.reshape(bits + 1, radix - 1, -1), layout.adder)
        width = radix.bit_length() - 1
        digit_bits = [_parity(reached, 1 << b) for b in range(width)] + digit_bits
        previous = [complement(trio, reached[0])]
        previous += [reached[j] ^ reached[j + 1] if j + 2 < radix else reached[j] for j in range(radix - 1)]
    return stack(digit_bits)


def _parity(reached: BitShare, step: int) -> BitShare:
    """XOR of c[j] over the multiples j of `step`; c[1] stands first."""
    chosen = reached[step - 1::step]
    return BitShare(np.bitwise_xor.reduce(chosen.own, axis=0), np.bitwise_xor.reduce(chosen.next, axis=0))


def _extend(trio: Trio, onehot: BitShare | None, digit: list[BitShare]) -> BitShare:
    """One-hot of the prefixes followed by the digit; one AND per node and digit value but the first, which is the rest."""
    if onehot is None:
        return stack(digit)
    nodes, words = onehot.shape
    column = onehot[:, np.newaxis]
    products = and_bits(trio, column, stack(digit[1:])[np.newaxis])
    first = BitShare(column.own ^ np.bitwise_xor.reduce(products.own, axis=1, keepdims=True),
                     column.next ^ np.bitwise_xor.reduce(products.next, axis=1, keepdims=True))
    return BitShare(np.concatenate((first.own, products.own), axis=1).reshape(nodes * len(digit), words),
                    np.concatenate((first.next, products.next), axis=1).reshape(nodes * len(digit), words))


def _table_bits(thresholds: Sequence[int], position: NDArray[np.int64], bits: int) -> NDArray[np.bool_]:
    """Bits of the thresholds at these positions, "never" on top: shape (bits + 1, *position.shape)."""
    width = bits // 8 + 1
    padded = [*thresholds, 1 << bits]
    raw = np.frombuffer(b"".join(t.to_bytes(width, "little") for t in padded), np.uint8).reshape(len(padded), width)
    flags = np.unpackbits(raw, axis=1, count=bits + 1, bitorder="little").astype(np.bool_)
    return np.moveaxis(flags[np.minimum(position, len(thresholds))], -1, 0)


@lru_cache(maxsize=64)
def _selectors(thresholds: tuple[int, ...], radices: tuple[int, ...], level: int, bits: int) -> tuple[int, NDArray[np.intp]]:
    """How `_pick` reaches the thresholds of one level: nodes are taken in groups, a group's bits choose one of its sums.

    Returns the group's size g and, per threshold bit (rows, lowest first, radix - 1 each) and group, an index into all sums.
    """
    nodes, radix, span = prod(radices[:level]), radices[level], prod(radices[level + 1:])
    position = span * radix * np.arange(nodes)[np.newaxis, :] + span * np.arange(1, radix)[:, np.newaxis] - 1
    rows = _table_bits(thresholds, position, bits).reshape((bits + 1) * (radix - 1), nodes)
    group = min(nodes, 8 if len(rows) > 256 else 4)  # least (2^g + rows) / g
    groups = nodes // group
    chosen = rows.reshape(len(rows), groups, group) @ (1 << np.arange(group))
    return group, chosen + (np.arange(groups) << group)


def _pick(planes: Words, group: int, selectors: NDArray[np.intp]) -> Words:
    """XOR of the one-hot planes (nodes, words) where a threshold's bit is 1, one row per selector: (rows, words). Local.

    Four-Russians: all sums of a group of planes once, then one of them per row and group.
    """
    nodes, words = planes.shape
    groups = nodes // group
    out = np.empty((len(selectors), words), np.uint64)
    for start in range(0, words, _PIECE):
        piece = planes[:, start:start + _PIECE].reshape(groups, group, -1)
        width = piece.shape[2]
        sums = np.zeros((groups, 1 << group, width), np.uint64)
        for b in range(group):
            np.bitwise_xor(sums[:, : 1 << b], piece[:, b:b + 1], out=sums[:, 1 << b: 2 << b])
        flat = sums.reshape(-1, width)
        step = max(1, _GATHERED // (groups * width))
        for first in range(0, len(selectors), step):
            chosen = flat.take(selectors[first:first + step], axis=0)
            np.bitwise_xor.reduce(chosen, axis=1, out=out[first:first + step, start:start + width])
    return out


def _reach_public(trio: Trio, inverted: BitShare, thresholds: Sequence[int], radix: int, adder: Adder) -> BitShare:
    """[U >= t] for public thresholds, zero planes for those beyond the table: shape (radix - 1, words)."""
    bits, words = inverted.shape
    missing = radix - 1 - len(thresholds)
    none = np.zeros((missing, words), np.uint64)
    if not thresholds:
        return BitShare(none, none)
    public = np.where(_table_bits(thresholds, np.arange(len(thresholds)), bits)[:bits, :, np.newaxis], ALL, np.uint64(0))
    smaller = inverted[:, np.newaxis]
    if adder == "tree":
        less = merge_planes(trio, and_public(smaller, public), xor_public(trio, smaller, public))
    else:
        less = and_public(smaller[0], public[0])
        for j in range(1, bits):
            product = and_bits(trio, xor_public(trio, smaller[j], public[j]), xor_public(trio, less, public[j]))
            less = xor_public(trio, product, public[j])
    return concatenate([complement(trio, less), BitShare(none, none)])


def _reach_secret(trio: Trio, inverted: BitShare, picked: BitShare, adder: Adder) -> BitShare:
    """[U >= t] for shared thresholds with their "never" plane on top: (bits + 1, radix - 1, words) to (radix - 1, words)."""
    bits = len(inverted)
    smaller = inverted[:, np.newaxis]
    low, never = picked[:bits], picked[bits:]
    if adder == "tree":
        less_here = concatenate([and_bits(trio, smaller, low), never])
        equal_here = concatenate([smaller ^ low, complement(trio, never)])
        return complement(trio, merge_planes(trio, less_here, equal_here))
    less = and_bits(trio, smaller[0], low[0])
    for j in range(1, bits):
        less = low[j] ^ and_bits(trio, smaller[j] ^ low[j], low[j] ^ less)
    return complement(trio, less ^ never[0] ^ and_bits(trio, less, never[0]))
