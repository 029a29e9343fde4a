"""Which columns a person's row has, the workload of a study that states none, and what is refused."""

import json
from typing import Any

import pytest

from mpc_protocols.errors import StudyInvalid
from synth.domain import Domain
from synth.linked.tables import SINGLE_COUNTS, ChildTable, LinkedTables
from synth.workload import Workload

PEOPLE = Domain.from_spec({"columns": {"age": {"kind": "integer", "low": 0, "high": 7}, "sex": 2}})
COLUMNS = {
    "day": {"kind": "date", "low": "2024-01-01", "high": "2024-12-31", "step": "month"},
    "diag": {"kind": "categorical", "values": ["a", "b"], "missing": True},
    "cost": 5,
}
VISITS = Domain.from_spec({"columns": COLUMNS})


def linked(order: Any = None, most: Any = 8, people: Any = PEOPLE, visits: Any = VISITS) -> Any:
    return LinkedTables("patients", "pid", people, (ChildTable("visits", most, order, visits),))


def test_a_row_has_the_parents_columns_the_count_and_two_children_that_may_lack() -> None:
    sizes = linked("day").unfolded.sizes
    assert sizes == {
        "age": 8, "sex": 2, "visits_count": 9, "visits_day": 13, "visits_diag": 3, "visits_cost": 6,
        "visits_before_day": 13, "visits_before_diag": 3, "visits_before_cost": 6,
    }  # fmt: skip
    assert "visits_other_cost" in linked(None).unfolded


@pytest.mark.parametrize("most", [1, 2, SINGLE_COUNTS, SINGLE_COUNTS + 1, 50, 1000])
def test_every_number_of_children_has_one_code_and_small_ones_their_own(most: Any) -> None:
    column = linked(None, most).unfolded["visits_count"]
    spans = [column.span(code) for code in range(column.size)]
    assert spans[0] == (0, 0) and spans[1][0] == 1 and spans[-1][1] == most
    assert [low for low, _ in spans[1:]] == [high + 1 for _, high in spans[:-1]]
    assert column.size <= 40


def test_the_workload_ties_people_children_and_neighbours() -> None:
    found = set(linked(None).cliques)
    for clique in [("age", "sex"), ("age", "visits_count"), ("sex", "visits_diag"), ("visits_count", "visits_cost"),
                   ("visits_diag", "visits_cost"), ("visits_cost", "visits_other_cost")]:  # fmt: skip
        assert clique in found
    assert ("age", "visits_other_cost") not in found and ("visits_diag", "visits_other_cost") not in found
    assert ("visits_count", "visits_day", "visits_before_day") in linked("day").cliques
    for order in (None, "day"):
        Workload.from_spec(
            {"cliques": [list(clique) for clique in linked(order).cliques]}, linked(order).unfolded
        )


@pytest.mark.parametrize("order", [None, "day", "at"])
def test_what_run_json_says_makes_the_same_tables(order: Any) -> None:
    own = linked(order)
    assert LinkedTables.from_spec(json.loads(json.dumps(own.to_spec())), own.unfolded) == own
    with pytest.raises(StudyInvalid):
        LinkedTables.from_spec(own.to_spec() | {"tables": []}, own.unfolded)


def test_what_is_impossible_holds_for_every_row_that_unfolding_makes() -> None:
    """No child, no values; a value that may not lack is there with the child; the one before is there as a
    whole."""
    zeros = {frozenset(clique): cells for clique, cells in linked("day").unfolded.impossible.items()}
    count = zeros[frozenset({"visits_count", "visits_cost"})]
    assert count[0, :5].all() and not count[0, 5] and count[1:, 5].all() and not count[1:, :5].any()
    natural = zeros[frozenset({"visits_count", "visits_diag"})]
    assert natural[0, :2].all() and not natural[1:].any()
    before = zeros[frozenset({"visits_count", "visits_before_cost"})]
    assert before[:2, :5].all() and not before[2:].any() and not before[:, 5].any()
    both = zeros[frozenset({"visits_before_day", "visits_before_cost"})]
    assert both[12, :5].all() and both[:12, 5].all() and not both[:12, :5].any() and not both[12, 5]


def test_constraints_of_people_hold_in_the_row() -> None:
    people = PEOPLE.constrained([{"if": {"age": 0}, "then": {"sex": 1}}], "leave out")
    own = linked(None, people=people).unfolded
    assert ("age", "sex") in own.impossible and own.broken_rows == "leave out"
    assert (
        own.to_spec()["constraints"] == people.to_spec()["constraints"]
    )  # the others follow from the tables


@pytest.mark.parametrize(
    ("people", "visits", "said"),
    [
        ({"pid": 5}, {"cost": 5}, "The key pid is among the columns of patients"),
        ({"age": 5}, {"pid": 5}, "The key pid is among the columns of visits"),
        ({"visits_count": 5}, {"cost": 5}, "makes a column visits_count"),
        ({"age": 5}, {"other_x": 5, "x": 5}, "makes a column visits_other_x"),
    ],
)
def test_keys_and_names_that_collide_are_refused(people: Any, visits: Any, said: Any) -> None:
    with pytest.raises(StudyInvalid, match=said):
        linked(None, 3, Domain.from_spec({"columns": people}), Domain.from_spec({"columns": visits}))


def deep(order: Any = None, key: str = "vid") -> Any:
    """Visits with drugs."""
    drugs = ChildTable("drugs", 3, order, Domain.from_spec({"columns": {"dose": 4}}))
    return LinkedTables("patients", "pid", PEOPLE, (ChildTable("visits", 8, "day", VISITS, key, (drugs,)),))


@pytest.mark.parametrize("order", [None, "dose", "at"])
def test_what_belongs_to_a_child_adds_columns_of_the_child_drawn_and_cliques_with_it(order: Any) -> None:
    own = deep(order)
    b = "other" if order is None else "before"
    assert list(own.unfolded.names)[-3:] == ["drugs_count", "drugs_dose", f"drugs_{b}_dose"]
    assert own.names == ("patients", "visits", "drugs")
    assert [own.owner(name) for name in ("visits", "drugs")] == ["patients", "visits"]
    cliques = {frozenset(clique) for clique in own.cliques}
    for pair in (("visits_diag", "drugs_dose"), ("visits_day", "drugs_count"), ("age", "drugs_dose")):
        assert frozenset(pair) in cliques
    assert not any({"visits_before_diag", "drugs_dose"} <= clique for clique in cliques)
    zeros = {frozenset(clique): cells for clique, cells in own.unfolded.impossible.items()}
    none = zeros[frozenset({"visits_count", "drugs_count"})]
    assert none[0, 1:].all() and not none[0, 0] and not none[1:].any()
    assert LinkedTables.from_spec(json.loads(json.dumps(own.to_spec())), own.unfolded) == own


def test_tables_beneath_tables_beneath_children_are_refused() -> None:
    packs = ChildTable("packs", 3, None, Domain.from_spec({"columns": {"size": 4}}))
    drugs = ChildTable("drugs", 3, None, Domain.from_spec({"columns": {"dose": 4}}), "did", (packs,))
    with pytest.raises(StudyInvalid, match="tables go as far as the rows of a person's rows"):
        LinkedTables("patients", "pid", PEOPLE, (ChildTable("visits", 8, "day", VISITS, "vid", (drugs,)),))
    with pytest.raises(StudyInvalid, match="a key of their own, other than pid"):
        deep(key="pid")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parent": "../patients"}, "must be named by letters"),
        ({"tables": {"name": "/tmp/visits"}}, "must be named by letters"),
        ({"tables": {"name": "visits\n"}}, "must be named by letters"),
        ({"parent": "Visits"}, "Visits and visits differ by case alone"),
        ({"tables": {"max_rows": 0}}, "max_rows must be from 1 to"),
        ({"tables": {"max_rows": 1 << 40}}, "max_rows must be from 1 to"),
    ],
)
def test_a_statement_from_elsewhere_names_no_path_and_asks_for_no_endless_table(
    change: Any, said: Any
) -> None:
    own = linked(None)
    spec = own.to_spec()
    spec = {**spec, **change, "tables": [{**spec["tables"][0], **change.get("tables", {})}]}
    with pytest.raises(StudyInvalid, match=said):
        LinkedTables.from_spec(spec, own.unfolded)
