"""Invented candidates of a selection, the same at every party: tables as far from the model's answers as real
ones.

Nobody's data; the generator is seeded (`inputs`). All parties together hold nine tenths of the rows that the
bound allows, so that a difference has `bits` bits with its sign. An answer is flat and nowhere 0, as far as
the bound allows: every cell needs a sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mpc_protocols.functionality import Clique
from runner.bench.parameters import PARTIES, Params
from runner.bench.tables.inputs import counts


def sizes_of(params: Params) -> dict[str, int]:
    """Columns, one a candidate, of equally many cells."""
    cells, candidates = int(params["cells"]), int(params["candidates"])
    return {str(q): (q + 1) * cells // candidates - q * cells // candidates for q in range(candidates)}


def rows_of(params: Params) -> int:
    """The public bound that makes differences of `bits` bits."""
    return int((1 << int(params["bits"]) - 1) - 1)


def problem(params: Params) -> str | None:
    """What is wrong with the sizes."""
    if int(params["candidates"]) > int(params["cells"]):
        return f"{params['candidates']} candidates need at least as many cells, got {params['cells']}"
    return (
        None if 4 <= int(params["bits"]) <= 28 else f"the rows' bound has 4 to 28 bits, got {params['bits']}"
    )


def own_counts(params: Params, party: int) -> Any:
    """One party's counts of cliques, each a candidate."""

    def local(cliques: list[Clique]) -> list[Any]:
        return [_part(params, int(clique[0]), party) for clique in cliques]

    return local


def tables(params: Params) -> list[Any]:
    """Everybody's counts together, of each candidate."""
    parties = range(int(params[PARTIES.name]))
    return [sum(_part(params, int(name), party) for party in parties) for name in sizes_of(params)]


def answers(params: Params) -> list[Any]:
    """The model's answers of each candidate."""
    parties = int(params[PARTIES.name])
    rows = parties * (9 * rows_of(params) // (10 * parties))
    return [np.full(size, max(rows, min(size, rows_of(params))) / size) for size in sizes_of(params).values()]


def _part(params: Params, candidate: int, party: int) -> Any:
    parties = int(params[PARTIES.name])
    size, rows = sizes_of(params)[str(candidate)], 9 * rows_of(params) // (10 * parties)
    return counts(size, rows, parties * candidate + party)
