"""XOR replicated sharing of bit planes: XOR and NOT are local, an AND costs one bit per party and one round.

    x = x_0 ^ x_1 ^ x_2,   party i holds  own = x_i  and  next = x_{i+1}   (arrays of 64-bit words, see `bitslice`)

z_i = x_i (y_i ^ y_{i+1}) ^ x_{i+1} y_i ^ zero_i goes to party i-1 (Araki et al. 2016; `docs/design/engine.md`
2.4). Arrays may have any leading axes (planes, thresholds, opponents); many gates in one call are one round
and one message.

Threat model, masking and assumption: `trio`. Nothing is learned, except through `open_bits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.sharing.copies import receive_missing
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.prg import KeyStream

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ALL_OF_ANY = np.asarray(ALL)


class BitShare(Bits):
    """One party's two components of shared words; same shape, dtype uint64 (or single bits, uint8)."""

    __slots__ = ()

    def __init__(self, own: NDArray[Any], following: NDArray[Any]) -> None:
        super().__init__(own, following)

    @property
    def own(self) -> NDArray[Any]:
        """x_i at party i."""
        return self.parts[0]

    @property
    def next(self) -> NDArray[Any]:
        """x_{i+1} at party i."""
        return self.parts[1]


def xor_public(trio: Trio, x: BitShare, public: NDArray[Any]) -> BitShare:
    """x XOR public words (broadcast): they go into component 0, which P0 and P2 hold."""
    own = x.own ^ public if trio.me == 0 else _broadcast(x.own, public)
    following = x.next ^ public if trio.me == 2 else _broadcast(x.next, public)
    return BitShare(own, following)


def _broadcast(part: NDArray[Any], public: NDArray[Any]) -> NDArray[Any]:
    if public.ndim == 0 or public.shape == part.shape:
        return part
    return np.broadcast_to(part, np.broadcast_shapes(part.shape, public.shape))


def and_public(x: BitShare, public: Words) -> BitShare:
    """x AND public words (broadcast)."""
    return BitShare(x.own & public, x.next & public)


def complement(trio: Trio, x: BitShare) -> BitShare:
    """NOT x; padding bits flip too, so results are masked or ignored beyond the batch."""
    return xor_public(trio, x, _ALL_OF_ANY)


def and_bits(trio: Trio, x: BitShare, y: BitShare) -> BitShare:
    """x AND y, broadcast over leading axes. 1 round, one bit per gate and party."""
    part = trio.zero_bits(x.shape if x.shape == y.shape else np.broadcast_shapes(x.shape, y.shape))
    _add_product(part, x, y)
    return BitShare(part, trio.pass_left(part))


def and_pairs(trio: Trio, pairs: Sequence[tuple[BitShare, BitShare]]) -> list[BitShare]:
    """x AND y for several pairs of like shapes but for their first axis, in ONE round and message."""
    ends = list(accumulate(len(x) for x, _ in pairs))
    part = trio.zero_bits((ends[-1], *pairs[0][0].shape[1:]))
    pieces = [slice(end - len(x), end) for end, (x, _) in zip(ends, pairs, strict=True)]
    for piece, (x, y) in zip(pieces, pairs, strict=True):
        _add_product(part[piece], x, y)
    received = trio.pass_left(part)
    return [BitShare(part[piece], received[piece]) for piece in pieces]


def _add_product(part: Words, x: BitShare, y: BitShare) -> None:
    """part ^= x_i (y_i ^ y_{i+1}) ^ x_{i+1} y_i, in place."""
    mixed = y.own ^ y.next
    part ^= mixed & x.own
    part ^= x.next & y.own


def random_bits(streams: tuple[KeyStream, KeyStream], shape: tuple[int, ...], operation: int) -> BitShare:
    """Uniform shared bits that nobody knows, from the streams of a release (`Trio.noise_streams`); local."""
    own, following = streams
    return BitShare(own.draw(shape, np.uint64, operation), following.draw(shape, np.uint64, operation))


def open_bits(trio: Trio, x: BitShare) -> Words:
    """Reveal x to all three parties. 1 round, its size per party: x_i goes to party i+1, which lacks it, and
    its hash from i-1.

    Raises `ProtocolAborted` if the two holders of a component disagree.
    """
    opened: Words = x.own ^ x.next ^ receive_missing(trio, x.own, x.next)
    return opened
