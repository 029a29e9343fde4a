"""The sides of a sum over the cells of one owner's joint, by an oblivious permutation
(`docs/design/vertical.md` 4).

O knows the cell of each row (or none); a vector of elements for each row is known to H and Q, and not to O.
Wanted: the sums of the vectors over the rows of each cell, in additive shares of O and Q. H sends the rows to
Q in an order that O and H have in common, masked by what they have in common; Q brings them into O's order of
cells by what O sends it, and sums blocks of rows.

    O    shuffle = OwnerShuffle(..)      sends shuffle.places to Q; its part is shuffle.finish(D)
    H    sends helped(..) to Q
    Q    D, part = worked(..)            sends D to O

Who learns what: nothing; proof there. Each engine says who plays O, H and Q, and moves the bytes. Threat
model: semi-honest; O and H, or O and Q, do not collude; Q refuses an order that names a place twice.
Assumption `prg`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.engine.noise.permutation import uniform_permutation
from mpc_protocols.engine.prg import Reader
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.vertical.layout import Layout
from mpc_protocols.vertical.records import ABSENT


class OwnerShuffle:
    """O's side of one shuffle between its two rounds."""

    def __init__(self, cells: NDArray[np.int64] | None, layout: Layout, stream: Reader, dtype: UInt) -> None:
        """stream: shared with H. Then `places` is for Q."""
        if cells is None or cells.shape != (layout.rows,):
            raise ValueError("The owner must bring the cell of every row.")
        self._layout = layout
        self._dtype = dtype
        self._arrangement, self._starts, self._last = arrange(cells, layout)
        shuffled, masks, shuffled_blocks, block_masks = _draw(stream, layout, dtype)
        delta = _inverse(shuffled)[self._arrangement]
        last_blocks = _inverse(shuffled_blocks)[self._last]
        self.places: NDArray[Any] = np.concatenate([delta, last_blocks]).astype(index_type(layout))
        self._rows: Elements = masks[delta]
        self._masks: Elements = block_masks[last_blocks]

    def add_own(self, weights: Elements) -> None:
        """Add the components of w that O knows, shape (rows, v): it sums these itself."""
        present = np.flatnonzero(self._arrangement < self._layout.rows)
        self._rows[present] += weights[self._arrangement[present]]

    def finish(self, prefixes: Elements) -> Elements:
        """O's part, from D."""
        end = (int(self._last[-1]) + 1) * self._layout.block
        part: Elements = np.add.reduceat(self._rows[:end], self._starts, axis=0, dtype=self._dtype)
        ends = prefixes[self._last] + self._masks
        part += ends
        part[1:] -= ends[:-1]
        return part


def arrange(
    cells: NDArray[np.int64], layout: Layout
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """pi of shape (L,); the first place of every cell; its last block J, strictly increasing. Local to O."""
    present = np.flatnonzero(cells != ABSENT)
    of = cells[present]
    order = np.argsort(of.astype(np.uint16) if layout.cells <= 1 << 16 else of, kind="stable")
    sizes = np.bincount(of, minlength=layout.cells)
    blocks = np.maximum(1, -(-sizes // layout.block))
    ends = np.cumsum(blocks)
    starts = (ends - blocks) * layout.block
    places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(len(of))
    arrangement = np.full(layout.places, ABSENT, np.int64)
    arrangement[places] = present[order]
    absent = np.flatnonzero(cells == ABSENT)
    arrangement[arrangement == ABSENT] = np.concatenate([np.arange(layout.rows, layout.places), absent])
    return arrangement, starts, ends - 1


def helped(
    layout: Layout, component: Elements, with_owner: Reader, with_worker: Reader, dtype: UInt
) -> Elements:
    """At H: what it sends to Q, (places + blocks, columns). component: (rows, columns), which Q holds, too."""
    shuffled, masks, shuffled_blocks, block_masks = _draw(with_owner, layout, dtype)
    rows = np.zeros_like(masks)
    rows[: layout.rows] = component
    random = with_worker.draw((layout.blocks, layout.columns), dtype)
    return np.concatenate([rows[shuffled] - masks, random[shuffled_blocks] - block_masks])


def worked(
    owner: int, layout: Layout, places: NDArray[np.int64], masked: Elements, with_helper: Reader
) -> tuple[Elements, Elements]:
    """At Q: D, which it sends to O, and its own part of the sums, from what O and H have sent.

    Raises `ProtocolAborted` for places of O that do not exist or come twice.
    """
    delta, last_blocks = places[: layout.places], places[layout.places :]
    if int(delta.max()) >= layout.places or int(last_blocks.max()) >= layout.blocks:
        raise ProtocolAborted(f"Party {owner} named a place beyond those of a shuffle; stop the run.")
    if _repeats(delta, layout.places) or _repeats(last_blocks, layout.blocks):
        raise ProtocolAborted(f"Party {owner} named a place of a shuffle twice; stop the run.")
    dtype = masked.dtype.type
    rows = masked[: layout.places][delta].reshape(layout.blocks, layout.block, layout.columns)
    prefixes = np.cumsum(rows.sum(axis=1, dtype=dtype), axis=0, dtype=dtype)
    random = with_helper.draw((layout.blocks, layout.columns), dtype)
    part: Elements = masked[layout.places :][last_blocks]
    part[1:] -= part[:-1].copy()
    return prefixes - random, part


def index_type(layout: Layout) -> UInt:
    """The type in which places travel."""
    return np.uint16 if layout.index_bytes == 2 else np.uint32


def _repeats(places: NDArray[np.int64], count: int) -> bool:
    """Whether one of the places 0 .. count - 1 is named twice: then a row, or a block of rows, would count
    twice."""
    named = np.zeros(count, np.bool_)
    named[places] = True
    return int(np.count_nonzero(named)) < len(places)


def _draw(
    stream: Reader, layout: Layout, dtype: UInt
) -> tuple[NDArray[np.int64], Elements, NDArray[np.int64], Elements]:
    """sigma, s, sigma', s' from the stream of O and H."""
    drawn: list[Any] = []
    for length in (layout.places, layout.blocks):
        drawn.append(np.arange(length) if stream.is_blank else uniform_permutation(length, stream.fill))
        drawn.append(stream.draw((length, layout.columns), dtype))
    return drawn[0], drawn[1], drawn[2], drawn[3]


def _inverse(order: NDArray[np.int64]) -> NDArray[np.int64]:
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse
