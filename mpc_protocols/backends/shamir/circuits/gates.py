"""m parties' arithmetic as the shared code of the engine uses it (`engine.interface.Gates`): bits, and
numbers as addends.

Adding, scaling and putting together are local (`numbers`); addends are added up on shared bits (`adders`)
where a number is compared or opened. What the holders keep additively becomes shared bits by an input of each
of them: 1 round.

No statistical mask. Where one party at most may be bad sums of bits become parts of the two holders
(`two_holders`); with more nothing ever leaves GF(2). Threat model and assumption: `mesh`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.shamir.circuits import two_holders
from mpc_protocols.backends.shamir.circuits.adders import Columns, add_up, top_bit
from mpc_protocols.backends.shamir.circuits.bit_gates import ShamirBitGates
from mpc_protocols.backends.shamir.sharing import numbers
from mpc_protocols.backends.shamir.sharing.field import threshold_of
from mpc_protocols.backends.shamir.sharing.numbers import Addends, layer_mask, of_planes, weighted_layers
from mpc_protocols.engine.bitwise.bits import Bits, stack
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, to_planes, words_for
from mpc_protocols.engine.by_shape import by_shape
from mpc_protocols.engine.inputs.held_marginals import Split
from mpc_protocols.wire import Wire


def holders(threshold: int) -> range:
    """The parties among which counts are additive: t + 1 of them, so that any t miss one."""
    return range(threshold + 1)


def split_of(wire: Wire) -> Split:
    """How all others split their counts among them."""
    return Split(len(holders(threshold_of(wire.computing))))


def public_mask(public: Elements) -> int:
    """Which bits are 1 in any of some public numbers."""
    return int(np.bitwise_or.reduce(public)) if len(public) else 0


def _form(x: Addends) -> tuple[Any, ...]:
    """What of a vector of numbers decides how it is added up."""
    public = None if x.public is None else public_mask(x.public)
    return x.ring, x.shape, x.masks, x.held is not None, public


def _forms(gates: object, *compared: Addends) -> tuple[Any, ...]:
    return tuple((_form(x), None if x.public is None else x.public.tobytes()) for x in compared)


class ShamirGates(ShamirBitGates):
    """The gates of one party."""

    def weighted_sum(self, bits: Bits, weights: Sequence[int], cells: int, ring: UInt) -> Addends:
        """See `engine.interface.Gates`. Local: as many terms as bits meet at one position; of two holders,
        their parts."""
        if two_holders.serve(self):
            held = two_holders.weighted_sum(self, bits, weights, cells, ring)
            return Addends(ring, (cells,), held=held)
        planes = 8 * np.dtype(ring).itemsize
        zero = bits[0] ^ bits[0]
        terms: list[Addends] = []
        for layer in weighted_layers(weights, planes):
            chosen = stack([zero if j is None else bits[j] for j in layer])
            terms.append(of_planes(chosen, cells, ring, layer_mask(layer)))
        return Addends(
            ring,
            (cells,),
            tuple(term for of in terms for term in of.terms),
            tuple(mask for of in terms for mask in of.masks),
        )

    def add_public(self, x: Addends, public: NDArray[Any]) -> Addends:
        return x.plus(public)

    def scaled(self, x: Addends, factor: int) -> Addends:
        return x if factor == 1 else x.scaled(factor)

    def concatenate(self, of: Sequence[Addends]) -> Addends:
        return numbers.concatenate(of)

    @by_shape(_forms)
    def less(self, left: Addends, right: Addends) -> Bits:
        """See `engine.interface.Gates`: the sign of left + NOT right + 1, after an input where the holders
        keep something."""
        columns = self._columns_of(left)
        for number, mask in enumerate(right.masks):
            self._append_planes(columns, self.complement(right.planes(number)), mask)
        constant = np.full(left.shape, -sum(right.masks) % (1 << len(columns)), left.ring)
        for of, sign in ((left.public, 1), (right.public, -1)):
            if of is not None:
                constant += of if sign > 0 else np.negative(of)
        one = False
        if left.held is not None or right.held is not None:
            zero = np.zeros(left.shape, left.ring)
            mine, theirs = (zero if of.held is None else of.held for of in (left, right))
            self._put_held(columns, mine - theirs, constant)
        elif not (one := bool((constant == 1).all())):
            self._put_public(columns, constant)
        self._fill(columns, len(left))
        return top_bit(self, columns, carry_in=one)

    def negative(self, x: Addends) -> Bits:
        """See `engine.interface.Gates`: the sign of the sum of all addends."""
        return top_bit(self, self._all_columns(x), carry_in=False)

    @by_shape(lambda gates, x: _form(x))
    def planes_of(self, x: Addends) -> Bits:
        """The bits of a vector of numbers, added up: (bits of the ring, words)."""
        return add_up(self, self._all_columns(x))

    def _all_columns(self, x: Addends) -> Columns:
        """Every addend, also what the holders keep: 1 round for that."""
        columns = self._columns_of(x)
        if x.held is not None:
            self._put_held(columns, x.held, x.public)
        elif x.public is not None:
            self._put_public(columns, x.public)
        self._fill(columns, len(x))
        return columns

    def added_up(self, x: Addends) -> Addends:
        """The same vector as one term."""
        planes = self.planes_of(x)
        return of_planes(planes, len(x), x.ring, (1 << len(planes)) - 1)

    def _columns_of(self, x: Addends) -> Columns:
        columns: Columns = [[] for _ in range(8 * np.dtype(x.ring).itemsize)]
        for number, mask in enumerate(x.masks):
            self._append_planes(columns, x.planes(number), mask)
        return columns

    def _append_planes(self, columns: Columns, planes: Bits, mask: int) -> None:
        for position, (column, words) in enumerate(zip(columns, planes, strict=False)):
            if mask >> position & 1:
                column.append(words)

    def _put_held(self, columns: Columns, held: Elements, public: Elements | None) -> None:
        """What the holders keep; public numbers go into the first one's part."""
        owners = holders(self.mesh.scheme.threshold)
        if public is not None and self.mesh.me == owners[0]:
            held = held + public
        own = to_planes(held, len(columns)) if self.mesh.me in owners else None
        for planes in self.inputs(owners, own, (len(columns), words_for(len(held)))):
            self._append_planes(columns, planes, -1)

    def _put_public(self, columns: Columns, public: Elements) -> None:
        planes = to_planes(public, len(columns))
        mask = public_mask(public)
        for position, column in enumerate(columns):
            if mask >> position & 1:
                column.append(self.public(planes[position]))

    def _fill(self, columns: Columns, cells: int) -> None:
        """At least one word in each column."""
        zero = self.public(np.zeros(words_for(cells), np.uint64))
        for column in columns:
            if not column:
                column.append(zero)
