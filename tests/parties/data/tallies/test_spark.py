"""A Spark DataFrame has the counts of the table. Skipped without PySpark; `make engines` has an environment
with it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mpc_protocols.errors import DataRefused
from parties.data.tallies.engines.spark_linked import unfold_frames
from tests.parties.data.tables import CANARY, Table, write_csv
from tests.parties.data.tallies.linked_parts import KEY, World, by_one_process, linked, world
from tests.parties.data.tallies.linked_parts import told as linked_told
from tests.parties.data.tallies.parts import BY_PERSON, COUNTING, added, people, told, whole

TYPES = "person string, age int, code int, sex int"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="PySpark is not installed; `make engines` tests with it.")
    if shutil.which("java") is None:
        pytest.skip("Spark needs a Java runtime, and there is none: apt-get install openjdk-17-jre-headless.")
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    session.stop()
    patch.undo()


def frame(spark: Any, table: Table, parts: int = 3) -> Any:
    rows = list(zip(*(table[name] for name in ("person", "age", "code", "sex")), strict=True))
    return spark.createDataFrame(rows, TYPES).repartition(parts)


@pytest.mark.slow
def test_a_frame_has_the_counts_of_the_table(
    tmp_path: Path, spark: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    from parties.data.tallies.engines.spark import count_frame

    table = people(9001)
    location = write_csv(tmp_path / "t.csv", table)
    for counting in (COUNTING, replace(BY_PERSON, max_rows=9001)):
        part = count_frame(frame(spark, table), counting, "people")
        assert told(added([part], counting)) == told(whole(location, counting))
    with pytest.raises(DataRefused, match="count twice"):
        added([part, part], BY_PERSON)
    other = count_frame(frame(spark, people(4)), BY_PERSON, "others")
    with pytest.raises(DataRefused, match="overlap"):
        added([part, other], replace(BY_PERSON, max_rows=10_000))

    def refused(changed: Table, *words: str, counting: Any = BY_PERSON, types: str = TYPES) -> None:
        rows = list(zip(*(changed[name] for name in ("person", "age", "code", "sex")), strict=True))
        with pytest.raises(DataRefused) as caught:
            count_frame(spark.createDataFrame(rows, types), counting, "people")
        assert all(word in caught.value.sentence for word in words), caught.value.sentence
        assert CANARY not in caught.value.sentence and CANARY not in "".join(capfd.readouterr())

    codes: list[object] = [str(code) for code in table["code"][:49]]
    small = {name: column[:50] for name, column in table.items()}
    refused(
        {**small, "code": [*codes, CANARY]},
        'people, column "code"',
        types=TYPES.replace("code int", "code string"),
    )
    refused({**small, "person": ["p"] * 50}, "more rows", "max_rows = 2")
    refused({**small, "person": [None, *small["person"][1:]]}, "no value of the unit's id")
    refused(small, "max_rows = 49", counting=replace(COUNTING, max_rows=49))
    with pytest.raises(DataRefused, match='one column "sex"'):
        count_frame(frame(spark, small).drop("sex"), COUNTING, "people")
    for given in (small, {**small, "sex": small["sex"][::-1]}):  # SEX and sex, which Spark takes for one
        two = frame(spark, given).withColumnRenamed("person", "SEX")
        part = count_frame(two, COUNTING, "people")
        assert told(added([part]))[-1] == told(whole(write_csv(tmp_path / "t.csv", given), COUNTING))[-1]


def frames(spark: Any, made: World, parts: int = 3) -> dict[str, Any]:
    """Of linked tables, their rows anyhow among partitions."""
    tables = {name: pa.table(dict(columns)) for name, columns in made.tables.items()}
    return {name: spark.createDataFrame(table).repartition(parts) for name, table in tables.items()}


@pytest.mark.slow
def test_linked_frames_have_the_counts_of_one_process(tmp_path: Path, spark: Any) -> None:
    """Bit for bit, by one key of the draws, in one bucket or in many; and by tasks that are run again."""
    made = world(60, 7, linked("day", "dose"), "int", crowd=40)
    expected = linked_told(by_one_process(made, tmp_path), made.counting)
    for bucket_rows in (10**6, 80):
        part = unfold_frames(
            frames(spark, made), made.counting, made.linked, KEY, "all", bucket_rows=bucket_rows
        )
        assert linked_told(added([part], made.counting), made.counting) == expected
    with pytest.raises(DataRefused, match="count twice"):
        added([part, part], made.counting)
    other = replace(part, place=b"o" * 32, partition=b"o" * 32)
    with pytest.raises(DataRefused, match="overlap"):
        added([part, other], replace(made.counting, max_rows=10**7))

    made = world(40, 3, linked(None, None))
    expected = linked_told(by_one_process(made, tmp_path), made.counting)
    given, failed = frames(spark, made), str(tmp_path / "failed")

    def failing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The first task that comes here fails when it has handed on its rows."""
        yield from batches
        try:
            os.close(os.open(failed, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        raise RuntimeError("a task that is run again")

    visits = given["visits"].mapInArrow(failing, given["visits"].schema)
    part = unfold_frames({**given, "visits": visits}, made.counting, made.linked, KEY, "all", bucket_rows=60)
    assert linked_told(added([part], made.counting), made.counting) == expected and Path(failed).exists()


def more(made: World, name: str, **columns: Any) -> World:
    """With the first row once more, but for these columns."""
    own = made.tables[name]
    return made.more(name, [[columns.get(key, values[0].as_py()) for key, values in own.items()]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "columns", "said"),
    [
        ("patients", {}, 'all, patients, column "pid", a row: this key is there already'),
        (
            "visits",
            {"pid": CANARY, "vid": "new"},
            'all, visits, column "pid", a row: no row of all, patients',
        ),
        ("visits", {"pid": "another"}, 'all, visits, column "vid", a row: this key is there already'),
        ("visits", {"pid": "", "vid": "new"}, 'all, visits, column "pid", a row: a row has no key'),
        ("visits", {"vid": "new", "day": "7"}, "numbers"),
        ("visits", {"vid": "new", "diag": CANARY}, 'all, visits, column "diag", a row: '),
        ("drugs", {"vid": CANARY}, 'all, drugs, column "vid", a row: no row of all, visits'),
    ],
)
def test_linked_frames_that_do_not_belong_together_are_refused_without_a_value(
    spark: Any, capfd: pytest.CaptureFixture[str], name: str, columns: dict[str, Any], said: str
) -> None:
    """Wherever the rows are: a visit that two people have comes to two buckets."""
    made = world(30, 4, linked("day", "dose"))
    if columns.get("pid") == "another":
        pids = made.tables["visits"]["pid"].to_pylist()
        columns = {"pid": next(one for one in pids if one != pids[0])}
    given = frames(spark, more(made, name, **columns), 2)
    with pytest.raises(DataRefused) as caught:
        unfold_frames(given, made.counting, made.linked, KEY, "all", bucket_rows=30)
    assert said in caught.value.sentence, caught.value.sentence
    assert CANARY not in caught.value.sentence and CANARY not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_linked_frames_that_spark_reads_otherwise_or_not_at_all_are_refused(
    tmp_path: Path, spark: Any
) -> None:
    made = world(20, 4, linked("day", "dose"))
    given = frames(spark, made, 1)

    def refused(name: str, frame: Any, said: str) -> None:
        with pytest.raises(DataRefused) as caught:
            unfold_frames({**given, name: frame}, made.counting, made.linked, KEY, "all")
        assert said in caught.value.sentence and CANARY not in caught.value.sentence, caught.value.sentence

    visits = given["visits"]
    refused(
        "visits",
        visits.selectExpr("cast(1 as double) as pid", "vid", "day", "diag", "cost"),
        "a key of type double may be written in several ways",
    )
    refused("visits", visits.drop("day"), 'all, visits must have one column "day"')
    refused("visits", visits.withColumnRenamed("diag", "Diag"), 'one column "diag"')
    refused(
        "drugs",
        given["drugs"].selectExpr("vid", f"if(drug >= 0, raise_error('{CANARY}'), 0) as drug", "dose"),
        "could not be read or counted by Spark",
    )
    once = str(tmp_path / "once")

    def emptied(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not os.path.exists(once):
            os.close(os.open(once, os.O_CREAT))
            yield from batches

    drugs = given["drugs"].mapInArrow(emptied, given["drugs"].schema)
    refused("drugs", drugs, "had other rows when it was read again")
