"""One owner's own records, block by block of the common table's rows: one-hot columns, and cells of a joint.

Local and private: nothing here knows a wire. The records are sorted by their row once, in their compact
codes; a block of rows is then a slice of them, and all that grows with the number of rows beside those codes
is one index per record. A row that the owner does not hold is a row of zeros in every one-hot block, or
`ABSENT` among the cells: that is what makes products over owners count the intersection
(`docs/design/vertical.md` 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.functionality import Clique, Level
from mpc_protocols.vertical.partition import OwnRows

ABSENT: Final = -1
_PIECE = 1 << 16
"""Records counted at a time."""


class CodedRows:
    """An owner's records in the order of the common table."""

    def __init__(self, own: OwnRows, sizes: Mapping[str, int]) -> None:
        """The data must have passed `OwnRows.check`."""
        order = np.argsort(own.rows, kind="stable")
        self._rows = own.rows[order]
        self._codes: dict[str, NDArray[Any]] = {name: codes[order] for name, codes in own.codes.items()}
        self._sizes = sizes

    def __len__(self) -> int:
        return len(self._rows)

    def declare(self, levels: Sequence[Level]) -> None:
        """Make coarser versions of columns known: those of the own ones become columns of these records."""
        for level in levels:
            if level.column in self._codes:
                bins = np.array(level.bins, np.min_scalar_type(level.size - 1))
                self._codes[level.name] = bins[self._codes[level.column]]
        self._sizes = {**self._sizes, **{level.name: level.size for level in levels}}

    def one_hot(self, start: int, stop: int, joints: Sequence[Clique], dtype: UInt) -> Elements:
        """Rows start .. stop - 1, the one-hot columns of the joints side by side: an empty joint is the
        membership itself."""
        records = self._records(start, stop)
        places = self._rows[records] - start
        widths = [self._width(joint) for joint in joints]
        block = np.zeros((stop - start, sum(widths)), dtype)
        flat = block.reshape(-1)
        first = 0
        for joint, width in zip(joints, widths, strict=True):
            flat[places * block.shape[1] + first + self._cells(joint, records)] = 1
            first += width
        return block

    def cells(self, start: int, stop: int, joint: Clique) -> NDArray[np.int64]:
        """Rows start .. stop - 1: the cell of the joint that each is in, ABSENT where the owner does not hold
        the row."""
        records = self._records(start, stop)
        cells = np.full(stop - start, ABSENT, np.int64)
        cells[self._rows[records] - start] = self._cells(joint, records)
        return cells

    def counts(self, joint: Clique) -> NDArray[np.int64]:
        """The owner's own histogram of a joint, over all its records."""
        counts = np.zeros(self._width(joint), np.int64)
        for first in range(0, len(self), _PIECE):
            counts += np.bincount(
                self._cells(joint, slice(first, min(first + _PIECE, len(self)))), minlength=len(counts)
            )
        return counts

    def _records(self, start: int, stop: int) -> slice:
        first, end = np.searchsorted(self._rows, (start, stop))
        return slice(int(first), int(end))

    def _cells(self, joint: Clique, records: slice) -> NDArray[np.int64]:
        cells = np.zeros(records.stop - records.start, np.int64)
        for name in joint:
            cells *= self._sizes[name]
            cells += self._codes[name][records]
        return cells

    def _width(self, joint: Clique) -> int:
        return int(np.prod([self._sizes[name] for name in joint], dtype=np.int64))
