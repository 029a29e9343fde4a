"""Linked tables unfolded inside their database: the law of the draw, and what is refused, where no row is
seen.

Chi-squares: false alarm 1e-6 each. The draws' keys are fixed, so a test passes always or never.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import count
from parties.data.linked.places import LinkedPlaces
from parties.data.location import Location
from parties.data.source import open_source
from parties.data.sql.unfolding import UnfoldedInside
from synth.linked.tables import ChildTable, LinkedTables
from tests.parties.data.linked.test_unfold import PEOPLE, VISITS, Fixed
from tests.parties.data.sql.databases import DATABASES, Store, open_store, pushed

Rows = Sequence[Sequence[Any]]
ABLE = [name for name in DATABASES if name != "sqlite"]


@pytest.fixture(scope="module", params=ABLE)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return open_store(request.param, tmp_path_factory.mktemp(request.param), request)


def placed(store: Store, people: Rows, visits: Rows, order: str | None = "day", most: int = 3) -> Location:
    """Patients (pid, sex) and visits (pid, day, diag, cost) in the database, unfolded there."""
    tables = LinkedTables("patients", "pid", PEOPLE, (ChildTable("visits", most, order, VISITS),))
    parent = pushed(store.table(columns(people, pid="text", sex="text")))
    child = pushed(store.table(columns(visits, pid="text", day="integer", diag="text", cost="integer")))
    return replace(parent, linked=LinkedPlaces(tables, {"visits": child}, Fixed()))  # type: ignore[arg-type]


def columns(rows: Rows, **kinds: str) -> dict[str, tuple[str, list[Any]]]:
    return {
        name: (KINDS.get(kind, kind), [row[place] for row in rows])
        for place, (name, kind) in enumerate(kinds.items())
    }


KINDS = {"text": "varchar(40)", "integer": "bigint"}


def marginals(location: Location, *cliques: tuple[str, ...]) -> Iterator[Any]:
    assert location.linked is not None
    domain = location.linked.linked.unfolded
    with open_source(location) as source:
        found = count(source, domain, list(cliques), max_rows=10**6, allow_empty=True)
    for clique, counts in zip(cliques, found.counts(list(cliques)), strict=True):
        yield np.asarray(counts).reshape([domain[name].size for name in clique])


def chi_square(seen: Any) -> float:
    from scipy.stats import chisquare

    return float(chisquare(seen).pvalue)


def test_who_is_drawn_and_who_stays_is_as_likely_as_outside(store: Store) -> None:
    people = [[f"k{number}", "fm"[number % 2]] for number in range(900)]
    visits = [[key, month, "pqr"[month % 3], month] for key, _ in people for month in range(5)]
    location = placed(store, people, visits, most=2)
    many, a, costs = marginals(
        location, ("visits_count",), ("visits_cost",), ("visits_cost", "visits_before_cost")
    )
    assert many.tolist() == [0, 0, 900]
    assert chi_square(a[:5]) > 1e-6 and a.sum() == a[:5].sum()
    assert (costs.sum(axis=1) == a).all()  # another statement, the same draw
    assert not np.triu(costs[:5, :5]).any()  # the one before is before
    assert abs(int(costs[:, -1].sum()) - 450) < 75  # A is the first of two: 5 sigma


def test_children_that_tie_are_equally_likely_to_be_first_and_equal_ones_count_each(store: Store) -> None:
    people = [[f"k{number}", "f"] for number in range(900)]
    visits = [[key, 7, diag, 0] for key, _ in people for diag in "pqr"]
    (pairs,) = marginals(placed(store, people, visits), ("visits_diag", "visits_before_diag"))
    cells = [pairs["pqr".index(x), "pqr".index(y)] for x, y in permutations("pqr", 2)]
    cells += [pairs[code, 3] for code in range(3)]
    assert sum(cells) == 900 and chi_square(cells) > 1e-6
    (many,) = marginals(placed(store, [["a", "f"]], [["a", 7, "p", 1]] * 4), ("visits_count",))
    assert many.tolist() == [0, 0, 0, 1]


def test_another_child_is_drawn_where_there_is_no_order(store: Store) -> None:
    people = [[f"k{number}", "f"] for number in range(600)]
    visits = [[key, 1, diag, 0] for key, _ in people for diag in "pqr"]
    (pairs,) = marginals(placed(store, people, visits, order=None), ("visits_diag", "visits_other_diag"))
    cells = [pairs["pqr".index(x), "pqr".index(y)] for x, y in permutations("pqr", 2)]
    assert sum(cells) == 600 and chi_square(cells) > 1e-6


def test_what_does_not_depend_on_the_draw_is_as_outside(store: Store) -> None:
    rng = np.random.default_rng(3)
    people = [[f"k{number}", "fm"[int(rng.integers(2))]] for number in range(60)]
    visits = [
        [key, int(rng.integers(9)), "pqr"[int(rng.integers(3))], int(rng.integers(9))]
        for key, _ in people
        for _ in range(int(rng.integers(0, 6)))
    ]
    inside = placed(store, people, visits)
    linked = inside.linked
    assert linked is not None
    out = replace(inside, push_down=False)
    outside = replace(
        out,
        linked=replace(
            linked, children={n: replace(place, push_down=False) for n, place in linked.children.items()}
        ),
    )
    clique = ("sex", "visits_count")
    assert next(marginals(inside, clique)).tolist() == next(marginals(outside, clique)).tolist()
    with open_source(inside) as source, pytest.raises(DataRefused, match="rows may not leave the database"):
        next(source.batches(("sex",)))


SECRET = "Krankheit-77"


@pytest.mark.parametrize(
    ("people", "visits", "said"),
    [
        ([["a", "f"], ["a", "m"]], [["a", 1, "p", 1]], 'column "pid": a person is there twice'),
        ([["a", "f"], [None, "m"]], [["a", 1, "p", 1]], 'column "pid": a row has no key'),
        ([["a", "f"]], [["a", 1, "p", 1], [SECRET, 1, "p", 1]], 'column "pid", a row: no row of'),
        ([["a", "f"]], [["a", 1, "p", 1], [None, 1, "p", 1]], 'column "pid": a row has no key'),
        ([["a", "f"]], [["a", None, "p", 1]], 'column "day": a row has no value'),
        ([["a", "f"]], [["a", 1, "p", 1], ["a", 1, SECRET, 1]], 'column "diag": '),
        ([["a", SECRET]], [["a", 1, "p", 1]], 'column "sex": '),
    ],
)
def test_what_does_not_fit_is_refused_without_a_row_or_a_value(
    store: Store, people: Rows, visits: Rows, said: str
) -> None:
    with pytest.raises(DataRefused) as refused:
        next(marginals(placed(store, people, visits), ("sex",)))
    assert said in refused.value.sentence and SECRET not in refused.value.sentence


def test_the_owner_is_told_of_orphans_and_of_what_is_left_out(store: Store) -> None:
    visits = [*[["a", day, "p", 1] for day in range(6)], ["z", 1, "p", 1], ["b", 1, "q", 2]]
    source = UnfoldedInside(placed(store, [["a", "f"], ["b", "m"]], visits))
    source.close()
    (own,) = source.told
    assert (own.children, own.orphans, own.truncated, own.left_out) == (8, 1, 1, 3)


def test_a_database_without_the_hash_is_refused_in_a_sentence(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    location = placed(open_store("sqlite", tmp_path, request), [["a", "f"]], [["a", 1, "p", 1]])
    with pytest.raises(DataRefused, match="SQLite has no SHA-256, by which a person's children are drawn"):
        open_source(location)
