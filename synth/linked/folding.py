"""Tables that belong together, drawn from a released model of people's rows (`docs/design/linked.md` 4).

A person's count of children and columns are those of its synthetic row; children are drawn one after the
other, each from an exact conditional law, for all people at once. So keys refer to people that exist, always.
No budget: released values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth.domain import Domain
from synth.linked.conditional import Codes, ConditionalLaw
from synth.linked.kernel import kernel
from synth.linked.order import Correction, OrderChain
from synth.linked.tables import ChildTable
from synth.mrf import Model


@dataclass(frozen=True)
class Children:
    """One folded table. person: of each child, the row of its person, from 0, rising. codes: (children,
    columns of the table)."""

    table: ChildTable
    person: Codes
    codes: Codes


def fold(
    model: Model,
    owner: Sequence[str],
    child: ChildTable,
    rows: NDArray[np.integer[Any]],
    counts: NDArray[np.integer[Any]],
    rng: np.random.Generator,
) -> Children:
    """The children of synthetic people. owner: the names of these people's columns. rows: their codes in all
    columns of the model; counts: how many children each has."""
    laws = _Laws(model, owner, child)
    state = np.asarray(rows, dtype=np.int64).copy()
    made, people = [laws.none], [np.zeros(0, dtype=np.int64)]
    for number in range(int(counts.max(initial=0))):
        here = np.flatnonzero(counts > number)
        some = state[here]
        drawn = (
            laws.following(some, counts[here] - number - 1, rng)
            if number
            else laws.first(some, counts[here], rng)
        )
        if number == 0 or child.order is not None:  # what the next one is given
            state[np.ix_(here, laws.second)] = drawn
        made.append(drawn)
        people.append(here)
    person = np.concatenate(people)
    by_person = np.argsort(person, kind="stable")
    return Children(child, person[by_person], np.concatenate(made)[by_person])


def fold_beneath(
    model: Model,
    people: Sequence[str],
    own: Children,
    rows: NDArray[np.integer[Any]],
    rng: np.random.Generator,
) -> list[Children]:
    """What belongs to folded children, a table each; their `person` is the place among these. people, rows:
    as in `fold`.

    A child's number of rows is drawn from its conditional law, given the person, the child and the one
    before; then they are folded as a person's are, the child in the person's place.
    """
    child, place = own.table, {name: j for j, name in enumerate(model.sizes)}
    state = np.asarray(rows, dtype=np.int64)[own.person]
    state[:, [place[name] for name in child.first_names]] = own.codes
    if child.order is not None:
        before = np.array([place[child.second(name)] for name in child.domain.names], dtype=np.int64)
        state[:, before] = [model.sizes[child.second(name)] - 1 for name in child.domain.names]
        later = np.flatnonzero(own.person[1:] == own.person[:-1]) + 1
        state[np.ix_(later, before)] = own.codes[later - 1]
    found = []
    for table in child.children:
        law = ConditionalLaw(model, list(table.names))
        codes = law.draw(state, rng)[:, 0]
        state[:, place[table.count]] = codes
        many = Domain((table.count,), (table.unfolded[table.count],))
        counts = np.asarray(many.decode(codes[:, None], rng)[0], dtype=np.int64)
        found.append(fold(model, (*people, *child.first_names), table, state, counts, rng))
    return found


class _Laws:
    """Of a person's children. second: the places of B's columns in a row. none: no children."""

    def __init__(self, model: Model, owner: Sequence[str], child: ChildTable) -> None:
        self._model, self._owner, self._child = model, owner, child
        place = {name: j for j, name in enumerate(model.sizes)}
        self._first = list(child.first_names)
        self._beneath = [
            name for own in child.children for name in own.names
        ]  # of no child but the one drawn
        self._second = [child.second(name) for name in child.domain.names]
        self.second = np.array([place[name] for name in self._second], dtype=np.int64)
        self.none = np.zeros((0, len(self._first)), dtype=np.int64)
        self._absent = np.array([model.sizes[name] - 1 for name in self._second])
        self._order, self._count = child.ordered_by, place[child.count]
        self._codes = [
            # a child has every value that the study does not let it lack, and a place in the order
            np.arange(model.sizes[name]) < column.size - (place == self._order and column.missing)
            for place, (name, column) in enumerate(zip(self._first, child.domain.columns, strict=True))
        ]
        self._allowed: Mapping[str, NDArray[np.bool_]] = dict(zip(self._first, self._codes, strict=True))

    @cached_property
    def _alone(self) -> ConditionalLaw:
        """A, given everything else that does not belong to A itself."""
        return ConditionalLaw(self._model, self._first, self._allowed, self._beneath)

    @cached_property
    def _paired_law(self) -> ConditionalLaw:
        """A and B, both there."""
        allowed = {**self._allowed, **dict(zip(self._second, self._codes, strict=True))}
        return ConditionalLaw(self._model, [*self._first, *self._second], allowed, self._beneath)

    @cached_property
    def _kernel(self) -> Model:
        return kernel(self._model, self._owner, self._child)

    @cached_property
    def _next(self) -> ConditionalLaw:
        return ConditionalLaw(self._kernel, self._first, self._allowed, self._beneath)

    @cached_property
    def _chain(self) -> OrderChain | None:
        return OrderChain.of(self._model, self._child)

    @cached_property
    def _corrections(self) -> tuple[Correction, Correction] | None:
        """Of the first child's law and of the next one's."""
        if self._chain is None:
            return None
        return Correction(self._chain, self._model), Correction(self._chain, self._kernel)

    def first(self, rows: Codes, counts: NDArray[np.integer[Any]], rng: np.random.Generator) -> Codes:
        """Everybody's first child. Ordered: given that none is before it. Not ordered: given nothing of
        another one, which is there unless it is the only one."""
        rows = rows.copy()
        rows[:, self.second] = self._absent
        several = counts > 1
        if self._order is not None and self._corrections is not None:
            weights = self._corrections[0].first(counts.astype(np.int64), rows[:, self._count])
            return self._alone.draw(rows, rng, {self._first[self._order]: weights})
        if self._child.order is not None or not several.any():
            return self._alone.draw(rows, rng)
        found = np.empty((len(rows), len(self._first)), dtype=np.int64)
        found[~several] = self._alone.draw(rows[~several], rng)
        found[several] = self._paired_law.draw(rows[several], rng)[:, : len(self._first)]
        return found

    def following(self, rows: Codes, more: NDArray[np.integer[Any]], rng: np.random.Generator) -> Codes:
        """The next child, given B's columns of the rows: the child before, or the first one. more: how many
        come after it."""
        if self._order is None:
            return self._next.draw(rows, rng)
        before, name = rows[:, self.second[self._order]], self._first[self._order]
        if self._corrections is None:
            steps = np.arange(self._model.sizes[name])
            return self._next.draw(rows, rng, {name: np.where(steps < before[:, None], -np.inf, 0.0)})
        weights = self._corrections[1].following(more.astype(np.int64), rows[:, self._count], before)
        return self._next.draw(rows, rng, {name: weights})
