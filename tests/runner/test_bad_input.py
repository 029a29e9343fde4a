"""What bad input gets: a sentence naming the culprit, the exit code of the contract, nothing half written.

Studies are refused by `run` itself, before any process is started; tables by the one party that has them, in
its own process, whoever else comes. (`test_study`: every key; `test_deployment`: what the others see.)
"""

from __future__ import annotations

import socket
from pathlib import Path

import pandas as pd
import pytest

from parties.budget.ledger import Ledger
from runner.commands.cli import main
from tests.runner import small
from tests.runner.folders import Folder, Folders
from tests.runner.processes import results, run

CANARY = "CANARY-55071"

STUDIES = {
    # what is changed in the study: words of the sentence
    "epsilon of zero": (("epsilon = 4.0", "epsilon = 0"), ("[privacy] epsilon", "greater than 0")),
    "negative epsilon": (("epsilon = 4.0", "epsilon = -1"), ("[privacy] epsilon", "-1")),
    "infinite epsilon": (("epsilon = 4.0", "epsilon = inf"), ("[privacy] epsilon",)),
    "delta of one": (("delta = 1e-6", "delta = 1.0"), ("[privacy] delta", "less than 1")),
    "delta of zero": (("delta = 1e-6", "delta = 0.0"), ("[privacy] delta",)),
    "unknown key": (("rounds = 3", "round = 3"), ("round", "did you mean")),
    "unknown table": (("[workload]", "[work]\n[workload]"), ("work",)),
    "a delta that nobody accepted": (
        ("delta = 1e-6", "delta = 0.02"),
        ("delta", "accept_delta = true", "0.01"),
    ),
    "label that is no column": (
        ("degree = 2", 'degree = 2\nlabel = "sicc"'),
        ("label", "sicc", 'did you mean "sick"'),
    ),
    "unknown column in the workload": (
        ("degree = 2", 'cliques = [["age", "sicc"]]'),
        ("sicc", 'did you mean "sick"'),
    ),
    "degree above the columns": (("degree = 2", "degree = 6"), ("degree", "5")),
    "clique that cannot be shared": (
        ("grade = 3", "grade = 500000\nplace = 500000"),
        ("16,777,216", "grade, place"),
    ),
    "column above the model's limit": (
        ("rounds = 3", "rounds = 3\nmax_model_mb = 0.00003"),
        ("max_model_mb", "age"),
    ),
    "hopeless epsilon": (("epsilon = 4.0", "epsilon = 1e-9"), ("epsilon",)),
    "another partition's table": (("[session]", "[alignment]\n[session]"), ("[alignment]",)),
    "not TOML": (("[privacy]", "[privacy"), ("line",)),
    "duplicate names": (('name = "west"', 'name = "north"'), ("north",)),
    "a fraction of a row": (("max_rows = 4096", "max_rows = 1.5"), ("max_rows", "1.5")),
}


def told(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    """The command ends with this code and one sentence on standard error."""
    assert main([str(argument) for argument in arguments]) == code
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1 and complaint.endswith(".\n"), complaint
    return complaint


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    return tmp_path / "ledger.db"


@pytest.mark.parametrize("case", STUDIES)
def test_studies(tmp_path: Path, capsys: pytest.CaptureFixture[str], ledger: Path, case: str) -> None:
    """As all parties, and as one of them."""
    change, words = STUDIES[case]
    trial = small.write(tmp_path / "study")
    text = trial.path.read_text()
    assert change[0] in text
    trial.path.write_text(text.replace(*change))
    out = tmp_path / "out"
    # what only the plan finds is found when a party's certificate has been: this one has none
    for party in ((), ("--party", "north")) if case != "hopeless epsilon" else ((),):
        sentence = told(capsys, 10, "run", trial.path, "--out", out, *party)
        assert str(trial.path) in sentence or case == "hopeless epsilon", sentence
        assert all(word in sentence for word in words), sentence
    assert not results(tmp_path) and Ledger(ledger).entries() == []


def test_duplicate_ports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = small.write(tmp_path / "study")
    text = trial.path.read_text().replace(str(trial.ports["west"]), str(trial.ports["north"]))
    trial.path.write_text(text)
    sentence = told(capsys, 10, "run", trial.path, "--out", tmp_path / "out")
    assert "north" in sentence and "west" in sentence and str(trial.ports["north"]) in sentence


def test_no_study_and_no_such_party(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "absent.toml" in told(capsys, 10, "run", tmp_path / "absent.toml", "--out", tmp_path / "out")
    trial = small.write(tmp_path / "study")
    assert "north, south, west" in told(
        capsys, 2, "run", trial.path, "--party", "nort", "--out", tmp_path / "out"
    )


def test_a_port_in_use_ends_the_whole_run_at_once(tmp_path: Path) -> None:
    trial = small.write(tmp_path / "study")
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", trial.ports["south"]))
        holder.listen()
        end = run(
            "run", trial.path, "--out", tmp_path / "out", ledger=tmp_path / "l", scratch=tmp_path / "scratch"
        )
    assert end.code == 20 and f":{trial.ports['south']}" in end.complaint and "in use" in end.complaint
    assert end.complaint.count("\n") == 1 and not results(tmp_path)


# One party's own table. It is refused at this party before anything is sent; here nobody else ever comes.

HEADER = "age,work,income,grade,sick"
GOOD = "33,Gov,2.5,1,no"
TABLES: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "missing file": (None, ("north.csv", "does not exist")),
    "empty table": (f"{HEADER}\n", ("no rows", "allow_empty")),
    "empty file": ("", ("is empty", "header")),
    "no header": (f"{GOOD}\n{CANARY},Gov,1,1,no\n", ("none of the study's columns",)),
    "semicolons": (
        f"{HEADER}\n{GOOD}\n".replace(",", ";"),
        (
            "none of the study's columns",
            "semicolons",
            'write delimiter = ";" under [csv] of the private file.',
        ),
    ),
    "unknown column": (f"age,work,income,grade,sik\n{GOOD}\n", ('"sick"',)),
    "column twice": (f"{HEADER},age\n{GOOD},33\n", ("more than one", '"age"')),
    "value of no category": (f"{HEADER}\n{GOOD}\n33,{CANARY},2.5,1,no\n", ('"work"', "line 3")),
    "text for a number": (f"{HEADER}\n{CANARY},Gov,2.5,1,no\n", ('"age"', "line 2")),
    "fraction for an integer": (f"{HEADER}\n{GOOD}\n33.5,Gov,2.5,1,no\n", ('"age"', "line 3", "integer")),
    "code outside the domain": (f"{HEADER}\n33,Gov,2.5,3,no\n", ('"grade"', "line 2", "0 to 2")),
    "missing where it may not be": (f"{HEADER}\n{GOOD}\n,Gov,2.5,1,no\n", ('"age"', "line 3", "missing")),
    "infinite number": (f"{HEADER}\n33,Gov,inf,1,no\n", ('"income"', "line 2")),
    "too few fields": (f"{HEADER}\n{GOOD}\n33,{CANARY}\n", ("line 3", "fields")),
    "open quotation": (f'{HEADER}\n{GOOD}\n"33,{CANARY},2.5,1,no\n', ("north.csv",)),
    "not UTF-8": (f"{HEADER}\n33,Gov\udcff{CANARY},2.5,1,no\n", ("north.csv",)),
}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("tables")
    return Folders.make(root, small.write(root / "study", changes=[("connect_s = 300", "connect_s = 900")]))


def checked(folder: Folder, capsys: pytest.CaptureFixture[str]) -> str:
    """What `check` says of this party's table, which it refuses."""
    assert (
        main(
            [
                "check",
                str(folder / "study.toml"),
                "--party",
                folder.name,
                "--private",
                str(folder / "private.toml"),
            ]
        )
        == 30
    )
    said = capsys.readouterr()
    assert CANARY not in said.out + said.err and said.err.count("\n") == 1
    return said.out + said.err


@pytest.mark.parametrize("case", TABLES)
def test_tables(deployment: Folders, capsys: pytest.CaptureFixture[str], case: str) -> None:
    """`check` names what `run` would refuse, and quotes nothing of it."""
    text, words = TABLES[case]
    table = deployment["north"] / "north.csv"
    table.unlink(missing_ok=True)
    if text is not None:
        table.write_text(text, encoding="utf-8", errors="surrogateescape")
    said = checked(deployment["north"], capsys)
    assert all(word in said for word in words), said


@pytest.mark.parametrize("case", ["missing file", "empty table", "unknown column", "too few fields"])
def test_a_party_with_a_bad_table_does_not_wait_for_the_others(deployment: Folders, case: str) -> None:
    """It stays three seconds to tell those who come a moment later, and ends: they would be awaited for 900
    s."""
    text, words = TABLES[case]
    north = deployment["north"]
    (north / "north.csv").unlink(missing_ok=True)
    if text is not None:
        (north / "north.csv").write_text(text)
    end = deployment.run("north")["north"]
    assert (
        end.code == 30 and end.complaint.count("\n") == 1 and all(word in end.complaint for word in words)
    ), end
    assert not results(north.path) and Ledger(north.ledger).entries() == []
    assert {refusal.code for refusal in Ledger(north.ledger).refusals()} == {30}
    for path in north.path.rglob("*"):
        assert not path.is_file() or path.suffix == ".csv" or CANARY.encode() not in path.read_bytes(), path


def test_a_parquet_file_of_other_values(deployment: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    """Every problem in one go; a damaged file by its name."""
    north = deployment["north"]
    north.edit("private.toml", ('"north.csv"', '"north.parquet"'))
    try:
        frame = pd.DataFrame(
            {
                "age": [33.0, 41.5],
                "work": ["Gov", CANARY],
                "income": [1.0, None],
                "grade": [0, 7],
                "sick": ["no", "yes"],
            }
        )
        frame.to_parquet(north / "north.parquet", index=False)
        said = checked(north, capsys)
        assert all(words in said for words in ('"age", row 2', '"work", row 2', '"grade", row 2')), said
        (north / "north.parquet").write_bytes(b"PAR1" + CANARY.encode())
        assert "not a whole Parquet file" in checked(north, capsys)
    finally:
        north.edit("private.toml", ('"north.parquet"', '"north.csv"'))
