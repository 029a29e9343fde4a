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
from parties.data.linked.opening import open_source
from parties.data.linked.places import LinkedPlaces
from parties.data.location import Location
from parties.data.sql.unfolding import UnfoldedInside
from synth.domain import Domain
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


DRUGS = Domain.from_spec({"columns": {"drug": {"kind": "categorical", "values": ["x", "y", "z"]}}})


def prescribed(
    store: Store, people: Rows, visits: Rows, drugs: Rows, order: str | None = None, most: int = 2
) -> Location:
    """Patients (pid, sex), visits (pid, vid, day, diag, cost) and their drugs (vid, drug, dose, which orders
    them), unfolded in the database."""
    child = ChildTable("drugs", most, order, DRUGS)
    tables = LinkedTables(
        "patients", "pid", PEOPLE, (ChildTable("visits", 3, "day", VISITS, "vid", (child,)),)
    )
    kinds = {"pid": "text", "vid": "integer", "day": "integer", "diag": "text", "cost": "integer"}
    parent = pushed(store.table(columns(people, pid="text", sex="text")))
    own = {
        "visits": pushed(store.table(columns(visits, **kinds))),
        "drugs": pushed(store.table(columns(drugs, vid="integer", drug="text", dose="integer"))),
    }
    return replace(parent, linked=LinkedPlaces(tables, own, Fixed()))  # type: ignore[arg-type]


def test_what_belongs_to_the_child_drawn_comes_with_it_whatever_is_asked(store: Store) -> None:
    """Visit p has no drug, q one (x), r three, of which two stay. Equal visits are told apart by their keys."""
    people = [[f"k{number}", "f"] for number in range(600)] + [["alone", "m"]]
    visits = [[f"k{p}", 3 * p + v, v, "pqr"[v], 0] for p in range(600) for v in range(3)]
    drugs = [
        [3 * p + v, drug, day]
        for p in range(600)
        for v, day, drug in ((1, 1, "x"), (2, 1, "x"), (2, 2, "y"), (2, 3, "z"))
    ]
    pair = ("visits_diag", "drugs_count")
    asked = [pair, (*pair, "drugs_drug"), ("sex", "drugs_count")]
    numbers, drawn, of_people = marginals(prescribed(store, people, visits, drugs), *asked)
    assert [numbers[0, 0], numbers[1, 1], numbers[2, 2], numbers[3, 0]] == numbers[numbers > 0].tolist()
    assert chi_square(numbers[:3].sum(axis=1)) > 1e-6 and numbers[3, 0] == 1
    assert drawn[1, 1].tolist() == [numbers[1, 1], 0, 0, 0] and drawn[0, 0, 3] == numbers[0, 0]
    assert chi_square(drawn[2, 2, :3]) > 1e-6 and drawn[2, 2, 3] == 0
    assert of_people[1].tolist() == [1, 0, 0]
    (pairs,) = marginals(
        prescribed(store, people, visits, drugs, "dose"), ("drugs_drug", "drugs_before_drug")
    )
    assert pairs[1, 0] and pairs[2, 0] and pairs[2, 1] and not np.triu(pairs[:3, :3]).any()
    same = [[f"k{p}", 2 * p + v, 1, "p", 0] for p in range(600) for v in range(2)]
    with_drug = [[2 * p, "x", 1] for p in range(600)]  # one visit of two that look alike has one
    told, again = marginals(prescribed(store, people, same, with_drug), ("drugs_count",), pair)
    assert (again.sum(axis=0) == told).all() and abs(int(told[1]) - 300) < 75  # 6 sigma


def test_whole_people_move_one_row_inside_a_database_too(store: Store) -> None:
    people = [[f"k{i}", "f"] for i in range(4)]
    visits: list[list[Any]] = [[f"k{i}", 10 * i + n, n, "pqr"[n % 3], n] for i in range(4) for n in range(i)]
    drugs = [[visit[1], "xyz"[dose], dose] for visit in visits for dose in range(visit[1] % 10 + 1)]
    clique = ("visits_diag", "visits_before_cost", "drugs_count", "drugs_drug", "drugs_other_drug")
    (whole,) = marginals(prescribed(store, people, visits, drugs), clique)
    for key, _ in people:
        rest = [row for row in visits if row[0] != key]
        kept = {row[1] for row in rest}
        fewer = prescribed(
            store,
            [row for row in people if row[0] != key],
            rest,
            [row for row in drugs[::-1] if row[0] in kept],
        )
        (left,) = marginals(fewer, clique)
        assert (whole - left).min() == 0 and (whole - left).sum() == 1


@pytest.mark.parametrize(
    ("visits", "drugs", "said"),
    [
        ([["a", 1, 1, "p", 1]], [[2, "x", 1]], 'column "vid", a row: no row of'),
        ([["a", 1, 1, "p", 1], ["a", 1, 2, "p", 1]], [[1, "x", 1]], 'column "vid": a key is there twice'),
        ([["a", 1, 1, "p", 1], ["a", None, 2, "p", 1]], [[1, "x", 1]], 'column "vid": a row has no key'),
        ([["a", 1, 1, "p", 1]], [[None, "x", 1]], 'column "vid": a row has no key'),
        ([["a", 1, 1, "p", 1]], [[1, "w", 1]], 'column "drug": '),
    ],
)
def test_what_does_not_belong_to_a_child_is_refused_inside_a_database_too(
    store: Store, visits: Rows, drugs: Rows, said: str
) -> None:
    with pytest.raises(DataRefused) as refused:
        next(marginals(prescribed(store, [["a", "f"]], visits, drugs), ("sex",)))
    assert said in refused.value.sentence


SECRET = "Krankheit-77"


@pytest.mark.parametrize(
    ("people", "visits", "said"),
    [
        ([["a", "f"], ["a", "m"]], [["a", 1, "p", 1]], 'column "pid": a key is there twice'),
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


@pytest.mark.parametrize(
    ("kind", "key", "said"),
    [
        ("double precision", 2.0**53 - 1, None),
        ("double precision", 2.0**53, "9,007,199,254,740,992 or more may stand for several keys"),
        ("double precision", -(2.0**60), "may stand for several keys"),
        ("real", 2.0**24 - 1, None),
        ("real", 2.0**24, "16,777,216 or more may stand for several keys"),
    ],
)
def test_keys_that_are_numbers_of_limited_precision_are_refused_where_several_are_one(
    store: Store, kind: str, key: float, said: str | None
) -> None:
    if kind == "real" and store.name == "mariadb":
        kind = "float"  # its real is a double
    people, visits = [[1.0, "f"], [key, "m"]], [[1.0, 1, "p", 1], [key, 2, "q", 2], [key, 3, "q", 2]]
    tables = LinkedTables("patients", "pid", PEOPLE, (ChildTable("visits", 3, "day", VISITS),))
    for large, location in (
        (people, placed_as(store, kind, people, visits, tables)),
        (visits, placed_as(store, kind, [[1.0, "f"], [3.0, "m"]], visits, tables)),
    ):
        if said is not None:
            with pytest.raises(DataRefused, match=said):
                next(marginals(location, ("sex",)))
        elif large is people:
            (counts,) = marginals(location, ("sex", "visits_count"))
            assert counts[:, 1:3].tolist() == [[1, 0], [0, 1]]


def placed_as(store: Store, kind: str, people: Rows, visits: Rows, tables: LinkedTables) -> Location:
    """`placed`, with keys of this type."""
    parent = pushed(store.table(columns(people, pid=kind, sex="text")))
    kinds = {"pid": kind, "day": "integer", "diag": "text", "cost": "integer"}
    child = pushed(store.table(columns(visits, **kinds)))
    return replace(parent, linked=LinkedPlaces(tables, {"visits": child}, Fixed()))  # type: ignore[arg-type]


def test_the_owner_is_told_of_orphans_and_of_what_is_left_out(store: Store) -> None:
    visits = [*[["a", day, "p", 1] for day in range(6)], ["z", 1, "p", 1], ["b", 1, "q", 2]]
    source = UnfoldedInside(placed(store, [["a", "f"], ["b", "m"]], visits))
    source.close()
    (own,) = source.unfoldings
    assert (own.children, own.orphans, own.truncated, own.left_out) == (8, 1, 1, 3)


def test_a_database_without_the_hash_is_refused_in_a_sentence(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    location = placed(open_store("sqlite", tmp_path, request), [["a", "f"]], [["a", 1, "p", 1]])
    with pytest.raises(DataRefused, match="SQLite has no SHA-256, by which a person's children are drawn"):
        open_source(location)
