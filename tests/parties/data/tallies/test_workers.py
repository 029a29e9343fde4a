"""Several processes count what one counts, and refuse what one refuses."""

from __future__ import annotations

import io
import json
import queue
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.counting.local_marginals import LocalTable, count
from parties.data.harmony.recipe import Step, fit
from parties.data.harmony.rules import ColumnRule, Rules
from parties.data.harmony.values import Change
from parties.data.linked.opening import open_source
from parties.data.location import Location, locate
from parties.data.tallies import worker_process, workers
from parties.data.tallies.workers import count_by_workers
from tests.parties.data.tables import CANARY, Table, write_csv, write_parquet
from tests.parties.data.tallies.parts import CLIQUES, DOMAIN, people, told

IDLE = (sys.executable, "-I", "-S", "-c", "")
"""A process that ends without a word."""


class Given(io.BytesIO):
    """A standard input that has a number."""

    def fileno(self) -> int:
        return 0


def by_workers(location: Location, *, bound: int = 2, max_rows: int = 5000, min_rows: int = 0) -> LocalTable:
    with open_source(location) as source:
        return count_by_workers(
            source, DOMAIN, CLIQUES, max_rows=max_rows, unit=("person", bound), workers=2, min_rows=min_rows
        )


def by_one(location: Location, *, bound: int = 2, max_rows: int = 5000) -> LocalTable:
    with open_source(location) as source:
        return count(source, DOMAIN, CLIQUES, max_rows=max_rows, unit=("person", bound))


def test_two_processes_count_a_parquet_file(tmp_path: Path) -> None:
    location = write_parquet(tmp_path / "t.parquet", {**people(3001), "note": [CANARY] * 3001})
    local = by_workers(location)
    assert told(local) == told(by_one(location)) and local.ignored == ("note",)


def test_two_processes_count_the_blocks_of_a_harmonised_table(tmp_path: Path) -> None:
    """A filter, a column by another name, and rows without an identifier, all left to the process that reads."""
    table = people(300)
    table["person"][5:9] = [""] * 4
    table["gender"] = table.pop("sex")
    rules = Rules(
        "own.toml", columns={"sex": ColumnRule(source="gender")}, filter="code <> '3'", leave_out=True
    )
    location = replace(write_csv(tmp_path / "t.csv", table), recipe=fit(rules, DOMAIN, ("person",)))
    local = by_workers(location)
    assert told(local) == told(by_one(location)) and 0 < local.rows < 296


@pytest.mark.parametrize("place", [0, 2999])
def test_one_process_says_what_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """And says it of the same row; what a process that finds a misfit does, the next test shows."""
    monkeypatch.setattr(workers, "PROGRAM", IDLE)
    table = people(3000)
    table["code"][place] = 99
    location = write_parquet(tmp_path / "t.parquet", table)
    sentences = []
    for counted in (by_workers, by_one):
        with pytest.raises(DataRefused) as caught:
            counted(location)
        sentences.append(caught.value.sentence)
    assert sentences[0] == sentences[1] and f"row {place + 1}:" in sentences[0]


def test_a_process_that_finds_a_misfit_hands_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No sentence, no value: whoever started it looks again."""
    monkeypatch.setattr("parties.data.tallies.worker_process.forbid_core_dumps", lambda: None)
    monkeypatch.setattr(worker_process, "_watch", lambda given: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    codes: list[object] = [*[1] * 9, 99]
    table: Table = {**people(10), "code": codes}
    location = write_parquet(tmp_path / "t.parquet", table)
    sizes = []
    for rows in ([0, 9], [9, 10], [0, 10]):
        job: dict[str, object] = {
            "domain": DOMAIN.to_spec(),
            "cliques": CLIQUES,
            "max_rows": 9,
            "path": str(location.path),
            "rows": rows,
        }
        text = json.dumps(job).encode()
        out = io.BytesIO()
        given = Given(len(text).to_bytes(4, "little") + text)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given))
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out))
        worker_process.main()
        sizes.append(len(out.getvalue()))
    assert sizes[0] > 100 and sizes[1:] == [0, 0]


def test_processes_that_end_too_soon_cost_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PROGRAM", IDLE)
    table = people(2000)
    for location in (write_parquet(tmp_path / "t.parquet", table), write_csv(tmp_path / "t.csv", table)):
        assert told(by_workers(location)) == told(by_one(location))


def test_a_file_that_cannot_be_read_to_its_end_is_refused_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PROGRAM", IDLE)
    location = write_csv(tmp_path / "t.csv", people(3))
    with (tmp_path / "t.csv").open("a") as file:
        file.write("a,b\n")
    sentences = []
    for counted in (by_workers, by_one):
        with pytest.raises(DataRefused, match="not well-formed") as caught:
            counted(location)
        sentences.append(caught.value.sentence)
    assert sentences[0] == sentences[1]


def test_bounds_on_rows_hold_for_the_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PROGRAM", ("no process is started",))
    location = write_parquet(tmp_path / "t.parquet", people(3000))
    with pytest.raises(DataRefused, match="max_rows = 1"):
        by_workers(location, bound=1)
    monkeypatch.setattr(workers, "PROGRAM", IDLE)
    with pytest.raises(DataRefused, match="max_rows = 2999"):
        by_workers(location, max_rows=2999)


def test_small_tables_are_counted_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PROGRAM", ("no process is started",))
    table = people(50)
    for location in (write_parquet(tmp_path / "t.parquet", table), write_csv(tmp_path / "t.csv", table)):
        assert by_workers(location, min_rows=workers.MIN_ROWS).rows == 50
    with pytest.raises(FileNotFoundError):
        by_workers(location)


def test_ranges_of_rows_are_the_rows_of_the_file(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(1000))})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=64)
    found: list[int] = []
    for begin in range(0, 1000, 130):
        place = replace(locate(tmp_path / "t.parquet"), rows=(begin, begin + 130))
        with open_source(place) as source:
            for batch in source.batches(["a"]):
                found += batch.column(0).to_pylist()
            assert source.places({3}) == {3: f"row {begin + 4}"}
    assert found == list(range(1000))


def test_a_block_that_arrow_refuses_costs_time_only() -> None:
    """Whoever feeds a process goes on taking blocks, and kills it: the table is counted again."""
    blocks = [pa.record_batch({"a": pa.array([1])}), *[pa.record_batch({"a": pa.array(["x"])})] * 8]
    with workers._Worker() as child:
        workers._deal([child], iter(blocks))
        assert child.result(100) == b""


def test_nobody_waits_for_room_that_nobody_makes() -> None:
    gone = threading.Thread(target=lambda: None)
    full: queue.Queue[pa.RecordBatch | None] = queue.Queue(1)
    full.put(None)
    workers._put_block(full, None, [gone])
    assert full.qsize() == 1


@pytest.mark.parametrize("kind", [pa.int64(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_a_block_of_missing_values_is_of_the_type_of_the_others(kind: pa.DataType) -> None:
    change = Change(Step("x", values=(("1", "a"),)))
    assert change(pa.nulls(3, kind)).type == pa.string()
    assert change(pa.nulls(3, pa.binary())).type == pa.binary()
