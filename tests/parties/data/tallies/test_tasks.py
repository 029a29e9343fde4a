"""What a cluster's workers run, without a cluster: each file is counted once, in one state."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import LocalTable
from parties.data.harmony.rules import RFC
from parties.data.linked.opening import open_source
from parties.data.location import Location
from parties.data.tallies.engines import dask_cluster, task
from parties.data.tallies.places import DaskCluster
from parties.data.tallies.total import Total
from tests.parties.data.tables import Table, write_parquet
from tests.parties.data.tallies.parts import COUNTING, people, told, whole


def groups(folder: Path, task_rows: int) -> list[list[Location]]:
    found = task.find_files(str(folder / "*.parquet"))
    return list(dask_cluster.file_groups(found, RFC, None, task_rows, whole=False))


def counted(parts: list[list[Location]]) -> LocalTable:
    total = Total(COUNTING, "the table")
    for group in parts:
        content = task.count_files(group, COUNTING, task.software())
        if content[:1] != task.COUNTED:
            raise DataRefused(content[1:].decode())
        total.add(total.parse(content[1:], group[0].label), f"{group[0].label} {group[0].rows}")
    return total.table(allow_empty=False)


@pytest.mark.parametrize("task_rows", [4, 5_000_000])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_of_two_names_is_refused_before_it_is_counted(
    tmp_path: Path, task_rows: int, link: object
) -> None:
    write_parquet(tmp_path / "a.parquet", people(9))
    write_parquet(tmp_path / "b.parquet", people(9))
    assert counted(groups(tmp_path, task_rows)).rows == 18
    assert callable(link)
    link(tmp_path / "a.parquet", tmp_path / "z.parquet")
    with pytest.raises(DataRefused, match=r"z\.parquet and .*a\.parquet are one file"):
        groups(tmp_path, task_rows)


def test_a_file_that_changes_between_its_ranges_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    location = write_parquet(path, people(20))
    parts, before = groups(tmp_path, 10), task.find_files(str(path))
    assert len(parts) == 2 and told(counted(parts)) == told(whole(location))
    assert task.find_files(str(path)) == before
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert task.find_files(str(path)) != before
    with pytest.raises(DataRefused, match=r"t\.parquet changed while it was read"):
        counted(parts)


@pytest.mark.parametrize("name", ["file_row_number", "File_Row_Number"])
def test_a_file_that_numbers_its_rows_itself_is_read_whole(tmp_path: Path, name: str) -> None:
    numbers: list[object] = list(range(10))
    table: Table = {**people(20), name: numbers * 2}
    location = write_parquet(tmp_path / "t.parquet", table)
    assert told(counted(groups(tmp_path, 5))) == told(whole(location))
    with pytest.raises(DataRefused, match="is not read in ranges"):
        open_source(Location("parquet", "t", "", tmp_path / "t.parquet", rows=(0, 5)))


def test_a_struct_named_so_is_found_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"file_row_number": [{"x": 1}, {"x": 2}]}), tmp_path / "t.parquet")
    assert [one.divisible for one in task.find_files(str(tmp_path / "t.parquet"))] == [False]


class Done:
    """A future whose task runs when its result is asked for."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.result = run

    def release(self) -> None:
        pass


class Here:
    """A client whose cluster is this process. meanwhile: what happens when the tasks are done."""

    loop = None

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, run: Callable[..., object], *given: object, key: str, pure: bool) -> Done:
        if key.endswith("-again"):
            self._meanwhile()
        return Done(lambda: run(*given))

    def cancel(self, futures: object) -> None:
        pass


def test_a_file_that_changes_before_all_are_counted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = write_parquet(tmp_path / "t.parquet", people(20))
    place = DaskCluster("tls://none:1", tmp_path, tmp_path, tmp_path, str(tmp_path / "*.parquet"))
    monkeypatch.setattr(dask_cluster, "as_completed", lambda client, futures: futures)
    monkeypatch.setattr(dask_cluster, "count_task", task.count_files)

    def by_cluster(meanwhile: Callable[[], object]) -> LocalTable:
        monkeypatch.setattr(dask_cluster, "connected", lambda cluster: Here(meanwhile))
        return dask_cluster.count_on_cluster(place, COUNTING, RFC, None, allow_empty=False, task_rows=10)

    assert told(by_cluster(lambda: None)) == told(whole(location))
    with pytest.raises(DataRefused, match="changed while it was counted"):
        by_cluster(lambda: os.utime(tmp_path / "t.parquet", ns=(0, 0)))
    with pytest.raises(DataRefused, match="changed while it was counted"):
        by_cluster(lambda: write_parquet(tmp_path / "new.parquet", people(2)))
