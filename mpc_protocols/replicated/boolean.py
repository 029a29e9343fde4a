"""XOR replicated sharing of bit planes: XOR and NOT are local, an AND costs one bit per party and one round.

    x = x_0 ^ x_1 ^ x_2,   party i holds  own = x_i  and  next = x_{i+1}   (arrays of 64-bit words, see `bitslice`)

z_i = x_i (y_i ^ y_{i+1}) ^ x_{i+1} y_i ^ zero_i goes to party i-1 (Araki et al. 2016; `engine.md` 2). Arrays may have any
leading axes (planes, thresholds, opponents); many gates in one call are one round and one message.

Threat model, masking and assumption: `trio`. Nothing is learned, except through `open_bits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_protocols.replicated.bitslice import Words
from mpc_protocols.replicated.prg import KeyStream
from mpc_protocols.replicated.trio import Trio

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class BitShare:
    """One party's two components of shared words; same shape, dtype uint64."""

    own: Words
    next: Words

    def __post_init__(self) -> None:
        if self.own.dtype != np.uint64 or self.next.dtype != np.uint64 or self.own.shape != self.next.shape:
            raise ValueError(f"a bit share holds two like arrays of uint64, got {self.own.dtype}{self.own.shape} and "
                             f"{self.next.dtype}{self.next.shape}")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.own.shape

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, index: Any) -> BitShare:
        return BitShare(self.own[index], self.next[index])

    def __xor__(self, other: BitShare) -> BitShare:
        return BitShare(self.own ^ other.own, self.next ^ other.next)


def stack(shares: list[BitShare]) -> BitShare:
    """Shares of one shape along a new first axis."""
    return BitShare(np.stack([share.own for share in shares]), np.stack([share.next for share in shares]))


def concatenate(shares: list[BitShare]) -> BitShare:
    """Shares along their first axis."""
    return BitShare(np.concatenate([share.own for share in shares]), np.concatenate([share.next for share in shares]))


def xor_public(trio: Trio, x: BitShare, public: Words) -> BitShare:
    """x XOR public words (broadcast): they go into component 0, which P0 and P2 hold."""
    shape = np.broadcast_shapes(x.shape, public.shape)
    own = x.own ^ public if trio.me == 0 else np.broadcast_to(x.own, shape)
    following = x.next ^ public if trio.me == 2 else np.broadcast_to(x.next, shape)
    return BitShare(own, following)


def and_public(x: BitShare, public: Words) -> BitShare:
    """x AND public words (broadcast)."""
    return BitShare(x.own & public, x.next & public)


def complement(trio: Trio, x: BitShare) -> BitShare:
    """NOT x; padding bits flip too, so results are masked or ignored beyond the batch."""
    return xor_public(trio, x, np.asarray(ALL))


def and_bits(trio: Trio, x: BitShare, y: BitShare) -> BitShare:
    """x AND y, broadcast over leading axes. 1 round, one bit per gate and party."""
    part = y.own ^ y.next
    part = part & x.own
    part ^= x.next & y.own
    part ^= trio.zero_bits(part.shape)
    return BitShare(part, trio.pass_left(part))


def random_bits(streams: tuple[KeyStream, KeyStream], shape: tuple[int, ...], operation: int) -> BitShare:
    """Uniform shared bits that nobody knows, from the streams of a release (`Trio.noise_streams`); local."""
    own, following = streams
    return BitShare(own.draw(shape, np.uint64, operation), following.draw(shape, np.uint64, operation))


def open_bits(trio: Trio, x: BitShare) -> Words:
    """Reveal x to all three parties. 1 round, its size per party: x_i goes to party i+1, which lacks it."""
    trio.send(trio.right, x.own)
    opened: Words = x.own ^ x.next ^ trio.receive(trio.left, x.shape, np.uint64)
    return opened
