"""Children along an order: as many as the count says, none of them running ahead, whatever the law by which
they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synth.domain import Domain
from synth.linked import order
from synth.linked.folding import fold
from synth.linked.tables import ChildTable, LinkedTables
from synth.mrf import Model
from synth.mrf.fit import Measurement, fit

MONTHS, MOST, PEOPLE = 6, 5, 40_000
PARENTS = Domain.from_spec({"columns": {"group": 2}})
VISITS = Domain.from_spec({"columns": {"month": {"kind": "integer", "low": 0, "high": MONTHS - 1}}})


def uniform(rng: Any, count: int, people: int) -> Any:
    """At any time, independently."""
    return np.sort(rng.integers(0, MONTHS, (people, count)), axis=1)


def panel(rng: Any, count: int, people: int) -> Any:
    """In consecutive months, one in each."""
    return rng.integers(0, MONTHS - count + 1, (people, 1)) + np.arange(count)


def world(kind: Any) -> tuple[Model, LinkedTables, dict[int, Any]]:
    """The model of exact pairs, which knows the step by few or many children alone, and people's months by
    their number."""
    linked = LinkedTables("people", "pid", PARENTS, (ChildTable("visits", MOST, "month", VISITS),))
    rng = np.random.default_rng(4)
    joint = np.zeros((MOST + 1, MONTHS + 1, MONTHS + 1))
    joint[0, MONTHS, MONTHS] = PEOPLE / 5
    months = {count: kind(rng, count, PEOPLE // count) for count in range(1, MOST + 1)}
    for count, own in months.items():
        for at in range(count):
            before = own[:, at - 1] if at else np.full(len(own), MONTHS)
            np.add.at(joint[count], (own[:, at], before), 1 / count)
    stated = [
        Measurement(("visits_count", "visits_month"), joint.sum(axis=2).ravel(), 1.0),
        Measurement(("visits_month", "visits_before_month"), joint.sum(axis=0).ravel(), 1.0),
        Measurement(("group",), np.array([1, 1]) * joint.sum() / 2, 1.0),
    ]
    model = fit(
        linked.unfolded.sizes,
        stated,
        total=joint.sum(),
        impossible=linked.unfolded.impossible,
        iterations=2000,
    )
    return model, linked, months


@pytest.mark.parametrize("kind", [uniform, panel])
def test_each_child_stands_where_the_real_ones_do_though_only_pairs_of_any_place_were_measured(
    kind: Any,
) -> None:
    """Total variation of the months of the first, second, .. child of people with so many: below what the
    plain chain gives."""
    model, linked, months = world(kind)
    child = linked.children[0]
    rows = np.zeros((MOST * 20_000, 4), dtype=np.int64)
    rows[:, 1] = counts = np.repeat(np.arange(1, MOST + 1), 20_000)

    def worst() -> float:
        made = fold(model, linked.people.names, child, rows, counts, np.random.default_rng(0))
        found = 0.0
        for count, own in months.items():
            mine = made.codes[counts[made.person] == count, 0].reshape(-1, count)
            assert (np.diff(mine, axis=1) >= 0).all()
            shares = np.array([
                [np.bincount(table[:, at], minlength=MONTHS) / len(table) for at in range(count)]
                for table in (mine, own)
            ])  # fmt: skip
            found = max(found, float(np.abs(shares[0] - shares[1]).sum(axis=1).max()) / 2)
        return found

    corrected = worst()
    limit, order.MAX_CHAIN_CELLS = order.MAX_CHAIN_CELLS, 0
    try:
        plain = worst()
    finally:
        order.MAX_CHAIN_CELLS = limit
    assert corrected < 0.08
    assert kind is panel or plain > 3 * corrected


def test_the_law_of_how_many_follow_is_a_law() -> None:
    model, linked, _ = world(uniform)
    chain = order.OrderChain.of(model, linked.children[0])
    assert chain is not None
    total = sum(chain.follow(more) for more in range(80))
    assert np.allclose(total, 1, atol=1e-6) and (chain.follow(0) > 0).all()
    by_hand = chain.goes_on * (chain.steps @ (1 - chain.goes_on))
    assert np.allclose(chain.follow(1), by_hand)
    assert order.OrderChain.of(model, ChildTable("visits", MOST, "at", VISITS)) is None
