"""Tables that belong together, drawn from a released model of people's rows (`docs/design/linked.md` 4). No
budget: released only.

A person's count of children and columns are those of its synthetic row; children are drawn one after the other, each from the
model's exact conditional law, for all people at once. So keys refer to people that exist, always.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.linked.conditional import Codes, ConditionalLaw
from synth.linked.kernel import kernel
from synth.linked.tables import ChildTable, LinkedTables
from synth.mrf import Model


@dataclass(frozen=True)
class Children:
    """One folded table. person: of each child, the row of its person, from 0, rising. codes: (children, columns of the table)."""

    table: ChildTable
    person: Codes
    codes: Codes


def fold(
    model: Model,
    linked: LinkedTables,
    child: ChildTable,
    rows: NDArray[np.integer[Any]],
    counts: NDArray[np.integer[Any]],
    rng: np.random.Generator,
) -> Children:
    """The children of synthetic people. rows: codes of people in all columns of the model; counts: how many children each has."""
    names = list(model.sizes)
    place = {name: j for j, name in enumerate(names)}
    columns = child.domain.names
    first, second = [child.first(name) for name in columns], [child.second(name) for name in columns]
    at = [place[name] for name in second]
    absent = np.array([model.sizes[name] - 1 for name in second])
    there = {
        child.first(name): np.arange(model.sizes[child.first(name)]) < column.size
        for name, column in zip(columns, child.domain.columns, strict=True)
    }
    ordered = child.ordered_by
    floor = None if ordered is None else first[ordered]
    if floor is not None:  # every child has a place in the order
        there[floor] = np.arange(model.sizes[floor]) < model.sizes[floor] - 1
    law, following = (ConditionalLaw(one, first, there) for one in (model, kernel(model, linked, child)))
    state = np.asarray(rows, dtype=np.int64).copy()
    made: list[Codes] = []
    people: list[Codes] = []
    for number in range(int(counts.max(initial=0))):
        here = np.flatnonzero(counts > number)
        if number == 0:
            drawn = _first(model, law, child, state[here], counts[here], there, absent, rng)
        else:
            least = {floor: state[here, place[second[ordered]]]} if ordered is not None and floor else None
            drawn = following.draw(state[here], rng, least)
        if child.order is not None or number == 0:
            state[np.ix_(here, at)] = drawn
        made.append(drawn)
        people.append(here)
    if not made:
        return Children(child, np.zeros(0, dtype=np.int64), np.zeros((0, len(columns)), dtype=np.int64))
    person = np.concatenate(people)
    by_person = np.argsort(person, kind="stable")
    return Children(child, person[by_person], np.concatenate(made)[by_person])


def _first(
    model: Model,
    law: ConditionalLaw,
    child: ChildTable,
    rows: Codes,
    counts: NDArray[np.integer[Any]],
    there: dict[str, NDArray[np.bool_]],
    absent: Codes,
    rng: np.random.Generator,
) -> Codes:
    """Everybody's first child. Ordered: given that none is before it. Not ordered: given nothing of another one, which is there
    unless it is the only one."""
    place = {name: j for j, name in enumerate(model.sizes)}
    second = [child.second(name) for name in child.domain.names]
    rows = rows.copy()
    rows[:, [place[name] for name in second]] = absent
    if child.order is not None:
        return law.draw(rows, rng)
    several = counts > 1
    found = np.empty((len(rows), len(second)), dtype=np.int64)
    found[~several] = law.draw(rows[~several], rng)
    both = ConditionalLaw(
        model,
        [*(child.first(name) for name in child.domain.names), *second],
        there | {child.second(name): there[child.first(name)] for name in child.domain.names},
    )
    found[several] = both.draw(rows[several], rng)[:, : len(second)]
    return found
