"""Sums over the cells of one owner's joint, without a column per cell: C^T w by an oblivious permutation (DESIGN 6, wide parts).

One computing party O knows, for each row, which of `cells` cells it is in (or none); w, of shape (n, v), is shared. Wanted: the
sums of w over the rows of each cell, shared. A one-hot matrix C would cost n * cells elements; here about n (v + 1) travel.

O knows two components of w and sums those itself. What remains is rho, the third, which BOTH others know: Q and H. Let B be a
block length, M = cells + ceil(n / B) blocks, L = B M places; rows n .. L - 1 are zeros. O orders the places so that every cell
has blocks of its own, at least one, cells one after another: a cell of k rows needs max(1, ceil(k / B)) <= 1 + k / B, so M are
enough. What they lack of rows is filled up with zeros, of which there are at least B cells; rows in no cell come last. pi[p]
is the row at place p, J[c] the last block of cell c.

    keys O-H    a uniform permutation sigma of L, masks s (L, v); sigma' of M, masks s' (M, v)
    keys Q-H    r, uniform (M, v)
    O -> Q      delta = sigma^-1 pi          and delta' = sigma'^-1 J               L + cells indices
    H -> Q      rho[sigma] - s               and r[sigma'] - s'                     (L + M) v elements
    Q           t = (rho[sigma] - s)[delta] = rho[pi] - s[delta]; sums t over each block; P = prefix sums over the blocks
    Q -> O      D = P - r                                                           M v elements
    Q           t' = (r[sigma'] - s')[delta'] = r[J] - s'[delta'];   its part: t'[c] - t'[c-1]
    O           its part: what it summed itself + sum of s[delta] over the cell's places
                          + (D[J] + s'[delta'])[c] - (D[J] + s'[delta'])[c-1]

The parts of cell c add up to P[J[c]] - P[J[c-1]] + sum s[delta] = sum of rho over the cell. 2 rounds. B is chosen from public
sizes so that M is small beside L: the first of the two shuffles carries the rows, the second next to nothing.

What each receives is uniform, whatever the data (semi-honest, one of three corrupted; assumption `prg`):
    Q       lacks the key O-H: sigma is a uniform permutation to it and pi fixed, so delta is uniform; J has no element twice, so
            delta' is a uniform injection; the arrays are masked by s and s', used once, independent of sigma and sigma'
    O       lacks the key Q-H: D is masked by r, which is otherwise seen only under s'
    H       receives nothing
Permutations are exactly uniform: drawn by sorting random keys, and again if two keys agree (both holders see that alike).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.replicated.bitslice import Elements
from mpc_protocols.replicated.prg import Reader
from mpc_protocols.replicated.trio import Trio, UInt
from mpc_protocols.vertical.layout import Layout
from mpc_protocols.vertical.matrices import Matrix
from mpc_protocols.vertical.records import ABSENT


@dataclass(frozen=True)
class Job:
    """One sum over cells. owner: O. helper: H, the third party is Q. cells: at O the cell of each row (ABSENT: none)."""

    owner: int
    helper: int
    layout: Layout
    weights: Matrix
    cells: NDArray[np.int64] | None

    def __post_init__(self) -> None:
        if {self.owner, self.helper} - {0, 1, 2} or self.owner == self.helper:
            raise ValueError(f"O and H are two of the parties 0, 1, 2, got {self.owner} and {self.helper}")
        if self.weights.shape != (self.layout.rows, self.layout.columns):
            raise ValueError(f"weights of shape {self.weights.shape} do not fit {self.layout}")

    @property
    def worker(self) -> int:
        """Q."""
        return 3 - self.owner - self.helper


def sums_by_cell(trio: Trio, jobs: Sequence[Job], dtype: UInt) -> list[Elements]:
    """This party's part of each job's sums, shape (cells, v) (`ring.reshare` makes a sharing of it). 2 rounds for all together.

    Raises `ProtocolAborted` for places that do not exist.
    """
    parts: list[Elements] = []
    unfinished: list[_Owner | None] = []
    operations = [(trio.operation(), trio.operation()) for _ in jobs]
    for job, (first, second) in zip(jobs, operations, strict=True):
        owner: _Owner | None = None
        if trio.me == job.owner:
            owner = _Owner(job, _between(trio, job.helper, first), dtype)
            trio.send(job.worker, owner.places)
        elif trio.me == job.helper:
            trio.send(job.worker, _helped(job, _third(trio, job), _between(trio, job.owner, first),
                                          _between(trio, job.worker, second), dtype))
        unfinished.append(owner)
    trio.turn()
    for job, (_, second) in zip(jobs, operations, strict=True):
        part = np.zeros((job.layout.cells, job.layout.columns), dtype)
        if trio.me == job.worker:
            _work(trio, job, _between(trio, job.helper, second), part)
        parts.append(part)
    trio.turn()
    for job, state, part in zip(jobs, unfinished, parts, strict=True):
        if state is not None:
            part += state.finish(trio.receive(job.worker, (job.layout.blocks, job.layout.columns), dtype))
    return parts


class _Owner:
    """O's side of a job between its two rounds."""

    def __init__(self, job: Job, stream: Reader, dtype: UInt) -> None:
        if job.cells is None or job.cells.shape != (job.layout.rows,):
            raise ValueError("the owner must bring the cell of every row")
        layout = job.layout
        arrangement, starts, self._last = arrange(job.cells, layout)
        shuffled, masks, shuffled_blocks, block_masks = _draw(stream, layout, dtype)
        delta = _inverse(shuffled)[arrangement]
        chosen = _inverse(shuffled_blocks)[self._last]
        self.places: NDArray[Any] = np.concatenate([delta, chosen]).astype(index_type(layout))
        masks = masks[delta]
        held = np.flatnonzero(arrangement < layout.rows)
        masks[held] += job.weights.both(dtype)[arrangement[held]]
        used = (int(self._last[-1]) + 1) * layout.block
        self._sums = np.add.reduceat(masks[:used], starts, axis=0, dtype=dtype)
        self._masks = block_masks[chosen]

    def finish(self, prefixes: Elements) -> Elements:
        """From D, O's part."""
        ends = prefixes[self._last] + self._masks
        part: Elements = self._sums + ends
        part[1:] -= ends[:-1]
        return part


def arrange(cells: NDArray[np.int64], layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """pi of shape (L,); the first place of every cell; its last block J, strictly increasing. Local to O."""
    held = np.flatnonzero(cells != ABSENT)
    of = cells[held]
    order = np.argsort(of.astype(np.uint16) if layout.cells <= 1 << 16 else of, kind="stable")
    sizes = np.bincount(of, minlength=layout.cells)
    blocks = np.maximum(1, -(-sizes // layout.block))
    ends = np.cumsum(blocks)
    starts = (ends - blocks) * layout.block
    places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(len(of))
    arrangement = np.full(layout.places, ABSENT, np.int64)
    arrangement[places] = held[order]
    absent = np.flatnonzero(cells == ABSENT)
    arrangement[arrangement == ABSENT] = np.concatenate([np.arange(layout.rows, layout.places), absent])
    return arrangement, starts, ends - 1


def _helped(job: Job, third: Elements, with_owner: Reader, with_worker: Reader, dtype: UInt) -> Elements:
    """What H sends to Q."""
    layout = job.layout
    shuffled, masks, shuffled_blocks, block_masks = _draw(with_owner, layout, dtype)
    rows = np.zeros((layout.places, layout.columns), dtype)
    rows[:layout.rows] = third
    random = np.empty((layout.blocks, layout.columns), dtype)
    with_worker.fill(random)
    return np.concatenate([rows[shuffled] - masks, random[shuffled_blocks] - block_masks])


def _work(trio: Trio, job: Job, with_helper: Reader, part: Elements) -> None:
    """Q's round: D to O, its own part into `part`."""
    layout = job.layout
    places = trio.receive(job.owner, layout.places + layout.cells, index_type(layout)).astype(np.int64)
    masked = trio.receive(job.helper, (layout.places + layout.blocks, layout.columns), part.dtype.type)
    delta, chosen = places[:layout.places], places[layout.places:]
    if int(delta.max()) >= layout.places or int(chosen.max()) >= layout.blocks:
        raise ProtocolAborted(f"Party {job.owner} named a place beyond the {layout.places} of a shuffle; stop the run.")
    rows = masked[:layout.places][delta].reshape(layout.blocks, layout.block, layout.columns)
    prefixes = np.cumsum(rows.sum(axis=1, dtype=part.dtype), axis=0, dtype=part.dtype)
    random = np.empty((layout.blocks, layout.columns), part.dtype)
    with_helper.fill(random)
    trio.send(job.owner, prefixes - random)
    ends = masked[layout.places:][chosen]
    part += ends
    part[1:] -= ends[:-1]


def _draw(stream: Reader, layout: Layout, dtype: UInt) -> tuple[NDArray[np.int64], Elements, NDArray[np.int64], Elements]:
    """sigma, s, sigma', s' from the stream of O and H."""
    drawn: list[Any] = []
    for length in (layout.places, layout.blocks):
        masks = np.empty((length, layout.columns), dtype)
        drawn.append(shuffle(stream, length))
        stream.fill(masks)
        drawn.append(masks)
    return drawn[0], drawn[1], drawn[2], drawn[3]


def index_type(layout: Layout) -> UInt:
    """The type in which places travel."""
    return np.uint16 if layout.index_bytes == 2 else np.uint32


def shuffle(stream: Reader, length: int) -> NDArray[np.int64]:
    """A uniform permutation of 0 .. length - 1: random keys of 64 bits less the index's, sorted; drawn again while two agree."""
    bits = np.uint64(max(1, (length - 1).bit_length()))
    low = np.uint64((1 << int(bits)) - 1)
    keys = np.empty(length, np.uint64)
    while True:
        stream.fill(keys)
        keys &= ~low
        keys |= np.arange(length, dtype=np.uint64)
        keys.sort()
        high = keys >> bits
        if not (high[1:] == high[:-1]).any():
            return (keys & low).astype(np.int64)


def _inverse(permutation: NDArray[np.int64]) -> NDArray[np.int64]:
    inverse = np.empty_like(permutation)
    inverse[permutation] = np.arange(len(permutation))
    return inverse


def _third(trio: Trio, job: Job) -> Elements:
    """The component that O lacks: held by the party on O's right as its next, by the one on O's left as its own."""
    third = job.weights.next if trio.me == (job.owner + 1) % 3 else job.weights.own
    if third is None:
        raise ValueError("weights that O knows wholly need no protocol")
    return third


def _between(trio: Trio, peer: int, operation: int) -> Reader:
    """The operation's stream that this party shares with `peer`."""
    return trio.own_reader(operation) if peer == trio.left else trio.next_reader(operation)
