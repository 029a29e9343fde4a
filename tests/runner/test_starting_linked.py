"""`init --linked`: a study of linked tables proposed from a custodian's files, and what cannot be proposed."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from mpc_protocols.errors import UsageError
from runner.commands.cli import main
from runner.study import Study, read

VISITS = [(number, visit) for number in range(120) for visit in range(number % 5)]


def write(folder: Path, patients: str = "pid,age,ward", visits: str = "pid,day,diag,cost") -> list[str]:
    (folder / "patients.csv").write_text(
        "\n".join([patients, *(f"p{number},{number % 80},w{number % 3}" for number in range(120))])
    )
    rows = (f"p{n},2024-{v + 1:02}-0{v + 3},{'uvw'[v % 3]},{'NA' if v == 3 else v * 7.5}" for n, v in VISITS)
    (folder / "Visits 2024.csv").write_text("\n".join([visits, *rows]))
    return ["--linked", str(folder / "patients.csv"), "--linked", f"visits={folder / 'Visits 2024.csv'}"]


def test_two_files_become_a_study_that_is_read_once_it_is_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "codes.csv").write_text("code\nu\nv\nw\nx\n")
    out = tmp_path / "study"
    given = [*write(tmp_path), "--codes", f"visits.diag={tmp_path / 'codes.csv'}"]
    assert main(["init", str(out), *given]) == 0
    proposed = (out / "domain.proposed.toml").read_text()
    assert stat.S_IMODE((out / "domain.proposed.toml").stat().st_mode) == 0o600
    assert (
        "max_rows = 4  # TO BE CONFIRMED" in proposed and "visits.cost: NA would have to be empty" in proposed
    )
    table = tomllib.loads(proposed)["table"]["visits"]
    assert {key: value for key, value in table.items() if key != "columns"} == {
        "parent": "patients", "key": "pid", "max_rows": 4, "order": "day",
    }  # fmt: skip
    assert set(table["columns"]) == {"day", "cost"} and "diag: in study.toml" in proposed
    private = tomllib.loads((out / "private.example.toml").read_text())
    assert private["data"] == {
        "patients": str(tmp_path / "patients.csv"),
        "visits": str(tmp_path / "Visits 2024.csv"),
    }
    study = (out / "study.toml").read_text()
    assert "[workload]" not in study
    (out / "study.toml").write_text(study + proposed)
    linked = read.load(out / "study.toml").linked
    assert linked is not None and (linked.parent, linked.key) == ("patients", "pid")
    assert linked.people.names == ("age", "ward")
    assert (
        dict(zip(linked.children[0].domain.names, linked.children[0].domain.sizes.values(), strict=True))[
            "diag"
        ]
        == 4
    )
    assert main(["plan", str(out / "study.toml"), "--rows", "500"]) == 0
    assert "a person with all that is theirs" in capsys.readouterr().out


def with_drugs(folder: Path, header: str = "visit,drug") -> list[str]:
    """Visits have a number of their own, and drugs: three of the first, two of the second, and so on."""
    given = write(folder, visits="pid,visit,day,diag,cost")
    rows = (
        f"p{n},{place},2024-{v + 1:02}-0{v + 3},{'uvw'[v % 3]},{v * 7.5}"
        for place, (n, v) in enumerate(VISITS)
    )
    (folder / "Visits 2024.csv").write_text("\n".join(["pid,visit,day,diag,cost", *rows]))
    drugs = [
        (place, f"{'xyz'[place % 3]}{number}", person)
        for place, (person, visit) in enumerate(VISITS)
        for number in range(3 - visit)
    ]
    lines = (
        ",".join([str(place), drug, *([f"p{person}"] if "pid" in header else [])])
        for place, drug, person in drugs
    )
    (folder / "drugs.csv").write_text("\n".join([header, *lines]))
    return [*given, "--linked", str(folder / "drugs.csv")]


@pytest.mark.parametrize("header", ["visit,drug", "visit,drug,pid"])
def test_what_belongs_to_a_persons_rows_is_found_by_the_key_of_these(
    tmp_path: Path, header: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    assert main(["init", str(out), *with_drugs(tmp_path, header)]) == 0
    proposed = (out / "domain.proposed.toml").read_text()
    assert "TO BE ASKED: drugs: its rows are taken to belong to those of visits, by visit" in proposed
    tables = tomllib.loads(proposed)["table"]
    assert [(name, own["parent"], own["key"], own["max_rows"]) for name, own in tables.items()] == [
        ("visits", "patients", "pid", 4),
        ("drugs", "visits", "visit", 3),
    ]
    assert "visit" not in tables["visits"]["columns"] and tables["drugs"]["columns"].keys() <= {"drug"}
    assert tomllib.loads((out / "private.example.toml").read_text())["data"].keys() == {
        "patients",
        "visits",
        "drugs",
    }
    codes = '[table.drugs.columns.drug]\nkind = "categorical"\nvalues = ["x", "y"]\n'
    (out / "study.toml").write_text(
        (out / "study.toml").read_text() + proposed + ("" if tables["drugs"]["columns"] else codes)
    )
    linked = read.load(out / "study.toml").linked
    assert linked is not None and linked.owner("drugs") == "visits"
    assert main(["plan", str(out / "study.toml"), "--rows", "500"]) == 0
    capsys.readouterr()


def test_whose_rows_they_are_is_asked_where_it_cannot_be_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*more: str) -> str:
        assert main(["init", str(tmp_path / "study"), *given, *more]) == 2
        return capsys.readouterr().err

    given = with_drugs(tmp_path, "name,drug")
    assert "drugs belong to cannot be told: it has no column pid" in said()
    given = with_drugs(tmp_path)
    (tmp_path / "packs.csv").write_text("pack,visit\n1,2\n2,2\n")
    (tmp_path / "pills.csv").write_text("pack,weight\n1,2\n1,3\n")
    packs, pills = ("--linked", str(tmp_path / "packs.csv")), ("--linked", str(tmp_path / "pills.csv"))
    assert "pills belongs to rows of packs, which has no column pid" in said(*packs, *pills)
    stays = (tmp_path / "Visits 2024.csv").read_text()
    (tmp_path / "stays.csv").write_text(stays)
    told = said("--linked", str(tmp_path / "stays.csv"))
    assert "visit of visits and visit of stays could all name them" in told


def test_children_of_nobody_and_an_order_with_gaps_are_told_in_the_private_file(tmp_path: Path) -> None:
    given = write(tmp_path)
    with (tmp_path / "Visits 2024.csv").open("a") as file:
        file.write("\nstranger,2024-05-05,u,1\np1,,u,1\n")
    assert main(["init", str(tmp_path / "study"), *given]) == 0
    proposed = (tmp_path / "study" / "domain.proposed.toml").read_text()
    assert "TO BE ASKED: visits: 1 rows belong to nobody in patients" in proposed
    assert "stranger" not in proposed and "order" not in tomllib.loads(proposed)["table"]["visits"]


@pytest.mark.parametrize(
    ("headers", "more", "said"),
    [
        (("pid,age,ward", "person,day,diag,cost"), [], "none could be it"),
        (("ward,age,pid", "ward,day,diag,cost"), ["--key", "diag"], "is not a column of the table of people"),
        (("pid,age,ward", "pid,day,diag,age"), ["--key", "age"], "names a row of"),
        (("pid,age,ward", "pid,day,diag,cost"), ["--vertical"], "leave --vertical out"),
        (("pid,age,ward", "pid,day,diag,cost"), ["--from", "x.csv"], "leave --from out"),
    ],
)  # fmt: skip
def test_what_cannot_be_proposed_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], headers: tuple[str, str], more: list[str], said: str
) -> None:
    assert main(["init", str(tmp_path / "study"), *write(tmp_path, *headers), *more]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "study").exists()


def test_one_table_and_a_key_without_tables_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "a"), *write(tmp_path)[:2]]) == 2
    assert "what belongs to them" in capsys.readouterr().err
    assert main(["init", str(tmp_path / "a"), "--key", "pid"]) == 2
    assert "name these by --linked" in capsys.readouterr().err


def test_frames_and_files_are_proposed_in_python_as_init_does(tmp_path: Path) -> None:
    write(tmp_path)
    files = {"patients": tmp_path / "patients.csv", "visits": tmp_path / "Visits 2024.csv"}
    frames = {name: pd.read_csv(file, dtype=str, keep_default_na=False) for name, file in files.items()}
    found = Study.propose(frames)
    assert found.columns.keys() == {"age", "ward"} and found.tables == Study.propose(files).tables
    own = dict(found.tables["visits"])
    assert own.pop("columns").keys() == {"day", "diag", "cost"}
    assert own == {"parent": "patients", "key": "pid", "max_rows": 4, "order": "day"}
    asked = {(column, key) for column, key, _ in found.to_confirm}
    assert {
        ("age", "high"),
        ("visits", "max_rows"),
        ("visits.cost", "low"),
        ("visits.diag", "values"),
    } <= asked
    assert any("visits.cost: NA would have to be empty" in note for note in found.notes)
    assert tomllib.loads(found.to_toml())["table"]["visits"]["max_rows"] == 4
    study = Study.of("clinic", found.columns, ("a", "b", "c"), epsilon=1, delta=1e-6, table=found.tables)
    assert study.linked is not None and study.linked.names == ("patients", "visits")


def test_what_python_cannot_propose_is_said_in_a_sentence(tmp_path: Path) -> None:
    write(tmp_path)
    one = tmp_path / "patients.csv"
    for given, more, said in (
        ({"patients": one}, {}, "and what belongs to them"),
        ({"patients": one, "my visits": one}, {}, "by names of small letters"),
        ({"patients": one, "visits": one}, {"key": "sex"}, "is not a column of the table of people"),
        ({"patients": one, "visits": 5}, {}, "got int for visits"),
        ({"patients": one, "visits": one}, {"north": one}, "linked tables of one custodian"),
        (one, {"key": "pid"}, "linked tables of one custodian"),
    ):
        with pytest.raises(UsageError, match=said):
            Study.propose(given, **more)
