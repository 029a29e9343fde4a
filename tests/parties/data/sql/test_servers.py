"""Opening a server: what it needs, what it may do, and errors that say what is wrong and nothing else."""

from __future__ import annotations

import logging
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mpc_protocols.errors import DataRefused, StudyInvalid
from parties.data.counting.local_marginals import count
from parties.data.harmony.recipe import fit
from parties.data.harmony.rules import Rules
from parties.data.linked.opening import open_source
from parties.data.location import locate
from parties.data.sql.server import Database
from synth.domain import Categorical, Codes, Domain
from tests.mariadb import MariaDB
from tests.parties.data.sql.databases import Store, pushed
from tests.parties.data.tables import CANARY, everything_in
from tests.postgres import PASSWORD

DOMAIN = Domain(("x",), (Codes(3),))


@pytest.fixture
def people(mariadb: MariaDB) -> MariaDB:
    mariadb.execute(
        "DROP TABLE IF EXISTS people",
        "CREATE TABLE people (x INT, who VARCHAR(9))",
        "INSERT INTO people VALUES (0, 'a'), (2, 'b'), (2, 'c')",
        "DROP USER IF EXISTS reader@'%'",
        "CREATE USER reader@'%' IDENTIFIED BY 'SECRET-42'",
        "GRANT SELECT ON clinic.people TO reader@'%'",
    )
    return mariadb


def test_a_user_who_may_only_read_one_table_is_enough(
    people: MariaDB, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its password comes from the environment, and is nowhere else; nothing is logged."""
    monkeypatch.setenv("MYSQL_PWD", "SECRET-42")
    location = locate({"url": people.url("reader", ""), "table": "clinic.people", "push_down": True})
    with caplog.at_level(logging.DEBUG), open_source(location) as source:
        counted = count(source, DOMAIN, [("x",)], max_rows=3, unit=("who", 1))
    assert counted.counts([("x",)])[0].tolist() == [1, 0, 2] and not caplog.records
    assert "SECRET" not in repr(location) + location.label + location.dataset


def test_all_statements_see_one_snapshot(people: MariaDB) -> None:
    location = locate({"url": people.url(), "table": "people", "push_down": True})
    with open_source(location) as source:
        people.execute("INSERT INTO people VALUES (1, 'd')")
        assert count(source, DOMAIN, [("x",)], max_rows=3).rows == 3
    with open_source(location) as source, pytest.raises(DataRefused, match="more rows"):
        count(source, DOMAIN, [("x",)], max_rows=3)


def test_the_transaction_may_not_write(people: MariaDB) -> None:
    with closing(Database(people.url(), "people")) as table, pytest.raises(Exception, match="READ ONLY"):
        table._connection.exec_driver_sql("DELETE FROM people")


@pytest.mark.parametrize(
    ("user", "password", "table", "words"),
    [
        ("reader", f"{CANARY}-wrong", "people", "does not admit this user with this password"),
        ("admin", PASSWORD, "patients", "does not exist in this database"),
        ("reader", "SECRET-42", "other", "may not be read by this user"),
    ],
)
def test_what_the_server_refuses(people: MariaDB, user: str, password: str, table: str, words: str) -> None:
    people.execute("CREATE TABLE IF NOT EXISTS other (x INT)")
    with pytest.raises(DataRefused, match=words) as refused:
        open_source(locate({"url": people.url(user, password), "table": table}))
    assert "SECRET" not in everything_in(refused.value) and refused.value.exit_code == 30


def test_a_server_that_is_not_there(people: MariaDB) -> None:
    location = locate({"url": "mysql://reader:SECRET-42@127.0.0.1:1/clinic", "table": "people"})
    with pytest.raises(DataRefused, match="that the server runs") as refused:
        open_source(location)
    assert "SECRET" not in everything_in(refused.value)


def test_days_that_do_not_exist_are_refused(people: MariaDB) -> None:
    from datetime import date

    from synth.domain import Date

    people.execute(
        "DROP TABLE IF EXISTS days",
        "CREATE TABLE days (x DATE)",
        "SET SESSION sql_mode = ''",
        "INSERT INTO days VALUES ('2020-01-01'), ('2020-00-00')",
    )
    domain = Domain(("x",), (Date(date(2019, 1, 1), date(2021, 1, 1), "year"),))
    location = locate({"url": people.url(), "table": "days"})
    for place in (location, pushed(location)):
        with (
            open_source(place) as source,
            pytest.raises(DataRefused, match=r"of its column's type|as its type says"),
        ):
            count(source, domain, [("x",)], max_rows=3)


def test_values_that_sqlite_keeps_beside_their_columns_type_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    import sqlite3

    with sqlite3.connect(tmp_path / "t.sqlite") as database:
        database.execute("CREATE TABLE people (x INTEGER, y TEXT)")
        database.execute("INSERT INTO people VALUES (1, 'a'), ('two', x'00')")
    database.close()
    for name, column in (("x", Codes(3)), ("y", Categorical(("a", "b"), other="b"))):
        location = locate({"url": f"sqlite://{tmp_path}/t.sqlite", "table": "people"})
        for place in (location, pushed(location)):
            with (
                open_source(place) as source,
                pytest.raises(DataRefused, match=r"of its column's type|as its type says"),
            ):
                count(source, Domain((name,), (column,)), [(name,)], max_rows=3)


@pytest.mark.parametrize(
    ("url", "command"),
    [
        ("mysql://reader@db/clinic", "python -m pip install 'sqlalchemy>=2.0.30' 'pymysql>=1.1'."),
        ("mssql://reader@db/clinic", "'pyodbc>=5.1'."),
        ("bigquery://project/clinic", "'sqlalchemy-bigquery>=1.12'."),
    ],
)
@pytest.mark.parametrize("harmonised", [False, True])
def test_without_its_driver_a_database_says_what_to_install(
    url: str, command: str, harmonised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("sqlalchemy", "pymysql"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DataRefused, match="cannot be read without its driver") as refused:
        recipe = fit(Rules("private.toml", missing=("NA",)), DOMAIN, ()) if harmonised else None
        open_source(replace(locate({"url": url, "table": "people"}), recipe=recipe))
    assert command in refused.value.sentence


def test_counting_in_a_duckdb_needs_the_library_and_reading_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE TABLE people AS SELECT 1 AS x")
    location = locate({"url": f"duckdb://{tmp_path}/t.duckdb", "table": "people"})
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.setitem(sys.modules, "sqlalchemy.dialects", None)
    with open_source(location) as source:
        assert count(source, DOMAIN, [("x",)], max_rows=3).rows == 1
    with open_source(pushed(location)) as source, pytest.raises(DataRefused, match=r"sqlalchemy>=2"):
        count(source, DOMAIN, [("x",)], max_rows=3)


@pytest.mark.parametrize("push_down", ["yes", 1])
def test_push_down_is_true_or_false(push_down: object) -> None:
    with pytest.raises(StudyInvalid, match="true or false"):
        locate({"url": "duckdb://t.duckdb", "table": "people", "push_down": push_down})


def test_a_store_keeps_its_rows_in_their_own_table(store: Store) -> None:
    """Two tables of one database are two."""
    first, second = store.table({"x": ("integer", [0])}), store.table({"x": ("integer", [1, 2])})
    for location, cells in ((first, [1, 0, 0]), (second, [0, 1, 1])):
        with open_source(pushed(location)) as source:
            assert count(source, DOMAIN, [("x",)], max_rows=3).counts([("x",)])[0].tolist() == cells
