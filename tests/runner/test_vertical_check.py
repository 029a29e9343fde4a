"""`check` and `demo --vertical`: what an owner is told before the hour, and what anybody can try."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from parties.ledger import Ledger, Reservation
from runner.__main__ import main
from tests.runner import split
from tests.runner.processes import CONTRACT_FILES, parties, run

ADDED = ('adjacency = "replace"', 'adjacency = "add-remove"')


def found(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[tuple[str, str]]]:
    """`check`: its exit code and (kind, text) of each finding."""
    capsys.readouterr()
    code = main(["check", *map(str, arguments), "--json"])
    return code, [(line["kind"], line["text"]) for line in map(json.loads, capsys.readouterr().out.splitlines())]


def rewrite(path: Path, change) -> None:  # type: ignore[no-untyped-def]
    """Change a CSV file's rows, header included."""
    with path.open(newline="") as file:
        rows = change(list(csv.reader(file)))
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def test_an_owner_hears_about_its_records_and_nobody_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = split.write(tmp_path, changes=[ADDED])
    code, findings = found(capsys, trial.path)
    texts = [text for _, text in findings]
    assert code == 0 and not any(kind == "problem" for kind, _ in findings)
    for words in ("records are joined on person inside the three-party computation (merge3); population: records that every",
                  f"north: its table fits the study: {len(trial.rows['north'])} records of age, income",
                  "south: columns that are not its own in this study are not read: remark", "west only computes"):
        assert any(words in text for text in texts), words


BAD = {
    "a null identifier": (lambda rows: [*rows[:5], [*rows[5][:-1], ""], *rows[6:]],
                          'column "person", line 6: the identifier is missing'),
    "a placeholder": (lambda rows: [*rows[:3], [*rows[3][:-1], "N/A"], *rows[4:]], "line 4: the identifier is a placeholder"),
    "twice the same": (lambda rows: [*rows, rows[1]], "several rows with the same identifier"),
    "twice after normalising": (lambda rows: [*rows, [*rows[1][:-1], " " + rows[1][-1].lower()]],
                                "several rows with the same identifier"),
    "no identifier": (lambda rows: [row[:-1] for row in rows], 'has no column "person"'),
    "too few": (lambda rows: rows[:6], "Party north has fewer records than [alignment] min_size = 10"),
    "another's column": (lambda rows: [[*row, "sick" if i == 0 else "no"] for i, row in enumerate(rows)],
                         'the column "sick" is at north and south: each column needs exactly one owner'),
}


@pytest.mark.parametrize("case", BAD)
def test_every_misfit_has_its_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    change, words = BAD[case]
    trial = split.write(tmp_path)
    rewrite(tmp_path / "north.csv", change)
    code, findings = found(capsys, trial.path)
    problems = [text for kind, text in findings if kind == "problem"]
    assert len(problems) == 1 and words in problems[0] and code == (10 if "owner" in words else 30), findings
    person = next(iter(trial.rows["north"]))
    assert person not in " ".join(problems).lower()


def test_what_is_lacking_may_be_in_a_private_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = split.write(tmp_path)
    rewrite(tmp_path / "north.csv", lambda rows: [row[1:] for row in rows])
    code, findings = found(capsys, trial.path)
    assert code == 0 and any(kind == "note" and "no owner has the column age" in text for kind, text in findings)
    end = run("run", trial.path, "--out", tmp_path / "out", ledger=tmp_path / "l", scratch=tmp_path / "s")
    assert end.code == 10 and "no owner has the column age" in end.complaint and end.complaint.count("\n") == 1
    trial = split.write(tmp_path / "all", own=split.THREE)
    rewrite(tmp_path / "all" / "west.csv", lambda rows: [row[1:] for row in rows])
    code, findings = found(capsys, trial.path)
    assert code == 10 and any(kind == "problem" and "no owner has the column grade" in text for kind, text in findings)


def test_the_quota_is_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fractions import Fraction

    trial = split.write(tmp_path, changes=[("silence_s = 3", 'silence_s = 3\ntls = "insecure-loopback"')])
    private = tmp_path / "private.toml"
    private.write_text('data = "north.csv"\n[ledger]\nfile = "ledger.db"\ndataset = "people"\nmax_alignments = 1\n')
    code, findings = found(capsys, trial.path, "--party", "north", "--private", private)
    assert code == 0 and any("aligned at most 0 times with one of the others, 1 are allowed" in text for _, text in findings)
    Ledger(tmp_path / "ledger.db").reserve(Reservation(
        "people", "ab" * 32, "earlier", "cd" * 32, 1.0, 1e-6, "replace", "identifier", Fraction(1, 10), Fraction(0), ("south",),
        aligns=True)).settle()
    code, findings = found(capsys, trial.path, "--party", "north", "--private", private)
    assert code == 50
    assert any(kind == "problem" and "people has been aligned 1 times with south" in text for kind, text in findings)


def test_a_problem_is_told_once_where_both_outputs_are_one_place(tmp_path: Path) -> None:
    import subprocess
    import sys

    trial = split.write(tmp_path, changes=[("epsilon = 4.0", "epsilon = -1")])
    together = subprocess.run([sys.executable, "-m", "runner", "check", trial.path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
    assert together.returncode == 10 and together.stdout.count("epsilon must be") == 1
    apart = subprocess.run([sys.executable, "-m", "runner", "check", trial.path], capture_output=True, text=True, check=False)
    assert apart.returncode == 10 and apart.stdout.count("epsilon must be") == apart.stderr.count("epsilon must be") == 1


def test_demo(tmp_path: Path) -> None:
    """Two owners of overlapping women and a third party; the comparison is with the women that both hold."""
    out = tmp_path / "demo"
    end = run("demo", "--vertical", "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0 and end.complaint == "" and str(out / "report.html") in end.output, end
    assert not parties(out) and {entry.name for entry in out.iterdir()} >= CONTRACT_FILES
    summary = json.loads((out / "run.json").read_text())
    assert summary["partition"] == "vertical" and 4300 < summary["rows"] < 4900  # 0.85^2 of 6,366, and noise
    report = (out / "report.html").read_text()
    for words in ("Whose records", "What joining revealed to whom", "Only possible in a demo", "counsel", "withheld"):
        assert words in report, words
