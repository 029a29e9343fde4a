"""Where the rows of a batch sit in blocks of one shape, so that what a library makes of a row does not depend
on other rows.

A library's kernel may round a row's numbers another way in a matrix of another shape, or at another place in
it. So all products of single rows are taken in blocks of `LANES` rows, empty seats being zeros, and a row's
place in its block, its lane, is a coin of its own. Rows that drew the same lane sit in one block after the
other. If one row goes, some that drew its lane move to another block, at the same place: every other row's
numbers stay, bit for bit (`docs/design/vertigan.md` 2).

Arrays are (blocks, LANES, numbers of a row). NumPy's matrix products and row products hand a kernel one
block, or one row, after the other; what is computed by element is rounded as IEEE 754 says, wherever it
stands, or called for each block. NumPy only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LANES: Final = 16
"""Rows of a block; a divisor of 256, so that a byte gives a uniform lane. Few leave fewer seats empty: a
fifth at 1,130 rows."""
BLOCKS: Final = 16
"""Blocks that are computed at a time, so that memory does not grow with the batch."""


def seated(lanes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(blocks, LANES) which row of the batch sits where, -1 at an empty seat. lanes: (n,) each row's, below
    LANES."""
    order = np.argsort(lanes, kind="stable")
    sorted_lanes = lanes[order]
    block = np.arange(len(lanes)) - np.searchsorted(sorted_lanes, sorted_lanes)
    found = np.full((int(block.max(initial=-1)) + 1, LANES), -1, np.int64)
    found[block, sorted_lanes] = order
    return found


def groups(seats: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The blocks, at most `BLOCKS` at a time."""
    for at in range(0, len(seats), BLOCKS):
        yield seats[at : at + BLOCKS]


def placed(values: NDArray[Any], seats: NDArray[np.int64]) -> NDArray[Any]:
    """(blocks, LANES, ...) the rows of these blocks, zeros at empty seats. values: (n, ...); seats: (blocks,
    LANES)."""
    taken = seats >= 0
    found = np.zeros((*seats.shape, *values.shape[1:]), values.dtype)
    found[taken] = values[seats[taken]]
    return found
