"""Counting against brute force in every format, everything that is refused, and memory over many rows."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpc_protocols.errors import DataRefused
from parties.data.counting import counters
from parties.data.counting.local_marginals import count, validate
from parties.data.counting.scan import inspect
from parties.data.linked.opening import open_source
from parties.data.location import Location
from parties.data.source import Source
from synth.domain import Categorical, Codes, Domain, Numeric
from tests.parties.data.tables import CANARY, Table, assert_says, code_of, write_csv, write_parquet, written

DOMAIN = Domain(
    ("age", "work", "code", "sex"),
    (
        Numeric(low=17, high=90, bins=6, integral=True, missing=True),
        Categorical(("Private", "Gov", "it's, ok")),
        Codes(5),
        Categorical((False, True), missing=True),
    ),
)
CLIQUES = [clique for degree in (1, 2, 3, 4) for clique in itertools.permutations(DOMAIN.names, degree)]


def random_table(rows: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), rows)]  # noqa: E731
    return {
        "code": pick([0, 1, 2, 4]),
        "note": pick([CANARY]),
        "age": pick([None, 3, 17, 30, 55, 89, 90, 120]),
        "sex": pick([True, False, None]),
        "work": pick(["Private", "Gov", "it's, ok"]),
    }


def brute_force(table: Table, clique: tuple[str, ...]) -> list[int]:
    """Row by row."""
    seen = Counter(
        tuple(code_of(DOMAIN[name], value) for name, value in zip(clique, row, strict=True))
        for row in zip(*(table[name] for name in clique), strict=True)
    )
    return [seen[cell] for cell in itertools.product(*(range(DOMAIN[name].size) for name in clique))]


@pytest.mark.parametrize(
    ("rows", "block_rows", "union_cells", "few"),
    [
        (1, 1, 1 << 17, 0),
        (3000, 700, 1 << 17, 0),
        (3000, 1 << 16, 0, 0),
        (3000, 700, 1 << 17, 2000),
        (3000, 700, 1 << 17, 3000),
    ],
)
def test_all_formats_give_the_counts_of_brute_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, block_rows: int, union_cells: int, few: int
) -> None:
    monkeypatch.setattr(counters, "_UNION_CELLS", union_cells)
    monkeypatch.setattr(counters, "_MAX_KEPT_ROWS", few)
    table = random_table(rows, seed=rows)
    expected = [brute_force(table, clique) for clique in CLIQUES]
    ages = [age for age in table["age"] if isinstance(age, int)]
    for location in written(tmp_path, table):
        with open_source(location) as source:
            local = count(source, DOMAIN, CLIQUES, max_rows=rows, block_rows=block_rows)
        assert (local.rows, local.ignored) == (rows, ("note",))
        assert local.clamped == {
            "age": sum(age < 17 or age > 90 for age in ages),
            "work": 0,
            "code": 0,
            "sex": 0,
        }
        assert local.absent == {
            "age": rows - len(ages),
            "work": 0,
            "code": 0,
            "sex": table["sex"].count(None),
        }
        counts = local.counts(CLIQUES)
        assert all(each.dtype == np.int64 and each.ndim == 1 for each in counts)
        assert [each.tolist() for each in counts] == expected
        assert repr(local) == f"LocalTable(ignored={local.ignored!r})" and CANARY not in repr(local)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.sampled_from(DOMAIN.names), min_size=1, unique=True).map(tuple), max_size=6),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_any_cliques_in_any_order_of_columns(
    tmp_path: Path, cliques: list[tuple[str, ...]], seed: int, few: bool
) -> None:
    table = random_table(40, seed)
    with (
        pytest.MonkeyPatch.context() as patch,
        open_source(write_parquet(tmp_path / "t.parquet", table)) as source,
    ):
        patch.setattr(counters, "_MAX_KEPT_ROWS", 40 * few)
        local = count(source, DOMAIN, cliques, max_rows=40)
    inside = [part for clique in cliques for part in itertools.permutations(clique, max(1, len(clique) - 1))]
    for clique, counts in zip(cliques + inside, local.counts(cliques + inside), strict=True):
        assert counts.tolist() == brute_force(table, clique)


def test_a_marginal_that_was_not_counted_is_not_invented(tmp_path: Path) -> None:
    wide = Domain(("a", "b", "c"), (Codes(1000), Codes(1000), Codes(2)))
    with open_source(write_csv(tmp_path / "t.csv", {"a": [5], "b": [7], "c": [1]})) as source:
        local = count(source, wide, [("a", "c"), ("b", "c")], max_rows=1)
    assert local.counts([("c",)])[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="a, b"):
        local.counts([("a", "b")])


@given(
    st.lists(st.sets(st.sampled_from(DOMAIN.names), min_size=1).map(tuple), min_size=1, max_size=6),
    st.sampled_from([0, 50, 1 << 17]),
)
def test_what_is_answered_does_not_depend_on_the_number_of_rows(
    cliques: list[tuple[str, ...]], union_cells: int
) -> None:
    """Who may ask would learn from a refusal whether one more row is there."""

    def answered(rows: int) -> set[tuple[str, ...]]:
        tables, found = counters.Counters(DOMAIN, cliques), set[tuple[str, ...]]()
        tables.add({name: np.zeros(rows, np.int64) for name in DOMAIN.names})
        for clique in CLIQUES:
            with suppress(ValueError):
                assert tables.counts([clique])[0].sum() == rows
                found.add(clique)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "_UNION_CELLS", union_cells)
        patch.setattr(counters, "_MAX_KEPT_ROWS", 4)
        expected = {clique for clique in CLIQUES if any(set(clique) <= set(of) for of in cliques)}
        assert answered(4) == answered(5) == expected


def test_thousands_of_cliques_are_put_together_by_comparing_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide study has 20,000: multiplying sizes for each of them and each table took most of a minute."""
    domain = Domain(tuple(f"c{i}" for i in range(40)), (Codes(2),) * 40)
    asked, cells = [0], counters.Counters._cells

    def counted(self: counters.Counters, names: tuple[str, ...]) -> int:
        asked[0] += 1
        return cells(self, names)

    monkeypatch.setattr(counters.Counters, "_cells", counted)
    cliques = list(itertools.combinations(domain.names, 3))
    tables = counters.Counters(domain, cliques)
    assert len(tables._tables) < 150 and asked[0] < 10 * len(cliques)
    assert all(any(set(clique) <= set(union) for union in tables._tables) for clique in cliques)


def test_tables_are_few_and_hold_every_clique() -> None:
    domain = Domain(
        tuple(f"c{i}" for i in range(14)),
        tuple(map(Codes, (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2))),
    )
    cliques = list(itertools.combinations(domain.names, 3))
    tables = counters.Counters(domain, cliques)._tables
    assert len(tables) < len(cliques) / 2
    assert all(any(set(clique) <= set(table) for table in tables) for clique in cliques)
    assert all(domain.cells(table) <= 1 << 17 or len(table) == 3 for table in tables)


def change(table: Table, name: str, row: int, value: object) -> Table:
    return {**table, name: [*table[name][:row], value, *table[name][row + 1 :]]}


GOOD = random_table(50, seed=1)
MISFITS = [
    ("code", 5),
    ("code", -1),
    ("code", 31337),
    ("code", None),
    ("work", CANARY),
    ("work", "private"),
    ("work", None),
    ("age", 17.5),
    ("sex", "perhaps"),
]


@pytest.mark.parametrize(("name", "value"), MISFITS)
def test_a_value_outside_the_domain_is_refused_and_not_quoted(
    tmp_path: Path, name: str, value: object
) -> None:
    table = {
        key: [str(v) if name == key and isinstance(value, str) and v is not None else v for v in values]
        for key, values in GOOD.items()
    }
    table = change(
        {**table, "age": [float(v) if isinstance(v, int) else v for v in table["age"]]}, name, 31, value
    )
    for location, place in zip(written(tmp_path, table), ("line 33", "row 32", "row 32"), strict=True):
        with open_source(location) as source:
            with pytest.raises(DataRefused) as caught:
                count(source, DOMAIN, CLIQUES, max_rows=50, block_rows=20)
            assert_says(caught.value, location.label, f'column "{name}"', place)
            assert str(value) not in caught.value.sentence.replace("from 0 to 4", "").replace(
                str(tmp_path), ""
            )
            assert caught.value.__context__ is None
            assert validate(source, DOMAIN, max_rows=50, block_rows=20).problems == (caught.value.sentence,)


def test_text_where_a_number_belongs_is_refused(tmp_path: Path) -> None:
    for name in ("age", "code"):
        with (
            open_source(write_csv(tmp_path / "t.csv", change(GOOD, name, 7, CANARY))) as source,
            pytest.raises(DataRefused) as caught,
        ):
            count(source, DOMAIN, CLIQUES, max_rows=50)
        assert_says(caught.value, f'column "{name}", line 9')


def test_validate_names_every_problem_at_once(tmp_path: Path) -> None:
    table = change(change(change(GOOD, "code", 3, 9), "work", 40, "x"), "work", 20, None)
    del table["sex"]
    with open_source(write_csv(tmp_path / "t.csv", table)) as source:
        found = validate(source, DOMAIN, max_rows=50, unit=("note", 2), block_rows=16).problems
    words = ("sex", "more rows than", "line 5", "line 22", "line 42")
    assert len(found) == len(words) and all(word in each for word, each in zip(words, found, strict=True))
    assert not any(CANARY in each for each in found)


def test_columns_are_compared_without_reading_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {("Sex" if name == "sex" else name): values for name, values in GOOD.items()}
    with open_source(write_csv(tmp_path / "t.csv", table)) as source:
        monkeypatch.setattr(Source, "batches", None)
        seen = inspect(source, DOMAIN, ("person", 3))
        assert (seen.present, seen.missing, seen.ignored) == (
            ("age", "work", "code"),
            ("sex", "person"),
            ("note", "Sex"),
        )
        assert ['"sex"' in each or '"person"' in each for each in seen.problems] == [True, True]
        with pytest.raises(DataRefused) as caught:
            count(source, DOMAIN, CLIQUES, max_rows=50)
        assert_says(caught.value, "t.csv", '"sex"')


def test_a_record_where_the_header_should_be_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"1,{CANARY},3,true\n2,x,3,true\n")
    with open_source(Location("csv", "t.csv", "t.csv", tmp_path / "t.csv")) as source:
        seen = inspect(source, DOMAIN)
        assert seen.ignored == () and validate(source, DOMAIN, max_rows=9).problems == seen.problems
        with pytest.raises(DataRefused) as caught:
            count(source, DOMAIN, CLIQUES, max_rows=9)
    assert_says(caught.value, "none of the study's columns", "header line")


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,work,code,sex,age\n20,Gov,1,true,30\n")
    with (
        open_source(Location("csv", "t.csv", "t.csv", tmp_path / "t.csv")) as source,
        pytest.raises(DataRefused) as caught,
    ):
        count(source, DOMAIN, CLIQUES, max_rows=9)
    assert_says(caught.value, 'more than one column "age"')


def test_too_many_rows_and_none(tmp_path: Path) -> None:
    for location in written(tmp_path, GOOD):
        with open_source(location) as source:
            assert count(source, DOMAIN, CLIQUES, max_rows=50).rows == 50
            with pytest.raises(DataRefused) as caught:
                count(source, DOMAIN, CLIQUES, max_rows=49, block_rows=20)
            assert_says(caught.value, location.label, "max_rows = 49")
            assert "50" not in caught.value.sentence.replace(location.label, "")
    empty = write_csv(tmp_path / "t.csv", {name: [] for name in GOOD})
    with open_source(empty) as source:
        with pytest.raises(DataRefused) as caught:
            count(source, DOMAIN, CLIQUES, max_rows=50)
        assert_says(caught.value, "no rows", "allow_empty")
        local = count(source, DOMAIN, CLIQUES, max_rows=50, allow_empty=True)
        assert local.rows == 0 and not any(each.any() for each in local.counts(CLIQUES))


def test_a_unit_with_too_many_rows_is_refused(tmp_path: Path) -> None:
    people = [f"{CANARY}-{i % 25}" for i in range(50)]
    for location in written(tmp_path, {**GOOD, "person": people}):  # type: ignore[dict-item]
        with open_source(location) as source:
            assert count(source, DOMAIN, CLIQUES, max_rows=50, unit=("person", 2)).ignored == ("note",)
            with pytest.raises(DataRefused) as caught:
                count(source, DOMAIN, CLIQUES, max_rows=50, unit=("person", 1))
            assert_says(caught.value, location.label, '"person"', "max_rows = 1")
    with (
        open_source(
            write_csv(tmp_path / "t.csv", change({**GOOD, "person": people}, "person", 3, None))  # type: ignore[dict-item]
        ) as source,
        pytest.raises(DataRefused) as caught,
    ):
        count(source, DOMAIN, CLIQUES, max_rows=50, unit=("person", 2))
    assert_says(caught.value, '"person"', "no value of the unit's id")


MEMORY = """
import resource, sys, time
from parties.data.counting.local_marginals import count
from parties.data.location import locate
from parties.data.linked.opening import open_source
from synth.domain import Codes, Domain
from synth.workload import of_degree
domain = Domain(tuple(f"c{i}" for i in range(14)), tuple(map(Codes, (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2))))
cliques = of_degree(domain, 3, 64, 123)
started = time.perf_counter()
with open_source(locate(sys.argv[1])) as source:
    local = count(source, domain, cliques, max_rows=1 << 25, unit=("id", 4) if "id" in source.columns else None)
assert all(counts.sum() == local.rows for counts in local.counts(cliques))
print(local.rows, time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("most", [4_000_000, pytest.param(20_000_000, marks=pytest.mark.campaign)])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, most: int) -> None:
    """20 million rows of 14 columns, 64 three-way cliques: under 2 GiB (measured: 0.3 GB, 9 s), about what a
    tenth takes."""
    sizes = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
    columns = ", ".join(
        f"CAST(hash(i * 14 + {k}) % {size} AS SMALLINT) AS c{k}" for k, size in enumerate(sizes)
    )
    peak = {}
    for rows in (most // 10, most):
        path = tmp_path / f"{rows}.parquet"
        duckdb.execute(f"COPY (SELECT {columns} FROM range({rows}) AS r(i)) TO '{path}' (FORMAT parquet)")
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True
        )
        read, seconds, peak[rows] = map(float, done.stdout.split())
        assert read == rows
        print(f"{rows} rows: {seconds:.1f} s, {peak[rows]:.0f} MB")
        path.unlink()
    assert peak[most] < 2048
    # of 4 million rows blocks that stay take 100 MB, those that go 20 MB
    assert peak[most] < peak[most // 10] + min(256, most // 62_500)
