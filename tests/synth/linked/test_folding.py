"""Folding against a law that is known: people with a group, children that form a stationary chain of their
group."""

from typing import Any

import numpy as np
import pytest

from synth.domain import Domain
from synth.linked.folding import fold, fold_beneath
from synth.linked.kernel import kernel
from synth.linked.tables import ChildTable, LinkedTables
from synth.mrf import Model
from synth.mrf.fit import Measurement, fit

PEOPLE = Domain.from_spec({"columns": {"group": 2}})
COUNTS = np.array([[0.2, 0.3, 0.2, 0.2, 0.1], [0.1, 0.1, 0.2, 0.2, 0.4]])  # by group
FRESH = np.array(
    [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]]
)  # a child's law by group; each repeats the one before with probability 0.6
STAY = 0.6
ROWS = 60_000


def tables(order: Any, column: Any = 3) -> Any:
    visits = Domain.from_spec({"columns": {"x": column}})
    return LinkedTables("people", "pid", PEOPLE, (ChildTable("visits", 4, order, visits),))


def chain(group: Any) -> Any:
    return STAY * np.eye(3) + (1 - STAY) * FRESH[group][None]


def released(order: Any) -> tuple[Model, LinkedTables]:
    """The model of exact marginals of the workload."""
    linked = tables(order)
    joint = np.zeros((2, 5, 4, 4))  # group, count, A, B
    for group in range(2):
        for count in range(5):
            mass = 0.5 * COUNTS[group, count]
            if count == 0:
                joint[group, 0, 3, 3] += mass
                continue
            alone = 1.0 / count if order is not None else float(count == 1)
            joint[group, count, :3, 3] += mass * alone * FRESH[group]
            joint[group, count, :3, :3] += mass * (1 - alone) * (FRESH[group][:, None] * chain(group)).T
    names, axes = list(linked.unfolded.names), "gcab"
    stated = [
        Measurement(
            clique,
            np.einsum(f"{axes}->{''.join(axes[names.index(name)] for name in clique)}", joint) * ROWS,
            1.0,
        )
        for clique in linked.cliques
    ]
    model = fit(
        linked.unfolded.sizes,
        stated,
        total=ROWS,
        impossible=linked.unfolded.impossible,
        tolerance=0,
        iterations=3000,
    )
    return model, linked


def people(model: Any, seed: Any = 0) -> Any:
    rows = model.sample(ROWS, np.random.default_rng(seed))
    return rows, rows[:, 1]


@pytest.mark.parametrize("order", [None, "at"])
def test_every_child_has_the_law_of_its_person_however_late_it_comes(order: Any) -> None:
    model, linked = released(order)
    rows, counts = people(model)
    found = fold(model, linked.people.names, linked.children[0], rows, counts, np.random.default_rng(1))
    assert np.array_equal(
        np.bincount(found.person, minlength=ROWS), counts
    )  # as many as the person's row says
    assert (np.diff(found.person) >= 0).all()
    number = np.arange(len(found.person)) - np.searchsorted(found.person, found.person)
    for group in range(2):
        for late in range(4):
            here = (rows[found.person, 0] == group) & (number == late)
            law = np.bincount(found.codes[here, 0], minlength=3) / here.sum()
            assert np.abs(law - FRESH[group]).sum() < 0.06, (group, late)


def test_neighbours_in_order_are_as_alike_as_they_were_at_every_step() -> None:
    model, linked = released("at")
    rows, counts = people(model)
    found = fold(model, linked.people.names, linked.children[0], rows, counts, np.random.default_rng(1))
    number = np.arange(len(found.person)) - np.searchsorted(found.person, found.person)
    for late in (1, 2, 3):
        here = np.flatnonzero(number == late)
        same = float((found.codes[here, 0] == found.codes[here - 1, 0]).mean())
        group = rows[found.person[here], 0]
        truth = float((STAY + (1 - STAY) * (FRESH**2).sum(axis=1))[group].mean())
        assert abs(same - truth) < 0.03, late


def test_the_released_law_alone_would_count_a_person_twice() -> None:
    """What `kernel` is for: drawn by the released model, children grow more alike and their person's law
    sharper."""
    model, linked = released("at")
    tied = kernel(model, linked.people.names, linked.children[0])
    far = []
    for one in (model, tied):
        joint = one.marginal(("group", "visits_x", "visits_before_x")).reshape(2, 4, 4)[:, :3, :3]
        step = joint / joint.sum(axis=1, keepdims=True)  # P(A | group, B)
        far.append(max(np.abs(step[group] @ FRESH[group] - FRESH[group]).sum() for group in range(2)))
    assert far[0] > 0.05 and far[1] < 0.01


def test_children_without_an_order_are_drawn_around_the_first() -> None:
    model, linked = released(None)
    rows, counts = people(model)
    found = fold(model, linked.people.names, linked.children[0], rows, counts, np.random.default_rng(1))
    starts = np.searchsorted(found.person, found.person)
    number = np.arange(len(found.person)) - starts
    same = [
        float((found.codes[number == late, 0] == found.codes[starts[number == late], 0]).mean())
        for late in (1, 2, 3)
    ]
    truth = float((STAY + (1 - STAY) * (FRESH**2).sum(axis=1)).mean())
    assert max(same) - min(same) < 0.03 and abs(np.mean(same) - truth) < 0.03


def test_children_never_step_back_in_an_order_that_is_a_column() -> None:
    linked = tables("x", {"kind": "integer", "low": 0, "high": 4})
    rng = np.random.default_rng(2)
    sizes = linked.unfolded.sizes
    stated = [
        Measurement(clique, rng.random(int(np.prod([sizes[name] for name in clique]))) * 100, 1.0)
        for clique in linked.cliques
    ]
    model = fit(sizes, stated, impossible=linked.unfolded.impossible)
    rows = model.sample(3000, rng)
    found = fold(model, linked.people.names, linked.children[0], rows, rows[:, 1], rng)
    same = found.person[1:] == found.person[:-1]
    assert same.any() and (np.diff(found.codes[:, 0])[same] >= 0).all()
    assert found.codes.max() <= 4 and found.codes.min() >= 0


def test_nobody_has_children_where_all_counts_are_0() -> None:
    model, linked = released("at")
    found = fold(
        model,
        linked.people.names,
        linked.children[0],
        np.zeros((5, 4), int),
        np.zeros(5, int),
        np.random.default_rng(0),
    )
    assert found.person.size == 0 and found.codes.shape == (0, 1)


@pytest.mark.parametrize("order", [None, "at"])
def test_what_belongs_to_a_child_has_the_law_of_its_child_and_person(order: Any) -> None:
    """One row of people's workload exactly: drugs of a visit follow its x and the group, and repeat within
    the visit."""
    x = Domain.from_spec({"columns": {"x": 2}})
    drugs = ChildTable("drugs", 2, order, Domain.from_spec({"columns": {"y": 2}}))
    linked = LinkedTables("people", "pid", PEOPLE, (ChildTable("visits", 2, "at", x, "vid", (drugs,)),))
    of_x, of_y = (
        np.array([0.3, 0.8]),
        np.array([[0.1, 0.4], [0.6, 0.9]]),
    )  # of 1, by group, and by group and x
    many = np.array([[0.2, 0.5, 0.3], [0.5, 0.1, 0.4]])  # drugs, by x
    names = list(linked.unfolded.names)
    joint = np.zeros(tuple(linked.unfolded.sizes.values()))
    place = {name: j for j, name in enumerate(names)}

    def add(mass: float, **codes: int) -> None:
        cell = [size - 1 for size in joint.shape]
        for name, code in {"visits_count": 0, "drugs_count": 0, **codes}.items():
            cell[place[name]] = code
        joint[tuple(cell)] += mass

    for group, count, before, now in np.ndindex(2, 3, 3, 2):
        if count == 0 or (count == 1 and before < 2):
            continue
        share = 0.5 * np.array([0.2, 0.5, 0.3])[count] * (1 if count == 1 else 0.5)
        share *= np.append(np.array([1 - of_x[group], of_x[group]]), 1.0)[before]
        share *= (1 - of_x[group], of_x[group])[now]
        person = {"group": group, "visits_count": count, "visits_x": now}
        if before < 2:
            person["visits_before_x"] = before
        y = np.array([1 - of_y[group, now], of_y[group, now]])
        add(share * many[now, 0], **person)
        for one in range(2):
            add(share * many[now, 1] * y[one], **person, drugs_count=1, drugs_y=one)
            two = {"drugs_count": 2, "drugs_y": one}
            if order is not None:  # A is the first of two: there is none before
                add(share * many[now, 2] * y[one] / 2, **person, **two)
            for other in range(2):
                pair = share * many[now, 2] * (0.5 * y[one] * y[other] + 0.5 * y[one] * (one == other))
                b = linked.children[0].children[0].second("y")
                add(pair / (1 if order is None else 2), **person, **two, **{b: other})
    for group in range(2):
        add(0.5 * 0.2, group=group)
    assert abs(joint.sum() - 1) < 1e-9
    axes = "abcdefg"
    stated = [
        Measurement(
            clique, np.einsum(f"{axes}->{''.join(axes[place[name]] for name in clique)}", joint).ravel() * ROWS, 1.0
        )
        for clique in linked.cliques
    ]  # fmt: skip
    sizes = linked.unfolded.sizes
    model = fit(
        sizes, stated, total=ROWS, impossible=linked.unfolded.impossible, tolerance=0, iterations=3000
    )
    rows, counts = people(model)
    visits = fold(model, PEOPLE.names, linked.children[0], rows, counts, np.random.default_rng(1))
    [found] = fold_beneath(model, PEOPLE.names, visits, rows, np.random.default_rng(2))
    stated_law = model.marginal(("group", "visits_x", "drugs_count")).reshape(2, 3, 3)[
        :, :2
    ]  # of pairs of columns: nearly `many`
    stated_law /= stated_law.sum(axis=2, keepdims=True)
    number = np.bincount(found.person, minlength=len(visits.person))
    group = rows[visits.person, 0]
    late = np.r_[False, visits.person[1:] == visits.person[:-1]]
    for g, code, second in np.ndindex(2, 2, 2):
        here = (group == g) & (visits.codes[:, 0] == code) & (late == second)
        law = np.bincount(number[here], minlength=3) / here.sum()
        assert np.abs(law - stated_law[g, code]).sum() < 0.03
        drug = here[found.person]
        assert abs(found.codes[drug, 0].mean() - of_y[g, code]) < 0.05, (g, code, second)
    both = np.flatnonzero(found.person[1:] == found.person[:-1])
    alike = float((found.codes[both, 0] == found.codes[both + 1, 0]).mean())
    y = of_y[group[found.person[both]], visits.codes[found.person[both], 0]]
    assert abs(alike - float((0.5 + 0.5 * (y**2 + (1 - y) ** 2)).mean())) < 0.03
