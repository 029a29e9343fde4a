"""PostgreSQL against a real server: the same rows, codes and counts as a file, one snapshot, flat memory, and errors that say
what is wrong and nothing else."""

from __future__ import annotations

import datetime
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mpc_protocols.errors import DataRefused
from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy
from parties.data import records
from parties.data.counting.coding import Coder
from parties.data.counting.local_marginals import count, validate
from parties.data.linked.opening import open_source
from parties.data.location import Location, locate
from parties.data.source import Source
from synth.domain import Categorical, Codes, Domain, Numeric
from tests.parties.data.tables import CANARY, assert_says, everything_in, write_csv, write_parquet
from tests.postgres import PASSWORD, Postgres, binaries

DOMAIN = Domain(
    ("age", "work", "code", "sex"),
    (
        Numeric(low=17, high=90, bins=6, integral=True, missing=True),
        Categorical(("Private", "Gov", "it's, ok")),
        Codes(5),
        Categorical((False, True), missing=True),
    ),
)
CLIQUES = [("age", "sex"), ("code", "work", "sex")]
Table = dict[str, list[Any]]


@pytest.fixture
def schema(postgres: Postgres) -> Iterator[str]:
    """A schema of its own for one test. (A table's rows come in no particular order: not even COPY keeps it.)"""
    name = f"s{time.monotonic_ns()}"
    postgres.execute(f"CREATE SCHEMA {name}")
    yield name
    postgres.execute(f"DROP SCHEMA {name} CASCADE")


def random_table(rows: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), rows)]  # noqa: E731
    return {
        "id": [f"Ann {CANARY} {i}" for i in rng.permutation(rows)],
        "note": pick([CANARY, 'a "q", b\n', "", "\\.", None, "é", "\\N"]),
        "age": pick([None, 3, 17, 30, 55, 89, 90, 120]),
        "work": pick(["Private", "Gov", "it's, ok"]),
        "code": pick([0, 1, 2, 4]),
        "sex": pick([True, False, None]),
        "born": pick([datetime.date(2000, 1, 1), datetime.date(1999, 12, 31)]),
    }


def fill(
    postgres: Postgres, schema: str, table: Table, name: str = "people", code: str = "smallint"
) -> Location:
    postgres.execute(
        f"CREATE TABLE {schema}.{name} (id text, note text, age integer, work varchar(20), code {code}, "
        "sex boolean, born date)"
    )
    with (
        postgres.connect() as connection,
        connection.cursor().copy(f"COPY {schema}.{name} FROM STDIN") as copy,
    ):
        for row in zip(*table.values(), strict=True):
            copy.write_row(row)
    return at(postgres, f"{schema}.{name}")


def at(postgres: Postgres, table: str, **options: str) -> Location:
    return locate({"url": postgres.url(**options), "table": table})


def rows_of(source: Source, names: list[str], rows: int = 1000) -> list[tuple[object, ...]]:
    return [
        row for batch in source.batches(names, rows) for row in zip(*batch.to_pydict().values(), strict=True)
    ]


def refused(location: Location, names: list[str] | None = None) -> DataRefused:
    with pytest.raises(DataRefused) as caught, open_source(location) as source:
        rows_of(source, names or list(source.columns))
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert "p@ss" not in everything_in(caught.value) and "p%40ss" not in everything_in(caught.value)
    return caught.value


def test_rows_in_blocks_are_those_that_were_put_in(postgres: Postgres, schema: str) -> None:
    table = random_table(2500, 1)
    with open_source(fill(postgres, schema, table)) as source:
        assert source.columns == tuple(table) and not source.ordered
        names = ["note", "id", "sex", "born", "age", "code"]
        assert Counter(rows_of(source, names, 300)) == Counter(
            zip(*(table[name] for name in names), strict=True)
        )
        assert Counter(rows_of(source, ["note"])) == Counter(
            (note,) for note in table["note"]
        )  # here a null is an empty line
        assert rows_of(source, ["id", "note"], 7) == rows_of(source, ["id", "note"])
        assert [batch.num_rows for batch in source.batches(["id"], 1000)] == [1000, 1000, 500]
        assert source.batches(["id"]) is not None and source.places([16]) == {16: "row 17"}


@pytest.mark.parametrize("rows", [0, 1, 3000])
def test_counts_and_records_are_those_of_the_csv(
    postgres: Postgres, schema: str, tmp_path: Path, rows: int
) -> None:
    table = random_table(rows, 7)
    policy = IdentifierPolicy(("id", "born"), ("text", "date"))
    locations = (fill(postgres, schema, table), write_csv(tmp_path / "t.csv", table))
    read_, counted = [], []
    for location in locations:
        with open_source(location) as source:
            local = count(
                source, DOMAIN, CLIQUES, max_rows=3000, unit=("id", 1), allow_empty=True, block_rows=700
            )
            cells = [each.tolist() for each in local.counts(CLIQUES)]
            counted.append((local.rows, local.clamped, local.absent, local.ignored, cells))
            own = records.read(
                source,
                DOMAIN.subset(("sex", "code")),
                policy,
                max_rows=3000,
                allow_empty=True,
                block_rows=700,
            )
            assert own.identifiers is not None
            identified = zip(
                own.identifiers.entries, own.codes["sex"].tolist(), own.codes["code"].tolist(), strict=True
            )
            read_.append((own.rows, sorted(identified), own.ignored))
            if rows:
                assert own.identifiers.kinds == (
                    ("text", "date") if location.kind == "postgres" else ("untyped", "untyped")
                )
    assert counted[0] == counted[1] and read_[0] == read_[1] and counted[0][0] == rows


TYPES: list[tuple[str, list[str], Any, list[int]]] = [
    ("smallint", ["3", "0"], Codes(5), [3, 0]),
    ("bigint", ["4", "1"], Codes(5), [4, 1]),
    ("numeric", ["4", "2.0"], Codes(5), [4, 2]),
    ("numeric(12,0)", ["4", "1"], Codes(5), [4, 1]),
    ("numeric(12,2)", ["1.25", "2.5"], Numeric(0, 4, 4), [1, 2]),
    ("real", ["0.1", "2.5"], Categorical((0.1, 2.5)), [0, 1]),
    ("double precision", ["'NaN'", "1e1"], Numeric(0, 20, 2, missing=True), [2, 1]),
    ("numeric", ["'NaN'", "NULL"], Numeric(0, 20, 2, missing=True), [2, 2]),
    ("boolean", ["true", "false"], Categorical((True, False)), [0, 1]),
    ("text", ["'a'", "''"], Categorical(("a", "b"), missing=True), [0, 2]),
    ("char(5)", ["'b'", "'a '"], Categorical(("a", "b")), [1, 0]),
    ("varchar", ["'x y'", "' x'"], Categorical((" x", "x y")), [1, 0]),
    ("date", ["'2024-02-29'", "'2024-03-01'"], Categorical(("2024-02-29", "2024-03-01")), [0, 1]),
    (
        "timestamp",
        ["'2024-02-29 12:00'", "NULL"],
        Categorical(("2024-02-29 12:00:00.000000",), missing=True),
        [0, 1],
    ),
    (
        "uuid",
        ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"],
        Categorical(("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",)),
        [0],
    ),
    ("time", ["'08:00'", "NULL"], Categorical(("08:00:00",), missing=True), [0, 1]),
    ("mood", ["'sad'", "'ok'"], Categorical(("ok", "sad")), [1, 0]),
    ("adult", ["18", "20"], Numeric(18, 21, 3, integral=True), [0, 2]),
]


def test_types_are_coded_as_what_they_mean(postgres: Postgres, schema: str) -> None:
    postgres.execute(
        f"CREATE TYPE {schema}.mood AS ENUM ('sad', 'ok')",
        f"CREATE DOMAIN {schema}.adult AS integer CHECK (VALUE >= 18)",
    )
    for i, (kind, values, column, expected) in enumerate(TYPES):
        name = f"{schema}.{kind}" if kind in ("mood", "adult") else kind
        postgres.execute(
            f"CREATE TABLE {schema}.t{i} (x {name}, y jsonb)",
            f"INSERT INTO {schema}.t{i} VALUES " + ", ".join(f"({value}, '1')" for value in values),
        )
        with open_source(at(postgres, f"{schema}.t{i}")) as source:
            codes = [Coder(column).code(batch.column(0)) for batch in source.batches(["x"])]
            assert [(each[0].tolist(), each[1]) for each in codes] == [(expected, [])], kind


def test_numbers_and_moments_are_exact(postgres: Postgres, schema: str) -> None:
    postgres.execute(
        f"CREATE TABLE {schema}.t (i bigint, j numeric(18,0), t timestamptz, d date)",
        f"INSERT INTO {schema}.t VALUES "
        "(9223372036854775807, 999999999999999999, '2024-02-29 01:00+02', DATE '9999-12-31'), "
        "(-9223372036854775808, -1, '1850-12-31 23:59:59.999999+00', DATE '0001-01-01')",
    )
    with open_source(at(postgres, f"{schema}.t")) as source:
        (batch,) = source.batches(["i", "j", "t", "d"])
        assert batch.column(0).to_pylist() == [2**63 - 1, -(2**63)] and batch.column(1).to_pylist() == [
            10**18 - 1,
            -1,
        ]
        assert batch.schema.types[2] == pa.timestamp("us", "UTC")
        first, second = batch.column(2).cast(pa.int64()).to_pylist()
        assert Fraction(first, 10**6) == datetime.datetime(2024, 2, 28, 23, tzinfo=datetime.UTC).timestamp()
        assert second == -3755289600000001
        assert batch.column(3).to_pylist() == [datetime.date(9999, 12, 31), datetime.date(1, 1, 1)]
        policy = IdentifierPolicy(("i", "d"), ("exact", "date"))
        own = records.read(source, Domain(("j",), (Numeric(-5, 10**18, 2),)), policy, max_rows=5)
        assert own.identifiers is not None and own.identifiers.entries == [
            policy.canonical([2**63 - 1, "9999-12-31"]),
            policy.canonical([-(2**63), "0001-01-01"]),
        ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("jsonb", "'{}'"),
        ("bytea", "'x'"),
        ("integer[]", "'{1}'"),
        ("interval", "'1 day'"),
        ("point", "'(1,2)'"),
    ],
)
def test_types_without_codes_are_refused_where_they_are_wanted(
    postgres: Postgres, schema: str, kind: str, value: str
) -> None:
    postgres.execute(
        f"CREATE TABLE {schema}.t (a integer, code {kind})", f"INSERT INTO {schema}.t VALUES (1, {value})"
    )
    location = at(postgres, f"{schema}.t")
    with open_source(location) as source:
        assert rows_of(source, ["a"]) == [(1,)]
    assert_says(refused(location, ["code"]), location.label, 'column "code"', "cannot be read")


def test_dates_that_no_study_can_hold(postgres: Postgres, schema: str) -> None:
    for value in ("infinity", "0044-03-15 BC"):
        postgres.execute(
            f"DROP TABLE IF EXISTS {schema}.t",
            f"CREATE TABLE {schema}.t (d date)",
            f"INSERT INTO {schema}.t VALUES ('{value}')",
        )
        error = refused(at(postgres, f"{schema}.t"))
        assert_says(error, "a date or a moment that is infinite or before the year 1")
        assert value not in everything_in(error)


def test_misfits_are_named_by_their_row(postgres: Postgres, schema: str) -> None:
    table = random_table(50, 3)
    table["code"][31], table["work"][40], table["id"][7] = 31337, CANARY, None
    location = fill(postgres, schema, table, code="integer")
    with open_source(location) as source:
        with pytest.raises(DataRefused) as caught:
            count(source, DOMAIN, CLIQUES, max_rows=50, block_rows=20)
        assert_says(caught.value, location.label, 'column "code", row 32')
        found = validate(
            source, DOMAIN, max_rows=50, unit=("id", 1)
        ).problems  # after a reading that stopped early: the snapshot lives
        assert (
            len(found) == 3
            and "row has no value of the unit's id" in found[0]
            and '"work", row 41' in found[2]
        )
        found = records.validate(source, DOMAIN, IdentifierPolicy(("id",), ("text",)), max_rows=50).problems
        assert len(found) == 3 and 'column "id", row 8: the identifier is missing' in found[0]


def test_a_reader_that_stops_early_can_ask_again(postgres: Postgres, schema: str) -> None:
    """Far more rows than any buffer holds: the server is still sending when the reader has had enough."""
    postgres.execute(
        f"CREATE TABLE {schema}.t AS SELECT 400000 - i AS a, repeat('x', 50) AS b FROM generate_series(1, 400000) i"
    )
    with open_source(at(postgres, f"{schema}.t")) as source, postgres.connect() as writer:
        next(source.batches(["a", "b"], 100))
        writer.execute(f"INSERT INTO {schema}.t SELECT 1, 'y' FROM generate_series(1, 9)")
        found = validate(source, Domain(("a",), (Codes(5),)), max_rows=1000, block_rows=500).problems
        assert len(found) == 2 and "max_rows = 1000" in found[0] and "row 1:" in found[1]
        assert source.units("a", 1) == (False, False)  # the same snapshot


def test_long_texts(postgres: Postgres, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows far longer than a block of Arrow's, with newlines; a block with many bytes is cut before it has all its rows."""
    postgres.execute(
        f"CREATE TABLE {schema}.t AS SELECT i AS a, repeat(E'x\n\"', 1000000) || i AS b "
        "FROM generate_series(1, 5) i"
    )
    expected = [(i, 'x\n"' * 1000000 + str(i)) for i in range(1, 6)]
    with open_source(at(postgres, f"{schema}.t")) as source:
        assert sorted(rows_of(source, ["a", "b"])) == expected
        monkeypatch.setattr("parties.data.engines.postgres._BLOCK_BYTES", 6_000_000)
        batches = list(source.batches(["a", "b"]))
        assert [batch.num_rows for batch in batches] == [2, 2, 1]
        assert sorted(number for batch in batches for number in batch.column(0).to_pylist()) == [
            1,
            2,
            3,
            4,
            5,
        ]


def test_units_are_counted_by_the_server(postgres: Postgres, schema: str) -> None:
    postgres.execute(
        f"CREATE TABLE {schema}.t (who text, n integer)",
        f"INSERT INTO {schema}.t VALUES ('p', 1), ('q', 2), ('p', NULL), ('', 3)",
    )
    with open_source(at(postgres, f"{schema}.t")) as source:
        assert source.units("who", 2) == source.units("n", 1) == (False, True) and source.units("who", 1) == (
            True,
            True,
        )
    postgres.execute(f"DELETE FROM {schema}.t")
    with open_source(at(postgres, f"{schema}.t")) as source:
        assert source.units("who", 1) == (False, False)


def test_names_with_quotation_marks_dots_and_capitals(postgres: Postgres, schema: str) -> None:
    for table, sql in (
        (f'{schema}."a.b ""c"""', f'{schema}."a.b ""c"""'),
        (f"{schema}.People", f'{schema}."People"'),
        (f"{schema}.it's; DROP", f'{schema}."it\'s; DROP"'),
    ):
        postgres.execute(
            f'CREATE TABLE {sql} ("a ""b"" %s" integer, "Ä {{}}" integer)', f"INSERT INTO {sql} VALUES (1, 2)"
        )
        with open_source(at(postgres, table)) as source:
            assert source.columns == ('a "b" %s', "Ä {}") and rows_of(source, ["Ä {}", 'a "b" %s']) == [
                (2, 1)
            ]
            assert source.units('a "b" %s', 1) == (False, False)
    assert_says(refused(at(postgres, f"{schema}.people")), "does not exist in this database")


def test_a_view_may_say_the_order(postgres: Postgres, schema: str) -> None:
    postgres.execute(
        f"CREATE TABLE {schema}.t AS SELECT i AS x FROM generate_series(0, 99) i ORDER BY i % 7",
        f"CREATE VIEW {schema}.v AS SELECT * FROM {schema}.t ORDER BY x DESC",
    )
    domain = Domain(("x",), (Codes(100),))
    with open_source(at(postgres, f"{schema}.v")) as source:
        assert records.read(source, domain, None, max_rows=100).codes["x"].tolist() == list(range(99, -1, -1))
    with open_source(at(postgres, f"{schema}.t")) as source:
        with pytest.raises(DataRefused) as caught:
            records.read(source, domain, None, max_rows=100)
        assert_says(caught.value, "rows have no order", "ORDER BY")
        assert records.validate(source, domain, None, max_rows=100).problems == (caught.value.sentence,)
        assert records.read(source, domain, IdentifierPolicy(("x",), ("exact",)), max_rows=100).rows == 100


def test_everything_is_asked_of_one_snapshot(postgres: Postgres, schema: str) -> None:
    """A writer adds rows of one person and removes others between any two statements, and while rows are streaming."""
    table = random_table(2000, 5)
    location = fill(postgres, schema, table)
    everything = sorted(table["id"])
    with open_source(location) as source, postgres.connect() as writer:
        writer.execute(f"INSERT INTO {schema}.people SELECT * FROM {schema}.people")
        assert source.units("id", 1) == (False, False)
        writer.execute(f"DELETE FROM {schema}.people WHERE code = 1")
        assert sorted(name for (name,) in rows_of(source, ["id"])) == everything  # type: ignore[type-var]
        batches = source.batches(["id"], 100)
        first = next(batches)
        writer.execute(f"UPDATE {schema}.people SET id = 'changed'")
        writer.execute(f"INSERT INTO {schema}.people (id) SELECT 'new' FROM generate_series(1, 1000)")
        assert first.num_rows + sum(batch.num_rows for batch in batches) == 2000
        policy = IdentifierPolicy(("id",), ("exact",))
        own = records.read(source, DOMAIN.subset(("code",)), policy, max_rows=2000)
        assert own.identifiers is not None
        expected = {
            policy.canonical([name]): code for name, code in zip(table["id"], table["code"], strict=True)
        }
        assert dict(zip(own.identifiers.entries, own.codes["code"].tolist(), strict=True)) == expected
    with open_source(location) as source:
        assert source.units("id", 1) == (True, False)


def test_a_busy_writer_never_breaks_the_bound_that_was_checked(postgres: Postgres, schema: str) -> None:
    """Each transaction of the writer moves all rows of one person to another: no snapshot holds anyone twice, a mixture does."""
    postgres.execute(
        f"CREATE TABLE {schema}.t (who integer, x integer)",
        f"INSERT INTO {schema}.t SELECT i, 0 FROM generate_series(1, 500) i",
    )
    domain, policy = Domain(("x",), (Codes(1),)), IdentifierPolicy(("who",), ("exact",))
    stop = threading.Event()

    def write() -> None:
        with postgres.connect() as writer:
            while not stop.is_set():
                for change in ("who + 1", "who - 1"):
                    writer.execute(f"UPDATE {schema}.t SET who = {change}")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(10):
            with open_source(at(postgres, f"{schema}.t")) as source:
                assert source.units("who", 1) == (False, False)
                assert records.read(source, domain, policy, max_rows=500, block_rows=50).rows == 500
    finally:
        stop.set()
        thread.join()


def test_the_server_refuses_to_write(postgres: Postgres, schema: str) -> None:
    import psycopg

    with open_source(fill(postgres, schema, random_table(3, 1))) as source:
        assert source._engine is not None
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            source._engine._connection.execute(f"DELETE FROM {schema}.people")  # type: ignore[attr-defined]


def test_what_keeps_a_table_shut(postgres: Postgres, schema: str) -> None:
    fill(postgres, schema, random_table(3, 1))
    postgres.execute(f"CREATE ROLE {schema}_guest LOGIN PASSWORD '{PASSWORD}'")
    guest = f"{schema}_guest"
    try:
        for location, words in (
            (
                at(postgres, f"{schema}.people", password=CANARY),
                "does not admit this user with this password",
            ),
            (at(postgres, f"{schema}.people", user=CANARY), "does not admit this user with this password"),
            (at(postgres, f"{schema}.people", database="nowhere"), "no such database"),
            (at(postgres, f"{schema}.absent"), "does not exist in this database"),
            (at(postgres, "absent.people"), "does not exist in this database"),
            (at(postgres, f"{schema}.people", user=guest), "may not be read by this user"),
            (
                locate({"url": f"{postgres.url()}?sslmode=require", "table": "people"}),
                "no encrypted connection",
            ),
            (
                locate({"url": f"postgres://me:{CANARY}@127.0.0.1:1/db", "table": "people"}),
                "that the server runs",
            ),
        ):
            assert_says(refused(location), location.label, words)
        postgres.execute(f"GRANT USAGE ON SCHEMA {schema} TO {guest}")
        assert_says(refused(at(postgres, f"{schema}.people", user=guest)), "may not be read by this user")
        postgres.execute(
            f"CREATE VIEW {schema}.v AS SELECT code, sex FROM {schema}.people",
            f"GRANT SELECT ON {schema}.v TO {guest}",
        )
        with open_source(at(postgres, f"{schema}.v", user=guest)) as source:  # a view is enough
            assert len(rows_of(source, ["sex", "code"])) == 3
    finally:
        postgres.execute(f"DROP OWNED BY {guest}", f"DROP ROLE {guest}")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (
            'FATAL:  no pg_hba.conf entry for host "10.0.0.7", user "u", database "d", no encryption',
            "from this machine",
        ),
        ("FATAL:  sorry, too many clients already", "that the server runs"),
        ("failed to resolve host 'SECRET-42': [Errno -2] Name or service not known", "that the server runs"),
        ('root certificate file "/SECRET-42/root.crt" does not exist', "no encrypted connection"),
    ],
)
def test_what_keeps_a_connection_from_coming_about(
    monkeypatch: pytest.MonkeyPatch, theirs: str, ours: str
) -> None:
    import psycopg

    def refuse(url: str, **_: object) -> None:
        raise psycopg.OperationalError(f"connection to {url} failed: {theirs}")

    monkeypatch.setattr("psycopg.connect", refuse)
    assert_says(
        refused(locate({"url": f"postgres://me:{CANARY}@db.example/clinic", "table": "t"})),
        "cannot be opened",
        ours,
    )


def test_a_connection_that_ends_in_the_middle(postgres: Postgres, schema: str) -> None:
    postgres.execute(
        f"CREATE TABLE {schema}.t AS SELECT '{CANARY}'::text AS a, i AS b FROM generate_series(1, 300000) i"
    )
    with open_source(at(postgres, f"{schema}.t")) as source, pytest.raises(DataRefused) as caught:
        batches = source.batches(["a", "b"], 1000)
        next(batches)
        postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%'")
        for _ in batches:
            pass
    assert_says(caught.value, "the connection to the server ended before the last row")


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle(tmp_path: Path) -> None:
    folder = binaries()
    if folder is None:
        pytest.skip("no PostgreSQL server")
    server = Postgres(folder)
    try:
        server.execute("CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 500000) i")
        with open_source(at(server, "t")) as source, pytest.raises(DataRefused) as caught:
            batches = source.batches(["a"], 1000)
            next(batches)
            server._server.send_signal(
                signal.SIGQUIT
            )  # an immediate shutdown: what a crash looks like to a client
            server._server.wait()
            for _ in batches:
                pass
        assert_says(caught.value, "the connection to the server ended before the last row")
        assert_says(refused(at(server, "t")), "that the server runs")
    finally:
        server.stop()


MEMORY = """
import sys, time
from parties.data.counting.local_marginals import count
from parties.data.location import locate
from parties.data.linked.opening import open_source
from synth.domain import Codes, Domain
domain = Domain(tuple(f"c{k}" for k in range(8)), (Codes(20),) * 8)
started = time.perf_counter()
with open_source(locate({"url": sys.argv[1], "table": sys.argv[2]})) as source:
    local = count(source, domain, [("c0", "c1", "c2"), ("c5", "c7")], max_rows=1 << 25, unit=("id", 1))
assert all(counts.sum() == local.rows for counts in local.counts([("c0", "c1"), ("c5", "c7")]))
kilobytes = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(local.rows, time.perf_counter() - started, kilobytes / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="reads /proc; getrusage would count the parent's memory at the fork"
)
def test_memory_does_not_grow_with_the_rows(postgres: Postgres, schema: str) -> None:
    """Two million rows of nine columns within 30 MB of what 200,000 take (measured: 130 MB and 133 MB, 6 s)."""
    columns = ", ".join(f"((i % 9973 + {k}) % 20)::smallint AS c{k}" for k in range(8))
    peaks = []
    for rows in (200_000, 2_000_000):
        postgres.execute(
            f"CREATE TABLE {schema}.t{rows} AS SELECT i AS id, {columns} FROM generate_series(1, {rows}) i"
        )
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, postgres.url(), f"{schema}.t{rows}"],
            capture_output=True,
            text=True,
            check=True,
        )
        counted, _, megabytes = map(float, done.stdout.split())
        print(done.stdout)
        assert counted == rows
        peaks.append(megabytes)
    assert peaks[1] < peaks[0] + 30


def test_all_formats_share_one_account_of_clamping(postgres: Postgres, schema: str, tmp_path: Path) -> None:
    table = random_table(500, 11)
    parquet = write_parquet(tmp_path / "t.parquet", table)
    seen = []
    for location in (fill(postgres, schema, table), parquet):
        with open_source(location) as source:
            local = count(source, DOMAIN, CLIQUES, max_rows=500)
            seen.append((local.clamped, local.absent))
    assert seen[0] == seen[1]
