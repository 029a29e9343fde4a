"""A Dask cluster of three processes over TLS counts what one process counts, whatever becomes of a worker.

Skipped where Dask is not installed; `make engines` has an environment with it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import LocalTable
from parties.data.harmony.rules import RFC
from parties.data.tallies.counting import Counting
from parties.data.tallies.places import DaskCluster
from parties.data.tallies.total import Total
from tests.parties.data.tables import CANARY
from tests.parties.data.tallies import linked_parts
from tests.parties.data.tallies.parts import COUNTING, told, whole
from tests.worlds.dask_over_tls import dask_over_tls

FILES, ROWS = 12, 20_000
BIG = replace(COUNTING, max_rows=1 << 20)


@dataclass(frozen=True)
class World:
    """A running cluster, and where its table is."""

    place: DaskCluster
    folder: Path
    cluster: Any

    def counted(self, counting: Counting = BIG, task_rows: int = ROWS) -> LocalTable:
        from parties.data.tallies.engines.dask_cluster import count_on_cluster

        return count_on_cluster(self.place, counting, RFC, None, allow_empty=False, task_rows=task_rows)

    def pids(self) -> list[int]:
        return [nanny.pid for nanny in self.cluster.workers.values()]


def table(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": pa.array(rng.integers(10, 100, rows), pa.int16()),
            "code": pa.array(rng.integers(0, 12, rows), pa.int16()),
            "sex": pa.array(rng.integers(0, 2, rows), pa.int16()),
            "note": pa.array([CANARY] * rows),
        }
    )


def kill_one_after_the_first(patch: pytest.MonkeyPatch, world: World) -> list[int]:
    """A worker dies when the first part has been added. The list then holds its process id."""
    killed: list[int] = []
    add = Total.add

    def kill_one(self: Total, part: Any, label: str) -> None:
        add(self, part, label)
        if not killed:
            killed.append(world.pids()[0])
            os.kill(killed[0], signal.SIGKILL)

    patch.setattr(Total, "add", kill_one)
    return killed


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pytest.importorskip("distributed", reason="Dask is not installed; `make engines` tests with it.")
    folder = tmp_path_factory.mktemp("dask")
    for number in range(FILES):
        pq.write_table(table(ROWS, number), folder / f"part{number:02d}.parquet")
    with dask_over_tls(folder, 3) as (place, cluster):
        yield World(place, folder, cluster)


@pytest.mark.slow
def test_a_cluster_counts_exactly_though_a_worker_is_killed(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The worker dies when the first part has been added, and what it had counted with it."""
    joined = world.folder / "whole.parquet"
    parts = [pq.read_table(path) for path in sorted(world.folder.glob("part*.parquet"))]
    pq.write_table(pa.concat_tables(parts), joined)
    from parties.data.location import locate

    expected = told(whole(locate(joined), BIG))
    with monkeypatch.context() as patch:
        killed = kill_one_after_the_first(patch, world)
        assert told(world.counted()) == expected and killed
    assert told(world.counted(task_rows=3 * ROWS)) == expected
    assert told(world.counted(task_rows=ROWS // 3)) == expected

    codes = parts[7].column("code").to_pylist()
    bad = parts[7].set_column(1, "code", pa.array([str(code) for code in codes[:-1]] + [CANARY]))
    pq.write_table(bad, world.folder / "part07.parquet")
    with pytest.raises(DataRefused) as caught:
        world.counted()
    assert f'part07.parquet, column "code", row {ROWS}:' in caught.value.sentence
    logs = [str(lines) for lines in world.cluster.get_logs().values()]
    shown = capfd.readouterr()
    assert not any(CANARY in text for text in (caught.value.sentence, shown.out, shown.err, *logs))

    with pytest.raises(DataRefused, match="max_rows = 9"):
        world.counted(replace(BIG, max_rows=9))
    elsewhere = replace(world, place=replace(world.place, files=str(world.folder / "none*.parquet")))
    with pytest.raises(DataRefused, match="names no file"):
        elsewhere.counted()


def test_a_scheduler_that_cannot_be_reached_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed; `make engines` tests with it.")
    from parties.data.tallies.engines import dask_cluster

    monkeypatch.setattr(dask_cluster, "CONNECT_S", 1)
    file = tmp_path / "none"
    nowhere = DaskCluster("tls://127.0.0.1:1", file, file, file, "/none/*.parquet")
    with pytest.raises(DataRefused, match=r"tls://127\.0\.0\.1:1 cannot be reached"):
        World(nowhere, tmp_path, None).counted()


@pytest.mark.slow
def test_a_cluster_unfolds_linked_tables_as_one_process_does_though_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pieces that really travel, of which some are lost when the first persons are counted, and made again;
    `test_linked_tasks.py` has the cases."""
    pytest.importorskip("distributed", reason="Dask is not installed; `make engines` tests with it.")
    from parties.data.tallies.engines.dask_linked import unfold_on_cluster

    made = linked_parts.world(60, 7, linked_parts.linked("day", "dose"), "int", crowd=20)
    expected = linked_parts.told(linked_parts.by_one_process(made, tmp_path), made.counting)
    patterns = linked_parts.written(made, tmp_path, 2)
    with dask_over_tls(tmp_path, 2) as (somewhere, cluster):
        place = replace(somewhere, files=patterns["patients"], tables=patterns)
        killing = World(place, tmp_path, cluster)
        with monkeypatch.context() as patch:
            killed = kill_one_after_the_first(patch, killing)
            found = unfold_on_cluster(
                place, made.counting, made.linked, linked_parts.KEY, RFC,
                allow_empty=False, task_rows=50, bucket_rows=30,
            )  # fmt: skip
    assert linked_parts.told(found, made.counting) == expected and killed
