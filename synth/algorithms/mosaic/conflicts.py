"""Which candidates of a batch exclude one another: those of which one has all columns of the other, at any resolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from mpc_protocols.functionality import Clique

Related = Mapping[Clique, Sequence[Clique]]


def related(column_sets: Sequence[Clique]) -> dict[Clique, list[Clique]]:
    """Of each set, those that contain it or are contained in it, itself among them. The sets differ."""
    sets = [frozenset(columns) for columns in column_sets]
    found: dict[Clique, list[Clique]] = {columns: [columns] for columns in column_sets}
    for (one, a), (other, b) in combinations(zip(column_sets, sets, strict=True), 2):
        if a <= b or b <= a:
            found[one].append(other)
            found[other].append(one)
    return found


def conflicts(asked: Sequence[Clique], related: Related) -> list[tuple[int, int]]:
    """The places of all pairs of related sets, in order. asked: the columns of each candidate; several may have the same."""
    places: dict[Clique, list[int]] = {}
    for place, columns in enumerate(asked):
        places.setdefault(columns, []).append(place)
    found: list[tuple[int, int]] = []
    for first, columns in enumerate(asked):
        others = [place for other in related[columns] for place in places.get(other, ()) if place > first]
        found += [(first, place) for place in sorted(others)]
    return found
