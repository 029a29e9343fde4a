"""Which candidates of a batch exclude one another: those of which one has all columns of the other, at any
resolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique

Related = Mapping["Clique", Sequence["Clique"]]


def related(column_sets: Sequence[Clique]) -> dict[Clique, list[Clique]]:
    """Of each set, those that contain it or are contained in it, itself among them. The sets differ, none is
    empty."""
    holders: dict[str, set[Clique]] = {}
    for columns in column_sets:
        for name in columns:
            holders.setdefault(name, set()).add(columns)
    found: dict[Clique, list[Clique]] = {columns: [columns] for columns in column_sets}
    for columns in column_sets:
        # What contains it, the fewest looked at first.
        for other in set.intersection(*sorted((holders[name] for name in columns), key=len)):
            if other != columns:
                found[columns].append(other)
                found[other].append(columns)
    return found


def conflicts(asked: Sequence[Clique], related: Related) -> list[tuple[int, int]]:
    """The places of all pairs of related sets, in order. asked: the columns of each candidate; several may
    have the same."""
    numbers = {columns: number for number, columns in enumerate(dict.fromkeys(asked))}
    of = np.fromiter((numbers[columns] for columns in asked), np.intp, len(asked))
    by_set = np.argsort(of, kind="stable")  # the places of each set, one set after the other
    many = np.bincount(of, minlength=len(numbers))
    starts = np.cumsum(many) - many
    pairs = [(numbers[one], numbers[other]) for one in numbers for other in related[one] if other in numbers]
    left, right = np.array(pairs, np.intp).reshape(-1, 2).T
    # Each pair of sets, as often as one has places; then each of these, as often as the other has.
    first, right = by_set[_ranges(starts[left], many[left])], np.repeat(right, many[left])
    first, second = np.repeat(first, many[right]), by_set[_ranges(starts[right], many[right])]
    ahead = first < second
    first, second = first[ahead], second[ahead]
    order = np.lexsort((second, first))
    return list(zip(first[order].tolist(), second[order].tolist(), strict=True))


def _ranges(starts: NDArray[np.intp], lengths: NDArray[np.intp]) -> NDArray[np.intp]:
    """start, start + 1, .. of each range, one after the other."""
    ends = np.cumsum(lengths)
    found: NDArray[np.intp] = np.arange(ends[-1] if len(ends) else 0) + np.repeat(
        starts - ends + lengths, lengths
    )
    return found
