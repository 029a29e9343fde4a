"""Linked tables from a study's two files a custodian to two synthetic files: in the clear, by processes,
horizontally and vertically.

With epsilon 1000 the noise is below a few rows a cell: |noise| > 10 sigma has probability below 1e-22.
"""

import csv
import hashlib
import json
import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mpc_protocols.errors import StudyInvalid
from parties.data.linked.opening import open_source
from runner.api.spark import tally_spark
from runner.commands.cli import main
from runner.study import load, private_file
from runner.study.hashing import digest
from runner.study.read import problems
from tests.runner import linked
from tests.runner.linked import DRUGS
from tests.runner.processes import run

CLEAR = ('backend = "replicated"', 'backend = "ideal"')
PLAIN = ("[session]", '[session]\ntls = "insecure-loopback"')
LOUD = ("epsilon = 4.0", "epsilon = 1000.0")


def read(path: Any) -> Any:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def check_tables(out: Any, allowed: Any = linked.MOST) -> None:
    """Every visit has its patient, as many as the patient's row says, in rising days, of values that the
    study has."""
    patients, visits, rows = read(out / "patients.csv"), read(out / "visits.csv"), read(out / "synthetic.csv")
    assert [row["pid"] for row in patients] == [str(number) for number in range(1, len(rows) + 1)]
    many = Counter(row["pid"] for row in visits)
    assert many.keys() <= {row["pid"] for row in patients} and max(many.values()) <= allowed
    for patient, row in zip(patients, rows, strict=True):
        assert (patient["age"], patient["sex"]) == (row["age"], row["sex"])
        assert many[patient["pid"]] == int(row["visits_count"])
    assert [name for name in visits[0] if name != "vid"] == ["pid", "day", "diag", "cost"]
    for one, after in pairwise(visits):
        assert int(one["pid"]) < int(after["pid"]) or (
            one["pid"] == after["pid"] and one["day"] <= after["day"]
        )
    assert {row["diag"] for row in visits} <= set(linked.DIAGNOSES)
    assert all("2024-01-01" <= row["day"] <= "2024-12-31" for row in visits)
    assert any(row["cost"] == "" for row in visits) and any(row["cost"] for row in visits)


def deviations(out: Any, trial: Any) -> Any:
    """(noisy - true, sigma) of every measured cell of what does not depend on a draw."""
    found = []
    for one in json.loads((out / "measurements.json").read_text())["measurements"]:
        if "resolution" not in one and set(one["clique"]) <= set(linked.SIZES):
            true, sigma = trial.marginal(one["clique"]), math.sqrt(Fraction(one["sigma2"]))
            found += [(noisy - count, sigma) for noisy, count in zip(one["values"], true, strict=True)]
    assert len(found) >= sum(linked.SIZES.values())
    return found


def carried_out(directory: Any, trial: Any, *more: Any) -> Any:
    out = directory / "out"
    end = run("run", trial.path, "--out", out, *more, ledger=directory / "ledger.db", scratch=directory)
    assert end.code == 0, end.complaint
    assert ", folded to patients.csv and " in end.output
    return out


def test_a_run_in_the_clear_makes_both_tables_and_what_reads_them_knows_them(tmp_path: Path) -> None:
    trial = linked.write(tmp_path, changes=[CLEAR, LOUD])
    out = carried_out(tmp_path, trial)
    check_tables(out)
    assert all(abs(noise) <= 10 * sigma for noise, sigma in deviations(out, trial))

    def ask(*arguments: Any) -> Any:
        return run(*arguments, ledger=tmp_path / "ledger.db", scratch=tmp_path)

    assert "patients.csv and visits.csv are what the model makes" in ask("verify", out).output
    assert "folded to the linked tables" in (out / "report.html").read_text()
    more = tmp_path / "more"
    assert ask("sample", out, "--rows", 50, "--seed", 1, "--out", more, "--where", "sex=f").code == 0
    assert len(read(more / "patients.csv")) == 50 and {row["sex"] for row in read(more / "patients.csv")} == {
        "f"
    }
    assert {row["pid"] for row in read(more / "visits.csv")} <= {str(number) for number in range(1, 51)}
    assert ask("infer", out, "mean(visits_count)").code == 0
    assert ask("sample", out, "--rows", 50, "--out", more, "--replace").code == 0
    (more / "patients.csv").unlink()
    for arguments, said in (
        (("sample", out, "--rows", 50, "--out", more), "visits.csv is there already"),
        (("sample", out, "--rows", 5), "name one as --out FOLDER"),
        (
            ("sample", out, "--rows", 5, "--out", tmp_path / "new", "--where", "visits_diag=u"),
            "--where is about people",
        ),
        (
            ("sample", out, "--rows", 5, "--out", tmp_path / "new", "--replicates", 3),
            "--replicates are of one table",
        ),
        (("infer", out, "share(visits_diag == 'u')"), "`infer` is about people"),
        # of a million people, before there is a release, the numbers of this one would be too large
        (
            ("infer", out, f"{' * '.join(['count()'] * 11)} * 1e-30 + share(visits_diag == 'u')"),
            "`infer` is about people",
        ),
        (("query", out, "visits_diag"), "A marginal is about people"),
    ):
        end = ask(*arguments)
        assert end.code == 2 and said in end.complaint, end.complaint
    altered = (out / "visits.csv").read_text().replace(",u,", ",v,", 1)
    (out / "visits.csv").write_text(altered)
    end = ask("verify", out)
    assert end.code == 22 and "visits.csv is not what the model makes" in end.complaint


@pytest.mark.slow
def test_three_custodians_as_processes_release_what_the_ideal_would(tmp_path: Path) -> None:
    trial = linked.write(tmp_path, changes=[LOUD])
    out = carried_out(tmp_path, trial)
    check_tables(out)
    assert all(abs(noise) <= 10 * sigma for noise, sigma in deviations(out, trial))
    for name in linked.NAMES:
        for file in ("patients.csv", "visits.csv"):
            assert (out / "parties" / name / file).read_bytes() == (out / file).read_bytes()
        log = (out / "parties" / name / "private.log").read_text()
        assert "people with more than 4" in log
    said = (
        (out / "cosynth.log").read_text()
        + (out / "events.jsonl").read_text()
        + (out / "run.json").read_text()
    )
    assert "without a parent" not in said and "left out" not in said
    end = run("verify", out, ledger=tmp_path / "ledger.db", scratch=tmp_path)
    assert end.code == 0, end.complaint


@pytest.mark.slow
def test_patients_here_and_visits_there_are_joined_by_person(tmp_path: Path) -> None:
    trial = linked.write(tmp_path, vertical=True, count=60, changes=[LOUD])
    out = carried_out(tmp_path, trial)
    check_tables(out)
    assert all(abs(noise) <= 10 * sigma for noise, sigma in deviations(out, trial))
    assert run("verify", out, ledger=tmp_path / "ledger.db", scratch=tmp_path).code == 0


def check_drugs(out: Any) -> None:
    """Every drug has its visit, visits have keys of their own, and a diagnosis' own drug is the most frequent
    one with it."""
    visits, drugs = read(out / "visits.csv"), read(out / "drugs.csv")
    assert list(visits[0]) == ["pid", "vid", "day", "diag", "cost"] and list(drugs[0]) == [
        "vid",
        "drug",
        "dose",
    ]
    assert [row["vid"] for row in visits] == [str(number) for number in range(1, len(visits) + 1)]
    diag = {row["vid"]: row["diag"] for row in visits}
    many = Counter(row["vid"] for row in drugs)
    assert many.keys() <= diag.keys() and max(many.values()) <= 3
    cells = Counter((diag[row["vid"]], row["drug"]) for row in drugs)
    for own, drug in zip("uvw", "xyz", strict=True):
        assert cells[own, drug] == max(cells[own, other] for other in "xyz"), cells


def test_what_belongs_to_visits_is_made_with_them_and_what_reads_tables_knows_it(tmp_path: Path) -> None:
    trial = linked.write(tmp_path, drugs=True, changes=[CLEAR, LOUD, PLAIN], count=400)
    out = carried_out(tmp_path, trial)
    check_drugs(out)
    assert all(abs(noise) <= 10 * sigma for noise, sigma in deviations(out, trial))

    def ask(*arguments: Any) -> Any:
        return run(*arguments, ledger=tmp_path / "ledger.db", scratch=tmp_path)

    assert "patients.csv and visits.csv and drugs.csv are what the model makes" in ask("verify", out).output
    assert ask("sample", out, "--rows", 300, "--seed", 1, "--out", tmp_path / "more").code == 0
    check_drugs(tmp_path / "more")
    end = ask("query", out, "drugs_count")
    assert end.code == 2 and "A marginal is about people" in end.complaint
    reals = [f"--real={name}={tmp_path / f'north_{name}.csv'}" for name in ("patients", "visits", "drugs")]
    judged = ask("evaluate", out, *reals)
    assert judged.code == 0 and "Numbers of drugs are right" in judged.output, (
        judged.output + judged.complaint
    )
    assert "a row of visits where" in judged.output
    assert json.loads(ask("evaluate", out, *reals, "--json").output)["beneath"]["visits"][
        "tables"
    ].keys() == {"drugs"}
    with (tmp_path / "north_drugs.csv").open("a", newline="") as file:
        file.write("nothing,x,1\r\n")
    told = ask("check", trial.path, "--party", "north")
    assert told.code == 30 and 'column "vid"' in told.complaint and "needs a row of visits" in told.complaint
    assert "1 rows of drugs have no row of visits" in told.output
    assert "0 rows of visits have more than max_rows = 3 rows of drugs" in told.output


@pytest.mark.slow
@pytest.mark.parametrize("vertical", [False, True])
def test_processes_make_what_belongs_to_visits_too(tmp_path: Path, vertical: bool) -> None:
    trial = linked.write(tmp_path, drugs=True, vertical=vertical, changes=[LOUD], count=300)
    out = carried_out(tmp_path, trial)
    check_drugs(out)
    assert all(abs(noise) <= 10 * sigma for noise, sigma in deviations(out, trial))


def test_a_run_over_an_earlier_one_leaves_no_table_of_it_behind(tmp_path: Path) -> None:
    trial = linked.write(tmp_path / "one", changes=[CLEAR], count=40)
    carried_out(tmp_path, trial)
    other = linked.write(tmp_path / "two", changes=[CLEAR, ("[table.visits", "[table.stays")], count=40, data={
        name: f'data = {{ patients = "{name}_patients.csv", stays = "{name}_visits.csv" }}' for name in linked.NAMES
    })  # fmt: skip
    out = carried_out(tmp_path, other, "--replace")
    assert (out / "stays.csv").exists() and not (out / "visits.csv").exists()


def test_the_same_draw_for_the_same_study_and_another_one_for_another(tmp_path: Path) -> None:
    trial = linked.write(tmp_path / "one")
    other = linked.write(tmp_path / "one" / "other", changes=[("epsilon = 4.0", "epsilon = 5.0")])
    own = tmp_path / "north.toml"
    own.write_text(f'[ledger]\nfile = "{tmp_path / "ledger.db"}"\n')

    def drawn(path: Any) -> Any:
        study = load(path)
        data = private_file.location(study, "north", private_file.load(own))
        assert data is not None
        with open_source(data.locate()) as source:
            return pq.read_table(source.location.path)

    assert drawn(trial.path) == drawn(trial.path)
    assert drawn(trial.path) != drawn(other.path)
    assert drawn(trial.path)["visits_count"] == drawn(other.path)["visits_count"]


def test_what_the_custodian_alone_is_told_check_tells_it(tmp_path: Path) -> None:
    trial = linked.write(tmp_path, changes=[CLEAR, PLAIN, ("max_rows = 4\n", "max_rows = 1\n")])
    with (tmp_path / "north_visits.csv").open("a", newline="") as file:
        file.write("nobody,2024-05-05,u,1\r\n")
    end = run("check", trial.path, "--party", "north", ledger=tmp_path / "ledger.db", scratch=tmp_path)
    assert end.code == 30 and "no row of" in end.complaint
    assert "1 rows of visits have no row of patients" in end.output
    assert "people have more than max_rows = 1 rows of visits" in end.output
    everybody = run("check", trial.path, ledger=tmp_path / "ledger.db", scratch=tmp_path).output
    assert "rows of visits have no row" not in everybody and "more than max_rows" not in everybody


def test_the_order_of_a_tables_columns_is_part_of_what_is_agreed(tmp_path: Path) -> None:
    one = linked.write(tmp_path / "one").path
    text = one.read_text()
    diag = 'diag = { kind = "categorical", values = ["u", "v", "w"] }\n'
    (tmp_path / "one" / "other.toml").write_text(
        text.replace(diag, "").replace("[session]", f"{diag}\n[session]")
    )
    assert digest(load(one), "") != digest(load(tmp_path / "one" / "other.toml"), "")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('parent = "patients"\n', "", "[table.visits] parent is missing"),
        ('key = "pid"\n', "", "[table.visits] key is missing"),
        ("max_rows = 4\n", "", "[table.visits] max_rows is missing"),
        ("max_rows = 4\n", "max_rows = 0\n", "max_rows must be a whole number of at least 1"),
        ('parent = "patients"', 'parent = "visits"', "is this table itself"),
        ('parent = "patients"', 'parent = "synthetic"', "must be named by letters"),
        ('parent = "patients"', 'parent = "people"', 'data names "patients", which is no table of the study'),
        ('key = "pid"', 'key = "age"', "The key age is among the columns of patients"),
        ('key = "pid"', 'key = "diag"', "The key diag is among the columns of visits"),
        ('order = "day"', 'order = "pid"', "visits is ordered by the key pid"),
        ('order = "day"', 'order = "diag"', "whose values have no order"),
        ('order = "day"', 'ordre = "day"', 'unknown key "ordre" (did you mean "order"?)'),
        ('kind = "date"', 'kind = "dat"', "[table.visits.columns] day"),
        ("[table.visits", "[table.url", "must be named by letters"),
        ('algorithm = "mosaic"', 'algorithm = "vertigan"', "children are drawn from a model of marginals"),
        ("max_rows = 4096", 'max_rows = 4096\nunit = { id = "sex", max_rows = 3, max_custodians = 1 }', "[privacy] unit"),
        ("[session]", '[table.Visits]\nparent = "patients"\nkey = "pid"\nmax_rows = 2\ncolumns.x = 3\n\n[session]',
         "visits and Visits differ by case alone"),
        ("[session]", '[table.drugs]\nparent = "visits"\nkey = "pid"\nmax_rows = 2\ncolumns.x = 3\n\n[session]',
         "need a key of their own, other than pid"),
        ("[session]", DRUGS.replace('parent = "visits"', 'parent = "drugs"'), "is this table itself"),
        ("[session]", DRUGS.replace("[session]", DRUGS.replace("drugs", "packs").replace('"visits"', '"drugs"')).replace(
            'parent = "visits"', 'parent = "packs"'), 'parent = "packs" belongs to rows of drugs itself'),
        ("[session]", DRUGS.replace('key = "vid"', 'key = "day"'), "The key day is among the columns of visits"),
        ("[session]", DRUGS.replace('key = "vid"', 'key = "drug"'), "The key drug is among the columns of drugs"),
        ("[session]", DRUGS.replace("[session]", DRUGS.replace("drugs", "packs").replace('"visits"', '"drugs"')),
         "tables go as far as the rows of a person's rows"),
        ("[session]", DRUGS.replace("[session]", DRUGS.replace("drugs", "packs").replace('"vid"', '"wid"')),
         'is another one than the key of drugs, "vid"'),
        ("[session]", DRUGS, "data lacks the table drugs"),
        ("[session]", '[table.drugs]\nparent = "others"\nkey = "pid"\nmax_rows = 2\ncolumns.x = 3\n\n[session]',
         "is another one than the parent of visits"),
        ("[session]", '[table.drugs]\nparent = "patients"\nkey = "pid"\nmax_rows = 2\ncolumns.x = 3\n\n[session]',
         "data lacks the table drugs"),
    ],
)  # fmt: skip
def test_a_study_that_does_not_stand_together_is_refused_in_a_sentence(
    tmp_path: Path, old: Any, new: Any, said: Any
) -> None:
    found = problems(linked.write(tmp_path, changes=[(old, new)]).path)
    assert any(said in sentence for sentence in found), found
    assert all(sentence.endswith(".") for sentence in found)


WHOLE = 'data = { patients = "patients.csv", visits = "visits.csv", drugs = "drugs.csv" }'
VISITS = 'data = { patients = "members.csv", visits = "visits.csv" }'


@pytest.mark.parametrize(
    ("north", "south"),
    [
        (f'{WHOLE}\ncolumns = ["age", "sex", "drugs"]', f'{VISITS}\ncolumns = ["visits"]'),
        (
            f'{VISITS.replace("members", "patients")}\ncolumns = ["age", "sex", "visits_diag", "visits_before_diag"]',
            f'{WHOLE}\ncolumns = ["visits_count", "visits_day", "visits_before_day", "visits_cost", '
            '"visits_before_cost", "drugs"]',
        ),
    ],
)
def test_one_owner_has_a_table_of_children_with_what_belongs_to_it(
    tmp_path: Path, north: str, south: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two would draw two rows of a person: their draws have keys of their own."""
    trial = linked.write(
        tmp_path,
        vertical=True,
        drugs=True,
        count=120,
        data={"north": north, "south": south},
        changes=[('"replicated"', '"ideal"')],
    )
    for command in (["check", str(trial.path)], ["run", str(trial.path), "--out", str(tmp_path / "out")]):
        assert main([*command]) == 10
        told = "".join(capsys.readouterr())
        assert (
            "the columns of the table visits, with what belongs to its rows (drugs), are at north and south"
            in told
        )
    assert not list((tmp_path / "out").glob("*.csv"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('data = "north_patients.csv"', "data lacks the table visits"),
        ('data = { visits = "north_visits.csv" }', "data lacks the table patients"),
        ('data = { patients = "north_patients.csv", visit = "north_visits.csv" }', '(did you mean "visits"?)'),
        ('data = { patients = "north_patients.csv", visits = { url = "duckdb://x.db", table = "v", push_down = true } }',
         "unfolded inside a database where all of them are in it"),
        ('data = { patients = { tallies = "t/*.json" }, visits = "north_visits.csv" }', "data.patients is neither a file"),
        ('data = { patients = "north_patients.csv", visits = { visits = "north_visits.csv" } }', "data.visits is neither a file"),
        ('data = { patients = "north_patients.csv", visits = "north_visits.doc" }', "must name a .csv"),
    ],
)  # fmt: skip
def test_tables_that_a_custodian_names_must_be_the_studys(tmp_path: Path, line: Any, said: Any) -> None:
    found = problems(linked.write(tmp_path, data={"north": line}).path)
    assert any(said in sentence for sentence in found), found


def test_a_union_of_people_has_no_meaning_where_a_number_of_children_cannot_lack(tmp_path: Path) -> None:
    union = ('population = "intersection"', 'population = "union"')
    found = problems(linked.write(tmp_path, vertical=True, count=4, changes=[union]).path)
    assert any("who lacks a person cannot say it has no children" in sentence for sentence in found), found


def test_several_tables_have_no_meaning_in_a_study_of_one(tmp_path: Path) -> None:
    from tests.runner import small

    path = small.write(tmp_path).path
    path.write_text(
        path.read_text().replace('data = "north.csv"', 'data = { people = "north.csv", more = "x.csv" }')
    )
    assert any("the study has no [table.NAME]" in sentence for sentence in problems(path))


def test_tables_that_a_database_unfolds_make_the_same_run_and_check_tells_their_owner(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("sqlalchemy")
    place = '{ url = "duckdb://north.duckdb", table = "%s", push_down = true }'
    names = ("patients", "visits", "drugs")
    lines = {"north": "data = { " + ", ".join(f"{name} = {place % name}" for name in names) + " }"}
    trial = linked.write(tmp_path, drugs=True, count=300, changes=[CLEAR, LOUD, PLAIN], data=lines)
    with duckdb.connect(str(tmp_path / "north.duckdb")) as database:
        for name, types in (
            ("patients", "pid VARCHAR, age INTEGER, sex VARCHAR"),
            ("visits", "pid VARCHAR, vid VARCHAR, day DATE, diag VARCHAR, cost DOUBLE"),
            ("drugs", "vid VARCHAR, drug VARCHAR, dose INTEGER"),
        ):
            database.execute(f"CREATE TABLE {name} ({types})")
            database.execute(f"INSERT INTO {name} FROM read_csv('{tmp_path / f'north_{name}.csv'}')")
    end = run("check", trial.path, "--party", "north", ledger=tmp_path / "ledger.db", scratch=tmp_path)
    assert end.code == 0 and "people have more than max_rows = 4 rows of visits" in end.output, end.complaint
    assert "rows of visits have more than max_rows = 3 rows of drugs" in end.output
    out = carried_out(tmp_path, trial)
    check_tables(out)
    check_drugs(out)
    assert all(abs(noise) <= 10 * sigma for noise, sigma in deviations(out, trial))


def test_what_belongs_to_visits_lies_where_they_do(tmp_path: Path) -> None:
    line = 'data = { patients = "members.csv", drugs = "drugs.csv" }\ncolumns = ["visits", "drugs"]'
    found = problems(linked.write(tmp_path, vertical=True, drugs=True, count=4, data={"south": line}).path)
    assert any("data names drugs without visits" in sentence for sentence in found), found


def test_a_missing_file_of_children_ends_a_run_with_its_name(tmp_path: Path) -> None:
    trial = linked.write(tmp_path, changes=[CLEAR], count=20)
    (tmp_path / "south_visits.csv").unlink()
    end = run("run", trial.path, "--out", tmp_path / "out", ledger=tmp_path / "ledger.db", scratch=tmp_path)
    assert end.code == 30 and "south_visits.csv does not exist" in end.complaint


def cut_by_persons(folder: Path, parts: int) -> list[Path]:
    """North's tables in so many folders, by the first digits of the hash of a person."""
    made = []
    for number in range(parts):
        own = folder / f"part-{number}"
        own.mkdir()
        made.append(own)
    patients, visits, drugs = (read(folder / f"north_{name}.csv") for name in ("patients", "visits", "drugs"))

    def place(pid: str) -> int:
        return int(hashlib.sha256(f"clinic/pid/{pid}".encode()).hexdigest()[:8], 16) * parts >> 32

    for number, own in enumerate(made):
        theirs = [row for row in visits if place(row["pid"]) == number]
        keys = {row["vid"] for row in theirs}
        linked.write_csv(
            own / "patients.csv",
            [row for row in patients if place(row["pid"]) == number],
            ("pid", "age", "sex"),
        )
        linked.write_csv(own / "visits.csv", theirs, ("pid", "vid", "day", "diag", "cost"))
        linked.write_csv(
            own / "drugs.csv", [row for row in drugs if row["vid"] in keys], ("vid", "drug", "dose")
        )
    return made


def test_parts_that_are_cut_by_persons_are_unfolded_and_counted_where_they_are(tmp_path: Path) -> None:
    tallies = 'data = { tallies = "*.tally", parts = 3, partitioned_by = "id" }'
    trial = linked.write(tmp_path, drugs=True, count=300, changes=[CLEAR, LOUD, PLAIN], data={"north": ""})

    def ask(*arguments: Any, code: int = 0) -> str:
        end = run(*arguments, ledger=tmp_path / "ledger.db", scratch=tmp_path)
        assert end.code == code, end.complaint
        return str(end.complaint)

    parts = cut_by_persons(tmp_path, 3)
    for part in parts:
        ask("tally", trial.path, "--data", part, "--out", part.with_suffix(".tally"))
    own = tmp_path / "north.toml"
    own.write_text(tallies + "\n")
    named = ("--private", f"north={own}")
    ask("check", trial.path, "--party", "north", "--private", own)
    ask("run", trial.path, *named, "--out", tmp_path / "out")
    check_drugs(tmp_path / "out")
    assert all(abs(noise) <= 10 * sigma for noise, sigma in deviations(tmp_path / "out", trial))
    own.write_text(tallies.replace(', partitioned_by = "id"', "") + "\n")
    assert "bounds a person's rows by pid" in ask(
        "check", trial.path, "--party", "north", "--private", own, code=10
    )
    own.write_text(tallies + "\n")
    (stranger,) = [read(parts[0] / "patients.csv")[0]]
    with (parts[2] / "patients.csv").open("a") as file:
        file.write(f"{stranger['pid']},1,f\r\n")
    ask("tally", trial.path, "--data", parts[2], "--out", parts[2].with_suffix(".tally"))
    told = ask("check", trial.path, "--party", "north", "--private", own, code=30)
    assert "part-2.tally" in told and "part-0.tally" in told
    (parts[1] / "visits.csv").write_text("pid,vid,day,diag,cost\nnobody,1,2024-01-01,u,1\n")
    assert "no row of" in ask("tally", trial.path, "--data", parts[1], "--out", tmp_path / "x", code=30)
    whole = tmp_path / "north_patients.csv"
    assert "a folder with a file of each" in ask(
        "tally", trial.path, "--data", whole, "--out", tmp_path / "x", code=2
    )
    for frames in (None, {"patients": None}, dict.fromkeys(("patients", "visits", "drugs", "more"))):
        with pytest.raises(StudyInvalid, match=r'give a DataFrame of each, \{"patients": \.\.\., "visits": '):
            tally_spark(trial.path, frames, tmp_path / "x", name="all")


def test_a_dask_cluster_of_linked_tables_is_named_in_full(tmp_path: Path) -> None:
    """What the cluster then does: `tests/parties/data/tallies/test_dask.py`."""
    linked.write(tmp_path, count=3)
    trial, own = load(tmp_path / "study.toml"), tmp_path / "own.toml"

    def placed(url: str, more: str = "") -> Any:
        own.write_text(
            f'data = {{ dask = "tls://x:1", ca = "a", cert = "b", key = "c", url = {url}{more} }}\n'
        )
        private = private_file.load(own)
        return private_file.location(trial, "north", private)

    both = '{ patients = "/mnt/p/*.parquet", visits = "/mnt/v/*.parquet" }'
    found = placed(both)
    assert dict(found.cluster.tables) == {"patients": "/mnt/p/*.parquet", "visits": "/mnt/v/*.parquet"}
    assert found.dataset == found.cluster.files == "/mnt/p/*.parquet" and found.draws is not None
    for url, more, said in (
        ('"/mnt/p/*.parquet"', "", "data.url lacks the table patients; write url = { patients ="),
        ('{ patients = "/mnt/p/*.parquet" }', "", "data.url lacks the table visits"),
        (both.replace("visits", "visit"), "", 'data names "visit", which is no table'),
        (both, ', partitioned_by = "id"', "partitioned_by has no meaning where Dask unfolds"),
        (both.replace("/mnt/v", "v"), "", "absolute path"),
    ):
        with pytest.raises(StudyInvalid) as caught:
            placed(url, more)
        assert said in caught.value.sentence
