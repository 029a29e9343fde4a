"""Which orders of its rows a block takes, in which batches: public, alike at every party and contributor
(`plan`, `group_by`).

A left joint with all its rights is one order, cut into pieces of the rights' columns so that no array of a
party passes BATCH bytes; consecutive pieces share their rounds in batches of as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mpc_protocols.backends.replicated.vertical.plan import Plan, layout_of
from mpc_protocols.vertical.layout import Layout
from mpc_protocols.vertical.tables import Group, Joint

BATCH: Final = 1 << 22
"""Bytes of one party's largest array in a batch of pieces, and of a piece of more than one column."""


@dataclass(frozen=True)
class Piece:
    """Columns first .. first + layout.columns - 1 of a permuted group's rights. helper: H, where O computes."""

    group: Group
    left: Joint
    first: int
    layout: Layout
    helper: int


def pieces(plan: Plan, rows: int) -> Iterator[Piece]:
    """All pieces of a block of so many rows."""
    for group in plan.groups(by_permutation=True):
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
    """The pieces of a row block that share their rounds."""
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
