"""Replicated arithmetic as the shared code of the engine uses it (`engine.interface.Gates`), and the arg max of many candidates.

Of many candidates (`in_groups`: where bytes outweigh rounds, from some 450 on one machine), groups of GROUP first find their
winners, on shares: an AND over the opponents, the one-hot vector as ring elements, its dot product with the keys; the groups'
winners are compared as in `engine.argmax`, and of the winning group the place is opened. 17 rounds more than there, whatever n
is; about 500 bytes a candidate. The group's number and the place are the index: nothing else is opened.

    arg max, all pairs: 8 rounds for 32-bit keys; 12 bytes a pair and party (P0: 16), and 32 a candidate

Threat model, masking and assumption: `trio`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.adders import adder_for, merge_schedule
from mpc_protocols.engine.bitwise.argmax import NO_CANDIDATE, PAIRS, argmax_rows, loss_vectors, losses, peel
from mpc_protocols.engine.bitwise.bits import concatenate
from mpc_protocols.engine.bitwise.bitslice import UInt, from_bits, words_for
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.replicated.sharing import conversion, ring
from mpc_protocols.replicated.sharing.bit_gates import TrioBitGates
from mpc_protocols.replicated.sharing.boolean import BitShare
from mpc_protocols.replicated.sharing.ring import RingShare
from mpc_protocols.replicated.sharing.sign import signs

GROUP = 64
"""Candidates of a group, a power of two."""
ONE_BY_ONE_ROUNDS, ONE_BY_ONE_BYTES = 23, 500
"""What a pick of its own costs among many candidates, about; bytes are a candidate's."""


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

    def negative(self, x: RingShare) -> BitShare:
        """See `engine.interface.Gates`; the cheaper adder."""
        planes = 8 * np.dtype(x.dtype).itemsize
        return signs(self.trio, x, planes, adder_for(planes - 1, words_for(len(x)), self.trio.latency_bytes))

    def less(self, left: RingShare, right: RingShare) -> BitShare:
        planes = 8 * np.dtype(left.dtype).itemsize
        return signs(self.trio, left - right, planes, "tree")


def in_groups(count: int, element: int, latency_bytes: int) -> bool:
    """Whether so many keys of `element` bytes are compared in groups: the least rounds * latency_bytes + bytes, in one batch."""
    steps = [8 * element - 1, *merge_schedule(8 * element - 1)]

    def comparisons(pairs: int) -> int:
        return -(-pairs // PAIRS) * (1 + len(steps)) * latency_bytes + 8 * sum(steps) * words_for(pairs)

    groups = -(-count // GROUP)
    grouped = comparisons(groups * (GROUP * (GROUP - 1) // 2)) + comparisons(groups * (groups - 1) // 2)
    pairs = count * (count - 1) // 2
    return pairs > PAIRS or comparisons(pairs) > grouped + (GROUP.bit_length() + 3) * latency_bytes


def argmax(gates: TrioGates, keys: RingShare) -> int:
    """Open the position of the largest of the shared keys, shape (n,), read as signed ring elements; 0 for n = 1."""
    if in_groups(len(keys), np.dtype(keys.dtype).itemsize, gates.latency_bytes):
        return _argmax_in_groups(gates, keys)
    return int(argmax_rows(gates, keys.reshape(1, -1))[0])


PicksForm = Literal["at once", "runs", "one by one"]


@dataclass(frozen=True)
class PickSizes:
    """Public sizes of several picks. lists: on how many candidates each was made, 0 if it was not made. runs: members of each run
    of contenders (`SelectionPlan.runs`). lists_of_runs: of how many runs there are candidates on each list."""

    lists: tuple[int, ...]
    runs: tuple[int, ...]
    lists_of_runs: tuple[int, ...]

    @classmethod
    def of(cls, plan: SelectionPlan, lists: Sequence[Sequence[int]]) -> PickSizes:
        """lists: the candidates on which each pick was made."""
        return cls(
            tuple(map(len, lists)),
            tuple(map(len, plan.runs)),
            tuple(len(plan.runs_of(candidates)) for candidates in lists),
        )


def picks_form(picks: int, count: int, runs: Sequence[int], element: int, latency_bytes: int) -> PicksForm:
    """How so many picks of `count` keys are made: the least rounds * latency_bytes + bytes, alike at all parties.

    runs: members of each run of candidates that leave together.
    """
    steps = [8 * element - 1, *merge_schedule(8 * element - 1)]

    def comparisons(pairs: int) -> int:
        return -(-pairs // PAIRS) * (1 + len(steps)) * latency_bytes + 8 * sum(steps) * words_for(pairs)

    cost: dict[PicksForm, int] = {"at once": comparisons(picks * (count * (count - 1) // 2))}
    width, several = max(runs), len(runs)
    if width > 1:
        members = picks * several * width
        cost["runs"] = (
            comparisons(members * (width - 1) // 2)
            + comparisons(picks * (several * (several - 1) // 2))
            + ((width - 1).bit_length() + 4) * latency_bytes
            + 2 * element * members
        )
    if in_groups(count, element, latency_bytes):
        cost["one by one"] = picks * (ONE_BY_ONE_ROUNDS * latency_bytes + ONE_BY_ONE_BYTES * count)
    return min(cost, key=lambda form: cost[form])


def pick_several(gates: TrioGates, keys: RingShare, plan: SelectionPlan) -> list[int]:
    """As `engine.bitwise.argmax.peel`, of the plan's contenders, in the form of `picks_form`.

    Of many candidates each pick is an arg max of its own, on the list that the earlier ones leave: bytes grow with candidates and
    no longer with their pairs, rounds with the picks.
    """
    rows, count = keys.shape
    form = picks_form(
        rows, count, list(map(len, plan.runs)), np.dtype(keys.dtype).itemsize, gates.latency_bytes
    )
    if form == "at once":
        return peel(gates, keys, plan.candidates, plan.contenders)
    if form == "runs":
        return pick_by_runs(gates, keys, plan)
    column = {member: place for place, member in enumerate(plan.contenders)}
    picked: list[int] = []
    while len(picked) < rows and (left := plan.candidates(picked)):
        places = np.array([column[member] for member in left])
        picked.append(left[argmax(gates, keys[len(picked)][places])])
    return picked


def pick_by_runs(gates: TrioGates, keys: RingShare, plan: SelectionPlan) -> list[int]:
    """Picks where candidates leave in runs: the largest of each run first, on shares, for all picks at once; then `peel` of the
    runs, and the place in the run of every pick, opened together (`docs/design/mechanisms.md` 1.6). Shorter runs are filled with
    their last member, whose copies lose every tie."""
    rows, _ = keys.shape
    runs, width = plan.runs, max(map(len, plan.runs))
    column = {member: place for place, member in enumerate(plan.contenders)}
    places = np.array([[column[run[min(place, len(run) - 1)]] for place in range(width)] for run in runs])
    members = keys[:, places]
    lost = loss_vectors(gates, losses(gates, members.reshape(rows * len(runs), width)), width)
    flags = _winners(gates, lost, keys.dtype).reshape(rows, len(runs), width)
    largest = ring.dot(gates.trio, flags, members)

    def left(picked: Sequence[int]) -> Sequence[int]:
        return plan.runs_of(plan.candidates([runs[run][0] for run in picked]))

    picked = peel(gates, largest, left, range(len(runs)))
    at = np.arange(len(picked)) * len(runs) + np.array(picked)
    won = gates.zero_rows((len(picked), width), [(slice(None), lost[at])])
    if not won.any(axis=1).all():
        raise ProtocolAborted(NO_CANDIDATE)
    return [runs[run][place] for run, place in zip(picked, won.argmax(axis=1).tolist(), strict=True)]


def _winners(gates: TrioGates, lost: BitShare, dtype: UInt) -> RingShare:
    """1 for every candidate without a loss, 0 for others, group by group. lost: uint8 of shape (groups, width, width - 1)."""
    groups, width, opponents = lost.shape
    planes = [from_bits(np.moveaxis(bits, 2, 0).reshape(opponents, -1)) for bits in lost.parts]
    standing = gates.complement(BitShare(*planes))
    while len(standing) > 1:
        half = len(standing) // 2
        merged = gates.and_bits(standing[:half], standing[half : 2 * half])
        standing = merged if len(standing) % 2 == 0 else concatenate([merged, standing[2 * half :]])
    return gates.weighted_sum(standing, (1,), groups * width, dtype)


def _argmax_in_groups(gates: TrioGates, keys: RingShare) -> int:
    """The winner of the groups' winners; the last group is filled with its last candidate, whose copies lose every tie."""
    groups = -(-len(keys) // GROUP)
    members = keys[np.minimum(np.arange(groups * GROUP), len(keys) - 1)]
    lost = loss_vectors(gates, losses(gates, members.reshape(groups, GROUP)), GROUP)
    flags = _winners(gates, lost, keys.dtype).reshape(groups, GROUP)
    winners = ring.dot(gates.trio, flags, members.reshape(groups, GROUP))
    group = int(argmax_rows(gates, winners.reshape(1, -1))[0])
    places = flags[group].scaled(np.arange(GROUP))
    place = ring.open_ring(gates.trio, ring.segment_sums(places, np.array([GROUP])))
    position = group * GROUP + int(place[0])
    if position >= len(keys):
        raise ProtocolAborted(NO_CANDIDATE)
    return position
