"""Signs of a + b where a dealer knows a and two evaluators know b, two bits a round (`docs/design/engine.md`
2.5, `dealer`).

Shares of x = x_0 + x_1 + x_2 minus a public number c are such a sum from every side: with the roles of part
t, the dealer knows a = x_t + x_{t+1} and both evaluators know b = x_{t+2} - c. Evaluators that hold shares of
the bits of a and of the products of neighbouring bits, [a_j] and [a_j a_{j+1}] for even j (`share_bits`; they
do not depend on c), hold without a message shares of what two planes together generate and propagate; a
masked carry passes both with one exchange. The sign is mask ^ a_{k-1}, known to the dealer, ^ opened ^
b_{k-1}, known to both evaluators.

`ripple`: ceil((k-1)/2) rounds, 2.5 bits per plane over all parties (an AND per plane: 3). `tree`: all pairs
of planes generate and propagate at once, then are merged four at a time (`masked_merge`): 1 +
ceil(log4((k-1)/2)) rounds and 2.3 times the bits.

The bits of a do not change while the sharing stays: they travel once (`bit_cache`). k needs to be only
bitlength(max |x|) + 1; the caller asserts that bound from public numbers, a value beyond it gets a wrong sign
silently. Threat model, masking and assumption: `dealer`. Nothing is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores import masked_merge
from mpc_protocols.backends.replicated.scores.dealer import DealerRoles
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bitslice import Elements, Words, from_planes, to_planes, words_for
from mpc_protocols.engine.interleave import alone

Packed = NDArray[np.uint32]
"""Shares of the bits of a, cell by cell: shape (packed_words(k), cells); bit j of word i is row 32 i + j of
`bit_rows`."""
_GROUP = 32


def bit_rows(planes: int) -> int:
    """Shared bits of a cell: the planes but the top one, and the products of pairs of them."""
    return planes - 1 + (planes - 1) // 2


def packed_words(planes: int) -> int:
    """Words of 32 bits that hold a cell's shared bits."""
    return -(-bit_rows(planes) // _GROUP)


def pack(rows: Words, cells: int) -> Packed:
    """Rows of planes, shape (rows, words_for(cells)), cell by cell."""
    packed = np.empty((-(-len(rows) // _GROUP), cells), np.uint32)
    for word, start in zip(packed, range(0, len(rows), _GROUP), strict=True):
        word[:] = from_planes(rows[start : start + _GROUP], cells)
    return packed


def unpack(packed: Packed, out: Words) -> None:
    """Inverse of `pack`, into rows that may lie apart."""
    for start, group in zip(range(0, len(out), _GROUP), packed, strict=True):
        rows = out[start : start + _GROUP]
        to_planes(group, len(rows), rows)


def share_bits(trio: Trio, addends: Sequence[Elements], planes: int) -> list[Packed]:
    """Share the bits of a of each part: `addends`[t] of shape (cells_t,) is a at the dealer t and may be
    anything elsewhere.

    Returns per part the evaluators' shares (at the dealer: nothing, an empty array). 1 round, `bit_rows` bits
    a cell from each part's dealer to its first evaluator.
    """
    roles = DealerRoles(trio, [words_for(len(dealer)) for dealer in addends])
    roles.deal(bits_and_products(to_planes(addends[trio.me], planes - 1)))
    _, shares = roles.exchange(np.empty((0, roles.evaluated_words), np.uint64))
    packed = [np.empty((packed_words(planes), 0), np.uint32) for _ in addends]
    packed[trio.left] = pack(roles.first(shares), len(addends[trio.left]))
    packed[trio.right] = pack(roles.second(shares), len(addends[trio.right]))
    return packed


def bits_and_products(bits: Words) -> Words:
    """At the dealer: the planes of a but the top one, then the products of pairs of them; `bit_rows` rows."""
    whole = 2 * (len(bits) // 2)
    return np.concatenate((bits, bits[0:whole:2] & bits[1:whole:2]))


@dataclass(frozen=True)
class Addends:
    """Planes of a + b at one party. a: (k, dealt_words) of the part it deals. b: (k, evaluated_words) and
    shares: (bit_rows(k), evaluated_words) of those it evaluates, in the order of `DealerRoles`."""

    a: Words
    b: Words
    shares: Words


def steps(planes: int, adder: Adder) -> list[tuple[int, int]]:
    """Rows that the evaluators exchange and rows that are dealt, in each step of `signs` for so many planes."""
    low = planes - 1
    count = -(-low // 2)
    if adder == "ripple":
        return [(1, 3 if start + 1 < low else 1) for start in range(2, low, 2)] + [(1, 0)]
    exchanged, schedule = 2 * count - 1, []
    while count > 1:
        schedule.append((exchanged, masked_merge.dealt_rows(count)))
        exchanged, count = masked_merge.merged_rows(count), masked_merge.left(count)
    return [*schedule, (exchanged, 0)]


def signs(
    roles: DealerRoles, total: Addends, planes: int, adder: Adder, last: Callable[[Words], None]
) -> tuple[Words, Words]:
    """Signs of a + b read modulo 2^planes, planes >= 2: mask at the dealer, shape (dealt_words,), and opened,
    shape (evaluated_words,).

    `last` gets the mask and sends what depends on it in the same step as the last exchange. Rounds: `steps`.
    """
    top = total.a[planes - 1]
    carry = _ripple if adder == "ripple" else _tree

    def also(mask: Words) -> None:
        last(mask ^ top)

    mask, opened = carry(roles, total, planes - 1, also)
    return mask ^ top, opened ^ total.b[planes - 1]


def _ripple(
    roles: DealerRoles, total: Addends, planes: int, also: Callable[[Words], None]
) -> tuple[Words, Words]:
    """The carry out of the low `planes` >= 1 planes, pair by pair: its mask, and opened."""
    a, b, bits, products = total.a, total.b, total.shares[:planes], total.shares[planes:]
    mask = np.zeros(roles.dealt_words, np.uint64)  # nothing is carried into the lowest plane
    opened = share = np.zeros(roles.evaluated_words, np.uint64)
    dealt = np.zeros((3, roles.evaluated_words), np.uint64)
    for start in range(0, planes, 2):
        stop = min(start + 2, planes)
        masks, shares = roles.masks(1)
        if stop < planes:
            roles.deal(_times_mask(a[stop : min(stop + 2, planes)], masks[0]))
        second_share = roles.second(share)
        second_share ^= roles.second(opened)  # from here on, shares of the carry itself
        if stop - start == 2:
            part = _carried_pair(
                bits[start],
                bits[start + 1],
                products[start // 2],
                b[start],
                b[start + 1],
                opened,
                share,
                dealt,
            )
        else:
            part = _carried(bits[start], b[start], opened, share, dealt[0])
        part ^= shares[0]
        mask, share = masks[0], shares[0]
        (opened,), dealt = roles.exchange(part[np.newaxis], partial(also, mask) if stop == planes else alone)
    return mask, opened


def _times_mask(bits: Words, mask: Words) -> Words:
    """At the dealer: the products of the carry's mask with one or two bits of a, and with their product."""
    if len(bits) == 1:
        return bits & mask
    out = np.empty((3, len(mask)), np.uint64)
    np.bitwise_and(bits, mask, out=out[:2])
    np.bitwise_and(out[0], bits[1], out=out[2])
    return out


def _carried_pair(
    a0: Words, a1: Words, both: Words, b0: Words, b1: Words, opened: Words, carry: Words, dealt: Words
) -> Words:
    """Shares of the carry out of two planes: shares of the bits of a, b, the carry in (its opened part,
    shares of it), and what was dealt. With c a = opened a ^ mask a for each of the three: c' = both c ^ b_1
    (a_0 c ^ a_1) ^ b_0 (a_1 c ^ both ^ b_1 (c ^ a_0))."""
    out = carry ^ a0
    out &= b1
    out ^= both
    term = opened & a1
    term ^= dealt[1]
    out ^= term
    out &= b0
    np.bitwise_and(opened, a0, out=term)
    term ^= dealt[0]
    term ^= a1
    term &= b1
    out ^= term
    np.bitwise_and(opened, both, out=term)
    term ^= dealt[2]
    out ^= term
    return out


def _carried(a: Words, b: Words, opened: Words, carry: Words, dealt: Words) -> Words:
    """The same for a single plane: c' = a b ^ (a ^ b) c."""
    out = carry ^ a
    out &= b
    out ^= dealt
    out ^= opened & a
    return out


def _tree(
    roles: DealerRoles, total: Addends, planes: int, also: Callable[[Words], None]
) -> tuple[Words, Words]:
    """The carry out of the low `planes` >= 1 planes: all pairs generate and propagate at once, then are
    merged, four neighbours at a time, the lowest first."""
    parts = _pairs(roles, total, planes)
    chunks = (len(parts) + 1) // 2
    masks, shares = roles.masks(len(parts))
    parts ^= shares
    mask, share = _split(masks, chunks), _split(shares, chunks)
    opened: tuple[Words, Words] | None = None
    while True:
        final = len(mask[0]) == 1
        if not final:
            roles.deal(masked_merge.dealt(*mask))
        rows, dealt = roles.exchange(parts, partial(also, mask[0][0]) if final else alone)
        opened = _split(rows, chunks) if opened is None else masked_merge.merged(*opened, rows)
        if final:
            return mask[0][0], opened[0][0]
        parts, known = masked_merge.parts(opened, share, dealt)
        second_parts = roles.second(parts)
        second_parts ^= roles.second(known)
        masks, shares = roles.masks(len(parts))
        parts ^= shares
        mask, share = masked_merge.merged(*mask, masks), masked_merge.merged(*share, shares)


def _pairs(roles: DealerRoles, total: Addends, planes: int) -> Words:
    """The evaluators' parts of what every pair of planes (at the top perhaps one) generates, then of what all
    but the lowest propagate."""
    bits, b, both = total.shares[:planes], total.b[:planes], total.shares[planes:]
    whole = 2 * (planes // 2)
    a0, a1, b0, b1 = bits[0:whole:2], bits[1:whole:2], b[0:whole:2], b[1:whole:2]
    generate = b1 & (a1 ^ b0 & a0)
    generate ^= b0 & both
    propagate = b1 & a0
    propagate ^= b0 & a1
    propagate ^= both
    second_part = roles.second(propagate)
    second_part ^= roles.second(b0 & b1)
    rows = [generate, propagate[1:]]
    if planes % 2:
        top = bits[whole:].copy()
        second_part = roles.second(top)
        second_part ^= roles.second(b[whole:planes])
        rows = [generate, bits[whole:] & b[whole:planes], propagate[1:]] + [top] * (planes > 1)
    return np.concatenate(rows)


def _split(rows: Words, chunks: int) -> tuple[Words, Words]:
    """Rows of generate, and of propagate, which the lowest chunk lacks: a row of zeros keeps the positions."""
    return rows[:chunks], np.concatenate((np.zeros_like(rows[:1]), rows[chunks:]))
