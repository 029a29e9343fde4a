"""Unfolding: one row a person, which child is drawn, what is refused, and that a person moves one row."""

import csv
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.linked.draw_key import SUFFIX, DrawKey
from parties.data.linked.places import LinkedPlaces, as_parquet, written
from parties.data.location import locate
from synth.domain import Domain
from synth.linked.tables import ChildTable, LinkedTables

KEY = bytes(range(32))
VISITS = Domain.from_spec(
    {"columns": {"diag": {"kind": "categorical", "values": ["p", "q", "r"]}, "cost": 9}}
)
PEOPLE = Domain.from_spec({"columns": {"sex": {"kind": "categorical", "values": ["f", "m"]}}})


class Fixed:
    """A key of the draws that a test chooses."""

    def __init__(self, key: bytes = KEY) -> None:
        self._key = key

    def derive(self) -> bytes:
        return self._key


def linked(order: str | None = "day", most: int = 3) -> LinkedTables:
    return LinkedTables("patients", "pid", PEOPLE, (ChildTable("visits", most, order, VISITS),))


def write(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def places(
    folder: Any,
    people: Any,
    visits: Any,
    tables: Any,
    key: Any = KEY,
    header: Any = ("pid", "day", "diag", "cost"),
) -> Any:
    one = locate(write(folder / "patients.csv", ["pid", "sex"], people))
    children = {"visits": locate(write(folder / "visits.csv", list(header), visits))}
    return one, LinkedPlaces(tables, children, Fixed(key))  # type: ignore[arg-type]


def unfolded(folder: Any, people: Any, visits: Any, tables: Any, key: Any = KEY) -> Any:
    """The rows of the copy, by key."""
    location, where = places(folder, people, visits, tables, key)
    copy = as_parquet(location, where, folder)
    table = pq.read_table(copy.path).to_pylist()
    return {row.pop("pid"): row for row in table}


ALICE = [["a", "2024-01-05", "p", 1], ["a", "2024-02-05", "q", 2], ["a", "2024-03-05", "r", 3]]


def like_alice(people: int) -> tuple[Any, Any]:
    """So many people whose visits are hers: as many draws in one unfolding."""
    keys = [f"k{number}" for number in range(people)]
    return [[key, "f"] for key in keys], [[key, *visit[1:]] for key in keys for visit in ALICE]


def test_a_row_has_the_parents_columns_the_count_a_child_and_the_one_before_it(tmp_path: Path) -> None:
    """One of three children is drawn by none of 60 people with probability below 1e-10, and the key is fixed."""
    people, visits = like_alice(60)
    rows = unfolded(tmp_path, [*people, ["b", "m"]], visits, linked())
    assert rows.pop("b") == {
        "sex": "m", "visits_count": 0, "visits_diag": None, "visits_cost": None,
        "visits_before_diag": None, "visits_before_cost": None,
    }  # fmt: skip
    assert {(row["sex"], row["visits_count"]) for row in rows.values()} == {("f", 3)}
    seen = {
        (row["visits_diag"], row["visits_before_diag"], row["visits_before_cost"]) for row in rows.values()
    }
    assert seen == {("p", None, None), ("q", "p", "1"), ("r", "q", "2")}


def test_without_an_order_the_other_child_is_any_other_one(tmp_path: Path) -> None:
    people, visits = like_alice(200)
    rows = unfolded(tmp_path, people, visits, linked(None)).values()
    assert {(row["visits_diag"], row["visits_other_diag"]) for row in rows} == set(permutations("pqr", 2))


def test_another_key_draws_other_children(tmp_path: Path) -> None:
    """200 people draw alike under two keys with probability 3^-200."""
    people, visits = like_alice(200)
    one, again, other = (
        unfolded(tmp_path, people, visits, linked(), key) for key in (KEY, KEY, bytes(range(1, 33)))
    )
    assert one == again != other


def test_the_child_drawn_is_uniform_among_a_persons_children_and_people_are_drawn_apart(
    tmp_path: Path,
) -> None:
    """Chi-squares of 4,000 people: false alarm 1e-6 each."""
    from scipy.stats import chisquare

    people = [[f"k{number}", "f"] for number in range(4000)]
    visits = [[key, f"2024-0{month}-01", diag, 0] for key, _ in people for month, diag in enumerate("pqr", 1)]
    rows = unfolded(tmp_path, people, visits, linked())
    drawn = [row["visits_diag"] for row in rows.values()]
    assert chisquare(list(Counter(drawn).values())).pvalue > 1e-6
    pairs = Counter(zip(drawn[::2], drawn[1::2], strict=True))
    assert len(pairs) == 9 and chisquare(list(pairs.values())).pvalue > 1e-6


def test_of_more_children_than_the_study_allows_all_are_as_likely_to_stay(tmp_path: Path) -> None:
    from scipy.stats import chisquare

    people = [[f"k{number}", "f"] for number in range(3000)]
    visits = [[key, f"2024-0{month}-01", "p", month] for key, _ in people for month in range(1, 6)]
    location, where = places(tmp_path, people, visits, linked(most=2))
    _, told = written(location, where, tmp_path)
    assert (told[0].truncated, told[0].left_out, told[0].orphans) == (3000, 9000, 0)
    rows = unfolded(tmp_path, people, visits, linked(most=2))
    assert {row["visits_count"] for row in rows.values()} == {2}
    drawn = Counter(row["visits_cost"] for row in rows.values())
    assert len(drawn) == 5 and chisquare(list(drawn.values())).pvalue > 1e-6


def test_nothing_depends_on_the_order_of_lines(tmp_path: Path) -> None:
    people = [[f"k{number}", "fm"[number % 2]] for number in range(40)]
    rng = np.random.default_rng(1)
    visits = [
        [f"k{i}", f"2024-01-{d:02}", "pqr"[d % 3], d % 9] for i in range(40) for d in rng.integers(1, 28, 5)
    ]
    expected = unfolded(tmp_path, people, visits, linked())
    rng.shuffle(visits)
    rng.shuffle(people)
    assert unfolded(tmp_path, people, visits, linked()) == expected


@pytest.mark.parametrize("order", ["day", None])
@pytest.mark.parametrize("most", [1, 2])
def test_a_whole_person_moves_one_row_whatever_is_theirs(tmp_path: Path, order: Any, most: Any) -> None:
    """A table of three people with these children, against that without any one of them, or with other
    children of theirs."""
    sets = [
        [],
        [("2024-01-05", "p", 1)],
        [("2024-01-05", "p", 1), ("2024-02-05", "q", 2), ("2024-03-05", "q", 2)],
    ]
    tables = linked(order, most)
    people = [[f"k{i}", "fm"[i % 2]] for i in range(3)]
    visits = [[f"k{i}", *row] for i in range(3) for row in sets[i]]
    rows = unfolded(tmp_path, people, visits, tables)
    assert set(rows) == {key for key, _ in people}
    for number, (key, _) in enumerate(people):
        rest = [row for row in visits if row[0] != key]
        fewer = unfolded(tmp_path, [row for row in people if row[0] != key], rest, tables)
        assert fewer == {other: row for other, row in rows.items() if other != key}
        for own in sets[:number] + sets[number + 1 :]:
            swapped = unfolded(tmp_path, people, rest + [[key, *row] for row in own], tables)
            assert {other: row for other, row in swapped.items() if other != key} == fewer


DRUGS = Domain.from_spec({"columns": {"dose": 99}})


def prescribed(folder: Any, people: Any, visits: Any, drugs: Any, order: Any = None) -> Any:
    """The rows of the copy where visits (pid, vid, day, diag, cost) have drugs (vid, dose); what the owner is
    told."""
    child = ChildTable("drugs", 2, order, DRUGS)
    tables = LinkedTables(
        "patients", "pid", PEOPLE, (ChildTable("visits", 3, "day", VISITS, "vid", (child,)),)
    )
    location, where = places(folder, people, visits, tables, header=("pid", "vid", "day", "diag", "cost"))
    own = locate(write(folder / "drugs.csv", ["vid", "dose"], drugs))
    where = LinkedPlaces(tables, {**where.children, "drugs": own}, where.draws)
    path, told = written(location, where, folder)
    rows = pq.read_table(path).to_pylist()
    as_parquet(location, where, folder)
    return {row.pop("pid"): row for row in rows}, told


@pytest.mark.parametrize("order", [None, "dose"])
def test_what_belongs_to_the_child_drawn_comes_with_it(tmp_path: Path, order: Any) -> None:
    """Visit p has no drug, q one, r three of which two stay; of 300 people all that can be drawn is."""
    people = [[f"k{number}", "f"] for number in range(300)] + [["alone", "m"]]
    visits = [[key, f"{key}{diag}", f"2024-0{month}-01", diag, 0]
              for key, _ in people[:-1] for month, diag in enumerate("pqr", 1)]  # fmt: skip
    drugs = [
        [f"{key}{visit}", dose]
        for key, _ in people[:-1]
        for visit, dose in [("q", 1), ("r", 2), ("r", 3), ("r", 4)]
    ]
    rows, told = prescribed(tmp_path, people, visits, drugs, order)
    b = "drugs_other_dose" if order is None else "drugs_before_dose"
    alone = rows.pop("alone")
    assert (alone["visits_count"], alone["drugs_count"], alone["drugs_dose"], alone[b]) == (0, 0, None, None)
    seen = Counter(
        (row["visits_diag"], row["drugs_count"], row["drugs_dose"], row[b]) for row in rows.values()
    )
    of_r = (
        [(a, b) for a, b in permutations("234", 2)] if order is None else [("2", "3"), ("2", "4"), ("3", "4")]
    )
    if order is None:
        expected = {("p", 0, None, None), ("q", 1, "1", None), *(("r", 2, *pair) for pair in of_r)}
    else:
        later = {("r", 2, after, before) for before, after in of_r}
        expected = {
            ("p", 0, None, None),
            ("q", 1, "1", None),
            *later,
            *(("r", 2, dose, None) for dose in "23"),
        }
    assert seen.keys() == expected
    one, own = told
    assert (one.name, one.orphans) == ("visits", 0)
    assert (own.name, own.children, own.orphans, own.truncated, own.left_out) == ("drugs", 1200, 0, 300, 300)


def test_a_whole_person_moves_one_row_with_what_belongs_to_its_children(tmp_path: Path) -> None:
    people = [[f"k{i}", "f"] for i in range(4)]
    visits: list[list[Any]] = [
        [f"k{i}", f"{i}{n}", f"2024-0{n + 1}-01", "pqr"[n % 3], n] for i in range(4) for n in range(i)
    ]
    drugs = [[visit[1], dose] for visit in visits for dose in range(int(visit[1][1]) + 1)]
    rows, _ = prescribed(tmp_path, people, visits, drugs)
    for key, _ in people:
        rest = [row for row in visits if row[0] != key]
        kept = {row[1] for row in rest}
        fewer, _ = prescribed(
            tmp_path,
            [row for row in people if row[0] != key],
            rest[::-1],
            [row for row in drugs[::-1] if row[0] in kept],
        )
        assert fewer == {other: row for other, row in rows.items() if other != key}


@pytest.mark.parametrize(
    ("visits", "drugs", "said"),
    [
        ([["a", "v", "1", "p", 1]], [["w", 1]], 'drugs.csv, column "vid", line 2: no row of .*visits.csv has this key'),
        ([["a", "v", "1", "p", 1], ["a", "v", "2", "p", 1]], [], 'visits.csv, column "vid", line 3: this key is there already'),
        ([["a", "", "1", "p", 1]], [], 'visits.csv, column "vid", line 2: a row has no key'),
        ([["a", "v", "1", "p", 1]], [["v", 100]], 'drugs.csv, column "dose", line 2'),
    ],
)  # fmt: skip
def test_what_does_not_belong_to_a_child_is_refused_by_its_own_line(
    tmp_path: Path, visits: Any, drugs: Any, said: str
) -> None:
    with pytest.raises(DataRefused, match=said):
        prescribed(tmp_path, [["a", "f"]], visits, drugs)


def test_equal_children_of_a_person_are_drawn_like_different_ones(tmp_path: Path) -> None:
    same = [["a", "2024-01-05", "p", 1]] * 4
    row = unfolded(tmp_path, [["a", "f"]], same, linked(most=3))["a"]
    assert row["visits_count"] == 3 and row["visits_diag"] == "p"


def test_of_children_that_tie_in_the_order_each_is_as_likely_to_come_first(tmp_path: Path) -> None:
    """Chi-squares of 3,000 people with three visits on one day: false alarm 1e-6 each."""
    from scipy.stats import chisquare

    people = [[f"k{number}", "f"] for number in range(3000)]
    visits = [[key, "2024-01-05", diag, 0] for key, _ in people for diag in "pqr"]
    pairs = Counter(
        (row["visits_diag"], row["visits_before_diag"])
        for row in unfolded(tmp_path, people, visits, linked()).values()
    )
    assert set(pairs) == {*permutations("pqr", 2), ("p", None), ("q", None), ("r", None)}
    assert chisquare(list(pairs.values())).pvalue > 1e-6


def test_numbers_are_ordered_as_numbers_and_listed_values_as_listed(tmp_path: Path) -> None:
    keys = [f"k{number}" for number in range(40)]
    people = [[key, "f"] for key in keys]
    visits = [[key, *row] for key in keys for row in (["9", "q", 1], ["10", "p", 2])]
    rows = unfolded(tmp_path, people, visits, linked()).values()
    assert {(row["visits_cost"], row["visits_before_cost"]) for row in rows} == {("1", None), ("2", "1")}
    ordinal = Domain.from_spec({"columns": {"stage": {"kind": "ordinal", "values": ["low", "high"]}}})
    tables = LinkedTables("patients", "pid", PEOPLE, (ChildTable("visits", 3, "stage", ordinal),))
    stages = [[key, stage] for key in keys for stage in ("high", "low")]
    location, where = places(tmp_path, people, stages, tables, header=("pid", "stage"))
    table = pq.read_table(as_parquet(location, where, tmp_path).path).to_pylist()
    seen = {(row["visits_stage"], row["visits_before_stage"]) for row in table}
    assert seen == {("low", None), ("high", "low")}


SECRET = "Krankheit-77"


@pytest.mark.parametrize(
    ("people", "visits", "said"),
    [
        ([["a", "f"], ["a", "m"]], ALICE, 'patients.csv, column "pid", line 3: this key is there already'),
        ([["a", "f"], ["", "m"]], ALICE, 'patients.csv, column "pid", line 3: a row has no key'),
        ([["a", "f"]], [*ALICE, [SECRET, "2024-01-01", "p", 1]], 'visits.csv, column "pid", line 5: no row of'),
        ([["a", "f"]], [*ALICE, ["", "2024-01-01", "p", 1]], 'visits.csv, column "pid", line 5: a row has no key'),
        ([["a", "f"]], [["a", "", "p", 1]], 'visits.csv, column "day", line 2: a row has no value'),
        ([["a", "f"]], [["a", "2024-01-01", "p", 1], ["a", SECRET, "p", 1]], 'visits.csv, column "day", line 3: the order'),
        ([["a", "f"]], [["a", "1", "p", 1], ["a", "nan", "p", 1]], 'visits.csv, column "day", line 3: the order'),
        ([["a", "f"]], [["a", "2024-01-01", SECRET, 1]], 'visits.csv, column "diag", line 2'),
        ([["a", SECRET]], ALICE, 'patients.csv, column "sex", line 2'),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_its_own_line_without_a_value(
    tmp_path: Path, people: Any, visits: Any, said: Any
) -> None:
    location, where = places(tmp_path, people, visits, linked())
    with pytest.raises(DataRefused) as refused:
        as_parquet(location, where, tmp_path)
    assert said in refused.value.sentence
    assert SECRET not in refused.value.sentence and refused.value.exit_code == 30


LISTS = pa.array([[SECRET], [SECRET]])
BYTES = pa.array([b"\xff" + SECRET.encode(), b"2"])


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("day", LISTS, "data of type list<l: string> have no order"),
        ("day", BYTES, "data of type binary cannot be compared"),
        ("day", pa.array([1.0, float("nan")]), "row 2: a row has no value"),
        ("pid", LISTS, "data of type list<l: string> cannot be compared"),
        ("pid", BYTES, "data of type binary cannot be compared"),
        ("pid", pa.array([1.0, float("nan")]), "row 2: a row has no key"),
        ("diag", LISTS, "data of type list<l: string> cannot be coded"),
    ],
)
def test_types_that_have_no_text_or_order_are_refused_in_a_sentence(
    tmp_path: Path, column: Any, values: Any, said: Any
) -> None:
    location, where = places(tmp_path, [["1", "f"]], [], linked())
    rows = {"pid": ["1", "1"], "day": ["1", "2"], "diag": ["p", "q"], "cost": [1, 2], column: values}
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    where = LinkedPlaces(where.linked, {"visits": locate(tmp_path / "visits.parquet")}, where.draws)
    with pytest.raises(DataRefused) as refused:
        as_parquet(location, where, tmp_path)
    assert f'visits.parquet, column "{column}"' in refused.value.sentence and said in refused.value.sentence
    assert SECRET not in refused.value.sentence and refused.value.__context__ is None


def test_a_missing_column_of_children_is_named(tmp_path: Path) -> None:
    location, where = places(
        tmp_path, [["a", "f"]], [["a", "p", 1]], linked(), header=("pid", "diag", "cost")
    )
    with pytest.raises(DataRefused, match='no column "day"'):
        as_parquet(location, where, tmp_path)


def test_orphans_are_counted_for_their_owner_and_are_in_no_row(tmp_path: Path) -> None:
    location, where = places(tmp_path, [["a", "f"]], [*ALICE, ["z", "2024-01-01", "p", 1]], linked())
    path, told = written(location, where, tmp_path)
    assert (
        told[0].orphans == 1 and repr(told[0]) == "Unfolding(name='visits')"
    )  # a log shows no count by accident
    assert pq.read_table(path).num_rows == 1


def test_the_secret_is_made_once_is_its_owners_alone_and_differs_by_study(tmp_path: Path) -> None:
    ledger = tmp_path / "own" / "ledger.db"
    first = DrawKey(ledger, b"one study").derive()
    assert DrawKey(ledger, b"one study").derive() == first != DrawKey(ledger, b"another").derive()
    file = ledger.with_name(ledger.name + SUFFIX)
    assert file.stat().st_mode & 0o777 == 0o600 and len(file.read_bytes()) == 32
    assert DrawKey(tmp_path / "other.db", b"one study").derive() != first
    file.write_bytes(b"short")
    with pytest.raises(DataRefused, match="secret by which linked tables are unfolded"):
        DrawKey(ledger, b"one study").derive()


KEYS = pa.array(["1", "2"])


@pytest.mark.parametrize(
    ("parents", "children"),
    [
        (KEYS, pa.array([1, 2])),
        (pa.array([1, 2], pa.int8()), pa.array([1.0, 2.0])),
        (pa.array([1.0, 2.0]), KEYS.dictionary_encode()),
        (KEYS.cast(pa.large_string()), KEYS.cast(pa.string_view())),
        (KEYS, pa.array(["1.0", "2.0"])),
        (KEYS, pa.array(["01", "02"])),
        (KEYS, pa.array(["1 ", "2"])),
    ],
)
def test_keys_of_several_types_are_one_where_they_are_written_alike(
    tmp_path: Path, parents: Any, children: Any
) -> None:
    """A column of doubles, as pandas makes of whole numbers with gaps, is written as whole numbers are."""
    pq.write_table(pa.table({"pid": parents, "sex": ["f", "m"]}), tmp_path / "patients.parquet")
    visits = {"pid": children, "day": ["1", "2"], "diag": ["p", "q"], "cost": [1, 2]}
    pq.write_table(pa.table(visits), tmp_path / "visits.parquet")
    own = {"visits": locate(tmp_path / "visits.parquet")}
    where = LinkedPlaces(linked(), own, Fixed())  # type: ignore[arg-type]
    if pa.types.is_string(children.type):
        with pytest.raises(DataRefused, match=r'"pid", row 1: no row of .* \(1, 01 and 1.0 are three\)'):
            as_parquet(locate(tmp_path / "patients.parquet"), where, tmp_path)
        return
    copy = as_parquet(locate(tmp_path / "patients.parquet"), where, tmp_path)
    rows = pq.read_table(copy.path).to_pylist()
    assert [(row["visits_count"], row["visits_diag"]) for row in rows] == [(1, "p"), (1, "q")]


@pytest.mark.parametrize(
    ("kind", "exact", "several"),
    [(pa.float64(), [1e15, 2.0**53 - 1, -0.0], 2.0**53), (pa.float32(), [1e6, 2.0**24 - 1, 0.0], -(2.0**24))],
)
def test_keys_that_are_floating_point_numbers_are_written_as_whole_ones_while_they_are_exact(
    tmp_path: Path, kind: Any, exact: Any, several: float
) -> None:
    def copied(parents: Any, children: Any) -> Any:
        pq.write_table(pa.table({"pid": parents, "sex": ["f"] * len(parents)}), tmp_path / "patients.parquet")
        days = [str(day) for day, _ in enumerate(children)]
        visits = {"pid": children, "day": days, "diag": ["p"] * len(days), "cost": [1] * len(days)}
        pq.write_table(pa.table(visits), tmp_path / "visits.parquet")
        own = {"visits": locate(tmp_path / "visits.parquet")}
        where = LinkedPlaces(linked(), own, Fixed())  # type: ignore[arg-type]
        copy = as_parquet(locate(tmp_path / "patients.parquet"), where, tmp_path)
        return pq.read_table(copy.path)["visits_count"].to_pylist()

    whole = pa.array([int(one) for one in exact])
    for parents in (
        whole,
        whole.cast(pa.string()),
        pa.array([*exact], kind),
        pa.array(exact, kind).dictionary_encode(),
    ):
        assert copied(parents, pa.array(exact, kind)) == [1, 1, 1]
    assert copied(pa.array(exact, kind), whole) == [1, 1, 1]
    some = pa.array([1.5, several], kind)
    for parents, children, file in ((some, some, "patients"), (pa.array(["1.5"]), some, "visits")):
        with pytest.raises(
            DataRefused, match=rf'{file}.parquet, column "pid", row 2: a floating point number of'
        ) as caught:
            copied(parents, children)
        assert "several keys" in caught.value.sentence and str(several) not in caught.value.sentence


@pytest.mark.parametrize("order", ["day", None])
def test_where_nobody_has_a_child_or_all_have_too_many_everybody_has_a_row(
    tmp_path: Path, order: Any
) -> None:
    people = [[f"k{number}", "f"] for number in range(30)]
    nobody = unfolded(tmp_path, people, [], linked(order)).values()
    assert len(nobody) == 30 and {
        value for row in nobody for name, value in row.items() if name != "sex"
    } == {0, None}
    visits = [[key, "2024-01-05", "p", place] for key, _ in people for place in range(9)]
    rows = unfolded(tmp_path, people, visits, linked(order)).values()
    assert {(row["visits_count"], row["visits_diag"]) for row in rows} == {(3, "p")}
    assert len({row["visits_cost"] for row in rows}) > 3
