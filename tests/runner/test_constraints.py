"""Constraints of a study through whole runs in the clear: no synthetic row breaks one; real rows go by the
public rule."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from mpc_protocols.psu.identifiers.normalise import IdentifierPolicy
from parties.data import records
from parties.data.linked.opening import open_source
from parties.data.location import locate
from runner.commands.cli import main
from runner.study import read
from synth.domain import Domain
from tests.runner.studies import head

STUDY = (
    head("clinic", epsilon="0.3")
    + """\
[domain.columns]
married = { kind = "categorical", values = ["never", "now", "once"] }
years = { kind = "integer", low = 0, high = 60, bins = 12, zero = true }
came = { kind = "date", low = 2020-01-01, high = 2020-12-31, step = "month" }
left = { kind = "date", low = 2020-01-01, high = 2021-12-31, step = "quarter", missing = true }
ward = { kind = "categorical", values = ["A", "B"] }

[[domain.constraints]]
if = { married = "never" }
then = { years = 0 }
[[domain.constraints]]
order = ["came", "left"]

[session]
tls = "insecure-loopback"

[[party]]
name = "clinic"
address = "127.0.0.1:7001"
data = "clinic.csv"
"""
)
RULE = "[domain.columns]"
LEAVE_OUT = 'domain.broken_rows = "leave out"\n'


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))


def write(directory: Path, study: str, broken: int = 0) -> Path:
    draw = random.Random(5)
    with (directory / "clinic.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "married", "years", "came", "left", "ward"])
        for number in range(500):
            married = draw.choice(["never", "now", "once"])
            years = 7 if number < broken else 0 if married == "never" else draw.randint(1, 60)
            month = draw.randint(1, 12)
            left = draw.choice(["", f"2020-{draw.randint(month, 12):02}-28", "2021-05-05"])
            writer.writerow(
                [
                    f"p{number}",
                    "never" if number < broken else married,
                    years,
                    f"2020-{month:02}-05",
                    left,
                    draw.choice("AB"),
                ]
            )
    (directory / "study.toml").write_text(study)
    return directory / "study.toml"


@pytest.mark.parametrize(
    "algorithm",
    [
        "aim",
        "mosaic",
        "mst",
        *(pytest.param(name, marks=pytest.mark.campaign) for name in ("mwem", "privmrf")),
    ],
)
def test_no_synthetic_row_breaks_a_constraint(tmp_path: Path, algorithm: str) -> None:
    study = write(
        tmp_path, STUDY.replace('"aim"', f'"{algorithm}"') + f"\n[{algorithm}]\nsynthetic_rows = 3000\n"
    )
    assert main(["run", str(study), "--out", str(tmp_path / "out")]) == 0
    assert main(["sample", str(tmp_path / "out"), "--rows", "3000", "--out", str(tmp_path / "more.csv")]) == 0
    for path in (tmp_path / "out" / "synthetic.csv", tmp_path / "more.csv"):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 3000 and {row["married"] for row in rows} == {"never", "now", "once"}
        assert all(row["years"] == "0" for row in rows if row["married"] == "never")
        assert all(row["came"] <= row["left"] for row in rows if row["left"])
        assert sum(row["left"] > "" for row in rows) > 1000


def test_rows_that_break_one_are_refused_or_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write(tmp_path, STUDY, broken=4)
    assert main(["check", str(study), "--party", "clinic"]) == 30
    shown = capsys.readouterr().out
    assert (
        "line 2: the row breaks the study's constraint married = never implies years = 0; correct it" in shown
    )
    assert "4 rows break the study's constraint married = never implies years = 0" in shown
    study.write_text(
        STUDY.replace("[domain.columns]", '[domain]\nbroken_rows = "leave out"\n[domain.columns]')
    )
    assert main(["check", str(study), "--party", "clinic"]) == 0
    shown = capsys.readouterr().out
    assert "4 rows break" in shown and "about 496 rows" in shown
    assert main(["check", str(study)]) == 0  # as nobody in particular
    assert "rows break" not in capsys.readouterr().out


def test_a_left_out_row_takes_its_identifier_with_it(tmp_path: Path) -> None:
    study = read.load(write(tmp_path, STUDY, broken=4))
    domain = Domain.from_spec({**study.domain.to_spec(), "broken_rows": "leave out"})
    with open_source(locate(tmp_path / "clinic.csv")) as source:
        found = records.read(
            source, domain, IdentifierPolicy(("who",), ("text",)), max_rows=4096, block_rows=64
        )
    assert found.rows == 496 == len(found.codes["ward"])
    assert found.identifiers is not None and found.identifiers.entries[0].endswith(b"p4")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("then = { years = 0 }", "then = { years = 5 }", "[[domain.constraints]] 1: then.years is 5, which shares its bin"),
        ("then = { years = 0 }", "", "[[domain.constraints]] 1: A constraint must be"),
        ('algorithm = "aim"', 'algorithm = "vertimrf"', '[domain] constraints cannot be kept by algorithm = "vertimrf"'),
        ('algorithm = "aim"', 'algorithm = "vertigan"', '[domain] constraints cannot be kept by algorithm = "vertigan"'),
        (
            "[session]",
            '[[domain.constraints]]\nif = { married = ["never", "now", "once"] }\nthen = { ward = "A" }\n'
            '[[domain.constraints]]\nif = { ward = "A" }\nthen = { ward = "B" }\n[session]',
            "[[domain.constraints]] 4: It names a column both in if and in then",
        ),
        (
            "[session]",
            '[[domain.constraints]]\nif = { ward = "A" }\nthen = { married = "never" }\n'
            '[[domain.constraints]]\nif = { ward = "A" }\nthen = { married = "now" }\n'
            '[[domain.constraints]]\nif = { ward = "B" }\nthen = { married = "never" }\n'
            '[[domain.constraints]]\nif = { ward = "B" }\nthen = { married = "now" }\n[session]',
            "[domain] constraints contradict each other",
        ),
        ("[session]", "[aim]\nmax_model_mb = 0.0006\n[session]", "[domain] constraints join columns whose model would have"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, words: str
) -> None:
    assert before in STUDY
    assert main(["check", str(write(tmp_path, STUDY.replace(before, after, 1)))]) == 10
    assert words in capsys.readouterr().out
