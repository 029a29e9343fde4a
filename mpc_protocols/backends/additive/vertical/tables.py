"""Shares of all tables of a plan, modulo 2^32 at parties 0 and 1 (`docs/design/additive.md` 5, with the
proof).

The two owners hold one-hot matrices X and Y of the common table's rows, the third computing party deals. A is
a mask of X that its owner and the dealer draw from what they have in common, B of Y:

    first -> second     E = X - A                       second -> first    F = Y - B                 1 round a block of rows
    dealer -> first     A^T B - C                       C a mask that the second owner draws, too
    first               X^T F + (A^T B - C)             second             E^T B + C                 which add up to X^T Y

An order by a joint of O sums the rows of w = G + H by cell, where G is what O has received under the mask H
of the other owner: G by itself, H with the dealer as helper and the other owner as worker (`ordered_sums`), 2
rounds a batch.

If the second owner is party 2, which holds no shares, it hands its part over to the dealer, under a mask that
the first one adds.

Who learns what: nothing; all that is received is uniform. The dealer receives nothing, but where it is handed
shares. Threat model: semi-honest, no two of the three collude. Assumption: AES (`masks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.additive.circuits.gates import AdditiveGates
from mpc_protocols.backends.additive.dealing.masks import Masks
from mpc_protocols.backends.additive.link import DEALER
from mpc_protocols.backends.additive.vertical.plan import Piece, TablesPlan, source_of
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.blas import transposed_product
from mpc_protocols.vertical.ordered_sums import OwnerShuffle, helped, index_type, worked
from mpc_protocols.vertical.records import ABSENT, CodedRows


class TableSharing:
    """One computing party's end of all tables of a run."""

    def __init__(self, gates: AdditiveGates, records: CodedRows | None) -> None:
        """records: this party's own, None at the dealer."""
        self._gates, self._link, self._records = gates, gates.link, records
        self._masks = {
            other: Masks(self._link.wire, other, f"{self._link.stream}/tables")
            for other in range(DEALER + 1)
            if other != self._link.me
        }

    def share(self, plan: TablesPlan) -> Elements:
        """The cells of all tables and histograms, in the plan's order; zeros at party 2. Raises
        `ProtocolAborted`."""
        total: Elements = np.zeros(plan.cells, np.uint32)
        for stretch in plan.stretches():
            part = np.zeros(plan.cells, plan.ring)
            if self._records is None:
                self._deal(plan, stretch)
            else:
                _Owner(self, plan, part).count(stretch)
            part = self._handed_over(plan, part)
            total += part if plan.ring is np.uint32 else self._gates.widened(part)
        return total

    def _deal(self, plan: TablesPlan, stretch: range) -> None:
        """At the dealer, who receives nothing."""
        masks = [self._masks[owner] for owner in plan.owners]
        products = np.zeros(plan.dealt_cells, plan.ring)
        for block in plan.blocks(stretch):
            drawn = [masks[side].elements((len(block), plan.breadth(side)), plan.ring) for side in (0, 1)]
            for batch in plan.batches(len(block)):
                for piece in batch:
                    side, layout = piece.order.side, piece.layout
                    weights = weights_of(plan, piece, drawn[1 - side])
                    readers = masks[side].reader(), masks[1 - side].reader()
                    self._link.send(plan.owners[1 - side], helped(layout, weights, *readers, plan.ring))
            add_products(plan, products, *drawn)
        if len(products):
            self._link.send(plan.owners[0], products - masks[1].elements(products.shape, plan.ring))

    def _handed_over(self, plan: TablesPlan, part: Elements) -> Elements:
        """Parts of the two owners as shares of parties 0 and 1."""
        first, second = plan.owners
        me = self._link.me
        if second != DEALER:
            return part
        if me == first:
            part += self._masks[second].elements(part.shape, plan.ring)
            return part
        if me == second:
            self._link.send(plan.dealer, part - self._masks[first].elements(part.shape, plan.ring))
            return np.zeros_like(part)
        return self._link.receive(second, part.shape, plan.ring)


class _Owner:
    """An owner's part in the tables of a stretch."""

    def __init__(self, sharing: TableSharing, plan: TablesPlan, part: Elements) -> None:
        """part: its share of all cells, zeros, which are added to."""
        assert sharing._records is not None
        self._link, self._records, self._plan, self._part = sharing._link, sharing._records, plan, part
        self._side = plan.owners.index(self._link.me)
        self._other = plan.owners[1 - self._side]
        self._with_dealer = sharing._masks[plan.dealer]

    def count(self, stretch: range) -> None:
        plan, link, part = self._plan, self._link, self._part
        for block in plan.blocks(stretch):
            rows = block.start, block.stop
            own = self._records.one_hot(*rows, plan.columns[self._side], plan.ring)
            mask = self._with_dealer.elements(own.shape, plan.ring)
            own -= mask
            link.send(self._other, own)
            link.turn()
            theirs = link.receive(self._other, (len(block), plan.breadth(1 - self._side)), plan.ring)
            for batch in plan.batches(len(block)):
                self._orders(block, batch, theirs)
            if self._side == 0:
                self._sum_products(block, theirs)
            else:
                add_products(plan, part[: plan.dealt_cells], theirs, mask)
            for side, joint in plan.histograms:
                if side == self._side:
                    cells = self._records.cells(*rows, joint)
                    counts = np.bincount(cells[cells != ABSENT], minlength=plan.width(joint))
                    part[plan.places[side, joint]] += counts.astype(plan.ring)
        if plan.dealt_cells:
            dealt = part[: plan.dealt_cells]
            if self._side == 0:
                dealt += link.receive(plan.dealer, dealt.shape, plan.ring)
            else:
                dealt += self._with_dealer.elements(dealt.shape, plan.ring)

    def _sum_products(self, block: range, theirs: Elements) -> None:
        """X^T F, where X is one-hot: sums by its owner's own cells."""
        plan = self._plan
        for joint in dict.fromkeys(first for first, _ in plan.products):
            of = [second for first, second in plan.products if first == joint]
            columns = np.concatenate([columns_of(plan, 1, second, theirs) for second in of], axis=1)
            sums = sums_by_cell(
                self._records.cells(block.start, block.stop, joint), plan.width(joint), columns
            )
            start = 0
            for second in of:
                stop = start + plan.width(second)
                self._part[plan.places[joint, second]] += sums[:, start:stop].reshape(-1)
                start = stop

    def _orders(self, block: range, batch: Sequence[Piece], theirs: Elements) -> None:
        """Sums by orders; 2 rounds. theirs: what the other owner has sent, under its mask."""
        plan, link = self._plan, self._link
        dealer, other, ring = plan.dealer, self._other, plan.ring
        streams = [self._with_dealer.reader() for _ in batch]
        shuffles: dict[int, OwnerShuffle] = {}
        for number, piece in enumerate(batch):
            if piece.order.side == self._side:
                cells = self._records.cells(block.start, block.stop, piece.order.joint)
                shuffle = OwnerShuffle(cells, piece.layout, streams[number], ring)
                shuffle.add_own(weights_of(plan, piece, theirs))
                link.send(other, shuffle.places)
                shuffles[number] = shuffle
        link.turn()
        for number, piece in enumerate(batch):
            if number not in shuffles:
                layout = piece.layout
                named = link.receive(other, (layout.places + layout.cells,), index_type(layout))
                masked = link.receive(dealer, (layout.places + layout.blocks, layout.columns), ring)
                prefixes, part = worked(other, layout, named.astype(np.int64), masked, streams[number])
                link.send(other, prefixes)
                self._add(piece, part)
        link.turn()
        for number, shuffle in shuffles.items():
            layout = batch[number].layout
            self._add(
                batch[number], shuffle.finish(link.receive(other, (layout.blocks, layout.columns), ring))
            )

    def _add(self, piece: Piece, sums: Elements) -> None:
        """Add a part of a piece's sums, (cells, columns of the piece), to the tables of its order."""
        plan, order, start = self._plan, piece.order, 0
        for weight, table in zip(order.weights, order.tables, strict=True):
            low, high = (
                max(start, piece.first),
                min(start + plan.width(weight), piece.first + piece.layout.columns),
            )
            if low < high:
                cells = self._part[plan.places[table]].reshape(plan.width(table[0]), plan.width(table[1]))
                turned = cells if order.side == 0 else cells.T
                turned[:, low - start : high - start] += sums[:, low - piece.first : high - piece.first]
            start += plan.width(weight)


def columns_of(plan: TablesPlan, side: int, joint: Clique, block: Elements) -> Elements:
    """The columns of a joint of an owner out of all that it sends, (rows, breadth): sums of those of a joint
    that contains it."""
    start = 0
    for sent in plan.columns[side]:
        stop = start + plan.width(sent)
        if sent == source_of(plan.columns[side], joint):
            break
        start = stop
    found = block[:, start:stop]
    if sent == joint:
        return found
    wide = found.reshape(len(block), *(plan.sizes[name] for name in sent))
    axes = tuple(1 + place for place, name in enumerate(sent) if name not in joint)
    summed: Elements = wide.sum(axis=axes, dtype=plan.ring)
    return summed.reshape(len(block), -1)


def weights_of(plan: TablesPlan, piece: Piece, block: Elements) -> Elements:
    """The columns of a piece out of all that the owner of its weights sends."""
    columns = np.concatenate(
        [columns_of(plan, 1 - piece.order.side, joint, block) for joint in piece.order.weights], axis=1
    )
    return columns[:, piece.first : piece.first + piece.layout.columns]


def add_products(plan: TablesPlan, cells: Elements, left: Elements, right: Elements) -> None:
    """Add the products of two blocks, (rows, breadth) of either owner, to the cells of the plan's products."""
    for joint in dict.fromkeys(first for first, _ in plan.products):
        of = [second for first, second in plan.products if first == joint]
        columns = np.concatenate([columns_of(plan, 1, second, right) for second in of], axis=1)
        product, start = transposed_product(columns_of(plan, 0, joint, left), columns), 0
        for second in of:
            stop = start + plan.width(second)
            cells[plan.places[joint, second]] += product[:, start:stop].reshape(-1)
            start = stop


def sums_by_cell(cells: NDArray[np.int64], count: int, columns: Elements) -> Elements:
    """The sums of the rows of each cell: (rows,) and (rows, v) to (count, v), in the ring of the columns."""
    sums: Elements = np.zeros((count, columns.shape[1]), columns.dtype)
    held = np.flatnonzero(cells != ABSENT)
    order = held[np.argsort(cells[held], kind="stable")]
    if len(order):
        found, starts = np.unique(cells[order], return_index=True)
        ring: Any = columns.dtype.type
        sums[found] = np.add.reduceat(columns[order], starts, axis=0, dtype=ring)
    return sums
