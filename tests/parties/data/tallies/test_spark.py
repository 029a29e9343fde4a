"""A Spark DataFrame has the counts of the table. Skipped without PySpark; `make engines` has an environment
with it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import DataRefused
from tests.parties.data.tables import CANARY, Table, write_csv
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
        SparkSession.builder.master("local[2]")
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
