"""Sources: the same rows from every format, types never guessed, and errors that hold nothing of the data."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import DataRefused, StudyInvalid
from parties.data.engines import duckdb_engine, duckdb_view
from parties.data.linked.opening import open_source
from parties.data.location import locate
from parties.data.source import Source, many_files
from parties.data.sql import server
from tests.parties.data.tables import (
    CANARY,
    assert_says,
    everything_in,
    write_csv,
    write_duckdb,
    write_parquet,
)


def rows_of(source: Source, names: list[str], rows: int = 1000) -> list[tuple[object, ...]]:
    return [
        row for batch in source.batches(names, rows) for row in zip(*batch.to_pydict().values(), strict=True)
    ]


def refused(path: Path, content: str | bytes, names: list[str]) -> DataRefused:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataRefused) as caught, open_source(locate(path)) as source:
        rows_of(source, names)
    return caught.value


def test_importing_the_parties_modules_loads_nothing_heavy() -> None:
    code = (
        "import sys; import parties.data.source, parties.data.counting.coding, parties.data.counting.local_marginals\n"
        "import parties.data.records, parties.budget.ledger\n"
        "import parties.budget.journal\n"
        "print([m for m in ('psycopg', 'duckdb', 'pyarrow', 'pandas', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_format_streams_the_same_rows_in_order(tmp_path: Path) -> None:
    columns: dict[str, list[object]] = {
        "a": [f"{i}" for i in range(5000)],
        "b b": [None if i % 7 == 0 else f"x{i % 3}" for i in range(5000)],
    }
    expected = list(zip(columns["b b"], columns["a"], strict=True))
    for location in (
        write_csv(tmp_path / "t.csv", columns),
        write_parquet(tmp_path / "t.parquet", columns),
        write_duckdb(tmp_path / "t.duckdb", columns),
    ):
        with open_source(location) as source:
            assert source.columns == ("a", "b b")
            assert rows_of(source, ["b b", "a"]) == expected
            assert max(batch.num_rows for batch in source.batches(["a"], 300)) <= 300


def test_csv_is_text_whatever_it_looks_like(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        '\ufeffid,Id,v,v\r\n007,1.0,true,2020-01-01\r\n,"a ""b"", c","x\r\ny",NULL\r\n"",\t, z ,#\r\n',
        newline="",
    )
    with open_source(locate(path)) as source:
        assert source.columns == ("id", "Id", "v", "v")  # case matters; the first of two equal names is taken
        assert rows_of(source, ["id", "Id", "v"]) == [
            ("007", "1.0", "true"),
            (None, 'a "b", c', "x\r\ny"),
            (None, "\t", " z "),
        ]


def test_names_that_look_like_patterns_are_read_literally(tmp_path: Path) -> None:
    (tmp_path / "x1.csv").write_text("a\nwrong\n")
    for name in ("x[1].csv", "x*.csv", "x?.csv", "it's.csv"):
        (tmp_path / name).write_text(f"a\n{name}\n")
    for name in ("x[1].csv", "x*.csv", "x?.csv", "it's.csv"):
        with open_source(locate(name, tmp_path)) as source:
            assert rows_of(source, ["a"]) == [(name,)]
    (tmp_path / "year=2020").mkdir()
    for location in (
        write_csv(tmp_path / "year=2020" / "t.csv", {"a": ["1"]}),
        write_parquet(tmp_path / "year=2020" / "t.parquet", {"a": ["1"]}),
    ):
        with open_source(location) as source:
            assert source.columns == ("a",) and rows_of(source, ["a"]) == [("1",)]


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        (f"a,b\n1,2\n3,{CANARY},5\n", "line 3", "as many fields"),
        (f"a,b\n1,2\n{CANARY}\n", "line 3", "as many fields"),
        (f'a,b\n1,2\n"{CANARY},5\n6,7\n', "line 3", "quotation mark"),
        (f'a,b\n1,"2" {CANARY}\n', "line 2", "quotation mark"),
        (f"a,b\n1,2\n3,4\n5,{CANARY}".encode() + b"\xff\xfe\n", "line 4", "not UTF-8"),
        (f"a,b\n1,2\r\n3,{CANARY}\r5,6\n", "a line", "not well-formed"),
        (f"a,b\r\n1,2\r\n3,{CANARY}\n5,6\r\n", "a line", "LF and CR LF in one file"),
    ],
)
def test_a_malformed_csv_is_refused_without_quoting_it(
    tmp_path: Path, content: str | bytes, where: str, what: str
) -> None:
    error = refused(tmp_path / "t.csv", content, ["a", "b"])
    assert_says(error, "t.csv", where, what)
    assert error.__context__ is None and error.__cause__ is None


@pytest.mark.parametrize("content", ["", "\n1,2\n", f'a,"{CANARY}\n', b"a,\xff\n", "x" * (1 << 21)])
def test_a_csv_without_a_header_line_is_refused(tmp_path: Path, content: str | bytes) -> None:
    assert_says(refused(tmp_path / "t.csv", content, ["a"]), "t.csv", "header line")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    location = write_parquet(tmp_path / "t.parquet", {"a": [CANARY] * 5000})
    assert location.path is not None
    whole = location.path.read_bytes()
    assert_says(refused(location.path, whole[:-10], ["a"]), "t.parquet", "Parquet")
    assert_says(refused(location.path, whole[:20] + b"\xff" * 30 + whole[50:], ["a"]), "t.parquet", "Parquet")
    (tmp_path / "t.duckdb").write_text(CANARY * 2000)
    with pytest.raises(DataRefused) as caught:
        open_source(locate({"url": f"duckdb://{tmp_path}/t.duckdb", "table": "people"}))
    assert_says(caught.value, "t.duckdb", "not a DuckDB database")


def test_missing_and_unreadable_files_are_named(tmp_path: Path) -> None:
    for given in ("nowhere.csv", "nowhere.parquet", {"url": "duckdb://nowhere.duckdb", "table": "t"}):
        with pytest.raises(DataRefused) as caught:
            open_source(locate(given, tmp_path))
        assert_says(caught.value, str(tmp_path / "nowhere"), "does not exist")
    assert not list(tmp_path.iterdir())
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataRefused) as caught:
        open_source(locate("folder.csv", tmp_path))
    assert_says(caught.value, "folder.csv", "not a file")


def test_a_database_is_opened_read_only(tmp_path: Path) -> None:
    location = write_duckdb(tmp_path / "t.duckdb", {"a": [1, 2]})
    with open_source(location) as source, pytest.raises(Exception, match="read-only"):
        source._engine._connection.sql("CREATE TABLE t.main.stolen AS SELECT 1")  # type: ignore[union-attr]
    with pytest.raises(DataRefused) as caught:
        open_source(locate({"url": f"duckdb://{tmp_path}/t.duckdb", "table": "absent"}))
    assert_says(caught.value, "table absent does not exist")


@pytest.mark.parametrize(
    "view", ["read_csv('{}')", "read_text('{}')", "read_blob('{}')", "glob('{}')", "'{}'"]
)
def test_views_of_a_database_read_no_other_file(tmp_path: Path, view: str) -> None:
    """The database may be somebody else's: what it holds reads itself, and nothing that this user may read."""
    import duckdb

    (tmp_path / "other.csv").write_text("a\n1\n")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE TABLE rows AS SELECT range AS a FROM range(5)")
        database.execute("CREATE VIEW own AS SELECT a FROM rows WHERE a < 3")
        database.execute(f"CREATE VIEW other AS SELECT * FROM {view.format(tmp_path / 'other.csv')}")
    with pytest.raises(DataRefused) as caught:
        open_source(locate({"url": f"duckdb://{tmp_path}/t.duckdb", "table": "other"}))
    assert_says(caught.value, "table other reads files beside its database, and no view may")
    assert "other.csv" not in caught.value.sentence
    with open_source(locate({"url": f"duckdb://{tmp_path}/t.duckdb", "table": "own"})) as source:
        assert len(rows_of(source, ["a"])) == 3


@pytest.mark.parametrize(
    "view",
    [
        "WITH RECURSIVE t(a) AS (SELECT 1 UNION ALL SELECT a % 100 + 1 FROM t) SELECT a FROM t",
        "WITH RECURSIVE t(a) AS (SELECT 1 UNION ALL SELECT a % 100 + 1 FROM t) SELECT a FROM t WHERE a < 0",
        "SELECT x + y AS a FROM range(1000000000) s(x), range(1000000000) t(y) WHERE x * y = -1",
        "SELECT count(*) AS a FROM range(1000000000), range(1000000000)",
        "SELECT levenshtein(repeat('a', 30000 + x), repeat('b', 30000)) AS a FROM range(2000) t(x)",
    ],
    ids=["recursive", "without rows", "product", "aggregate", "one long step"],
)
def test_a_view_without_an_end_is_given_up(
    tmp_path: Path, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be somebody else's; whatever is asked of it, rows or counts, also where DuckDB looks at no interruption."""
    import duckdb

    monkeypatch.setattr(duckdb_view, "VIEW_S", 0.2)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute(f"CREATE VIEW endless AS {view}")
    asked: list[Callable[[Source], object]] = [
        lambda source: sum(batch.num_rows for batch in source.batches(["a"])),
        lambda source: source.units("a", 1),
    ]
    for ask in asked:
        with (
            pytest.raises(DataRefused) as caught,
            open_source(locate({"url": f"duckdb://{tmp_path}/t.duckdb", "table": "endless"})) as source,
        ):
            ask(source)
        assert_says(caught.value, "table endless is a view that was computed for", "make a table of its rows")


def test_a_view_that_asks_for_the_memory_of_the_machine_ends_its_own_process(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE VIEW wide AS SELECT repeat('x', 2000000000 - x) AS a FROM range(2000) t(x)")
    with (
        pytest.raises(DataRefused) as caught,
        open_source(locate({"url": f"duckdb://{tmp_path}/t.duckdb", "table": "wide"})) as source,
    ):
        source.units("a", 1)
    assert_says(caught.value, "table wide", "memory")


@pytest.mark.parametrize(
    "answer", [b"\xff" * 16, b"\x03" + bytes(15) + b"{,}", b"\x09" + bytes(15) + b'{"a":"b"}']
)
def test_a_process_that_answers_what_is_no_answer_holds_nothing_up(
    tmp_path: Path, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"import sys, time; sys.stdout.buffer.write({answer!r}); sys.stdout.flush(); time.sleep(3600)"
    monkeypatch.setattr(duckdb_view, "PROGRAM", (sys.executable, "-c", program))
    with pytest.raises(duckdb_view.Exhausted):
        duckdb_view.View(tmp_path / "t.duckdb", "people", str(tmp_path))


def test_only_what_is_stored_is_read_without_a_limit(tmp_path: Path) -> None:
    """A table has an end, but for its columns that are computed; a macro of the file's is not asked what is a table, nor how many
    rows a person has."""
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE TABLE rows AS SELECT range % 2 AS a FROM range(5)")
        database.execute("CREATE TABLE computed (a INTEGER, b VARCHAR GENERATED ALWAYS AS (repeat('x', a)))")
        database.execute("CREATE VIEW own AS SELECT rows.a FROM t.main.rows")
        database.execute("CREATE MACRO bool_or(x) AS any_value(false)")
        database.execute("CREATE MACRO lower(x) AS 'own'")
        database.execute(
            "CREATE MACRO duckdb_tables() AS TABLE "
            "SELECT 'own' AS database_name, 'own' AS schema_name, 'own' AS table_name, 'own' AS sql"
        )

    def opened(table: str) -> Source:
        return open_source(locate({"url": f"duckdb://{tmp_path}/t.duckdb", "table": table}))

    for table, engine in (
        ("ROWS", duckdb_engine.DuckDB),
        ("t.main.rows", duckdb_engine.DuckDB),
        ("computed", duckdb_view.View),
        ("own", duckdb_view.View),
    ):
        with opened(table) as source:
            assert isinstance(source._engine, engine), table
            assert len(rows_of(source, ["a"])) == (0 if table == "computed" else 5)
    for table in ("rows", "own"):
        with opened(table) as source:
            assert source.units("a", 2) == (True, False)
            assert source.units("a", 3) == (False, False)


@pytest.mark.parametrize("condition", ["", " WHERE b < 0"], ids=["recursive", "without rows"])
def test_a_view_of_sqlite_without_an_end_is_given_up(
    tmp_path: Path, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STEPS", 10**4)
    monkeypatch.setattr(server, "VIEW_STEPS", 10**6)
    endless = "WITH RECURSIVE t(b) AS (SELECT 1 UNION ALL SELECT b % 100 + 1 FROM t) SELECT b FROM t"
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as database:
        database.execute("CREATE TABLE rows (a integer)")
        database.execute(f"INSERT INTO rows SELECT b FROM ({endless} LIMIT 300000)")
        database.execute(f"CREATE VIEW endless AS SELECT a FROM rows, ({endless}){condition}")
        database.commit()

    def read(table: str) -> int:
        with open_source(locate({"url": f"sqlite://{tmp_path}/t.sqlite", "table": table})) as source:
            return sum(batch.num_rows for batch in source.batches(["a"]))

    assert read("rows") == 300_000  # more steps than a view may take
    with pytest.raises(DataRefused) as caught:
        read("Endless")
    assert_says(caught.value, "is a view that took SQLite 1e+11 steps", "make a table of its rows")


def sqlite_file(path: Path, *statements: str) -> Callable[[str], int]:
    """A database; how many rows of a table with a column a are read from it."""
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()

    def read(table: str) -> int:
        with open_source(locate({"url": f"sqlite://{path}", "table": table})) as source:
            return sum(batch.num_rows for batch in source.batches(["a"]))

    return read


def test_a_view_of_sqlite_whose_steps_take_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of steps it would have enough for days."""
    monkeypatch.setattr(server, "VIEW_S", 0.2)
    read = sqlite_file(
        tmp_path / "t.sqlite",
        "CREATE TABLE one (a integer)",
        "CREATE VIEW slow AS WITH RECURSIVE t(b) AS (SELECT 1 UNION ALL SELECT b + 1 FROM t WHERE b < 10000000) "
        "SELECT one.a FROM t, one WHERE instr(printf('%.*c', 90000, 'x'), printf('%.*c', 40000, 'x') || b) = -1",
        "INSERT INTO one VALUES (1)",
    )
    with pytest.raises(DataRefused) as caught:
        read("slow")
    assert_says(caught.value, "is a view that took SQLite", "half an hour", "make a table of its rows")


def test_a_modules_table_of_sqlite_is_no_stored_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may read a view."""
    monkeypatch.setattr(server, "VIEW_STEPS", 10**6)
    read = sqlite_file(
        tmp_path / "t.sqlite",
        "CREATE VIEW endless AS WITH RECURSIVE t(b) AS (SELECT 1 UNION ALL SELECT b % 100 + 1 FROM t) "
        "SELECT b AS a, b AS rowid FROM t WHERE b < 0",
        "CREATE VIRTUAL TABLE searched USING fts5(a, content = 'endless', content_rowid = 'rowid')",
        "CREATE VIEW typed AS SELECT one.a FROM one, searched",
        "CREATE TABLE one (a integer)",
        "INSERT INTO one VALUES (1)",
    )
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as database:
        assert not server._is_stored(database, "searched")
        assert server._is_stored(database, "ONE")
    with pytest.raises(DataRefused) as caught:
        read("typed")
    assert_says(caught.value, "is a view that took SQLite")


@pytest.mark.parametrize(
    ("table", "stored"), [("plain", True), ("kept", True), ("computed", False), ("absent", False)]
)
def test_a_table_of_sqlite_with_a_computed_column_is_no_stored_one(
    tmp_path: Path, table: str, stored: bool
) -> None:
    """Asked of SQLite, and of no table of the file's that is called as its functions are."""
    path = tmp_path / "t.sqlite"
    sqlite_file(
        path,
        "CREATE TABLE plain (a integer)",
        "CREATE TABLE kept (a integer)",
        "CREATE TABLE computed (a integer, b text AS (hex(zeroblob(a))) VIRTUAL)",
        "CREATE TABLE pragma_table_list (schema text, name text, type text)",
        "INSERT INTO pragma_table_list VALUES ('main', 'computed', 'table'), ('main', 'absent', 'table')",
    )
    with closing(sqlite3.connect(path)) as database:
        assert server._is_stored(database, table) is stored


def test_a_value_of_a_view_of_sqlite_has_a_size(tmp_path: Path) -> None:
    """A step that makes one of a GB takes the memory of the machine."""
    read = sqlite_file(
        tmp_path / "t.sqlite",
        "CREATE TABLE one (a text)",
        "INSERT INTO one VALUES (printf('%.*c', 200000, 'x'))",
        "CREATE VIEW seen AS SELECT a FROM one",
        "CREATE VIEW large AS SELECT a FROM one WHERE length(replace(hex(zeroblob(400000000)), '0', 'xx')) > 0",
    )
    assert read("one") == 1
    for table in ("seen", "large"):
        with pytest.raises(DataRefused) as caught:
            read(table)
        assert_says(caught.value, "is a view with a value of more than 100,000 bytes", "make a table")


def test_a_name_that_stands_twice_in_a_parquet_file_is_seen_twice(tmp_path: Path) -> None:
    """DuckDB calls the second one age_1: then the study's age would be the first, and nobody told of the other."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["age", "age"])
    parquet.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("age,age\n1,3\n2,4\n")
    for name in ("t.parquet", "t.csv"):
        with open_source(locate(name, tmp_path)) as source:
            assert source.columns == ("age", "age")


def test_a_quoted_field_that_is_too_long_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n1,"' + "x" * 3_000_000 + '"\n2,3\n')
    (tmp_path / "u.csv").write_text('a,b\n1,"' + "x\n" * 20_000_000 + '"\n2,3\n')
    for name in ("t.csv", "u.csv"):
        with open_source(locate(name, tmp_path)) as source, pytest.raises(DataRefused) as caught:
            rows_of(source, ["a"])
        assert "2 MB" in caught.value.sentence


def test_nobody_writes_a_database_that_is_being_read(tmp_path: Path) -> None:
    """Every statement of one opening sees the same rows: another process cannot even open it for writing meanwhile."""
    location = write_duckdb(tmp_path / "t.duckdb", {"a": ["p", "q"] * 1000})
    writer = f"import duckdb; duckdb.connect('{location.path}').execute(\"INSERT INTO s.people SELECT 'p' FROM range(9)\")"
    write = lambda: subprocess.run([sys.executable, "-c", writer], capture_output=True, text=True)  # noqa: E731
    with open_source(location) as source:
        batches = source.batches(["a"], 100)
        next(batches)
        assert "lock" in write().stderr
        assert sum(batch.num_rows for batch in batches) == 1900 and source.units("a", 1000) == (False, False)
    assert write().returncode == 0
    with open_source(location) as source:
        assert source.units("a", 1000) == (True, False)


def test_tables_with_quotation_marks_and_dots_in_their_names(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute('CREATE SCHEMA "my s"; CREATE TABLE "my s"."a.b ""c""" AS SELECT 1 AS x')
    with open_source(locate({"url": f"duckdb://{tmp_path}/t.duckdb", "table": 'my s."a.b ""c"""'})) as source:
        assert rows_of(source, ["x"]) == [(1,)]


def test_what_data_may_be() -> None:
    for bad in (
        "",
        5,
        {"url": "duckdb://x"},
        {"url": "", "table": "t"},
        {"url": "duckdb://x", "table": "t", "key": CANARY},
        {"url": f"redis://u:{CANARY}@h/db", "table": "t"},
        {"url": f"postgres://u:{CANARY}@h:port/db", "table": "t"},
        *({"url": "duckdb://x", "table": table} for table in (".", "a.", ".a", "a..b", 'a"b', '"a', '"a"b')),
    ):
        with pytest.raises(StudyInvalid) as caught:
            locate(bad)  # type: ignore[arg-type]
        assert CANARY not in everything_in(caught.value)
    with pytest.raises(DataRefused, match=r"\.csv, \.tsv, \.parquet or \.xlsx"):
        locate("people.ods")


def test_credentials_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"postgres://me:{CANARY}@db.example:5433/health?sslpassword={CANARY}"
    location = locate({"url": url, "table": "people"})
    assert (location.label, location.dataset) == (
        "postgres://db.example:5433/health table people",
        "postgres://db.example:5433/health#people",
    )
    assert CANARY not in repr(location)

    def refuse(url: str, **_: object) -> None:
        raise OSError(f"connection to {url} failed")

    monkeypatch.setattr("psycopg.connect", refuse)
    with pytest.raises(DataRefused) as caught:
        open_source(location)
    assert_says(caught.value, "db.example:5433/health", "cannot be opened")


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DataRefused) as caught:
        open_source(locate({"url": f"postgres://me:{CANARY}@localhost/db", "table": "people"}))
    assert_says(caught.value, "psycopg[binary]")


def _chained() -> ImportError:
    error = ImportError("numpy cannot be imported")
    error.__cause__ = MemoryError()
    return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("libduckdb.so: failed to map segment from shared object"),
        ImportError("libarrow.so: cannot create shared object descriptor: Cannot allocate memory"),
        OSError(12, "Cannot allocate memory"),
        _chained(),
    ],
    ids=lambda error: str(error) or type(error).__name__,
)
def test_without_memory_no_driver_and_no_file_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    location = write_csv(tmp_path / "t.csv", {"a": ["1", "2"]})

    def out(*given: object) -> None:
        raise error

    monkeypatch.setattr("parties.data.source.DuckDB.csv", out)
    with pytest.raises(DataRefused) as caught:
        open_source(location)
    assert_says(caught.value, "t.csv", "cannot be read in the memory")


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    location = write_csv(tmp_path / "t.csv", {"a": [CANARY] * 10})
    with open_source(location) as source, pytest.raises(DataRefused) as caught:
        with (tmp_path / "t.csv").open("a") as file:
            file.write("more\n")
        rows_of(source, ["a"])
    assert_says(caught.value, "changed while it was read")


def test_places_are_physical_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n\n\n"3\n3",4\n5,6\n\n7,8\n')
    with open_source(locate(path)) as source:
        assert rows_of(source, ["a"]) == [("1",), ("3\n3",), ("5",), ("7",)]
        assert source.places([0, 1, 2, 3]) == {0: "line 2", 1: "line 5", 2: "line 7", 3: "line 9"}
    path.write_text("a\n1\n\n3\n")  # in a single column a blank line is a missing value
    with open_source(locate(path)) as source:
        assert rows_of(source, ["a"]) == [("1",), (None,), ("3",)]
        assert source.places([1, 2]) == {1: "line 3", 2: "line 4"}
    with open_source(write_parquet(tmp_path / "t.parquet", {"a": [1, 2]})) as source:
        assert source.places([1]) == {1: "row 2"}


def test_units_over_their_bound_and_without_a_name(tmp_path: Path) -> None:
    cases: list[tuple[list[object], int, tuple[bool, bool]]] = [
        (["p", "q", "p"], 2, (False, False)),
        (["p", "q", "p"], 1, (True, False)),
        (["p", None, None], 1, (False, True)),
        (["p", "", "p"], 1, (True, True)),
        (["01", "1"], 1, (False, False)),
        ([], 1, (False, False)),
    ]
    for values, bound, expected in cases:
        import pyarrow as pa

        columns: dict[str, list[object]] = {"id": values, "v": [0] * len(values)}
        schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
        for location in (
            write_csv(tmp_path / "t.csv", columns),
            write_parquet(tmp_path / "t.parquet", columns, schema),
        ):
            with open_source(location) as source:
                assert source.units("id", bound) == expected, (values, bound, location.kind)


def test_closing_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = write_csv(tmp_path / "t.csv", {"a": [1]})
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spill))
    source = open_source(location)
    (folder,) = spill.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    source.close()
    source.close()
    (tmp_path / "t.csv").write_text("")
    with pytest.raises(DataRefused):
        open_source(location)
    assert not os.listdir(spill)


def test_many_files_are_read_by_one_engine_and_each_as_it_is_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_duckdb_reads_all_files: object
) -> None:
    monkeypatch.setattr(duckdb_engine, "_own_connection", one_duckdb_reads_all_files)
    made, connect = list[object](), duckdb_engine._connect

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return connect(*arguments)

    def rows(path: Path) -> list[object]:
        with open_source(locate(path)) as source:
            return [batch.to_pylist() for batch in source.batches(source.columns)]

    tables: dict[str, dict[str, list[object]]] = {
        "a": {"x": ["007", None], "y": [1, 2]},
        "b": {"z": ["true"]},
        "c": {"x": ["1.0"] * 3, "y": ['"', ",", ""]},
    }
    locations = [write_csv(tmp_path / f"{name}.csv", table) for name, table in tables.items()]
    locations.append(write_parquet(tmp_path / "d.parquet", {"n": [1, 2, 3]}))
    paths = [location.path for location in locations if location.path is not None]
    alone = [rows(path) for path in paths]
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(duckdb_engine, "_connect", counted)
    with many_files():
        assert [rows(path) for path in paths] == alone and len(made) == 1
        # two at once; one that is broken; and one whose content is another by now
        with open_source(locations[0]) as first, open_source(locations[1]) as second:
            assert [first.columns, second.columns] == [("x", "y"), ("z",)]
        (tmp_path / "bad.csv").write_text('x,y\n1,"2\n')
        with pytest.raises(DataRefused):
            rows(tmp_path / "bad.csv")
        write_csv(tmp_path / "b.csv", {"z": ["other"]})
        assert rows(tmp_path / "b.csv") == [[{"z": "other"}]] and len(made) == 1
    assert rows(tmp_path / "b.csv") == [[{"z": "other"}]] and len(made) == 2
    assert not list((tmp_path / "temporary").iterdir())


def test_a_process_that_ends_at_once_leaves_no_records_behind(tmp_path: Path) -> None:
    """A query's temporary folder may hold records; Ctrl-C ends the process while a thread still reads."""
    table = tmp_path / "table.csv"
    write_csv(table, {"a": [1]})
    program = (
        "import sys; from runner import __main__ as program\n"
        "from parties.data.location import locate; from parties.data.linked.opening import open_source\n"
        "def main(*ignored):\n"
        "    source = open_source(locate(sys.argv[1])); open(source._spill + '/spilled', 'w').close()\n"
        "    print(source._spill); main.kept = source; return 130\n"
        "program.main = main; program.program()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(table)], capture_output=True, text=True)
    folder = Path(ended.stdout.strip())
    assert ended.returncode == 130 and folder.name.startswith("cosynth-") and not folder.exists()


@pytest.mark.parametrize("name", ["age", "marital status", "a.b", "âge", 'the "same"'])
def test_what_is_to_be_written_for_a_column_that_differs_in_blanks_is_toml(name: str, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(f'"{name.replace(chr(34), chr(34) * 2)} "\n1\n', "utf-8")
    with open_source(locate(tmp_path / "own.csv")) as source:
        found = re.search(r"write (from = .*) under (\[.*\]) of the private file", source.lacking(name))
    assert found is not None
    assert tomllib.loads(f"{found[2]}\n{found[1]}") == {
        "harmonise": {"columns": {name: {"from": f"{name} "}}}
    }
