"""Index of the largest of n shared keys, ties to the lower index, opening the index only
(`docs/design/mechanisms.md` 1.5).

All pairs p < q are compared at once: p beats q unless key_p - key_q is negative, so of equal keys the lower
index wins and exactly one candidate q has lost no comparison: its vector l_q of n - 1 loss bits is zero.
That, and nothing else, is opened:

    e_q = XOR_p l_q[p] & R_q[p],    R_q[p] fresh shared random words of 128 bits that nobody knows (`BitGates.zero_rows`)

Several picks (`peel`): k vectors of keys, the same scores with fresh noise each; pick i is opened on the
public list that the picks before leave. That the openings show the winners and nothing else: there, 1.5 and
1.6.

    rounds: those of the comparisons, 1 to open (per pick); 5 for 32-bit keys on replicated shares, whatever n is

Public bound, asserted by the caller: differences of keys on one list fit the ring with their sign. All
computing parties learn the indices; keys, margins, ties and every single comparison stay shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bits import B, on_parts
from mpc_protocols.engine.bitwise.bitslice import to_bits
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.by_shape import is_dry
from mpc_protocols.engine.interface import ComparingGates, K
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.mechanisms.selection import MAX_COMPARISONS, MAX_DRAWS, SelectionPlan, most_candidates

PAIRS = 1 << 20
"""Comparisons that go through the adder together: bounds the memory at about 100 MB; 1,448 candidates are one
batch."""
MAX_KEPT: Final = 1448
"""Candidates of which the positions of all pairs are kept for the next selection: 17 MB."""
_MAX_COMPARED_KEPT: Final = 1 << 14
"""Comparisons of which the places are kept: 400 kB."""
_LOSSES = 1 << 17  # losses tested at a time
NO_CANDIDATE = "A selection opened to no candidate: a peer did not follow the protocol; stop the run."


def check_size(plan: SelectionPlan, in_groups: bool = False) -> None:
    """Raise `StudyInvalid` for a selection of more comparisons or draws than any party computes. in_groups:
    whether the backend compares many candidates of several picks in groups, too, and not all pairs."""
    kept = len(plan.contenders)
    if kept > (MAX_DRAWS // plan.picks if in_groups else most_candidates(plan.picks)):
        pairs = 0 if in_groups or plan.picks == 1 else plan.picks * kept * (kept - 1) // 2
        raise StudyInvalid(
            f"A selection of {plan.picks} of {kept} candidates takes {pairs} comparisons and {plan.picks * kept} draws of "
            f"noise, at most {MAX_COMPARISONS} and {MAX_DRAWS} are allowed; choose a smaller workload."
        )


def argmax_rows(gates: ComparingGates[B, K], keys: K) -> NDArray[np.int64]:
    """Open the position of the largest of every row of keys of shape (rows, n), in the same rounds: int64 of
    shape (rows,).

    Positions are 0, and nothing is computed, for n = 1. Raises `ProtocolAborted` if a row opens to no
    candidate.
    """
    rows, count = keys.shape
    if count == 1:
        return np.zeros(rows, np.int64)
    return _open_winners(gates, losses(gates, keys), np.arange(count))


def peel(
    gates: ComparingGates[B, K],
    keys: K,
    candidates: Callable[[Sequence[int]], Sequence[int]],
    members: Sequence[int],
) -> list[int]:
    """Open one pick of every row of keys of shape (picks, n), each on what the earlier ones leave.

    members: the candidate of each column, ascending. candidates: the list of the next pick, given the picks
    before; the picks end with the rows or with an empty list. Rounds: those of the comparisons, and one for
    each pick on more than one candidate.
    """
    picks, count = keys.shape
    lost = losses(gates, keys) if count > 1 else None
    column = {member: place for place, member in enumerate(members)}
    picked: list[int] = []
    while len(picked) < picks and (left := candidates(picked)):
        places = np.array([column[member] for member in left])
        winner = 0
        if len(left) > 1:
            assert lost is not None
            row = slice(len(picked), len(picked) + 1)
            [winner] = _open_winners(gates, lost[row], places, count).tolist()
        picked.append(left[winner])
    return picked


def peel_members(
    gates: ComparingGates[B, K], keys: K, within: B, groups: Callable[[Sequence[int]], Sequence[int]]
) -> list[tuple[int, int]]:
    """As `peel`, of groups and a member of each: the group and the place in it, opened together.

    keys: of the largest of each group, shape (picks, count). within: [member lost to another one of its group], uint8
    of shape (picks, count, width, width - 1); exactly one member of a group lost to none. groups: the list of the next
    pick, given the groups picked before. Rounds: those of the comparisons, and one for each pick.
    """
    picks, count = keys.shape
    lost = losses(gates, keys) if count > 1 else within.reshape(picks, -1)[:, :0]
    picked: list[tuple[int, int]] = []
    while len(picked) < picks and (left := groups([group for group, _ in picked])):
        places, row = np.array(left), slice(len(picked), len(picked) + 1)
        [winner] = _open_winners(gates, lost[row], places, count, within[row, places]).tolist()
        group, place = divmod(winner, within.shape[2])
        picked.append((left[group], place))
    return picked


def losses(gates: ComparingGates[B, K], keys: K) -> B:
    """[key_p < key_q], p < q in ascending order, as single bits: uint8 of shape (rows, pairs)."""
    rows, count = keys.shape
    pairs = count * (count - 1) // 2
    total = rows * pairs
    batches = []
    for start in range(0, total, PAIRS):
        several = min(PAIRS, total - start)
        if is_dry(gates):
            row = left = right = blank(several, np.intp)
        else:
            row, left, right = _compared(count, start, several)
        negative = gates.less(keys[row, left], keys[row, right])
        if is_dry(gates):  # what is repeated may have content
            batches.append(on_parts(lambda _, several=several: blank(several, np.uint8), negative))
        else:
            batches.append(on_parts(partial(to_bits, cells=len(row), dtype=np.uint8), negative))
    together = batches[0] if len(batches) == 1 else on_parts(lambda *parts: np.concatenate(parts), *batches)
    return together.reshape(rows, pairs)


def _open_winners(
    gates: ComparingGates[B, K],
    lost: B,
    places: NDArray[np.intp],
    count: int | None = None,
    within: B | None = None,
) -> NDArray[np.int64]:
    """The positions, in `places`, of the candidates that lost to no other of them: one for each row of losses
    among `count`.

    within: what each of so many members of a candidate lost besides, (rows, places, width, losses); positions are
    then width times the candidate's, plus that of the member that lost nothing.
    """
    rows, several = lost.shape[0], len(places)
    width = 1 if within is None else within.shape[2]
    kept = duels(several) if count is None and several <= MAX_KEPT and not is_dry(gates) else None

    def vectors() -> Iterator[tuple[slice, B]]:
        step = max(1, _LOSSES // (rows * width * max(1, several - 1)))
        for start in range(0, several, step):
            block = slice(start, start + step)
            if is_dry(gates):
                shape = min(step, several - start), several - 1
                pairs, complements = blank(shape, np.intp), blank(shape, np.uint8)
            elif kept is None:
                pairs, complements = _duels_of(places, count or several, block)
            else:
                pairs, complements = kept[0][block], kept[1][block]
            bits = gates.xor_public(lost[:, pairs], complements)
            if within is not None:
                bits = on_parts(_with_members, bits, within[:, block])
            yield slice(width * block.start, width * block.stop), bits

    winners = gates.zero_rows((rows, several * width), vectors())
    if not winners.any(axis=1).all():
        raise ProtocolAborted(NO_CANDIDATE)
    index: NDArray[np.int64] = winners.argmax(axis=1)
    return index


def _with_members(of_candidate: NDArray[np.uint8], of_members: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Losses of each candidate followed by those of each of its members: (rows, candidates * width, all)."""
    rows, candidates, width, several = of_members.shape
    flat = of_members.reshape(rows, candidates * width, several)
    return np.concatenate((np.repeat(of_candidate, width, axis=1), flat), axis=2)


def loss_vectors(gates: ComparingGates[B, K], lost: B, count: int) -> B:
    """[Candidate lost to opponent] of all candidates: uint8 of shape (rows, count, count - 1). lost: as from
    `losses`."""
    pairs, complements = duels(count)
    return gates.xor_public(lost[:, pairs], complements)


def _pairs(count: int, which: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Both candidates of the pairs of these numbers, the lower first; pairs are numbered in ascending order."""
    first = np.arange(count - 1)
    starts = first * (2 * count - first - 1) // 2
    low = np.searchsorted(starts, which, side="right") - 1
    return low, which - starts[low] + low + 1


def _compared(count: int, start: int, several: int) -> tuple[NDArray[np.intp], ...]:
    """Row, and both candidates, of so many comparisons from one on, all pairs of a row after those of another."""
    if several <= _MAX_COMPARED_KEPT:
        return _compared_once(count, start, several)
    return _compared_once.__wrapped__(count, start, several)


@lru_cache(maxsize=16)
def _compared_once(count: int, start: int, several: int) -> tuple[NDArray[np.intp], ...]:
    """`_compared`, kept: a run asks again for as many candidates. Nobody may write into it."""
    row, which = np.divmod(np.arange(start, start + several), count * (count - 1) // 2)
    compared = row, *_pairs(count, which)
    for places in compared:
        places.flags.writeable = False
    return compared


@lru_cache(maxsize=2)
def duels(count: int) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """`_duels_of` all candidates, shape (count, count - 1). Kept: a run asks again for as many candidates or nearly."""
    return _duels_of(np.arange(count), count)


def _duels_of(
    places: NDArray[np.intp], count: int, block: slice = slice(None)
) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """For every candidate of a block of an ascending list and every other of the list: the number of their
    pair among all pairs of `count` candidates, and 1 if the pair's bit is the other's loss."""
    several = len(places)
    candidate = np.arange(several)[block, np.newaxis]
    other = np.arange(several - 1) + (np.arange(several - 1) >= candidate)
    mine, theirs = places[candidate], places[other]
    low, high = np.minimum(mine, theirs), np.maximum(mine, theirs)
    numbers = low * (2 * count - low - 1) // 2 + high - low - 1
    return numbers, (theirs < mine).astype(np.uint8)
