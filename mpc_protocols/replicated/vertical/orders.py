"""Which orders of the rows a wave takes, in which batches: public, alike at every party and contributor (`plan`, `segments`).

A left joint with all its rights is one order, cut into pieces of the rights' columns so that no array of a party passes BATCH
bytes; consecutive pieces share their rounds in batches of as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mpc_protocols.replicated.vertical.layout import Layout
from mpc_protocols.replicated.vertical.plan import Group, Part, Plan, layout_of

BATCH: Final = 1 << 22
"""Bytes of one party's largest array in a batch of pieces, and of a piece of more than one column."""


@dataclass(frozen=True)
class Piece:
    """Columns first .. first + layout.columns - 1 of an ordered group's rights. helper: H, where O computes."""

    group: Group
    left: Part
    first: int
    layout: Layout
    helper: int


def pieces(plan: Plan, rows: int) -> Iterator[Piece]:
    """All pieces of a wave of so many rows."""
    for group in plan.groups(ordered=True):
        (left,) = group.lefts
        columns = sum(map(plan.breadth, group.rights))
        step = max(1, BATCH // (layout_of(plan, left, columns, rows).places * plan.element))
        for first in range(0, columns, step):
            yield Piece(
                group,
                left,
                first,
                layout_of(plan, left, min(step, columns - first), rows),
                plan.helper(left.owner),
            )


def batches(plan: Plan, rows: int) -> Iterator[list[Piece]]:
    """The pieces of a wave that share their rounds."""
    batch: list[Piece] = []
    size = 0
    for piece in pieces(plan, rows):
        grown = piece.layout.places * piece.layout.columns * piece.layout.element
        if batch and size + grown > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += grown
    if batch:
        yield batch
