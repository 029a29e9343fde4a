"""What else decides which rows count: rows of a person, constraints, missing identifiers; and what no
statement can say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import count, validate
from parties.data.harmony.recipe import fit
from parties.data.harmony.rules import ColumnRule, Rules
from parties.data.linked.opening import open_source
from parties.data.location import Location
from synth.domain import Categorical, Codes, Column, Domain, Numeric
from synth.domain.constraints import constraint_from_spec
from tests.parties.data.sql.databases import Store, pushed

SEX = Categorical(("F", "M"))


def outcome(
    location: Location, domain: Domain, unit: tuple[str, int] | None = None, max_rows: int = 100
) -> Any:
    """The counts of all columns together, or the sentence of the refusal; and the survey's private numbers."""
    with open_source(location) as source:
        survey = validate(source, domain, max_rows=max_rows, unit=unit)
    numbers = (survey.rows, survey.unnamed, dict(survey.broken))
    try:
        with open_source(location) as source:
            counted = count(source, domain, [domain.names], max_rows=max_rows, unit=unit)
    except DataRefused as error:
        assert error.exit_code == 30
        return error.sentence, numbers
    return counted.counts([domain.names])[0].tolist(), counted.rows, numbers


def both(location: Location, domain: Domain, **more: Any) -> Any:
    streamed, asked = outcome(location, domain, **more), outcome(pushed(location), domain, **more)
    assert streamed == asked
    return asked


def test_one_row_a_person_is_one_row_of_each_spelling(store: Store) -> None:
    domain = Domain(("sex",), (SEX,))
    location = store.table({"sex": ("text", ["F", "M", "F"]), "who": ("text", ["ann", "Ann", "ann "])})
    assert both(location, domain, unit=("who", 1))[0] == [2, 1]


def test_a_person_with_too_many_rows_is_refused(store: Store) -> None:
    domain = Domain(("sex",), (SEX,))
    location = store.table({"sex": ("text", ["F"] * 3), "who": ("integer", [7, 8, 7])})
    assert both(location, domain, unit=("who", 2))[0] == [3, 0]
    assert "a person (one value of the unit's id) has more rows" in both(location, domain, unit=("who", 1))[0]


@pytest.mark.parametrize("leave_out", [False, True])
def test_rows_without_an_identifier(store: Store, leave_out: bool) -> None:
    domain = Domain(("sex",), (SEX,))
    location = store.table({"sex": ("text", ["F", "F", "M"]), "who": ("text", ["ann", "", None])})
    if leave_out:
        rules = Rules("private.toml", leave_out=True, stated=True)
        location = replace(location, recipe=fit(rules, domain, ("who",)))
    result = both(location, domain, unit=("who", 1))
    if leave_out:
        assert result[0] == [1, 0] and result[-1] == (1, 2, {})
    else:
        assert "a row has no value of the unit's id" in result[0]


@pytest.mark.parametrize("broken", ["refuse", "leave out"])
def test_rows_that_break_a_constraint(store: Store, broken: str) -> None:
    columns: dict[str, Column] = {
        "sex": SEX,
        "children": Codes(4),
        "age": Numeric(low=0, high=80, bins=8, missing=True),
    }
    spec = {"if": {"sex": "M"}, "then": {"children": 0}}
    domain = Domain(tuple(columns), tuple(columns.values()), (constraint_from_spec(spec, columns),), broken)
    rows: dict[str, tuple[str, list[Any]]] = {
        "sex": ("text", ["F", "M", "M", "F"]),
        "children": ("integer", [2, 0, 3, 1]),
        "age": ("integer", [7, 80, 5, None]),
    }
    location = store.table(rows)
    streamed, asked = outcome(location, domain), outcome(pushed(location), domain)
    if broken == "refuse":
        assert "breaks the study's constraint" in streamed[0] and "breaks the study's constraint" in asked[0]
        assert streamed[-1][2] == asked[-1][2] == {"sex = M implies children = 0": 1}
    else:
        assert streamed == asked and asked[1] == 3


def test_bounds_on_rows(store: Store) -> None:
    domain = Domain(("sex",), (SEX,))
    location = store.table({"sex": ("text", ["F", "M", "F"])})
    with (
        open_source(pushed(location)) as source,
        pytest.raises(DataRefused, match="more rows than the study's max_rows = 2"),
    ):
        count(source, domain, [("sex",)], max_rows=2)
    with open_source(pushed(location)) as source:
        assert count(source, domain, [("sex",)], max_rows=3).rows == 3


def test_an_empty_table_has_no_rows_unless_that_is_right(store: Store) -> None:
    domain = Domain(("sex",), (SEX,))
    location = store.table({"sex": ("text", ["X"])})
    name = location.table.strip('"')
    store.execute(f"DELETE FROM {name}", ())
    with open_source(pushed(location)) as source, pytest.raises(DataRefused, match="has no rows"):
        count(source, domain, [("sex",)], max_rows=2)
    with open_source(pushed(location)) as source:
        assert count(source, domain, [("sex",)], max_rows=2, allow_empty=True).counts([("sex",)])[
            0
        ].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("kind", "column", "rules", "words"),
    [
        ("text", Numeric(low=0, high=9, bins=3), Rules(stated=True), "has text where the study has numbers"),
        ("text", Codes(3), Rules(stated=True), "has text where the study has codes"),
        (
            "integer",
            Codes(3),
            Rules("private.toml", filter="x = 1", stated=True),
            "filter is computed on rows",
        ),
        (
            "integer",
            Codes(3),
            Rules("private.toml", columns={"x": ColumnRule(sql="x + 1")}, stated=True),
            "sql is computed on rows",
        ),
    ],
)
def test_what_no_statement_says_is_refused_with_a_way_out(
    store: Store, kind: str, column: Any, rules: Rules, words: str
) -> None:
    domain = Domain(("x",), (column,))
    location = replace(store.table({"x": (kind, ["1"])}), recipe=fit(rules, domain, ()))
    with open_source(pushed(location)) as source, pytest.raises(DataRefused) as refused:
        count(source, domain, [("x",)], max_rows=9)
    assert (
        words in refused.value.sentence and "view" in refused.value.sentence and refused.value.exit_code == 30
    )


def test_unions_are_counted_once_each(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cliques that fit into one table of 2^17 cells are one GROUP BY: few statements, whatever the number of
    cliques."""
    names = [f"x{place}" for place in range(6)]
    domain = Domain(tuple(names), tuple(Codes(4) for _ in names))
    location = store.table({name: ("integer", [place % 4 for place in range(9)]) for name in names})
    asked: list[Any] = []

    def recorded(*rest: Any) -> Any:
        asked.append(rest)
        return fetch(*rest)

    with open_source(pushed(location)) as source:
        fetch = source.fetch
        monkeypatch.setattr(source, "fetch", recorded)
        cliques = [(one, two) for one in names for two in names if one < two]
        counted = count(source, domain, cliques, max_rows=9)
    assert len(asked) == 2 and len(counted.counts(cliques)) == 15  # what does not fit; one table of 4^6 cells
