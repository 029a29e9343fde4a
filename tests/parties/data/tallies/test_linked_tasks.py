"""Linked tables that a cluster unfolds have the counts of one process, bit for bit; here the cluster is this
process, whose tasks run one after the other."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import LocalTable
from parties.data.harmony.rules import RFC
from parties.data.location import locate
from parties.data.tallies.counting import Counting
from parties.data.tallies.engines import dask_linked
from parties.data.tallies.engines.linked_task import Cut, route, scatter
from parties.data.tallies.engines.task import software
from parties.data.tallies.places import DaskCluster
from tests.parties.data.tallies.linked_parts import KEY, World, by_one_process, linked, told, world, written
from tests.parties.data.tallies.test_tasks import Done, Here

ORDERS = [(None, None), ("day", None), ("day", "dose"), (None, "dose")]


class Held(Done):
    """A task's result that stays until it is released. forget: what then happens."""

    def __init__(self, run: Callable[[], object], forget: Callable[[], object]) -> None:
        super().__init__(run)
        self._forget = forget

    def release(self) -> None:
        self._forget()


class Resolving(Here):
    """Gives tasks the results of those that they were given, as Dask does."""

    def submit(self, run: Callable[..., object], *given: object, key: str, pure: bool) -> Done:
        assert key.startswith("cosynth-") and key not in self.names
        self.names.add(key)
        if "-again-" in key:
            self._meanwhile()
        value: list[object] = []

        def result() -> object:
            if not value:
                value.append(run(*map(resolved, given)))
            return value[0]

        self.held[key] = done = Held(result, lambda: self.held.pop(key))
        return done

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(meanwhile)
        self.names: set[str] = set()
        self.held: dict[str, Done] = {}


def resolved(given: Any) -> Any:
    if isinstance(given, Done):
        return given.result()
    if isinstance(given, dict):
        return {name: resolved(one) for name, one in given.items()}
    return [resolved(one) for one in given] if isinstance(given, list) else given


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_linked, "as_completed", lambda client, futures: futures)
    monkeypatch.setattr(dask_linked, "unwatched", lambda label: "")
    monkeypatch.setattr(dask_linked, "connected", lambda cluster: Resolving(lambda: None))


def by_cluster(
    made: World,
    patterns: dict[str, str],
    bucket_rows: int = 40,
    task_rows: int = 50,
    counting: Counting | None = None,
) -> LocalTable:
    anywhere = Path("none")
    place = DaskCluster("tls://none:1", anywhere, anywhere, anywhere, patterns["patients"], tables=patterns)
    return dask_linked.unfold_on_cluster(
        place,
        counting or made.counting,
        made.linked,
        KEY,
        RFC,
        allow_empty=True,
        task_rows=task_rows,
        bucket_rows=bucket_rows,
    )


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("keys", ["text", "int"])
def test_counts_are_those_of_one_process_whatever_the_files_and_buckets(
    tmp_path: Path, orders: tuple[str | None, str | None], keys: str
) -> None:
    made = world(60, 5, linked(*orders), keys, crowd=60)
    expected = told(by_one_process(made, tmp_path), made.counting)
    many = [(2, 3, 10**6)] if all(orders) else []  # a task for nearly each person takes long
    for files, bucket_rows, task_rows in ((1, 10**6, 10**6), (3, 80, 100), *many):
        folder = tmp_path / f"{files}-{bucket_rows}"
        folder.mkdir()
        found = by_cluster(made, written(made, folder, files), bucket_rows, task_rows)
        assert told(found, made.counting) == expected


@pytest.mark.parametrize("people", [0, 1])
def test_tables_without_people_or_with_one_are_counted_too(tmp_path: Path, people: int) -> None:
    made = world(people, 1, linked("day", "dose"))
    expected = told(by_one_process(made, tmp_path), made.counting)
    assert told(by_cluster(made, written(made, tmp_path, 2)), made.counting) == expected


def test_text_files_are_unfolded_like_typed_ones(tmp_path: Path) -> None:
    made = world(60, 2, linked("day", "dose"), "int")
    expected = told(by_one_process(made, tmp_path), made.counting)
    patterns = written(made, tmp_path, 2, kind="csv")
    for name in patterns:
        for file in tmp_path.glob(f"{name}-*.csv"):
            file.write_text(file.read_text().replace("nan", ""))
    assert told(by_cluster(made, patterns), made.counting) == expected


def test_whole_numbers_with_gaps_beside_whole_numbers_are_one_key(tmp_path: Path) -> None:
    """A column of doubles of children's keys, which pandas makes, in one of the files or in all."""
    made = world(40, 3, linked("day", None), "int")
    expected = told(by_one_process(made, tmp_path), made.counting)
    doubles = made.but("visits", pid=made.tables["visits"]["pid"].cast(pa.float64()))
    assert told(by_cluster(doubles, written(doubles, tmp_path, 2)), made.counting) == expected
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    patterns = written(made, mixed, 2)
    one = pq.read_table(mixed / "visits-1.parquet")
    pq.write_table(one.set_column(0, "pid", one["pid"].cast(pa.float64())), mixed / "visits-1.parquet")
    assert told(by_cluster(made, patterns), made.counting) == expected


SECRET = "Krankheit-77"


def extended(made: World, name: str, **columns: Any) -> World:
    """With the first row once more, but for these columns."""
    own = made.tables[name]
    return made.more(name, [[columns.get(key, values[0].as_py()) for key, values in own.items()]])


@pytest.mark.parametrize(
    ("name", "columns", "said"),
    [
        ("visits", {"pid": SECRET, "vid": "new"}, 'visits-*.parquet, column "pid", a row: no row of'),
        ("drugs", {"vid": SECRET}, 'drugs-*.parquet, column "vid", a row: no row of'),
        ("patients", {}, 'patients-*.parquet, column "pid", a row: this key is there already'),
        ("visits", {}, 'visits-*.parquet, column "vid", a row: this key is there already'),
        ("visits", {"pid": None, "vid": "new"}, ', column "pid", row '),
        ("visits", {"vid": None}, ', column "vid", row '),
        ("visits", {"vid": ""}, "a row has no key"),
        ("drugs", {"vid": None}, ', column "vid", row '),
        ("patients", {"pid": ""}, "a row has no key"),
        ("visits", {"vid": "new", "day": None}, "a row has no value, so its place in the order"),
        ("visits", {"vid": "new", "day": SECRET}, "the order of a person's rows needs numbers, or days"),
        ("visits", {"vid": "new", "day": "7"}, ("is numbers in one file and days in another", "needs numbers, or days")),
        ("visits", {"vid": "new", "diag": SECRET}, 'column "diag", row '),
        ("drugs", {"drug": 9}, 'column "drug", row '),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused_without_a_value(
    tmp_path: Path, name: str, columns: dict[str, Any], said: str | Sequence[str]
) -> None:
    made = extended(world(30, 4, linked("day", "dose")), name, **columns)
    with pytest.raises(DataRefused) as caught:
        by_cluster(made, written(made, tmp_path, 3))
    assert any(one in caught.value.sentence for one in ([said] if isinstance(said, str) else said))
    assert SECRET not in caught.value.sentence and caught.value.exit_code == 30


def test_a_visit_that_two_people_have_is_refused_wherever_they_are(tmp_path: Path) -> None:
    """Its prescriptions would come to one of both by chance."""
    made = world(30, 4, linked("day", "dose"))
    pids, vids = (made.tables["visits"][name].to_pylist() for name in ("pid", "vid"))
    other = next(one for one in pids if one != pids[0])
    made = made.more("visits", [[other, vids[0], "2024-01-01", "p", 1]])
    with pytest.raises(DataRefused, match='column "vid", a row: this key is there already'):
        by_cluster(made, written(made, tmp_path, 2), bucket_rows=1)


def test_files_of_types_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    made = world(20, 4, linked("day", None))
    patterns = written(made, tmp_path, 2)
    for file in ("visits-0.parquet", "visits-1.parquet"):
        table = pq.read_table(tmp_path / file)
        costs = table["cost"].cast(pa.string() if file == "visits-1.parquet" else pa.int64())
        pq.write_table(table.set_column(4, "cost", costs), tmp_path / file)
    with pytest.raises(DataRefused, match="files whose columns have different types"):
        by_cluster(made, patterns, task_rows=10)


def test_a_table_without_files_and_one_that_changes_meanwhile_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world(20, 4, linked("day", None))
    patterns = written(made, tmp_path, 2)
    with pytest.raises(DataRefused, match=r"none\*\.parquet names no file"):
        by_cluster(made, {**patterns, "drugs": str(tmp_path / "none*.parquet")})
    file = tmp_path / "drugs-1.parquet"
    late = Resolving(lambda: os.utime(file, ns=(0, file.stat().st_mtime_ns + 1)))
    monkeypatch.setattr(dask_linked, "connected", lambda cluster: late)
    with pytest.raises(DataRefused, match="changed while it was counted"):
        by_cluster(made, patterns)


def without(made: World, pid: str) -> World:
    """Without a person and what is theirs."""
    visits = pa.table(dict(made.tables["visits"])).to_pylist()
    vids = {row["vid"] for row in visits if row["pid"] == pid}
    tables = {}
    for name, columns in made.tables.items():
        table = pa.table(dict(columns))
        kept = [row["vid"] not in vids if name == "drugs" else row["pid"] != pid for row in table.to_pylist()]
        left = table.filter(pa.array(kept, pa.bool_()))
        tables[name] = {key: left[key].combine_chunks() for key in columns}
    return World(tables, made.linked)


def test_a_whole_person_moves_one_row_wherever_its_rows_lie(tmp_path: Path) -> None:
    """Joint counts of four people, in two buckets or so, against those without each of them."""
    made = world(4, 9, linked("day", "dose"))
    clique = ("visits_count", "visits_diag", "visits_before_cost", "drugs_count", "drugs_drug")

    def counted(some: World, number: int) -> Any:
        folder = tmp_path / str(number)
        folder.mkdir()
        counting = replace(some.counting, cliques=[clique])
        patterns = written(some, folder, 2, number)
        (counts,) = by_cluster(some, patterns, bucket_rows=2, counting=counting).counts([clique])
        return counts

    whole = counted(made, 0)
    assert whole.sum() == 4
    for number, pid in enumerate(made.tables["patients"]["pid"].to_pylist(), 1):
        fewer = counted(without(made, pid), number)
        assert (whole - fewer).min() == 0 and (whole - fewer).sum() == 1


@pytest.mark.parametrize(("visits", "drugs"), [("count", "part"), ("part", "files"), ("again", "count")])
def test_tables_may_be_called_as_tasks_are(tmp_path: Path, visits: str, drugs: str) -> None:
    """Two tasks of one name are one to Dask."""
    made = world(20, 4, linked("day", "dose"))
    (child,) = made.linked.children
    child = replace(child, name=visits, children=tuple(replace(one, name=drugs) for one in child.children))
    named = dict(zip(("patients", visits, drugs), made.tables.values(), strict=True))
    made = World(named, replace(made.linked, children=(child,)))
    expected = told(by_one_process(made, tmp_path), made.counting)
    assert told(by_cluster(made, written(made, tmp_path, 2)), made.counting) == expected


def test_a_persons_draw_does_not_rest_on_the_files_of_others(tmp_path: Path) -> None:
    """Days in one file and days with parts of a second in another: one moment is two texts, of which the draw
    is made."""
    own = world(40, 3, linked("day", None), crowd=20)
    days = own.tables["visits"]["day"].cast(pa.timestamp("us"))
    own = own.but("visits", day=days)
    clique = ("visits_count", "visits_diag", "visits_before_cost")

    def counted(made: World, folder: Path) -> Any:
        counting = replace(made.counting, cliques=[clique])
        patterns = written(made, folder, 1)
        table = pq.read_table(folder / "visits-0.parquet")
        late = pa.array(["late" in one for one in table["vid"].to_pylist()])
        for number, (rows, unit) in enumerate(((pc.invert(late), "us"), (late, "ns"))):
            part = table.filter(rows)
            part = part.set_column(2, "day", part["day"].cast(pa.timestamp(unit)))
            pq.write_table(part, folder / f"visits-{number}.parquet")
        (counts,) = by_cluster(made, patterns, 15, 20, counting).counts([clique])
        return counts

    (tmp_path / "whole").mkdir()
    (tmp_path / "fewer").mkdir()
    row = ["stranger", "late", days[0].as_py(), "p", 1]
    anybody = ["other", "late-other", days[0].as_py(), "p", 1]
    both = own.more("patients", [["stranger", "f", 1], ["other", "m", 2]]).more("visits", [row, anybody])
    one = own.more("patients", [["other", "m", 2]]).more("visits", [anybody])
    whole, fewer = counted(both, tmp_path / "whole"), counted(one, tmp_path / "fewer")
    assert (whole - fewer).min() == 0 and (whole - fewer).sum() == 1


def test_rows_travel_once_and_stay_no_longer_than_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices of one table would each travel with all of it, and an engine that is told of a few bytes moves
    rows about and keeps too many."""
    made = world(3000, 4, linked("day", None), "int")
    files = [locate(written(made, tmp_path, 1)["visits"].replace("*", "0"))]
    cut = Cut(made.counting, made.linked, {"visits": "visits"}, 50, KEY, software())
    pieces = scatter(files, "visits", cut)
    rows = pq.read_table(files[0].path).nbytes
    assert sum(one.num_rows for one in pieces.rows) == 6000 and rows > 100_000
    assert len(pickle.dumps(pieces)) < 4 * rows and sys.getsizeof(pieces) > rows / 2
    assert (
        "another" in route([], [], "drugs", replace(cut, labels={"drugs": "x"}, asked_by="another")).refused
    )

    client, held = Resolving(lambda: None), list[set[str]]()

    def as_completed(_: object, futures: Sequence[Done]) -> Sequence[Done]:
        held.append({key.rsplit("-", 2)[1] for key in client.held})
        return futures

    monkeypatch.setattr(dask_linked, "connected", lambda cluster: client)
    monkeypatch.setattr(dask_linked, "as_completed", as_completed)
    made = world(20, 4, linked("day", "dose"))
    by_cluster(made, written(made, tmp_path, 2))
    assert held == [{"count"}]
