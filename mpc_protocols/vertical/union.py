"""The union's marginals from tables of joint holders (`docs/design/vertical.md` 5): inclusion-exclusion,
local on shares.

Let A be the owners of a clique's columns. For every set C of them, J_C is the table over C's columns of the
rows that ALL of C hold, whoever else holds them: one owner's own histogram, a product over two or more
(`plan`), and J_{} = R, the number of rows that anybody holds. The rows that exactly B of A hold, by their
cells in B's columns, are

    N_B = sum over C with B <= C <= A of (-1)^|C - B| (J_C summed over the columns of C - B)

because one-hot rows are zero where an owner lacks the row, so sums over its columns count the rows it holds.
In the union's marginal such a row has every column of A - B missing, so N_B is added where those columns have
their missing code. Nothing is secret here but the tables themselves, which are shares: every step is a public
linear map, without a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.functionality import Clique
from mpc_protocols.public.cliques import Derivation
from mpc_protocols.vertical.partition import Partition


def owners_of(partition: Partition, clique: Clique) -> tuple[int, ...]:
    """The owners of a clique's columns, in the study's order."""
    present = {partition.columns[name] for name in clique}
    return tuple(owner for owner in partition.owners if owner in present)


def missing_cell(partition: Partition, sizes: Mapping[str, int], columns: Clique) -> int:
    """The cell of a joint in which all its columns are missing."""
    place = 0
    for column in columns:
        place = place * sizes[column] + partition.missing[column]
    return place


def columns_of(partition: Partition, clique: Clique, owners: tuple[int, ...]) -> Clique:
    """The clique's columns that these owners have."""
    return tuple(name for name in clique if partition.columns[name] in owners)


def tables_of(partition: Partition, clique: Clique) -> list[Clique]:
    """The tables J_C that a clique's marginal takes, C not empty."""
    return [
        columns_of(partition, clique, subset) for subset in subsets(owners_of(partition, clique)) if subset
    ]


def sum_down(cells: Elements, columns: Clique, target: Clique, sizes: Mapping[str, int]) -> Elements:
    """The table over `target` from that over `columns`, both flat and row-major; the one sum if `target` is
    empty."""
    if not target:
        total: Elements = cells.sum(dtype=cells.dtype).reshape(1)
        return total
    shape = tuple(sizes[name] for name in columns)
    axes = tuple(columns.index(name) for name in target)
    table: Elements = Derivation(columns, shape, axes, (None,) * len(target)).apply(cells)
    return table


def assemble(
    partition: Partition,
    clique: Clique,
    sizes: Mapping[str, int],
    joint: Mapping[Clique, Elements],
    somebody: Elements,
) -> Elements:
    """The union's marginal of a clique, flat.

    joint: J_C under the clique's columns of C, in the clique's order. somebody: R, shape (1,).
    """
    owners = owners_of(partition, clique)
    marginal = np.zeros([sizes[name] for name in clique], somebody.dtype)
    for holders in subsets(owners):
        holder_columns = columns_of(partition, clique, holders)
        exactly = np.zeros(
            int(np.prod([sizes[name] for name in holder_columns], dtype=np.int64)), somebody.dtype
        )
        for more in subsets(tuple(owner for owner in owners if owner not in holders)):
            columns = columns_of(partition, clique, (*holders, *more))
            table = sum_down(joint[columns], columns, holder_columns, sizes) if columns else somebody
            if len(more) % 2:
                exactly -= table
            else:
                exactly += table
        where = tuple(slice(None) if name in holder_columns else partition.missing[name] for name in clique)
        marginal[where] += exactly.reshape([sizes[name] for name in holder_columns])
    return marginal.reshape(-1)


def subsets(owners: Sequence[int]) -> list[tuple[int, ...]]:
    """All subsets of a few owners, the empty one first."""
    return [subset for count in range(len(owners) + 1) for subset in combinations(owners, count)]
