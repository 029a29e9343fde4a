"""Replicated arithmetic as the shared code of the engine uses it (`engine.interface.Gates`), and the arg max
of many candidates, which is a tournament (`scores.tournament`) where bytes outweigh rounds.

    arg max, all pairs: 5 rounds for 32-bit keys; 9.2 bytes a pair and party, and 40 a candidate (far apart: 4 rounds, 13 bytes)

Threat model, masking and assumption: `trio`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.scores.family_keys import largest_of_families, table_bytes
from mpc_protocols.backends.replicated.scores.masked_numbers import MaskedKeys
from mpc_protocols.backends.replicated.scores.shared_sign import shared_less, shared_signs
from mpc_protocols.backends.replicated.scores.tournament import argmax_by_fours, comparison_cost, tournament
from mpc_protocols.backends.replicated.sharing import conversion, ring
from mpc_protocols.backends.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import Parts, RingShare
from mpc_protocols.backends.replicated.sharing.sign import signs
from mpc_protocols.engine.bitwise.adders import adder_for
from mpc_protocols.engine.bitwise.argmax import argmax_rows, loss_vectors, peel, peel_members
from mpc_protocols.engine.bitwise.bitslice import UInt, words_for
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.by_shape import by_shape, is_dry
from mpc_protocols.mechanisms.selection import SelectionPlan


class TrioGates(TrioBitGates):
    """The gates of a trio."""

    def weighted_sum(self, bits: BitShare, weights: Sequence[int], cells: int, ring: UInt) -> RingShare:
        return conversion.weighted_sum(self.trio, bits, weights, cells, ring)

    def add_public(self, x: RingShare, public: NDArray[Any]) -> RingShare:
        return ring.add_public(self.trio, x, public)

    def scaled(self, x: RingShare, factor: int) -> RingShare:
        return x.scaled(factor)

    def concatenate(self, numbers: Sequence[RingShare]) -> RingShare:
        return ring.concatenate(list(numbers))

    @by_shape(lambda gates, x: (x.shape, x.dtype))
    def negative(self, x: RingShare) -> BitShare:
        """See `engine.interface.Gates`; the cheaper adder."""
        planes = 8 * np.dtype(x.dtype).itemsize
        return signs(self.trio, x, planes, adder_for(planes - 1, words_for(len(x)), self.trio.latency_bytes))

    def less(self, left: RingShare | MaskedKeys, right: RingShare | MaskedKeys) -> BitShare:
        """See `engine.interface.Gates`; 4 rounds for 32 bits (`scores.shared_sign`). Masked keys are opened to their evaluators
        in the first of them, once."""
        if isinstance(left, RingShare) and isinstance(right, RingShare):
            return self._negative_difference(left, right)
        assert isinstance(left, MaskedKeys) and isinstance(right, MaskedKeys)
        found = self._less_masked(left, right, None if left.numbers.is_open else left.numbers.count)
        left.numbers.is_open = True
        return found

    @by_shape(lambda gates, left, right: (left.shape, left.dtype))
    def _negative_difference(self, left: RingShare, right: RingShare) -> BitShare:
        return shared_signs(self.trio, left - right, 8 * np.dtype(left.dtype).itemsize)

    @by_shape(lambda gates, left, right, opened: (left.shape, left.dtype, opened))
    def _less_masked(self, left: MaskedKeys, right: MaskedKeys, opened: int | None) -> BitShare:
        """opened: how many keys are opened now."""
        return shared_less(self.trio, left, right, 8 * np.dtype(left.dtype).itemsize, opened is not None)


def argmax(gates: TrioGates, keys: Parts) -> int:
    """Open the position of the largest of the keys, shape (n,), read as signed ring elements; 0 for n
    = 1."""
    if levels := tournament(len(keys), np.dtype(keys.dtype).itemsize, gates.latency_bytes).levels:
        return argmax_by_fours(gates, keys, levels)
    return int(argmax_rows(gates, comparable(gates, keys).reshape(1, -1))[0])


def comparable(gates: TrioGates, keys: Parts) -> RingShare | MaskedKeys:
    """Keys as `TrioGates.less` takes them: no round is spent on making them a sharing. Local."""
    return keys if isinstance(keys, RingShare) else MaskedKeys.of(gates.trio, keys)


PicksForm = Literal["at once", "families", "one by one"]


def picks_form(
    picks: int, count: int, families: Sequence[int], element: int, latency_bytes: int
) -> PicksForm:
    """How so many picks of `count` keys are made: the least rounds * latency_bytes + bytes, alike at all
    parties.

    families: members of each family of candidates, which leave together.
    """

    def comparisons(pairs: int) -> int:
        return comparison_cost(pairs, element, latency_bytes)

    cost: dict[PicksForm, int] = {"at once": comparisons(picks * (count * (count - 1) // 2))}
    width, several = max(families), len(families)
    if width > 1:
        members = picks * several * width
        cost["families"] = (
            comparisons(members * (width - 1) // 2)
            + comparisons(picks * (several * (several - 1) // 2))
            + table_bytes(picks * several, width, element)
        )
    alone = tournament(count, element, latency_bytes)
    if alone.levels:
        cost["one by one"] = picks * alone.cost
    return min(cost, key=lambda form: cost[form])


def pick_several(gates: TrioGates, keys: Parts, plan: SelectionPlan) -> list[int]:
    """As `engine.bitwise.argmax.peel`, of the plan's contenders, in the form of `picks_form`.

    Of many candidates each pick is an arg max of its own, on the list that the earlier ones leave: bytes grow
    with candidates and no longer with their pairs, rounds with the picks.
    """
    rows, count = keys.shape
    form = picks_form(
        rows, count, list(map(len, plan.families)), np.dtype(keys.dtype).itemsize, gates.latency_bytes
    )
    if form == "at once":
        return peel(gates, comparable(gates, keys), plan.candidates, plan.contenders)
    if form == "families":
        return pick_by_families(gates, keys, plan)
    contenders = np.array(plan.contenders)
    picked: list[int] = []
    while len(picked) < rows and (left := plan.candidates(picked)):
        places = blank(len(left), np.intp) if is_dry(gates) else np.searchsorted(contenders, left)
        picked.append(left[argmax(gates, keys[len(picked)][places])])
    return picked


def pick_by_families(gates: TrioGates, keys: Parts, plan: SelectionPlan) -> list[int]:
    """Picks where candidates leave in families (`docs/design/mechanisms.md` 1.6).

    The largest of each family is found first, by its dealer, for all picks at once; then the families are peeled, each
    pick with its place in its family. Smaller families are filled with their last member, whose copies lose every
    tie.
    """
    rows, _ = keys.shape
    families, width = plan.families, max(map(len, plan.families))
    assert width > 1  # or there is no place in a family to be opened
    column = {member: place for place, member in enumerate(plan.contenders)}
    places = np.array(
        [[column[family[min(place, len(family) - 1)]] for place in range(width)] for family in families]
    )
    members = keys[:, places].reshape(rows * len(families), width)
    largest, compared = largest_of_families(gates, members)
    lost = loss_vectors(gates, compared, width).reshape(rows, len(families), width, width - 1)

    def left(picked: Sequence[int]) -> Sequence[int]:
        return plan.families_of(plan.candidates([families[family][0] for family in picked]))

    of_each = MaskedKeys.of(gates.trio, largest.reshape(rows, len(families)))
    return [families[family][place] for family, place in peel_members(gates, of_each, lost, left)]
