"""Which form a table takes: from public sizes, the cheaper of those there are, nothing wide as columns."""

from __future__ import annotations

from itertools import combinations

import pytest

from mpc_protocols.backends.replicated.vertical import planner
from mpc_protocols.backends.replicated.vertical.plan import Plan
from mpc_protocols.backends.replicated.vertical.planner import make_plan
from mpc_protocols.functionality import Clique
from mpc_protocols.vertical.partition import Partition
from mpc_protocols.vertical.tables import Factor, Joint
from tests.mpc_protocols.backends.replicated.vertical.owners import (
    Population,
    partition,
    traffic_without_content,
)

ROWS = 45_000
SIZES = {"a": 100, "b": 90, "c": 80, "d": 2, "e": 3, "f": 4}


def plan_of(
    tables: list[Clique],
    columns: dict[str, int],
    population: Population = "intersection",
    rows: int = ROWS,
    sizes: dict[str, int] = SIZES,
) -> Plan:
    return make_plan(partition(sizes, columns, population, rows), sizes, 3, tables, population == "union")


def sent(plan: Plan) -> int:
    """Bytes of all parties for the plan's tables."""
    traffic = traffic_without_content(plan.sizes, plan.partition, [plan.tables])
    return sum(party.bytes_sent for party in traffic)


@pytest.mark.parametrize("owner", [0, 3])
def test_joints_of_one_owner_never_travel_as_columns(owner: int) -> None:
    """9,000 cells of one owner with 80 of another: a few elements a row and column of the narrower, not
    9,000."""
    columns = {"a": owner, "b": owner, "c": 1, "d": 1, "e": owner, "f": 1}
    plan = plan_of([("a", "c", "b"), ("c", "d")], columns)
    assert {product.left for product in plan.products if product.by_permutation} == {
        Joint(owner, ("a", "b")),
        Joint(1, ("c", "d")),
    }
    shuffles = 1 if owner == 0 else 3
    cells = plan.cells() * 3 * 14  # resharing and lifting
    assert sent(plan) - cells < ROWS * (80 * 2 + shuffles * (80 * 2 + 4) * 4)


def test_three_owners_multiply_the_narrow_columns() -> None:
    plan = plan_of([("a", "c", "d")], {"a": 0, "b": 0, "c": 1, "d": 2, "e": 2, "f": 1})
    (product,) = plan.products
    assert product.left == Joint(0, ("a",)) and product.right == Factor(
        (Joint(2, ("d",)), Joint(1, ("c",))), False
    )
    assert product.columns == ("a", "d", "c")


def test_all_pairs_of_narrow_columns_are_one_product() -> None:
    sizes = {name: 5 for name in "abcdef"}
    columns = {name: place // 3 for place, name in enumerate(sizes)}
    pairs: list[Clique] = [pair for pair in combinations(sizes, 2) if columns[pair[0]] != columns[pair[1]]]
    plan = plan_of(pairs, columns, sizes=sizes)
    (group,) = plan.groups(by_permutation=False)
    assert (
        plan.shape(group) == (15, 15) and not plan.needs_memberships and not plan.groups(by_permutation=True)
    )
    assert sent(plan) < ROWS * 30 * 2 + plan.cells() * 60  # each owner's columns once, two bytes an element


def test_tables_of_one_owner_are_sums_of_wider_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """28 pairs of eight columns of 16 values: triples give them all, by a third of the orders of the rows and
    fewer bytes."""
    sizes = {name: 16 for name in "abcdefghz"}
    columns = {name: int(name == "z") for name in sizes}
    pairs: list[Clique] = list(combinations("abcdefgh", 2))
    plan = plan_of(pairs, columns, sizes=sizes)
    assert len(plan.sources) == len(pairs) and len(plan.products) <= len(pairs) // 2
    for pair, source in zip(pairs, plan.sources, strict=True):
        assert set(pair) <= set(plan.products[source].left.columns)
    fewer = sent(plan)
    monkeypatch.setattr(planner, "_wider_lefts", lambda *_: {})
    alone = plan_of(pairs, columns, sizes=sizes)
    assert len(alone.products) == len(pairs) and fewer < 0.75 * sent(alone)


def test_the_intersection_restricts_and_the_union_does_not() -> None:
    columns = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}
    tables: list[Clique] = [("d", "e"), ("f",)]
    restricted = plan_of(tables, columns)
    assert restricted.needs_memberships and all(product.right.restricted for product in restricted.products)
    union = plan_of(tables[:1], columns, "union")
    assert (
        union.needs_memberships
        and union.counts_somebody
        and not any(product.right.restricted for product in union.products)
    )


@pytest.mark.parametrize(
    ("rows", "element", "sections"), [(57_342, 2, 1), (57_344, 2, 2), (1_000_000, 2, 25), (300, 4, 1)]
)
def test_narrow_rings_where_it_pays(rows: int, element: int, sections: int) -> None:
    """Modulo 2^16 over ranges of up to 57,343 rows; few rows, or narrow columns, do not pay for the lifts."""
    columns = {"a": 0, "b": 0, "c": 1, "d": 0, "e": 1, "f": 1}
    plan = plan_of([("a", "c")], columns, rows=rows)
    assert (plan.element, len(plan.row_ranges())) == (element, sections)
    assert plan_of([("d", "e")], columns, rows=3_000).element == 4


def test_waves_cover_the_rows_and_stay_small() -> None:
    of = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 0, "f": 1}
    for rows in (0, 1, 255, ROWS, 3_000_000):
        plan = plan_of([("a", "d"), ("c", "e"), ("a", "b")], of, rows=rows)
        sections = plan.row_ranges()
        row_blocks = [row_block for section in sections for row_block in section]
        if plan.element == 2:
            assert all(section[-1][1] - section[0][0] < 57_344 for section in sections if section)
        assert [start for start, _ in row_blocks[1:]] == [stop for _, stop in row_blocks[:-1]]
        assert sum(stop - start for start, stop in row_blocks) == rows
        width = 2 * plan.element * sum(map(plan.input_width, plan.inputs()))
        assert plan.row_block * width <= 4 << 24


def test_the_plan_is_the_same_wherever_it_is_made() -> None:
    columns = {"a": 3, "b": 0, "c": 1, "d": 4, "e": 0, "f": 2}
    tables: list[Clique] = [*combinations(SIZES, 2), ("a", "b", "f")]
    assert plan_of(tables, columns) == plan_of(tables, columns)
    assert isinstance(plan_of(tables, columns).partition, Partition)
