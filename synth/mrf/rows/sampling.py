"""Rows drawn from a junction tree so that the marginals inside its cliques are the model's to within
rounding.

Problem: independent draws add the noise of a sample to that of the measurements. Here cells are filled by
systematic sampling: cells with expected counts e_1, e_2, ... lie end to end on a line and one point per row
falls on it at distances of exactly 1 from a random start, so that each cell gets floor(e) or ceil(e) rows and
e on average (Private-PGM's `synthetic_data(method="round")` aims at the same). The root's cells are filled
first; then each clique's new columns are filled within every group of rows that agree on its separator, the
group's rows in random order.

Bound: root cells are off by less than 1. A cell (s, r) of another clique, s on its separator, is off by less than 1 plus P(r
| s) times the error of the group s, which is a sum of cells of the parent (tested in tests/synth/mrf/test_sampling.py). The
random numbers only distribute rows that are already a public release; they need not be cryptographic.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from synth.mrf.factor import Array
from synth.mrf.junction_tree import Clique, JunctionTree
from synth.mrf.levels import Chains


def by_group(order: NDArray[np.intp], group: NDArray[np.int64], groups: int) -> NDArray[np.intp]:
    """`order` with rows of the same group together, otherwise as they stood. group: of each row, below
    `groups`."""
    small = np.uint16 if groups <= 2**16 else np.int64  # NumPy sorts 16 bits by radix, in linear time
    return order[np.argsort(group.astype(small)[order], kind="stable")]


def _fill(
    table: Array, group: NDArray[np.int64], order: NDArray[np.intp], starts: Array
) -> NDArray[np.int64]:
    """A column index of `table` (groups x values, rows add up to 1) for each row, systematic within each
    group.

    order: in which a group's rows are served. starts: of each group where its first point falls, from 0 to 1.
    """
    groups, values = table.shape
    if groups > 1:
        order = by_group(order, group, groups)
    members = np.bincount(group, minlength=groups)[:, None]
    below = np.cumsum(table, axis=1)  # then: how many of the group's points lie before each cell's end
    whole = below[:, -1:].copy()
    ended = below >= whole  # whatever rounding says: what follows is impossible
    below /= np.where(whole > 0, whole, 1.0)  # a group of impossible rows has none
    below *= members
    below -= starts[:, None]
    np.ceil(below, out=below)
    np.minimum(below, members, out=below)
    np.copyto(below, members, where=ended)
    counts = np.diff(below, axis=1, prepend=0).astype(np.intp)
    result = np.empty_like(group)
    result[order] = np.repeat(np.tile(np.arange(values), groups), counts.reshape(-1))
    return result


def sample_rows(
    tree: JunctionTree, chains: Chains, conditionals: Sequence[Array], rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Codes, int64, shape (rows, columns in order). conditionals[i]: P(new columns | separator), axes as in
    node i."""
    if rows < 0:
        raise ValueError(f"The number of rows must not be negative, got {rows}.")
    sizes = chains.sizes
    codes: dict[str, NDArray[np.int64]] = {}
    for node, separator, conditional in zip(tree.nodes, tree.separators, conditionals, strict=True):
        group = np.zeros(rows, dtype=np.int64)
        for name in separator:
            group *= sizes[name]
            group += codes[name]
        new = tuple(name for name in node if name not in separator)
        groups = prod(sizes[name] for name in separator)
        order, starts = rng.permutation(rows), rng.random(groups)
        # Most groups of a large separator have no row.
        occupied = np.flatnonzero(np.bincount(group, minlength=groups))
        place = np.full(groups, -1)
        place[occupied] = np.arange(len(occupied))
        table = _conditional_matrix(chains, node, separator, new, conditional, occupied, place)
        value = _fill(table, place.take(group), order, starts.take(occupied))
        for name in reversed(new[1:]):
            value, codes[name] = np.divmod(value, sizes[name])
        codes[new[0]] = value
        for name in new:
            for coarse in chains.coarser[name]:
                codes[coarse] = chains.bins(name, coarse).take(codes[name])
    drawn = [codes[name] for name, column in chains.column.items() if name == column]
    out = np.empty((rows, len(drawn)), dtype=np.int64, order="F")
    np.stack(drawn, axis=1, out=out)
    return out


def _conditional_matrix(
    chains: Chains,
    node: Clique,
    separator: Clique,
    new: Clique,
    conditional: Array,
    occupied: NDArray[np.intp],
    place: NDArray[np.int64],
) -> Array:
    """P(new columns | separator) as a matrix, of some cells of the separator; a column of which the separator
    holds a coarser level is 0 in its other bins.

    occupied: these cells. place: of each cell its row, or -1.
    """
    shape = [prod(chains.sizes[name] for name in names) for names in (separator, new)]
    if set(separator) <= set(node):
        arranged = conditional.transpose([node.index(name) for name in separator + new])
        return np.ascontiguousarray(arranged).reshape(shape).take(occupied, axis=0)
    table = np.zeros((len(occupied), shape[1]))
    row = place.take(chains.cells_of(separator, node))
    at = np.flatnonzero(row >= 0)
    table[row.take(at), chains.cells_of(new, node).take(at)] = conditional.reshape(-1).take(at)
    return table
