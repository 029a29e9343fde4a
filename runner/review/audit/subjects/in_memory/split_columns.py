"""Vertically split data in memory: two owners of different columns.

Of the rows of their common table, some are held by one owner only, some by nobody (fakes of an alignment).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData
from runner.review.audit.subjects.in_memory.arena import Arena, Codes
from runner.review.audit.subjects.subject import Subject


@dataclass(frozen=True)
class Split:
    """Rows of a common table: `codes` of those that both hold, then of those of the first owner alone, and of
    the second."""

    partition: Partition
    held: tuple[NDArray[np.int64], NDArray[np.int64]]
    codes: Codes

    def data(self, parties: int) -> list[VerticalData]:
        """What each party brings."""
        found = []
        for party in range(parties):
            own = None
            if party < len(self.held):
                rows = self.held[party]
                names = self.partition.of(party)
                places = [list(self.partition.columns).index(name) for name in names]
                codes = {
                    name: self.codes[rows, place].astype(np.uint8)
                    for name, place in zip(names, places, strict=True)
                }
                own = OwnRows(rows, codes)
            found.append(VerticalData(self.partition, own))
        return found


def split(subject: Subject, codes: Codes, alone: int, nobody: int) -> Split:
    """The last 2 `alone` + `nobody` rows are not held by both."""
    both = len(codes) - 2 * alone - nobody
    a, b, c = subject.sizes
    partition = Partition((0, 1), {a: 0, b: 1, c: 1}, "intersection", {}, len(codes))
    shared = np.arange(both)
    held = np.r_[shared, both : both + alone], np.r_[shared, both + alone : both + 2 * alone]
    return Split(partition, (held[0].astype(np.int64), held[1].astype(np.int64)), codes)


def vertical(subject: Subject) -> list[DistributedBackend]:
    """The audited backends that take vertically split data."""
    return [backend for backend in subject.distributed if "vertical" in backend.partitions]


def split_arena(subject: Subject, backend: DistributedBackend) -> Arena:
    """The fewest parties of the backend; the first two own columns."""
    return Arena.of(
        backend, subject.sizes, contributing=0, adjacency=subject.study.privacy.adjacency, row_cap=4096
    )
