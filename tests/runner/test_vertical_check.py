"""`check` and `demo --vertical`: what an owner is told before the hour, and what anybody can try."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest

from parties.budget.ledger import Ledger
from parties.budget.notion import Notion, ProtectedUnit
from parties.budget.spending import Reservation
from runner.__main__ import main
from runner.party.alignment import own_events
from runner.party.synthesis import plan_of
from runner.study import VerticalStudy, digest, load
from runner.study.owners import ownership
from synth.budget.accounting import epsilon_beside
from tests.runner import split
from tests.runner.processes import CONTRACT_FILES, parties, run


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never the user's."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))


ADDED = ('adjacency = "replace"', 'adjacency = "add-remove"')


def found(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[tuple[str, str]]]:
    """`check`: its exit code and (kind, text) of each finding."""
    capsys.readouterr()
    code = main(["check", *map(str, arguments), "--json"])
    return code, [
        (line["kind"], line["text"]) for line in map(json.loads, capsys.readouterr().out.splitlines())
    ]


def rewrite(path: Path, change) -> None:  # type: ignore[no-untyped-def]
    """Change a CSV file's rows, header included."""
    with path.open(newline="") as file:
        rows = change(list(csv.reader(file)))
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def test_an_owner_hears_about_its_records_and_nobody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = split.write(tmp_path, changes=[ADDED])
    code, findings = found(capsys, trial.path)
    texts = [text for _, text in findings]
    assert code == 0 and not any(kind == "problem" for kind, _ in findings)
    for words in (
        "records are joined on person inside the three-party computation (merge3); population: records that every",
        f"north: its table fits the study: {len(trial.rows['north'])} records of age, income",
        "south: columns that are not its own in this study are not read: remark",
        "west only computes",
    ):
        assert any(words in text for text in texts), words


BAD = {
    "a null identifier": (
        lambda rows: [*rows[:5], [*rows[5][:-1], ""], *rows[6:]],
        'column "person", line 6: the identifier is missing',
    ),
    "a placeholder": (
        lambda rows: [*rows[:3], [*rows[3][:-1], "N/A"], *rows[4:]],
        "line 4: the identifier is a placeholder",
    ),
    "twice the same": (lambda rows: [*rows, rows[1]], "several rows with the same identifier"),
    "twice after normalising": (
        lambda rows: [*rows, [*rows[1][:-1], " " + rows[1][-1].lower()]],
        "several rows with the same identifier",
    ),
    "no identifier": (lambda rows: [row[:-1] for row in rows], 'has no column "person"'),
    "too few": (lambda rows: rows[:6], "Party north has fewer records than [alignment] min_size = 10"),
    "another's column": (
        lambda rows: [[*row, "sick" if i == 0 else "no"] for i, row in enumerate(rows)],
        'the column "sick" is at north and south: each column needs exactly one owner',
    ),
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
    assert code == 0 and any(
        kind == "note" and "no owner has the column age" in text for kind, text in findings
    )
    end = run("run", trial.path, "--out", tmp_path / "out", ledger=tmp_path / "l", scratch=tmp_path / "s")
    assert (
        end.code == 10 and "no owner has the column age" in end.complaint and end.complaint.count("\n") == 1
    )
    trial = split.write(tmp_path / "all", own=split.THREE)
    rewrite(tmp_path / "all" / "west.csv", lambda rows: [row[1:] for row in rows])
    code, findings = found(capsys, trial.path)
    assert code == 10 and any(
        kind == "problem" and "no owner has the column grade" in text for kind, text in findings
    )


def test_owners_of_a_rehearsal_are_read_by_their_private_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = split.write(tmp_path, own=split.THREE)
    rewrite(
        tmp_path / "west.csv", lambda rows: [[name.replace("grade", "Note") for name in rows[0]], *rows[1:]]
    )
    assert found(capsys, trial.path)[0] == 10  # nobody has grade
    (tmp_path / "west.toml").write_text('[harmonise.columns.grade]\nfrom = "Note"\n')
    code, findings = found(capsys, trial.path, "--private", f"west={tmp_path / 'west.toml'}")
    assert code == 0 and any(text.startswith("west: its table fits the study") for _, text in findings)


def test_the_quota_is_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = split.write(tmp_path, changes=[("silence_s = 200", 'silence_s = 200\ntls = "insecure-loopback"')])
    private = tmp_path / "private.toml"
    private.write_text(
        'data = "north.csv"\n[ledger]\nfile = "ledger.db"\ndataset = "people"\nmax_alignments = 1\n'
    )
    code, findings = found(capsys, trial.path, "--party", "north", "--private", private)
    assert code == 0 and any(
        "aligned at most 0 times with one of the others, 1 are allowed" in text for _, text in findings
    )
    Ledger(tmp_path / "ledger.db").reserve(
        Reservation(
            "people",
            "ab" * 32,
            "earlier",
            "cd" * 32,
            1.0,
            1e-6,
            Notion(ProtectedUnit(("person",), whole=True), "replace"),
            Fraction(1, 10),
            Fraction(0),
            ("south",),
            aligns=True,
        )
    ).settle()
    code, findings = found(capsys, trial.path, "--party", "north", "--private", private)
    assert code == 50
    assert any(
        kind == "problem" and "people has been aligned once with south" in text for kind, text in findings
    )


def test_the_cap_is_held_against_the_sizes_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `check` foretells is what the run's reservation makes of it: sizes are charged on top of the
    study's epsilon."""
    trial = split.write(
        tmp_path,
        changes=[
            ADDED,
            ("silence_s = 200", 'silence_s = 200\ntls = "insecure-loopback"'),
            ("min_size = 10", "min_size = 10\nsize_epsilon = 1"),
        ],
    )
    private = tmp_path / "private.toml"
    for cap, code in ((4.5, 50), (9.0, 0)):
        private.write_text(
            f'data = "north.csv"\n[ledger]\nfile = "ledger.db"\ndataset = "people"\ncap_epsilon = {cap}\n'
            "cap_delta = 1e-5\n"
        )
        ends, findings = found(capsys, trial.path, "--party", "north", "--private", private)
        assert ends == code, findings
    told = next(text for _, text in findings if "with this study" in text)
    study = load(trial.path)
    assert isinstance(study, VerticalStudy)
    owned = ownership(study, split.TWO)
    sizes = own_events(study, owned, "north")
    assert len(sizes) == 2
    budget = plan_of(study).budget
    expected = epsilon_beside(
        sum((event.rho for event in sizes), budget.rho_cap),
        Fraction(1e-5) - sum((event.beta for event in sizes), Fraction(0)),
        budget.beta_cap,
    )
    shown = float(told.partition(" with this study")[0].rpartition(" ")[2])
    assert expected <= shown * (1 + 1e-9) and shown < expected * 1.001  # never less than it is
    # the study's, the run's and the account's epsilon are three: one line says why
    (why,) = (text for _, text in findings if text.startswith("why not epsilon"))
    assert f"why not epsilon {float(study.privacy.epsilon):g}:" in why and "with the sizes" in why
    assert f"is epsilon {shown:g} at the cap's delta 1e-05" in why


def test_tables_in_row_order_have_the_same_number_of_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = split.STUDY.replace(
        'method = "psu"\nvia = "merge3"\nid = "person"\npopulation = "intersection"', 'method = "row-order"'
    )
    trial = split.write(tmp_path, aligned=True, text=text)
    assert found(capsys, trial.path)[0] == 0
    rewrite(tmp_path / "north.csv", lambda rows: rows[:-1])
    code, findings = found(capsys, trial.path)
    assert code == 30 and sum(kind == "problem" for kind, _ in findings) == 1
    assert any("different numbers of rows" in sentence for _, sentence in findings)


def test_a_run_about_nobody_warns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Identifiers that never meet: the run ends well, but not silently."""
    trial = split.write(
        tmp_path, changes=[('"replicated"', '"ideal"')], held={"north": range(200), "south": range(200, 400)}
    )
    capsys.readouterr()
    assert main(["run", str(trial.path), "--out", str(tmp_path / "out")]) == 0
    assert "warning: This table shows hardly anything but noise:" in capsys.readouterr().out
    assert "hardly anything but noise" in (tmp_path / "out" / "report.html").read_text()


def test_results_of_an_earlier_run_are_not_taken_for_this_one_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial, out = split.write(tmp_path, changes=[('"replicated"', '"ideal"')]), tmp_path / "out"
    capsys.readouterr()
    assert main(["run", str(trial.path), "--out", str(out)]) == 0
    assert "earlier run" not in capsys.readouterr().out
    rewrite(tmp_path / "north.csv", BAD["a null identifier"][0])
    assert main(["run", str(trial.path), "--out", str(out), "--replace"]) == 30
    assert (
        f"note: the results in {out} are those of an earlier run; this one left none"
        in capsys.readouterr().out
    )
    assert main(["run", str(trial.path), "--out", str(tmp_path / "new")]) == 30
    assert "earlier run" not in capsys.readouterr().out


def test_parties_can_compare_their_studies_beforehand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = split.write(tmp_path, changes=[("silence_s = 200", 'silence_s = 200\ntls = "insecure-loopback"')])
    text, told = trial.path.read_text(), []
    for copy in (text, "# our copy\n" + text, text.replace("epsilon = 4.0", "epsilon = 2.0")):
        trial.path.write_text(copy)
        told += [line for _, line in found(capsys, trial.path, "--party", "west")[1] if "digest" in line]
    assert len(told) == 3 and told[0] == told[1] != told[2]
    assert told[2].endswith(digest(load(trial.path), "").hex()[:12])


def test_a_problem_is_told_once_where_both_outputs_are_one_place(tmp_path: Path) -> None:
    import subprocess
    import sys

    trial = split.write(tmp_path, changes=[("epsilon = 4.0", "epsilon = -1")])
    together = subprocess.run(
        [sys.executable, "-m", "runner", "check", trial.path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert together.returncode == 10 and together.stdout.count("epsilon must be") == 1
    apart = subprocess.run(
        [sys.executable, "-m", "runner", "check", trial.path], capture_output=True, text=True, check=False
    )
    assert (
        apart.returncode == 10
        and apart.stdout.count("epsilon must be") == apart.stderr.count("epsilon must be") == 1
    )


def test_demo(tmp_path: Path) -> None:
    """Two owners of overlapping women and a third party; the comparison is with the women that both hold.

    Only a demo has one, and a report that is built again keeps it; a second demo takes the first one's place.
    """
    out = tmp_path / "demo"
    end = run("demo", "--vertical", "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0 and end.complaint == "" and str(out / "report.html") in end.output, end
    assert not parties(out) and {entry.name for entry in out.iterdir()} >= CONTRACT_FILES
    summary = json.loads((out / "run.json").read_text())
    assert summary["partition"] == "vertical" and 4300 < summary["rows"] < 4900  # 0.85^2 of 6,366, and noise
    report = (out / "report.html").read_text()
    for words in (
        "Whose records",
        "What joining revealed to whom",
        "Only possible in a demo",
        "counsel",
        "withheld",
    ):
        assert words in report, words
    again = run("report", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert again.code == 0 and (out / "report.html").read_text() == report
    second = run("demo", "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert second.code == 0 and json.loads((out / "run.json").read_text())["partition"] == "horizontal"
    assert "Only possible in a demo" in (out / "report.html").read_text()
