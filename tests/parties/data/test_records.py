"""Own records: codes and identifiers against brute force in every format, duplicates, everything refused,
memory."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

from mpc_protocols.errors import DataRefused
from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy
from parties.data.counting.local_marginals import count
from parties.data.linked.opening import open_source
from parties.data.location import Location
from parties.data.records import Records, read, validate
from parties.data.source import Source
from synth.domain import Categorical, Codes, Domain, Numeric
from tests.parties.data.tables import CANARY, Table, assert_says, code_of, write_csv, write_parquet, written

DOMAIN = Domain(
    ("age", "work", "code", "sex"),
    (
        Numeric(low=17, high=90, bins=6, integral=True, missing=True),
        Categorical(("Private", "Gov", "it's, ok")),
        Codes(70_000),
        Categorical((False, True), missing=True),
    ),
)
POLICY = IdentifierPolicy(("who", "born"), ("text", "date"))
FIRST = IdentifierPolicy(("who", "born"), ("text", "date"), "first")


def random_table(rows: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), rows)]  # noqa: E731
    return {
        "born": pick(["2000-01-01", "1999-12-31"]),
        "code": pick([0, 1, 400, 69_999]),
        "note": pick([CANARY]),
        "age": pick([None, 3, 17, 30, 55, 89, 90, 120]),
        "who": [f" Ann  {CANARY} {i}" for i in rng.permutation(rows)],
        "sex": pick([True, False, None]),
        "work": pick(["Private", "Gov", "it's, ok"]),
    }


def reads(location: Location, domain: Domain, policy: IdentifierPolicy | None, **options: object) -> Records:
    with open_source(location) as source:
        return read(source, domain, policy, **{"max_rows": 5000, **options})  # type: ignore[arg-type]


def refused(
    location: Location, policy: IdentifierPolicy | None = POLICY, domain: Domain = DOMAIN, **options: object
) -> DataRefused:
    """`read`'s refusal, which `validate` must know too."""
    with open_source(location) as source:
        with pytest.raises(DataRefused) as caught:
            read(source, domain, policy, **{"max_rows": 5000, **options})  # type: ignore[arg-type]
        found = validate(source, domain, policy, **{"max_rows": 5000, **options})  # type: ignore[arg-type]
        assert caught.value.sentence in found.problems
    return caught.value


@pytest.mark.parametrize(("rows", "block_rows"), [(1, 1), (3000, 700)])
def test_all_formats_give_the_records_of_brute_force(tmp_path: Path, rows: int, block_rows: int) -> None:
    table = random_table(rows, rows)
    keys = [POLICY.canonical(key) for key in zip(table["who"], table["born"], strict=True)]
    for location in written(tmp_path, table):
        for domain in (DOMAIN, DOMAIN.subset(("sex", "code"))):
            for policy in (POLICY, None):
                own = reads(location, domain, policy, max_rows=rows, block_rows=block_rows)
                assert own.rows == rows and list(own.codes) == list(domain.names)
                for name, codes in own.codes.items():
                    assert codes.tolist() == [code_of(DOMAIN[name], value) for value in table[name]]
                    assert codes.dtype == (np.uint32 if name == "code" else np.uint8)
                if policy is None:
                    assert own.identifiers is None
                else:
                    assert own.identifiers is not None and own.identifiers.entries == keys
                    assert own.identifiers.rows.tolist() == list(range(rows))
                    assert own.identifiers.kinds == (
                        ("untyped",) * 2 if location.kind == "csv" else ("text",) * 2
                    )
                not_read = set(table) - set(domain.names) - (set(policy.columns) if policy else set())
                assert set(own.ignored) == not_read and own.absent["sex"] == table["sex"].count(None)
                assert CANARY not in repr(own) and repr(own) == f"Records(ignored={own.ignored!r})"


def test_other_columns_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    batches = Source.batches
    monkeypatch.setattr(
        Source,
        "batches",
        lambda self, names, rows: asked.append(list(names)) or batches(self, names, rows),  # type: ignore[func-returns-value]
    )
    location = write_csv(tmp_path / "t.csv", random_table(20, 1))
    reads(location, DOMAIN.subset(("sex",)), IdentifierPolicy(("who",), ("text",)))
    reads(location, DOMAIN.subset(("sex",)), None)
    with open_source(location) as source:
        assert validate(source, DOMAIN.subset(("sex",)), POLICY, max_rows=20).problems == ()
    assert asked == [["sex", "who"], ["sex"], ["sex", "who", "born"]]


def test_an_identifier_column_may_also_be_data(tmp_path: Path) -> None:
    location, policy = (
        write_parquet(tmp_path / "t.parquet", {"a": [3, 1, 2]}),
        IdentifierPolicy(("a",), ("exact",)),
    )
    own = reads(location, Domain(("a",), (Codes(4),)), policy)
    assert (
        own.codes["a"].tolist() == [3, 1, 2]
        and own.identifiers is not None
        and own.identifiers.kinds == ("integer",)
    )
    assert (
        own.identifiers.entries == [b"\0\0\0\0\1" + str(i).encode() for i in (3, 1, 2)] and own.ignored == ()
    )


def test_the_first_row_of_each_identifier_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = random_table(400, 5)
    table["who"] = [f"{['Ann', ' ann', 'ANN '][i % 3]} {CANARY} {i % 100}" for i in range(400)]
    table["born"] = ["2000-01-01", "20000101"] * 200
    for location in written(tmp_path, table):
        caplog.clear()
        with caplog.at_level(logging.INFO, "cosynth.custodian"):
            own = reads(location, DOMAIN, FIRST, block_rows=37)
        assert (
            own.rows == 100
            and own.identifiers is not None
            and own.identifiers.rows.tolist() == list(range(100))
        )
        assert all(
            codes.tolist() == [code_of(DOMAIN[name], value) for value in table[name][:100]]
            for name, codes in own.codes.items()
        )
        (line,) = caplog.records
        assert (
            line.name.startswith("cosynth.custodian")
            and "300 rows" in line.getMessage()
            and CANARY not in line.getMessage()
        )


def test_the_first_row_is_kept_wherever_it_is(tmp_path: Path) -> None:
    table: dict[str, list[object]] = {"who": ["b", "a", "B", "c", "A", "d"], "x": [0, 1, 2, 3, 4, 5]}
    own = reads(
        write_csv(tmp_path / "t.csv", table),
        Domain(("x",), (Codes(6),)),
        IdentifierPolicy(("who",), ("text",), "first"),
        block_rows=2,
    )
    assert own.codes["x"].tolist() == [0, 1, 3, 5] and own.identifiers is not None
    assert own.identifiers.rows.tolist() == [0, 1, 3, 5] and own.identifiers.duplicates == 2


def test_duplicates_are_refused_and_counted_in_the_private_log_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = random_table(50, 2)
    table["who"] = [f"{CANARY} {i % 33}" for i in range(50)]
    table["born"] = ["2000-01-01"] * 50
    for location in written(tmp_path, table):
        caplog.clear()
        with caplog.at_level(logging.INFO, "cosynth.custodian"):
            error = refused(location)
        assert_says(
            error, location.label, "several rows with the same identifier (who, born)", 'duplicates = "first"'
        )
        assert "17" not in error.sentence.replace(location.label, "")
        assert [record.getMessage() for record in caplog.records] == [
            "own data: 17 rows have the identifier of an earlier row"
        ]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("who", None, "the identifier is missing"),
        ("who", "n/a", "placeholder"),
        ("born", f"{CANARY}", "cannot be read as 'date'"),
        ("born", "2024-02-30", "cannot be read as 'date'"),
        ("work", CANARY, "not one of those declared"),
        ("code", None, "missing"),
    ],
)
def test_a_misfit_is_named_by_its_place(tmp_path: Path, name: str, value: object, words: str) -> None:
    table = random_table(50, 3)
    table[name] = [*table[name][:31], value, *table[name][32:]]
    for location, place in zip(written(tmp_path, table), ("line 33", "row 32", "row 32"), strict=True):
        error = refused(location, block_rows=20)
        assert_says(error, location.label, f'column "{name}", {place}:', words)
        assert error.__context__ is None


def test_validate_names_every_problem_at_once(tmp_path: Path) -> None:
    table = random_table(50, 4)
    table["who"][3], table["born"][20], table["code"][40] = None, CANARY, -5
    with open_source(write_csv(tmp_path / "t.csv", table)) as source:
        found = validate(source, DOMAIN, POLICY, max_rows=50, block_rows=16).problems
        words = ('"who", line 5', '"born", line 22', '"code", line 42')
        assert len(found) == 3 and all(word in sentence for word, sentence in zip(words, found, strict=True))
    del table["born"], table["sex"]
    with open_source(write_csv(tmp_path / "t.csv", table)) as source:
        found = validate(source, DOMAIN, POLICY, max_rows=50).problems
    assert len(found) == 3 and '"sex"' in found[0] and '"born"' in found[1] and '"code"' in found[2]


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    table = random_table(5, 1)
    location = write_csv(
        tmp_path / "t.csv", {"Who" if name == "who" else name: values for name, values in table.items()}
    )
    assert_says(refused(location), 'no column "who"')
    (tmp_path / "t.csv").write_text(f"1,{CANARY},3,true\n2,x,3,true\n")
    error = refused(Location("csv", "t.csv", "t.csv", tmp_path / "t.csv"))
    assert_says(error, "none of the study's columns", "header line")
    (tmp_path / "t.csv").write_text("sex,id,id\ntrue,1,1\n")
    policy = IdentifierPolicy(("id",), ("exact",))
    error = refused(Location("csv", "t.csv", "t.csv", tmp_path / "t.csv"), policy, DOMAIN.subset(("sex",)))
    assert_says(error, 'more than one column "id"')


def test_identifiers_of_a_type_that_names_nobody(tmp_path: Path) -> None:
    for values in ([1.5, 2.5], [True, False]):
        table: dict[str, list[object]] = {"id": list(values), "sex": [True, False]}
        policy = IdentifierPolicy(("id",), ("text",))
        error = refused(write_parquet(tmp_path / "t.parquet", table), policy, DOMAIN.subset(("sex",)))
        assert_says(error, 'column "id"', "identifiers are text, integers or dates")


def test_too_many_rows_and_none(tmp_path: Path) -> None:
    table = random_table(50, 1)
    for location in written(tmp_path, table):
        error = refused(location, max_rows=49, block_rows=20)
        assert_says(error, location.label, "max_rows = 49")
        assert "50" not in error.sentence.replace(location.label, "")
    empty = write_csv(tmp_path / "t.csv", {name: [] for name in table})
    assert_says(refused(empty), "no rows", "allow_empty")
    for policy in (POLICY, None):
        own = reads(empty, DOMAIN, policy, allow_empty=True)
        assert own.rows == 0 and all(len(codes) == 0 for codes in own.codes.values())
        assert (own.identifiers is None) == (policy is None)


def test_the_codes_are_those_that_a_horizontal_study_counts(tmp_path: Path) -> None:
    table = random_table(2000, 9)
    cliques = [("age", "sex"), ("work", "sex", "age")]
    for location in written(tmp_path, table):
        own = reads(location, DOMAIN, POLICY)
        with open_source(location) as source:
            counted = count(source, DOMAIN, cliques, max_rows=2000)
        assert (own.clamped, own.absent) == (counted.clamped, counted.absent)
        for clique, cells in zip(cliques, counted.counts(cliques), strict=True):
            places = np.ravel_multi_index(
                [own.codes[name] for name in clique], [DOMAIN[name].size for name in clique]
            )
            assert np.bincount(places, minlength=len(cells)).tolist() == cells.tolist()


MEMORY = """
import sys, time
from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy
from parties.data.records import read
from parties.data.location import locate
from parties.data.linked.opening import open_source
from synth.domain import Codes, Domain
started = time.perf_counter()
policy = IdentifierPolicy(("id",), ("exact",)) if sys.argv[2] == "ids" else None
with open_source(locate(sys.argv[1])) as source:
    own = read(source, Domain(tuple(f"c{k}" for k in range(10)), (Codes(200),) * 10), policy, max_rows=1 << 25)
assert sum(codes.nbytes for codes in own.codes.values()) == 10 * own.rows
kilobytes = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(own.rows, time.perf_counter() - started, kilobytes / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="reads /proc; getrusage would count the parent's memory at the fork"
)
def test_memory_is_the_codes_and_the_identifiers(tmp_path: Path) -> None:
    """Two million rows: ten bytes of codes each and, with identifiers, about 150 (measured peak: 222 MB and
    408 MB)."""
    columns = ", ".join(f"CAST(hash(i * 10 + {k}) % 200 AS SMALLINT) AS c{k}" for k in range(10))
    with duckdb.connect() as database:
        database.execute(
            f"COPY (SELECT i AS id, {columns} FROM range(2000000) r(i)) TO '{tmp_path}/t.parquet' (FORMAT parquet)"
        )
    for ids, most in (("none", 350), ("ids", 600)):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, f"{tmp_path}/t.parquet", ids],
            capture_output=True,
            text=True,
            check=True,
        )
        rows, _, megabytes = map(float, done.stdout.split())
        assert rows == 2_000_000 and megabytes < most
