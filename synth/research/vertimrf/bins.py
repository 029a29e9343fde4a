"""What is encoded of a column: its value, or one of BINS bins of equal width where it has more values than
that."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mpc_protocols.functionality import Level

BINS = 4


def levels_of(sizes: Mapping[str, int]) -> dict[str, Level]:
    """The bins of each column that is encoded by bins, under names that are no column's."""
    found: dict[str, Level] = {}
    for column, size in sizes.items():
        if size > BINS:
            name = _free(f"{column} in {BINS} bins", {*sizes, *found})
            found[column] = Level(name, column, tuple(code * BINS // size for code in range(size)))
    return found


def encoded_sizes(sizes: Mapping[str, int]) -> dict[str, int]:
    """How many values are told of each column; columns of a single value are not told."""
    return {column: min(size, BINS) for column, size in sizes.items() if size > 1}


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "'"
    return name
