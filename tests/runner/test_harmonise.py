"""A table as a court or a hospital exports it goes in without being rewritten, and its owner alone is told
what became of it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from mpc_protocols.errors import DataRefused, StudyInvalid
from parties.data.harmony.recipe import fit
from parties.data.harmony.rules import Rules
from runner.api import Run
from runner.commands.cli import main
from runner.study import load, private_file
from synth.domain import Domain
from tests.runner.studies import head

ROWS = 900
SECRET = "SECRET-42"
STUDY = (
    head("recidivism")
    + """\
[aim]
rounds = 3
synthetic_rows = 600

[domain.columns]
sex = { kind = "categorical", values = ["Male", "Female"] }
days = { kind = "integer", low = 0, high = 799, bins = 8, zero = true, missing = true }
fine = { kind = "numeric", low = 0, high = 1000, bins = 10, missing = true }
charged = { kind = "date", low = 2013-01-01, high = 2014-12-31, step = "quarter" }
age = { kind = "integer", low = 18, high = 99, bins = 9, missing = true }

[session]
tls = "insecure-loopback"

[[party]]
name = "court"
address = "127.0.0.1:7001"
data = "court.csv"
"""
)
PRIVATE = """\
[csv]
delimiter = ";"
decimal = ","
encoding = "windows-1252"

[harmonise]
missing = ["NA", "-9"]
filter = "Außer = 'nein'"

[harmonise.columns.sex]
values = { M = "Male", F = "Female" }
[harmonise.columns.days]
from = "Tage in Haft"
[harmonise.columns.charged]
sql = "strptime(Datum, '%d.%m.%Y')::DATE"
[harmonise.columns.age]
sql = "2014 - TRY_CAST(Jahrgang AS INTEGER)"
"""


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))


def write(directory: Path, odd: str = "") -> None:
    draw = random.Random(
        7
    )  # a public distribution: columns 0..799 with a third at 0, dates, spellings, markers
    lines = ["sex;Tage in Haft;fine;Datum;Jahrgang;Außer"]
    for number in range(ROWS):
        days = 0 if number % 3 == 0 else draw.randint(1, 799)
        fine = "NA" if number % 10 == 0 else f"{draw.uniform(0, 1000):.2f}".replace(".", ",")
        day = f"{draw.randint(1, 28):02}.{draw.randint(1, 12):02}.{draw.choice((2013, 2014))}"
        void = "ja" if number % 9 == 0 else "nein"
        lines.append(
            f"{draw.choice('MF')};{-9 if number % 50 == 1 else days};{fine};{day};{draw.choice(('1980', '', 'ca. 70'))};{void}"
        )
    lines += [odd] if odd else []
    (directory / "court.csv").write_bytes("\r\n".join(lines).encode("cp1252"))
    (directory / "study.toml").write_text(STUDY)
    (directory / "court.toml").write_text(PRIVATE)


def check(directory: Path, *more: str) -> list[str]:
    return ["check", str(directory / "study.toml"), *more]


def test_a_table_goes_in_without_being_rewritten(tmp_path: Path) -> None:
    write(tmp_path)
    before, out = (tmp_path / "court.csv").read_bytes(), tmp_path / "out"
    private = ["--private", f"court={tmp_path / 'court.toml'}"]
    assert main(["run", str(tmp_path / "study.toml"), "--out", str(out), *private]) == 0
    assert (tmp_path / "court.csv").read_bytes() == before
    table = Run(out, json.loads((out / "run.json").read_text())).synthetic
    assert (
        set(table["sex"]) == {"Male", "Female"}
        and table["charged"].astype(str).str.match(r"201[34]-\d\d-\d\d").all()
    )
    assert abs((table["days"] == 0).mean() - 1 / 3) < 0.12
    assert table["age"].isna().mean() > 0.4 and table["fine"].isna().mean() > 0.03


def test_the_owner_alone_is_told_of_its_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, odd=f"{SECRET};801;1,5;01.01.2013;1980;nein")
    private = ["--party", "court", "--private", str(tmp_path / "court.toml")]
    assert main(check(tmp_path, *private)) == 30
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    assert (
        "problem  court: court.csv" in shown.out.replace(f"{tmp_path}/", "")
        and f'column "sex", line {ROWS + 2}' in shown.out
    )
    for words in (
        "100 rows are left out by [harmonise] filter",
        "fine: missing 10.0 % (by a marker 10.0 %)",
        "refused 1 rows (line 902)",
    ):
        assert words in shown.out, words
    assert "days: missing 2" in shown.out and "clamped 0.1 %" in shown.out and "mapped 99.9 %" in shown.out
    assert "rows" not in shown.err
    assert main(check(tmp_path, *private, "--json")) == 30
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any("digest of how the private file reads this table" in line["text"] for line in lines)
    main(check(tmp_path))  # as nobody in particular
    assert "clamped" not in capsys.readouterr().out


def test_all_tables_of_a_rehearsal_are_checked_by_their_private_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a certificate, and without what only an owner is shown; a cap that a run would meet is met."""
    write(tmp_path)
    study = tmp_path / "study.toml"
    study.write_text(STUDY.replace('tls = "insecure-loopback"', ""))
    own = ["--private", f"court={tmp_path / 'court.toml'}"]
    assert main(check(tmp_path)) == 30
    capsys.readouterr()
    assert main(check(tmp_path, *own)) == 0
    told = capsys.readouterr().out
    assert "court: its table fits the study" in told and "clamped" not in told and "certificate" not in told
    (tmp_path / "court.toml").write_text(PRIVATE + "[ledger]\ncap_epsilon = 1\ncap_delta = 1e-6\n")
    assert main(check(tmp_path, *own)) == 50
    write(tmp_path, odd=f"{SECRET};801;1,5;01.01.2013;1980;nein")
    assert main(check(tmp_path, *own)) == 30
    for given, words in (
        (["east=x.toml"], "has no party east"),
        (["x.toml"], "write --private NAME=FILE"),
        (["court=x.toml", "court=y.toml"], "given twice for court"),
    ):
        (tmp_path / "x.toml").write_text("")
        given = [given[0].replace("x.toml", str(tmp_path / "x.toml")), *given[1:]]
        assert main(check(tmp_path, *(word for one in given for word in ("--private", one)))) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('delimiter = ";"', "", "says that a comma separates fields and is a decimal mark too"),
        ('delimiter = ";"', 'delimiter = ":"', '[csv] delimiter must be ","'),
        ('delimiter = ";"', 'delimiter = ";"\nthousands = ","', "[csv] thousands is the decimal mark too"),
        ('delimiter = ";"', 'delimiter = ";"\nthousands = "_"', '[csv] thousands must be ","'),
        ('from = "Tage', 'sql = "1"\nfrom = "Tage', "[harmonise.columns.days] says both `from` and `sql`"),
        ("values = { M", "value = { M", 'unknown key "value" (did you mean "values"?)'),
        ("values = { M =", "values = { X = [], M =", "values must map"),
        ('missing = ["NA", "-9"]', "missing = 9", 'missing must be a list such as ["NA", "-9"]'),
        ("[harmonise.columns.age]", "[harmonise.columns.aged]", 'nor an identifier (did you mean "age"?)'),
        ('sql = "2014', 'sql = "avg(Jahrgang) + 2014', "[harmonise.columns.age] sql uses avg"),
        ('sql = "2014', 'sql = "2014 - Geburt', '[harmonise.columns.age] sql names "Geburt"'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_rules_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, words: str
) -> None:
    write(tmp_path)
    (tmp_path / "court.toml").write_text(PRIVATE.replace(before, after, 1))
    assert main(check(tmp_path, "--party", "court", "--private", str(tmp_path / "court.toml"))) == 10
    assert words in capsys.readouterr().out


def test_a_dialect_is_for_csv_files_only(tmp_path: Path) -> None:
    write(tmp_path)
    study = load(tmp_path / "study.toml")
    (tmp_path / "court.toml").write_text('data = "court.parquet"\n' + PRIVATE)
    with pytest.raises(StudyInvalid, match="not a CSV file"):
        private_file.location(study, "court", private_file.load(tmp_path / "court.toml"))


def test_a_rule_of_identifiers_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ids", "--normalise", "phone:FR", "06 12 34 56 78", "+33 6 12 34 56 78", "n/a"]) == 0
    assert capsys.readouterr().out == (
        "06 12 34 56 78 -> +33612345678\n+33 6 12 34 56 78 -> +33612345678\nn/a -> refused\n"
    )
    assert main(["ids", "--normalise", "phone:XX", "1"]) == 2


def test_names_that_differ_in_capitals_only_need_no_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    text = (tmp_path / "court.csv").read_text("cp1252")
    (tmp_path / "court.csv").write_text(
        text.replace("sex;Tage in Haft;fine", "SEX;TAGE IN HAFT;Fine"), "cp1252"
    )
    own = ["--private", f"court={tmp_path / 'court.toml'}"]
    assert main(check(tmp_path, *own)) == 30
    assert 'write names = "ignore case" under [harmonise]' in capsys.readouterr().out
    told = PRIVATE.replace("[harmonise]\n", '[harmonise]\nnames = "ignore case"\n', 1)
    (tmp_path / "court.toml").write_text(told)
    assert main(check(tmp_path, *own)) == 0
    capsys.readouterr()
    assert main(["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), *own]) == 0
    (tmp_path / "court.toml").write_text(told.replace("ignore case", "ignore capitals"))
    assert main(check(tmp_path, *own)) == 10
    assert '"as written" or "ignore case"' in capsys.readouterr().out


def test_a_name_that_is_there_as_it_stands_is_that_column_and_two_others_are_none() -> None:
    rules = Rules("own.toml", ignore_case=True)
    recipe = fit(rules, Domain.from_spec({"columns": {"age": 2, "sex": 2}}), ())
    taken = recipe.written_as(("AGE", "age", "Sex"))
    assert (taken.steps["age"].source, taken.steps["sex"].source) == ("age", "Sex")
    with pytest.raises(DataRefused, match='may be "AGE" or "Age"; say which with `from`'):
        recipe.written_as(("AGE", "Age", "Sex"))
    plain = fit(replace(rules, ignore_case=False), Domain.from_spec({"columns": {"age": 2}}), ())
    assert plain.written_as(("AGE",)) is plain and plain.digest != recipe.digest
