"""Which candidates of a batch exclude one another: those of which one has all columns of the other, at any
resolution."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from mpc_protocols.functionality import Clique

Related = Mapping[Clique, Sequence[Clique]]


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
    places: dict[Clique, list[int]] = {}
    for place, columns in enumerate(asked):
        places.setdefault(columns, []).append(place)
    together = {
        columns: sorted(p for of in related[columns] for p in places.get(of, ())) for columns in places
    }
    return [
        (first, place)
        for first, columns in enumerate(asked)
        for place in together[columns][bisect_right(together[columns], first) :]
    ]
