"""Shared bits of m parties as the shared code of the engine uses them (`engine.interface.BitGates`): Shamir
over GF(2^e).

A share is e planes (`field`); XOR is the XOR of planes, a public bit goes into plane 0 of everybody. A
product opens one masked bit:

    part_i = phi(lambda_i x_i y_i) + phi(lambda_i r_i) + zero_i        r a fresh random sharing, zero_i a part of zeros
    v = XOR of all parts is opened, v = xy + r;    share of xy = v into plane 0, + r_i

Any t parties see v, which r masks, and parts that zero masks. `and_sums` adds up the products before they are
masked. `zero_rows` masks each loss bit with fresh random words of 128 bits, and opens the sums.

Cost of an AND: 1 round, m - 1 bits from each party; in large batches 2 rounds, 2 (m - 1) / m bits (`mesh`).
Threat model and assumption: `mesh`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.shamir.sharing.mesh import Mesh
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.bitwise.bitslice import Words
from mpc_protocols.engine.blank import Blank
from mpc_protocols.engine.by_shape import by_shape
from mpc_protocols.engine.interface import BitSource
from mpc_protocols.engine.link import LinkedGates

TEST_WORDS = 2
"""Words of 64 bits in which a vector that is not zero looks like one with probability 2^-128."""
_PIECE = 1 << 13  # words multiplied at a time


def shared_latency(latency_bytes: int, parties: int) -> int:
    """What a round is worth to the shared code, which counts 8 bytes for a word of ANDs; here one costs 8 (m
    - 1)."""
    return latency_bytes // (parties - 1)


class ShamirBitGates(LinkedGates):
    """The bit gates of one party."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh

    @property
    def link(self) -> Mesh:
        return self.mesh

    @property
    def latency_bytes(self) -> int:
        return shared_latency(self.mesh.latency_bytes, self.mesh.scheme.parties)

    # -- local
    # -------------------------------------------------------------------------------------------------------------

    def complement(self, x: Bits) -> Bits:
        first, *others = x.parts
        return Bits(~first, *others)

    def xor_public(self, x: Bits, words: NDArray[Any]) -> Bits:
        first, *others = x.parts
        changed = first ^ words.astype(first.dtype)
        return Bits(changed, *(np.broadcast_to(other, changed.shape) for other in others))

    def public(self, words: Words) -> Bits:
        """Public words as a sharing."""
        return Bits(words, *(np.zeros_like(words) for _ in range(self.mesh.scheme.planes - 1)))

    def factor(self, y: Bits) -> Bits:
        """What x is multiplied with, plane by plane, in phi(lambda_me * x * y)."""
        return Bits(*(_sum_of(y.parts, planes).copy() for planes in self.mesh.scheme.bilinear))

    # -- products
    # ----------------------------------------------------------------------------------------------------------

    def and_bits(self, x: Bits, y: Bits) -> Bits:
        shape = np.broadcast_shapes(x.shape, y.shape)
        part, share = self.mesh.random(shape)
        self._add_product(part, x, y)
        return self._finish(part, share)

    def and_pairs(self, pairs: Sequence[tuple[Bits, Bits]]) -> list[Bits]:
        rows = [np.broadcast_shapes(x.shape, y.shape) for x, y in pairs]
        part, share = self.mesh.random((sum(shape[0] for shape in rows), *rows[0][1:]))
        places, start = [], 0
        for (x, y), shape in zip(pairs, rows, strict=True):
            places.append(slice(start, start + shape[0]))
            self._add_product(part[places[-1]], x, y)
            start += shape[0]
        products = self._finish(part, share)
        return [products[place] for place in places]

    def and_sums(
        self, shape: tuple[int, ...], terms: Iterable[tuple[Any, Bits, Iterable[NDArray[Any]]]]
    ) -> Bits:
        part, share = self.mesh.random(shape)
        for index, x, factor in () if isinstance(part, Blank) else terms:
            mixed: NDArray[Any] | None = None
            for mine, plane in zip(factor, x.parts, strict=True):
                mine &= plane
                if mixed is None:
                    mixed = mine
                else:
                    mixed ^= mine
            assert mixed is not None
            part[index] ^= np.bitwise_xor.reduce(mixed, axis=-2)
        return self._finish(part, share)

    def release_bits(self, release: bytes) -> BitSource:
        draw = self.mesh.release_bits(release)
        return lambda shape: Bits(*draw(shape))

    @by_shape(lambda gates, shape, rows: shape)
    def zero_rows(self, shape: tuple[int, int], rows: Iterable[tuple[slice, Bits]]) -> NDArray[np.bool_]:
        part = self.mesh.zero((*shape, TEST_WORDS))
        sharing = self.mesh.readers()
        for block, bits in () if isinstance(part, Blank) else rows:
            tests = sharing.next((*bits.shape, TEST_WORDS))
            total = np.zeros_like(tests[0])
            for factor, test in zip(self.factor(bits).parts, tests, strict=True):
                test &= np.negative(factor.astype(np.uint64))[..., np.newaxis]  # all ones where the bit is 1
                total ^= test
            part[:, block] ^= np.bitwise_xor.reduce(total, axis=2)
        opened: NDArray[np.bool_] = (self.mesh.open_parts(part) == 0).all(axis=2)
        return opened

    def reveal_bits(self, x: Bits) -> Words:
        """The words, to all computing parties. 1 round."""
        return self.mesh.open_parts(self.opening(x))

    def reveal_to(self, receiver: int, x: Bits) -> Words | None:
        """The words, to one computing party; None at all others. 1 round."""
        return self.mesh.open_parts_to(receiver, self.opening(x))

    def inputs(self, owners: Sequence[int], words: Words | None, shape: tuple[int, ...]) -> list[Bits]:
        """Each owner's words as a sharing; words: this party's own, if it is an owner. 1 round, their size to
        each other party.

        An owner opens its words masked by random ones that it knows and no t others do.
        """
        shares = {owner: self.mesh.known_to(owner, shape) for owner in owners}
        masked: dict[int, Words] = {}
        mask, _ = shares.get(self.mesh.me, (None, None))
        if mask is not None:
            assert words is not None
            masked[self.mesh.me] = mask ^ words
            for peer in self.mesh.peers:
                self.mesh.send(peer, masked[self.mesh.me])
        self.mesh.turn()
        for owner in owners:
            if owner != self.mesh.me:
                masked[owner] = self.mesh.receive(owner, shape, np.uint64)
        found = []
        for owner in owners:
            first, *others = shares[owner][1]
            first ^= masked[owner]
            found.append(Bits(first, *others))
        return found

    def opening(self, x: Bits) -> Words:
        """This party's masked part of the words."""
        part = self.mesh.zero(x.shape)
        for plane in self.mesh.scheme.opening:
            part ^= x.parts[plane]
        return part

    def _finish(self, part: Words, share: list[Words]) -> Bits:
        share[0] ^= self.mesh.open_parts(part)
        return Bits(*share)

    def _add_product(self, part: Words, x: Bits, y: Bits) -> None:
        """phi(lambda_me * x * y), row by row so that what is computed with stays in cache."""
        bilinear = self.mesh.scheme.bilinear
        if not any(bilinear) or isinstance(part, Blank):
            return
        wide = tuple(tuple(np.broadcast_to(plane, part.shape) for plane in factor.parts) for factor in (x, y))
        rows = max(1, _PIECE * len(part) // max(1, part.size)) if part.ndim > 1 else len(part)
        for start in range(0, len(part), rows):
            piece = slice(start, start + rows)
            right = [plane[piece] for plane in wide[1]]
            target = part[piece]
            for plane, planes in zip(wide[0], bilinear, strict=True):
                if planes:
                    target ^= plane[piece] & _sum_of(right, planes)


def _sum_of(planes: Sequence[NDArray[Any]], chosen: Sequence[int]) -> NDArray[Any]:
    """XOR of the chosen planes; of a single one, the plane itself."""
    if not chosen:
        return np.zeros_like(planes[0])
    total = planes[chosen[0]]
    for number in chosen[1:]:
        total = total ^ planes[number]
    return total
