"""Sums of |x - c| over cells that are compared with one c after the other: asked for once, answered with tables
(`docs/design/pair.md` 1).

One selection after the other compares the same cells with other answers of the model. Of x = x_0 + x_1 one party's part
goes into the signs as it is, for every selection the same number, and c is subtracted from the other's (both know it). So
the first party asks for the fields of its part once, and both keep what serves the next selections (`asked_once`).
Of many new cells every second one of a marginal is asked for by party 0, the others by party 1: both send the same.

A cell is asked for when it is first compared, in the round that makes the other transfers. Where a few are new, the
leader asks for all of them: it knows the model's answers first, so its question comes with them, its tables leave at once, and
no round is left (`KeptCells._ask`). Everything is dropped when
its uses are used up, when numbers have another width k, or when too many cells would be kept. Which cells are compared is
public (c is not 0 there), so both parties do all this alike.

Nothing is opened. Public bounds, asserted by the caller, as in `l1_distance`. Threat model: `ot_extension`. Cost per
compared cell and party, 18 planes in a ring of 32 bits: 25 bytes, besides 28 when it is asked for, once in `USES` times;
4 rounds for the signs (ripple), where `l1_distance` has 5. Memory: 4 `USES` bytes a cell and field, some 200.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits.conversion import masked_numbers, masked_numbers_demand
from mpc_protocols.backends.pair.circuits.sign import carry_fields, joined_demand, joined_fields
from mpc_protocols.backends.pair.transfers.asked_once import USES, ask, look_up, no_masks
from mpc_protocols.backends.pair.transfers.ot_extension import message_bytes
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.engine.arrays import sum_segments
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bitslice import Elements, to_planes, words_for
from mpc_protocols.engine.latency import FAR
from mpc_protocols.public.answers import Answers, CellRange, DealerLayout

MAX_KEPT = 1 << 18
"""Most cells that are kept, and of a group: 53 MB of numbers of 18 planes, 103 MB of numbers of 32."""
PIECE = 1 << 16
"""Cells asked for in a round: bounds the memory meanwhile."""
ASKING_BYTES = 80
"""Memory that a party takes meanwhile for a bit of a cell of a piece, measured: 1,400 bytes a cell of 18 planes, 2,500 of 32."""

Places = NDArray[np.intp]


class KeptCells:
    """What one party keeps of the cells that were compared. Secret, without a printed form."""

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers
        self._ahead = Demand()
        """What was foreseen for the next selection."""
        self.most_bytes = 0
        """The most memory that this has taken so far, by what was kept and asked for."""
        self._begin(planes=2)

    def _begin(self, planes: int) -> None:
        """Keep nothing; from now on for numbers of so many planes."""
        self._planes, self._fields, self._use = planes, carry_fields(planes - 1), 0
        self._own, self._others = no_masks(self._fields), no_masks(self._fields)
        self._columns: dict[CellRange, slice] = {}
        self._is_own = np.empty(0, np.bool_)  # whether this party asks for a cell
        self._places: Places = np.empty(0, np.intp)  # among its masks, or the peer's; -1: not asked for yet

    @staticmethod
    def takes(layout: DealerLayout) -> bool:
        """Whether the cells of a group are kept: not too many, and none twice, for none is looked up twice in a use."""
        return layout.size <= MAX_KEPT and len(set(layout.ranges)) == len(layout.ranges)

    def l1_sums(
        self,
        answers: Answers,
        cells: Elements,
        lengths: NDArray[np.int64],
        planes: int,
        adder: Adder,
        leads: bool,
    ) -> Elements:
        """Shares of the sums of |x - c| over the cells of a group whose c is not 0, lengths[q] of candidate q.

        answers: of a group that it `takes`. cells: this party's parts of all cells, the same in each call until a new
        `KeptCells`. planes, adder: as of `l1_distance.l1_sums`. leads: whether this party brought the answers.
        """
        compared = answers.nonzero
        columns, x = self._find(answers.layout, planes)[compared], cells[compared]
        after = joined_demand(planes - 1, words_for(len(columns)), adder) + masked_numbers_demand(
            len(columns)
        )
        self._ask(columns, x, after, leads)
        own, places = self._is_own[columns], self._places[columns]
        x[~own] -= answers.cells[compared][~own]
        of_fields = look_up(
            self._transfers,
            self._fields,
            (x[own], self._own[self._use][:, places[own]]),
            (x[~own], self._others[self._use][:, places[~own]]),
        )
        self._use += 1
        found = []
        for field, (read, offered) in zip(self._fields, of_fields, strict=True):
            values = np.empty_like(x, np.uint32)
            values[own], values[~own] = read, offered
            found.append(to_planes(values, field.table.outputs))
        negative = to_planes(x, planes)[planes - 1] ^ joined_fields(self._transfers, found, adder)
        twice = masked_numbers(self._transfers, negative, x)
        twice <<= x.dtype.type(1)
        if self._transfers.link.latency_bytes >= FAR:
            self._expect(after)
        return sum_segments(x - twice, lengths)

    def _find(self, layout: DealerLayout, planes: int) -> Places:
        """The columns of a group's cells."""
        new = [cells for cells in layout.ranges if cells not in self._columns]
        added = sum(cells.cells for cells in new)
        if planes != self._planes or self._use == USES or len(self._places) + added > MAX_KEPT:
            self._begin(planes)
            new = list(layout.ranges)
        own, stop = [self._is_own], len(self._places)
        for cells in new:
            self._columns[cells] = slice(stop, stop + cells.cells)
            stop += cells.cells
            own.append((np.arange(cells.start, cells.stop) + cells.handle) % 2 == self._transfers.link.me)
        self._is_own = np.concatenate(own)
        self._places = np.concatenate((self._places, np.full(stop - len(self._places), -1)))
        pieces = [np.arange(of.start, of.stop) for of in map(self._columns.__getitem__, layout.ranges)]
        return np.concatenate(pieces)

    def _expect(self, after: Demand) -> None:
        """Foresee as much as this selection took for the next one: it is made while keys are compared, picks opened and
        measured, and little travels."""
        more = after.beyond(self._ahead)
        self._transfers.foresee(more)
        self._ahead += more

    def _ask(self, columns: Places, x: Elements, after: Demand, leads: bool) -> None:
        """Ask for those of these cells that were not asked for yet, and make the transfers for what is computed with all
        of them, beside the lookups: no round if all were asked for or the leader asks alone; else a round, and one for
        each further PIECE. x: this party's parts. after: those transfers."""
        self._transfers.foresee(after.beyond(self._ahead))
        self._transfers.hasten(after)
        self._ahead = self._ahead.beyond(after)
        lacking = self._places[columns] < 0
        columns, x = columns[lacking], x[lacking]
        if self._asked_alone(len(columns)):
            self._is_own[columns] = leads
        for start in range(0, len(columns), PIECE):
            self._ask_piece(columns[start : start + PIECE], x[start : start + PIECE])

    def _asked_alone(self, cells: int) -> bool:
        """Whether one party asks for so many new cells: what it sends instead of the other takes less than a round."""
        halved = message_bytes((self._planes - 1) * words_for(cells), are_given=True) // 2
        return cells <= PIECE and halved <= self._transfers.link.latency_bytes

    def _ask_piece(self, columns: Places, x: Elements) -> None:
        own = self._is_own[columns]
        self.most_bytes = max(self.most_bytes, self._bytes(asked=len(columns)))
        counts = int(np.count_nonzero(own)), int(np.count_nonzero(~own))
        planes = to_planes(x[own], self._planes - 1)
        asked = ask(self._transfers, self._fields, planes, counts)
        self._places[columns[own]] = self._own.shape[2] + np.arange(counts[0])
        self._places[columns[~own]] = self._others.shape[2] + np.arange(counts[1])
        self._own, self._others = (
            np.concatenate(pair, axis=2) for pair in zip((self._own, self._others), asked, strict=True)
        )

    def _bytes(self, asked: int) -> int:
        """Of what is kept together with cells that are being asked for."""
        cells: int = self._own.shape[2] + self._others.shape[2] + asked
        return 4 * USES * len(self._fields) * cells + ASKING_BYTES * (self._planes - 1) * asked
