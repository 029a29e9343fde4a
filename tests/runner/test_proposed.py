"""Tables of several custodians looked at together: one domain, and what each must say to read its own table
like that."""

from __future__ import annotations

import random
import stat
import tomllib
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from mpc_protocols.errors import DataRefused, UsageError
from runner.commands.cli import main
from runner.starting.custodians import compared
from runner.starting.proposals import BINS, Texts, _bins, _outwards
from runner.study import Study, load

ROWS = 400


def hospital(number: int, weight: float = 1.0) -> pd.DataFrame:
    draw = random.Random(number)
    return pd.DataFrame(
        {
            "Age": [draw.randint(18, 90) for _ in range(ROWS)],
            "Sex": [draw.choice(("Male", "Female")) for _ in range(ROWS)],
            "Smokes": [draw.choice(("yes", "no")) for _ in range(ROWS)],
            "Weight": [round(draw.gauss(75, 12) * weight, 1) for _ in range(ROWS)],
            "id": [f"{number}-{row}" for row in range(ROWS)],
        }
    )


def three(directory: Path) -> list[str]:
    """As three hospitals export them: one plain, one German, one with capitals, letters and pounds."""
    directory.mkdir()
    plain, german, loud = hospital(1), hospital(2), hospital(3, 1 / 0.4536)
    plain.to_csv(directory / "plain.csv", index=False)
    german["Smokes"] = german["Smokes"].map({"yes": "ja", "no": "nein"})
    german.to_csv(directory / "german.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    loud["Sex"] = loud["Sex"].str[0]
    loud.loc[::9, "Age"] = -9
    loud.columns = loud.columns.str.upper()
    loud.to_csv(directory / "loud.csv", index=False)
    return [
        argument
        for name in ("plain", "german", "loud")
        for argument in ("--from", f"{name}={directory / f'{name}.csv'}")
    ]


def test_three_hospitals_become_a_study_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    out = tmp_path / "study"
    assert main(["init", str(out), *three(tmp_path / "tables")]) == 0
    told = capsys.readouterr().out
    assert f"cat {out / 'domain.proposed.toml'} >> {out / 'study.toml'}" in told and "--private loud=" in told
    for name in ("plain", "german", "loud"):
        assert stat.S_IMODE((out / f"{name}.toml").stat().st_mode) == 0o600
    german, loud = (tomllib.loads((out / f"{name}.toml").read_text()) for name in ("german", "loud"))
    assert german["csv"] == {"delimiter": ";", "decimal": ",", "encoding": "utf-8"}
    assert german["harmonise"]["columns"] == {"Smokes": {"values": {"ja": True, "nein": False}}}
    assert loud["harmonise"]["names"] == "ignore case"
    assert loud["harmonise"]["columns"] == {
        "Age": {"missing": ["-9"]},
        "Sex": {"values": {"F": "Female", "M": "Male"}},
        "Weight": {},
    }
    assert "pounds and kilograms" in (out / "loud.toml").read_text()
    proposed = (out / "domain.proposed.toml").read_text()
    assert (
        "# TO BE ASKED: Weight: loud's numbers are about 2.2" in proposed
        and "# id: it looks like" in proposed
    )
    capsys.readouterr()
    assert main(["check", str(out / "study.toml")]) == 10  # before the columns are confirmed and appended
    assert f"cat {out / 'domain.proposed.toml'} >> {out / 'study.toml'}" in capsys.readouterr().out
    with (out / "study.toml").open("a") as study:
        study.write(proposed)
    assert load(out / "study.toml").name == out.name  # a ledger's accounts are called by it
    assert [party.name for party in load(out / "study.toml").parties] == ["plain", "german", "loud"]
    private = [
        a for name in ("plain", "german", "loud") for a in ("--private", f"{name}={out / f'{name}.toml'}")
    ]
    assert main(["check", str(out / "study.toml"), *private]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out.count("its table fits the study") == 3


def test_python_proposes_columns_that_a_study_takes() -> None:
    proposed = Study.propose(north=hospital(1), south=hospital(2).rename(columns=str.lower))
    assert set(proposed.columns) == {"Age", "Sex", "Smokes", "Weight"} and set(proposed.left_out) == {"id"}
    study = Study.of("trial", proposed.columns, ["north", "south", "third"], epsilon=1, delta=1e-6)
    assert study.domain.names == ("Age", "Sex", "Smokes", "Weight")
    assert {(name, key) for name, key, _ in proposed.to_confirm} == {
        ("Age", "low"), ("Age", "high"), ("Sex", "values"), ("Weight", "low"), ("Weight", "high")
    }  # fmt: skip
    assert all(len(why) > 20 for _, _, why in proposed.to_confirm)
    assert proposed.harmonise["north"] == "" and 'names = "ignore case"' in proposed.harmonise["south"]
    assert tomllib.loads(proposed.to_toml())["domain"]["columns"]["Smokes"] == {"kind": "boolean"}
    assert "Female" not in repr(proposed)  # what was read off rows is not in a log by accident


def test_columns_that_one_custodian_lacks_are_asked_about_together() -> None:
    proposed = Study.propose(
        north=hospital(1), south=hospital(2).rename(columns={"Sex": "Geschlecht", "Age": "Alter"})
    )
    there, here = (note for note in proposed.notes if "a column of a horizontal study is everywhere" in note)
    assert here.startswith("Geschlecht, Alter: not at north;") or here.startswith("Alter, Geschlecht: not at")
    assert there.startswith(("Sex, Age: not at south;", "Age, Sex: not at south;"))
    assert "say that by `from` under [harmonise.columns." in there


def test_what_is_proposed_says_what_there_is_to_do_with_it() -> None:
    """And no value that was read off rows."""
    told = repr(
        Study.propose(
            pd.DataFrame({"age": [20, 31, 77] * 9, "sex": ["f", "m", "m"] * 9, "none": [None] * 27})
        )
    )
    assert told.startswith(
        "Proposed(columns age, sex; left out: none; 3 values are to be confirmed, see .to_confirm"
    )
    assert "77" not in told


def test_one_frame_or_one_file_is_enough(tmp_path: Path) -> None:
    hospital(4).to_csv(tmp_path / "t.csv", index=False)
    assert Study.propose(hospital(4)).columns == Study.propose(tmp_path / "t.csv").columns


def test_what_cannot_be_proposed_from_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one frame or file, or one of each"):
        Study.propose()
    with pytest.raises(UsageError, match="one frame or file, or one of each"):
        Study.propose(hospital(1), north=hospital(2))
    with pytest.raises(UsageError, match="got list for north"):
        Study.propose(north=[1, 2])
    with pytest.raises(DataRefused, match="does not exist"):
        Study.propose(tmp_path / "none.csv")
    with pytest.raises(DataRefused, match="same name"):
        Study.propose(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    (tmp_path / "head.csv").write_text("age,sex\n")
    with pytest.raises(DataRefused, match="has no rows"):
        Study.propose(tmp_path / "head.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_table_is_proposed_from_in_the_encodings_of_spreadsheets(tmp_path: Path, encoding: str) -> None:
    names = ["Köln", "Ulm", "Bonn"] * 20
    lines = ["Ort\tZahl", *(f"{name}\t{number}" for number, name in enumerate(names))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding=encoding)
    proposed = Study.propose(tmp_path / "t.csv")
    assert set(proposed.columns) == {"Ort", "Zahl"} and "Köln" in proposed.columns["Ort"]["values"]
    said = {"utf-16": 'encoding = "utf-16"', "cp1252": 'encoding = "windows-1252"'}
    assert said.get(encoding, 'delimiter = "\\t"') in proposed.harmonise["data"]


@pytest.mark.parametrize(
    ("low", "high"), [(0, 599), (0, 940), (18, 90), (0, 1), (0.5, 33.7), (-40, 55), (1e6, 1.1e6)]
)
def test_edges_are_round_numbers(low: float, high: float) -> None:
    least, most = _outwards(low, high)
    width = (most - least) / _bins(least, most)
    assert least <= low and most >= high and _bins(least, most) <= BINS
    assert f"{width:e}"[0] in "125" and f"{width:e}"[1:8] == ".000000"


def test_codes_are_matched_by_words_and_what_matches_nothing_is_asked_about() -> None:
    def table(**counts: int) -> Texts:
        return Texts(sum(counts.values()), {"work": Counter(counts)})

    found = compared({"a": table(private=5, public=6, none=7), "b": table(PRIVATE=3, pub=2, own=1)})
    assert found.rules["b"]["work"].values == {"PRIVATE": "private", "pub": "public"}
    assert found.notes == ("work: b has 'own', which a has not",)
    assert dict(found.proposals[0].keys)["values"] == ("none", "own", "private", "public")


def test_another_unit_is_converted_by_the_line_that_stands_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A marker of missing values that is a number is none any more once it was divided: the line tells it first."""
    kilograms, grams = tmp_path / "kilograms.csv", tmp_path / "grams.csv"
    pd.DataFrame({"Weight": [60 + n % 40 + 0.5 for n in range(300)], "Sex": ["f", "m"] * 150}).to_csv(
        kilograms, index=False
    )
    weighed = ["-9" if n % 20 == 0 else f"{60500 + 1000 * (n % 40)},5" for n in range(300)]
    pd.DataFrame({"WEIGHT": weighed, "SEX": ["f", "m"] * 150}).to_csv(grams, index=False, sep=";")
    out = tmp_path / "study"
    assert main(["init", str(out), "--from", str(kilograms), "--from", str(grams)]) == 0
    own = (out / "grams.toml").read_text()
    assert '\nmissing = ["-9"]' in own and "THEN TRY_CAST" in own
    (out / "grams.toml").write_text(own.replace('# sql = "CASE', 'sql = "CASE'))
    with (out / "study.toml").open("a") as study:
        study.write((out / "domain.proposed.toml").read_text())
    capsys.readouterr()
    asked = ["check", str(out / "study.toml"), "--party", "grams", "--private", str(out / "grams.toml")]
    assert main([*asked, "--rehearsal"]) == 0, capsys.readouterr()
    assert "Weight: missing 5.0 %; clamped 0 %" in capsys.readouterr().out


def test_days_that_custodians_write_differently_are_days(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each alone is read as a date, so are all together: each private file reads its own spelling."""
    days = pd.date_range("2021-01-01", periods=300, freq="D")
    age = [20 + n % 60 for n in range(300)]
    pd.DataFrame({"Visit": days.strftime("%Y-%m-%d"), "Age": age}).to_csv(tmp_path / "iso.csv", index=False)
    spelled = ["NA", *days[1:].strftime("%d.%m.%Y")]
    pd.DataFrame({"VISIT": spelled, "AGE": age}).to_csv(tmp_path / "dots.csv", index=False)
    out = tmp_path / "study"
    given = [word for name in ("iso", "dots") for word in ("--from", f"{name}={tmp_path / name}.csv")]
    assert main(["init", str(out), *given]) == 0
    proposed = tomllib.loads((out / "domain.proposed.toml").read_text())["domain"]["columns"]
    assert proposed["Visit"]["kind"] == "date" and proposed["Visit"]["low"].isoformat() == "2021-01-01"
    rules = tomllib.loads((out / "dots.toml").read_text())["harmonise"]["columns"]
    assert rules["Visit"] == {"missing": ["NA"], "sql": "try_strptime(\"VISIT\", '%d.%m.%Y')"}
    assert "harmonise" not in tomllib.loads((out / "iso.toml").read_text())
    with (out / "study.toml").open("a") as study:
        study.write((out / "domain.proposed.toml").read_text())
    private = [word for name in ("iso", "dots") for word in ("--private", f"{name}={out / name}.toml")]
    assert main(["check", str(out / "study.toml"), *private]) == 0, capsys.readouterr()
    alone = Study.propose(tmp_path / "dots.csv")
    assert "try_strptime" in alone.harmonise["data"] and alone.columns["VISIT"]["kind"] == "date"


def test_a_custodian_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a\n1\n")
    assert main(["init", str(tmp_path / "s"), "--from", str(table), "--from", str(table)]) == 2
    assert "--from names t twice" in capsys.readouterr().err
