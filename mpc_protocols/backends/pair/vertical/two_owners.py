"""The marginals of a table whose columns two computing parties own, in additive shares modulo 2^32
(`partition`).

A clique has a part at each owner (of no columns: one category). One owner's joint categories become paths,
the other's one-hot vectors (`contingency`), whichever way sends less; cliques with the same paths share their
trees. Each owner has one category more for the rows of the common table that it does not hold:

    intersection   rows that the owner of paths lacks fall on a leaf that is dropped, those that the other lacks have no vector
    union          that category is counted too; its row and its column are added to those of the missing values, but for the
                   cell of rows that nobody holds, which is dropped

all of it local on shares. Counts are at most u, the rows of the common table: below 2^16 rows a table of few
cells beside its records is summed modulo 2^16 and lifted (`conversion.lift`), which halves its vectors.

Who learns what: nothing; u and which cliques are shared are public. Threat model and cost: `contingency`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits.conversion import lift
from mpc_protocols.backends.pair.circuits.sign import score_adder
from mpc_protocols.backends.pair.transfers.ggm import levels_of
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.vertical.contingency import Column, TableShape, of_paths, of_vectors
from mpc_protocols.engine.arrays import contiguous
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, words_for
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.partition import OwnRows, Partition
from mpc_protocols.vertical.union import missing_cell

MAX_WIDTH = 1 << 14
"""Elements from which on vectors are not put side by side."""
LIFT_RECORDS = 40
"""Records a leaf from which on halved vectors save more than the lift of the table's cells costs."""


@dataclass(frozen=True)
class TablePlan:
    """One run of `contingency`. owner, paths: whose columns are paths, and which; vectors: the parts of the
    other owner."""

    owner: int
    paths: Clique
    vectors: tuple[Clique, ...]


def check_owners(partition: Partition) -> None:
    """Raises `StudyInvalid` unless the two computing parties are the two owners."""
    if sorted(partition.owners) != [0, 1]:
        raise StudyInvalid(
            "The two-party engine joins the columns of its two computing parties and of nobody else; "
            f'the study has {len(partition.owners)} owners: choose backend = "replicated" or let the two owners compute.'
        )


def parts_of(partition: Partition, clique: Clique) -> tuple[Clique, Clique]:
    """The clique's columns at party 0 and at party 1, in the order of the clique."""
    first, second = (tuple(c for c in clique if partition.columns[c] == owner) for owner in (0, 1))
    return first, second


def plan_tables(partition: Partition, sizes: Mapping[str, int], cliques: Sequence[Clique]) -> list[TablePlan]:
    """The tables that hold these cliques: public, alike at both parties."""
    groups: dict[tuple[int, Clique], list[list[Clique]]] = {}
    for clique in cliques:
        parts = parts_of(partition, clique)
        cells = [_cells(sizes, part) for part in parts]
        owner = min((0, 1), key=lambda of: 36 * levels_of(cells[of] + 1) + 4 * cells[1 - of])
        vectors = groups.setdefault((owner, parts[owner]), [[]])
        part = parts[1 - owner]
        if any(part in wide for wide in vectors):
            continue
        if vectors[-1] and sum(_cells(sizes, of) + 1 for of in vectors[-1]) + cells[1 - owner] >= MAX_WIDTH:
            vectors.append([])
        vectors[-1].append(part)
    return [
        TablePlan(owner, paths, tuple(wide)) for (owner, paths), several in groups.items() for wide in several
    ]


def ring_of(records: int, leaves: int) -> UInt:
    """The ring in which a table is summed."""
    return np.uint16 if records < 1 << 16 and records > LIFT_RECORDS * leaves else np.uint32


def shape_of(partition: Partition, sizes: Mapping[str, int], plan: TablePlan) -> TableShape:
    """Public sizes of a planned table."""
    leaves = _cells(sizes, plan.paths) + 1
    width = sum(_widths(partition, sizes, plan))
    return TableShape(plan.owner, partition.rows, leaves, width, ring_of(partition.rows, leaves))


def _widths(partition: Partition, sizes: Mapping[str, int], plan: TablePlan) -> list[int]:
    """Elements of each vector: one more where rows that its owner lacks are counted."""
    return [_cells(sizes, part) + (partition.population == "union") for part in plan.vectors]


def share_cliques(
    transfers: Transfers,
    partition: Partition,
    own: OwnRows,
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
) -> dict[Clique, Elements]:
    """This party's shares of the marginals of the population, cells in row-major order; `own` has been
    checked.

    2 rounds a table and chunk, and those of one lift. Raises `StudyInvalid` (other owners than the two).
    """
    check_owners(partition)
    joint: dict[tuple[int, Clique, Clique], Elements] = {}
    narrow: list[tuple[int, Clique, Clique]] = []
    for plan in plan_tables(partition, sizes, cliques):
        shares, dtype = _table(transfers, partition, own, sizes, plan)
        for part, share in zip(plan.vectors, shares, strict=True):
            key = (plan.owner, plan.paths, part)
            joint[key] = share
            if dtype is np.uint16:
                narrow.append(key)
    if narrow:
        flat = np.concatenate([joint[key].reshape(-1) for key in narrow])
        adder = score_adder(17, words_for(len(flat)), transfers.link.latency_bytes)
        wide = lift(transfers, flat, np.uint32, adder)
        ends = np.cumsum([joint[key].size for key in narrow])
        for key, end in zip(narrow, ends, strict=True):
            joint[key] = wide[int(end) - joint[key].size : int(end)].reshape(joint[key].shape)
    return {clique: _marginal(partition, sizes, clique, joint) for clique in cliques}


def _cells(sizes: Mapping[str, int], part: Clique) -> int:
    cells = 1
    for column in part:
        cells *= sizes[column]
    return cells


def _table(
    transfers: Transfers, partition: Partition, own: OwnRows, sizes: Mapping[str, int], plan: TablePlan
) -> tuple[list[Elements], UInt]:
    """Shares of the table of each part among the vectors, (leaves, cells of the part, and one where rows may
    lack it)."""
    widths = _widths(partition, sizes, plan)
    shape = shape_of(partition, sizes, plan)
    if transfers.link.me == plan.owner:
        share = of_paths(transfers, shape, _codes(partition, own, sizes, plan.paths))
    else:
        columns = [
            Column(_codes(partition, own, sizes, part), width)
            for part, width in zip(plan.vectors, widths, strict=True)
        ]
        share = of_vectors(transfers, shape, columns)
    return np.split(share, np.cumsum(widths)[:-1], axis=1), shape.dtype


def _codes(partition: Partition, own: OwnRows, sizes: Mapping[str, int], part: Clique) -> NDArray[np.intp]:
    """The joint category of every row of the common table; one more for rows that this party does not hold."""
    codes = np.full(partition.rows, _cells(sizes, part), np.intp)
    shape = tuple(sizes[column] for column in part)
    codes[own.rows] = np.ravel_multi_index(tuple(own.codes[column] for column in part), shape) if part else 0
    return codes


def _marginal(
    partition: Partition,
    sizes: Mapping[str, int],
    clique: Clique,
    joint: Mapping[tuple[int, Clique, Clique], Elements],
) -> Elements:
    """The share of a clique's marginal from that of its table."""
    parts = parts_of(partition, clique)
    owner = next(of for of in (0, 1) if (of, parts[of], parts[1 - of]) in joint)
    table = joint[owner, parts[owner], parts[1 - owner]]
    first, second = parts[owner], parts[1 - owner]
    cells: Elements = table[:-1, : _cells(sizes, second)].copy()
    if partition.population == "union":
        cells[:, missing_cell(partition, sizes, second)] += table[:-1, -1]
        cells[missing_cell(partition, sizes, first)] += table[-1, :-1]
    columns = first + second
    axes = [columns.index(column) for column in clique]
    return contiguous(cells.reshape([sizes[c] for c in columns]).transpose(axes)).reshape(-1)
