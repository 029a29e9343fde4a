"""Comparison and equality of shared 64-bit words, whole words at a time (`docs/design/psu.md` 2.2).

Words are XOR-shared (`boolean`), so shifting and selecting bits is local, and both protocols halve the width
until one bit is left. Which bit is more significant is free as long as whoever sorted the words used the same
order; here it is the order that makes a half of a machine word the more significant half at every step: bit 1
of the index decides first, then bit 2, ..

    significance of bit j = j with its six index bits reversed            (`index_reversed` turns it into the usual order)

    a > b     g = a & ~b, p = ~(a ^ b);  g = g_hi ^ (p_hi & g_lo),  p = p_hi & p_lo.  The first step takes the upper half of a for
              g_hi, which saves a quarter of it: where p_hi is 0 the words differ, and a's bit decides.
              64 + 32 + 32 + 16 + 8 + 4 + 1 bits in 7 rounds: 19.6 bytes a comparison
    a = b     p = ~(a ^ b);  p = p_hi & p_lo.   32 + 16 + 8 + 4 + 2 + 1 bits in 6 rounds: 7.9 bytes

Down to bytes the halves are views of narrower words, then bit planes. Batches are multiples of 64 words.
Nothing is opened; threat model, masking and assumption: `trio`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.engine.arrays import contiguous
from mpc_protocols.engine.bitwise.bits import concatenate
from mpc_protocols.engine.bitwise.bitslice import Words

Lanes = tuple[NDArray[Any], NDArray[Any]]
"""Both components of shared narrower words (uint32, uint16 or uint8)."""

_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(0xFFFFFFFF00000000)
_32 = np.uint64(32)
_INDEX_SWAPS = ((31, 0x00000000AAAAAAAA), (14, 0x0000CCCC0000CCCC), (4, 0x00F000F000F000F0))
"""Exchanges of index bits 0 and 5, 1 and 4, 2 and 3: distance, and the lower bit of every pair that moves."""


def index_reversed(words: Words) -> Words:
    """Every bit moved from j to the reverse of j's six bits; its own inverse.

    index_reversed(a) > index_reversed(b) in the order of `greater` exactly if a > b as integers.
    """
    out = words.copy()
    for distance, mask in _INDEX_SWAPS:
        moved = (out >> np.uint64(distance) ^ out) & np.uint64(mask)
        out ^= moved ^ moved << np.uint64(distance)
    return out


def greater(gates: TrioBitGates, a: BitShare, b: BitShare) -> BitShare:
    """Shape (n,) each, n a multiple of 64: words of ones where a > b, of zeros elsewhere. 7 rounds, 19.6
    bytes a word."""
    same, not_b = gates.complement(a ^ b), gates.complement(b)
    z = gates.and_bits(
        _map_components(lambda p, q: p & _HIGH | q & _LOW, same, not_b),
        _map_components(lambda p, x: p << _32 | x & _LOW, same, a),
    )
    upper = tuple(x.view(np.uint32)[1::2] for x in (a.own, a.next))
    decided = _and(gates, _lanes(same, np.uint32, 1), _apply(np.bitwise_xor, upper, _lanes(z, np.uint32, 0)))
    g = _apply(np.bitwise_xor, upper, decided)
    p = _apply(contiguous, _lanes(z, np.uint32, 1))  # taken apart below, so no view
    for dtype in (np.uint16, np.uint8):
        p_hi, p_lo, g_hi, g_lo = (
            _apply(lambda x, h=h, d=dtype: x.view(d)[h::2], x) for x in (p, g) for h in (1, 0)
        )
        r = _and(
            gates,
            _apply(lambda x: np.concatenate((x, x)), p_hi),
            _apply(lambda x, y: np.concatenate((x, y)), g_lo, p_lo),
        )
        count = len(r[0]) // 2
        g, p = _apply(lambda x, y, c=count: x ^ y[:c], g_hi, r), _apply(lambda x, c=count: x[c:], r)
    gs, ps = _planes(g), _planes(p)
    for half in (4, 2):
        z = gates.and_bits(concatenate([ps[half:], ps[half:]]), concatenate([gs[:half], ps[:half]]))
        gs, ps = gs[half:] ^ z[:half], z[half:]
    return _spread(gs[1:] ^ gates.and_bits(ps[1:], gs[:1]))


def equal(gates: TrioBitGates, a: BitShare, b: BitShare, ignored: int = 0) -> BitShare:
    """Shape (n,) each, n a multiple of 64: words of ones where a = b but for the bits set in `ignored`, of
    zeros elsewhere.

    6 rounds, 7.9 bytes a word.
    """
    keep = np.uint64(~ignored & (1 << 64) - 1)
    same = gates.complement(_map_components(lambda x: x & keep, a ^ b))
    p: Lanes = (same.own, same.next)
    for dtype in (np.uint32, np.uint16, np.uint8):
        hi, lo = (_apply(lambda x, h=h, d=dtype: x.view(d)[h::2], p) for h in (1, 0))
        p = _and(gates, hi, lo)
    planes = _planes(p)
    for half in (4, 2, 1):
        planes = gates.and_bits(planes[half:], planes[:half])
    return _spread(planes)


def _map_components(function: Callable[..., Words], *shares: BitShare) -> BitShare:
    """A local operation on both components."""
    return BitShare(function(*(x.own for x in shares)), function(*(x.next for x in shares)))


def _apply(function: Callable[..., NDArray[Any]], *lanes: Any) -> Lanes:
    """The same on narrower words."""
    return function(*(x[0] for x in lanes)), function(*(x[1] for x in lanes))


def _lanes(x: BitShare, dtype: type[np.unsignedinteger[Any]], half: int) -> Lanes:
    """The lower (0) or upper (1) halves of shared words, as views."""
    return _apply(lambda words: words.view(dtype)[half::2], (x.own, x.next))


def _and(gates: TrioBitGates, x: Lanes, y: Lanes) -> Lanes:
    """x AND y of narrower words whose bytes fill whole 64-bit words; 1 round."""
    dtype = x[0].dtype
    left, right = (BitShare(*(contiguous(part).view(np.uint64) for part in lanes)) for lanes in (x, y))
    z = gates.and_bits(left, right)
    return z.own.view(dtype), z.next.view(dtype)


def _planes(x: Lanes) -> BitShare:
    """The eight bit planes of shared bytes: shape (8, n / 64)."""
    return BitShare(
        *(np.stack([np.packbits(part & np.uint8(1 << j)) for j in range(8)]).view(np.uint64) for part in x)
    )


def _spread(plane: BitShare) -> BitShare:
    """Words of ones or zeros from one plane, shape (1, n / 64)."""
    return _map_components(
        lambda words: -np.unpackbits(words.view(np.uint8).reshape(-1)).astype(np.uint64), plane
    )
