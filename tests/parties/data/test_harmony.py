"""Tables as two hospitals write them, read alike by what each private file says; and what such a file may not
say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from mpc_protocols.errors import DataRefused, StudyInvalid
from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy
from parties.data import records
from parties.data.counting import local_marginals
from parties.data.harmony.expressions import columns_of
from parties.data.harmony.functions import FUNCTIONS, OPERATORS
from parties.data.harmony.recipe import fit
from parties.data.harmony.rules import ColumnRule, Dialect, Rules
from parties.data.linked.opening import open_source
from parties.data.location import Location
from parties.data.source import Source
from synth.domain import Boolean, Categorical, Domain, Integer, Numeric, column_from_spec
from tests.parties.data.tables import CANARY, write_csv, write_duckdb, write_parquet

ROOT = Path(__file__).parents[3]
DOMAIN = Domain(
    ("sex", "days", "cost", "adult", "born"),
    (
        Categorical(("Male", "Female"), missing=True),
        Integer(0, 799, missing=True, zero=True),
        Numeric(0, 100, 10, missing=True),
        Boolean(),
        column_from_spec({"kind": "date", "low": "1900-01-01", "high": "2029-12-31", "step": "year"}, "born"),
    ),
)
RULES = Rules(
    "north.toml",
    Dialect(";", ",", "windows-1252"),
    ("NA", "-9"),
    "Stadt = 'Köln'",
    columns={
        "sex": ColumnRule("Geschlecht", values={"M": "Male", "W": "Female"}),
        "days": ColumnRule("Tage", missing=("999",)),
        "adult": ColumnRule(sql="try_cast(Alter AS INTEGER) >= 18"),
        "born": ColumnRule(sql="strptime(geboren, '%d.%m.%Y')::DATE"),
    },
    stated=True,
)
LINES = [
    "Geschlecht;Tage;cost;Alter;geboren;Stadt",
    "M;0;1,5;17;31.12.1990;Köln",
    "W;-9;99,25;18;01.02.2000;Köln",
    "W;12;NA;44;01.02.2000;Bonn",
    "NA;999;-9,0;80;28.02.1930;Köln",
]


def table(tmp_path: Path, lines: list[str] = LINES, rules: Rules = RULES) -> Location:
    path = tmp_path / "north.csv"
    path.write_bytes("\r\n".join(lines).encode("cp1252"))
    return Location("csv", "north.csv", "n", path, dialect=rules.dialect, recipe=fit(rules, DOMAIN, ()))


def codes(source: Source, domain: Domain = DOMAIN) -> dict[str, list[int]]:
    found = records.read(source, domain, None, max_rows=100)
    return {name: column.tolist() for name, column in found.codes.items()}


def test_a_table_goes_in_as_its_private_file_says(tmp_path: Path) -> None:
    with open_source(table(tmp_path)) as source:
        assert codes(source) == {
            "sex": [0, 1, 2],
            "days": [0, 800, 800],
            "cost": [0, 9, 10],
            "adult": [0, 1, 1],
            "born": [90, 100, 30],
        }
        assert source.left_out == 1
        assert {name: change.marked for name, change in source.changes.items()} == {
            "sex": 1, "days": 2, "cost": 1, "adult": 0, "born": 0
        }  # fmt: skip
        assert source.changes["sex"].mapped == 2


@pytest.mark.parametrize("write", [write_parquet, write_duckdb])
def test_typed_values_are_matched_as_they_would_be_written(tmp_path: Path, write: object) -> None:
    domain = Domain(("smokes", "days"), (Categorical((0, 1)), Integer(0, 9, missing=True)))
    given = write(
        tmp_path / ("t.parquet" if write is write_parquet else "t.duckdb"),
        {"s": [True, False], "days": [-9.0, 4.0]},
    )  # type: ignore[operator]
    rules = Rules(
        "n.toml", missing=("-9",), columns={"smokes": ColumnRule("s", values={"true": 1, "false": 0})}
    )
    with open_source(replace(given, recipe=fit(rules, domain, ()))) as source:
        assert codes(source, domain) == {"smokes": [1, 0], "days": [10, 4]}


def test_a_point_among_decimal_commas_is_not_taken_for_one(tmp_path: Path) -> None:
    lines = [LINES[0], LINES[1].replace("1,5", "1.500")]
    with open_source(table(tmp_path, lines)) as source, pytest.raises(DataRefused) as caught:
        codes(source)
    assert "line 2" in caught.value.sentence and "not a finite number" in caught.value.sentence
    assert "its digits stand in groups" in caught.value.sentence and "decimal" not in caught.value.sentence


@pytest.mark.parametrize(
    ("thousands", "decimal", "written"),
    [
        (",", ".", ("1,204.50", "-12,000,000", "7.25", "800", "+1,000.")),
        (".", ",", ("1.204,50", "-12.000.000", "7,25", "800", "+1.000,")),
        (" ", ",", ("1 204,50", "-12\u00a0000\u202f000", "7,25", "800", "+1\u00a0000,")),
        ("'", ".", ("1'204.50", "-12\u2019000\u2019000", "7.25", "800", "+1'000.")),
    ],
)
def test_digits_in_groups_are_read_where_the_private_file_says_by_what(
    tmp_path: Path, thousands: str, decimal: str, written: tuple[str, ...]
) -> None:
    domain = Domain(("cost", "mark"), (Numeric(-(2.0**24), 2.0**24, 1 << 16), Categorical(written)))
    rules = Rules("n.toml", Dialect(";", decimal, "utf-8", thousands))
    path = tmp_path / "n.csv"
    path.write_text("\n".join(["cost;mark", *(f"{text};{text}" for text in written)]), encoding="utf-8")
    plain = np.array([1204.5, -12e6, 7.25, 800, 1000])
    given = Location("csv", "n.csv", "n", path, dialect=rules.dialect, recipe=fit(rules, domain, ()))
    with open_source(given) as source:
        found = codes(source, domain)
    assert found["cost"] == (np.searchsorted(domain["cost"].edges(), plain, side="right") - 1).tolist()
    assert found["mark"] == [0, 1, 2, 3, 4]  # a text of no column of numbers stays as it is


@pytest.mark.parametrize("text", ["12.04,5", "1.2345", "1204.500", ".204", "1..204", "1,204.5"])
def test_points_that_group_no_three_digits_are_refused(tmp_path: Path, text: str) -> None:
    rules = replace(RULES, dialect=Dialect(";", ",", "windows-1252", "."))
    lines = [LINES[0], LINES[1].replace("1,5", text)]
    with open_source(table(tmp_path, lines, rules)) as source, pytest.raises(DataRefused) as caught:
        codes(source)
    assert 'column "cost", line 2' in caught.value.sentence and text not in caught.value.sentence


def test_a_file_without_a_known_name_is_answered_by_its_first_line(tmp_path: Path) -> None:
    domain = Domain(("sex", "days"), (Categorical(("f", "m")), Integer(0, 9)))
    rules = Rules("n.toml", columns={"sex": ColumnRule(values={"x": "f"})})
    path = tmp_path / "n.csv"
    for line, words in (
        ("sex\tdays", "line 1 has tabs and no other separator"),
        (f"{CANARY},1", "line 1 must be a header line"),
        ("SEX,DAYS", "but for capitals"),
        ("# of Monday", "line 1 is a remark"),
    ):
        path.write_text(f"{line}\nm,1\n")
        given = Location("csv", "n.csv", "n", path, recipe=fit(rules, domain, ()))
        with open_source(given) as source, pytest.raises(DataRefused, match=words) as caught:
            codes(source, domain)
        assert CANARY not in caught.value.sentence


def test_lines_are_the_files_own_whatever_a_filter_leaves_out(tmp_path: Path) -> None:
    lines = [
        LINES[0],
        *([LINES[3]] * 30),
        LINES[1].replace("M", "X"),
        *([LINES[3]] * 9),
        LINES[2].replace("W", "Y"),
    ]
    with open_source(table(tmp_path, lines)) as source:
        found = local_marginals.validate(source, DOMAIN, max_rows=99, block_rows=4)
    assert len(found.problems) == 1 and 'column "sex", line 32:' in found.problems[0]
    assert (found.rows, found.filtered) == (2, 39)
    (sex, *_) = found.columns
    assert (sex.refused[0].count, sex.refused[0].places) == (2, ("line 32", "line 42"))
    assert CANARY not in repr(found) and "39" not in repr(found)


def test_a_row_that_cannot_be_computed_is_named_and_not_quoted(tmp_path: Path) -> None:
    lines = [*LINES, LINES[3].replace("01.02.2000", CANARY), LINES[1].replace("31.12.1990", CANARY)]
    with open_source(table(tmp_path, lines)) as source, pytest.raises(DataRefused) as caught:
        codes(source)
    assert "north.csv, line 7: [harmonise.columns.born] sql" in caught.value.sentence
    assert CANARY not in caught.value.sentence and caught.value.__context__ is None


def test_an_expression_that_never_fits_is_no_rows_fault(tmp_path: Path) -> None:
    rules = replace(RULES, filter="year(Stadt) > 1")
    with open_source(table(tmp_path, rules=rules)) as source, pytest.raises(StudyInvalid) as caught:
        codes(source)
    assert "does not fit the types" in caught.value.sentence


BEYOND = [
    "avg(a)",
    "rank() OVER (ORDER BY a)",
    "(SELECT 1)",
    "unnest([a, b])",
    "random()",
    "now()",
    "current_date",
    "*",
]
BEYOND += [
    "$1",
    "#1",
    "a) FROM (SELECT 1",
    "a; SELECT 1",
    "read_text('/etc/passwd')",
    "other.a",
    "A",
    "getenv('HOME')",
    "current_localtimestamp()",
    "current_localtime()",
    "age(a::TIMESTAMP)",
    "timezone(a::TIMESTAMPTZ)",
    "a || current_date.strftime('%Y')",
    "block.concat()",
    "a.upper()",
    "list_transform([1], lambda current_date: 1)[1] || current_date",
    "list_transform([1], lambda block: 1)[1] || block",
    "list_transform(string_split(a, ','), lambda x: upper(x))",
    "[x for x in [a]]",
    "json_serialize_plan('SELECT 1')",
    "json_serialize_sql('SELECT 1')",
    "__internal_compress_string_hugeint(a)",
    "main.upper(a)",
    "hash(a)",
    "a -> '$.x'",
    "list_sort([a], lambda x: x)",
]


@pytest.mark.parametrize("sql", BEYOND)
def test_what_looks_beyond_its_row_is_refused(sql: str) -> None:
    with pytest.raises(StudyInvalid) as caught:
        columns_of(sql, "north.toml: [harmonise] filter", ["a", "b"])
    assert caught.value.sentence.startswith("north.toml: [harmonise] filter ")


def test_what_looks_at_its_row_is_fine() -> None:
    known = ["a", "b", "c d"]
    assert columns_of(
        "CASE WHEN a IN ('1', '2') THEN nullif(trim(\"c d\"), '') ELSE b[1:2] END", "w", known
    ) == ("a", "c d", "b")
    assert columns_of("upper(string_split(a, ',')[1]) LIKE 'X%' OR a ~ '[0-9]+'", "w", known) == ("a",)
    assert columns_of(
        "extract(year FROM age(DATE '2026-01-01', a::DATE)) + date_part('year', b::DATE + INTERVAL 3 DAY)",
        "w",
        known,
    ) == ("a", "b")


def test_the_listed_functions_are_duckdbs_of_one_row_and_the_page_lists_the_same() -> None:
    with duckdb.connect(":memory:") as connection:
        rows = connection.execute(
            "SELECT lower(function_name), bool_and(function_type = 'macro' OR (function_type, stability) = "
            "('scalar', 'CONSISTENT')) FROM duckdb_functions() WHERE internal GROUP BY 1"
        ).fetchall()
    harmless = {name for name, fine in rows if fine}
    assert OPERATORS.union(*FUNCTIONS.values()) <= harmless
    page = (ROOT / "docs" / "howto" / "harmonise.md").read_text()
    for purpose, names in FUNCTIONS.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {purpose} |")]
        assert row.split("|")[2].strip(" `").split() == sorted(names), purpose


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (replace(RULES, columns={"sexx": ColumnRule("g")}), 'is not a column of the study nor an identifier (did you mean "sex"'),
        (replace(RULES, columns={"sex": ColumnRule(values={"M": "Man"})}), "maps 'M' to 'Man', which the study does not have"),
        (replace(RULES, columns={"cost": ColumnRule(values={"none": "little"})}), "to 'little', which the study does not have"),
        (replace(RULES, missing=("Male",)), "lists 'Male', which is a value of the study's column sex"),
        (replace(RULES, columns={"sex": ColumnRule(values={"NA": "Male"})}), "has 'NA' among its values, and as a marker"),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit_the_study_are_refused_before_the_data(rules: Rules, words: str) -> None:
    with pytest.raises(StudyInvalid) as caught:
        fit(rules, DOMAIN, ())
    assert words in caught.value.sentence


def test_two_files_that_mean_the_same_have_one_digest() -> None:
    same = replace(
        RULES, file="south.toml", dialect=replace(RULES.dialect, delimiter="\t"), missing=("-9", "NA")
    )
    assert fit(same, DOMAIN, ()).digest == fit(RULES, DOMAIN, ()).digest
    other = replace(
        RULES, columns={**RULES.columns, "sex": ColumnRule("Geschlecht", values={"M": "Female", "W": "Male"})}
    )
    assert fit(other, DOMAIN, ()).digest != fit(RULES, DOMAIN, ()).digest


def test_a_column_that_the_private_file_names_is_missed_by_that_name(tmp_path: Path) -> None:
    with open_source(table(tmp_path, [line.replace("Tage", "tage") for line in LINES])) as source:
        found = local_marginals.validate(source, DOMAIN, max_rows=99)
    assert 'no column "Tage", from which north.toml takes the study\'s days' in found.problems[0]


def test_a_line_that_may_be_a_record_is_not_taken_for_names(tmp_path: Path) -> None:
    domain = Domain(("place", "sex"), (Categorical(("here",)), Categorical(("Male",))))
    rules = Rules("n.toml", columns={"place": ColumnRule(sql="'here'")})
    given = write_csv(tmp_path / "t.csv", {CANARY: [1], "x": [2]})
    with open_source(replace(given, recipe=fit(rules, domain, ()))) as source:
        assert source.columns == ("place",)


@pytest.mark.parametrize("filtered", [None, "kept = '1'"])
def test_rows_without_an_identifier_are_left_out(tmp_path: Path, filtered: str | None) -> None:
    domain = Domain(("sex",), (Categorical(("m", "f")),))
    policy = IdentifierPolicy(("who",), ("phone:FR",))
    given = write_csv(
        tmp_path / "t.csv",
        {
            "tel": ["06 12 34 56 78", "", "n/a", "+33612345679", "NA"],
            "sex": ["m", "f", "f", "f", "?"],
            "kept": ["1"] * 5,
        },
    )
    rules = Rules(
        "n.toml", missing=("NA",), filter=filtered, leave_out=True, columns={"who": ColumnRule("tel")}
    )
    with open_source(replace(given, recipe=fit(rules, domain, ("who",)))) as source:
        found = records.validate(source, domain, policy, max_rows=9)
        assert found.problems == () and (found.rows, found.unnamed) == (2, 3)
        assert found.shapes == {"who": [("+99999999999", 2)]}
        read = records.read(source, domain, policy, max_rows=9)
    assert read.rows == 2 and read.codes["sex"].tolist() == [0, 1]
    with open_source(replace(given, recipe=fit(replace(rules, leave_out=False), domain, ("who",)))) as source:
        assert len(records.validate(source, domain, policy, max_rows=9).problems) == 3


@pytest.mark.parametrize("filtered", [None, "sex <> 'x'"])
def test_a_persons_rows_are_bounded_after_the_rules(tmp_path: Path, filtered: str | None) -> None:
    domain = Domain(("sex",), (Categorical(("m", "f")),))
    given = write_csv(tmp_path / "t.csv", {"nr": ["7", "7", "7", "", "8"], "sex": ["m", "f", "x", "f", "m"]})
    rules = Rules(
        "n.toml",
        filter=filtered,
        leave_out=True,
        columns={"who": ColumnRule("nr"), "sex": ColumnRule(values={"x": "f"})},
    )

    def problems(bound: int, rules: Rules) -> tuple[str, ...]:
        with open_source(replace(given, recipe=fit(rules, domain, ("who",)))) as source:
            return local_marginals.validate(source, domain, max_rows=9, unit=("who", bound)).problems

    bound = 3 if filtered is None else 2
    assert problems(bound, rules) == ()
    assert "has more rows" in problems(bound - 1, rules)[0]
    (refused,) = problems(bound, replace(rules, leave_out=False))
    assert "has no value of the unit's id" in refused and 'missing_ids = "leave out"' in refused
    with open_source(replace(given, recipe=fit(rules, domain, ("who",)))) as source:
        counted = local_marginals.count(source, domain, [("sex",)], max_rows=9, unit=("who", bound))
    assert np.array_equal(counted.counts([("sex",)])[0], [2, 2] if filtered is None else [2, 1])
