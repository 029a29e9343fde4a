"""`audit` as it is typed: exit codes, files, the page."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from runner.__main__ import main
from runner.review.audit.broken_builds import mutations
from runner.review.audit.check import load
from tests.runner import small


def test_all_checks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--list"]) == 0
    listed = capsys.readouterr().out
    for group in load().values():
        assert group.question in listed
        assert all(f"{group.letter}.{check.name}" in listed for check in group.checks)


def test_a_study_is_audited_on_invented_rows_and_its_page_loads_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own table is not even there."""
    trial = small.write(tmp_path / "study", changes=[('adjacency = "add-remove"', 'adjacency = "replace"')])
    for file in trial.path.parent.glob("*.csv"):
        file.unlink()
    out = tmp_path / "audit"
    chosen = ["A.events", "A.promise", "S.neighbours", "M.tables", "I.likelihood"]
    only = [word for name in chosen for word in ("--only", name)]
    arguments = ["audit", "--quick", *only, "--study", str(trial.path), "--backend", "replicated"]
    assert main([*arguments, "--seed", "a seed", "--out", str(out)]) == 0
    assert "5 checks: 5 pass." in capsys.readouterr().out
    found = json.loads((out / "audit.json").read_text())
    assert found["schema"] == 1 and found["verdict"] == "pass" and found["seed"] == "a seed"
    assert found["study"] == {"name": "trial", "algorithm": "aim", "invented_rows": True}
    checks = [check for group in found["groups"] for check in group["checks"]]
    assert sorted(check["id"] for check in checks) == sorted(chosen)
    assert all(
        check["verdict"] == "pass" and check["evidence"] and check["would_have_seen"] for check in checks
    )
    words = shlex.split(checks[0]["repro"])
    assert words[:5] == ["python", "-m", "runner", "audit", "--only"]
    assert {str(trial.path), "a seed", "--quick", "replicated"} <= set(words)
    page = (out / "audit.html").read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', page) and "<script" not in page and "url(" not in page
    assert all(check["id"] in page for check in checks) and "<svg" in page


def test_a_study_whose_clients_choose_is_run_in_parts_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = small.write(
        tmp_path, changes=[('algorithm = "aim"', 'algorithm = "flaim"'), ("[aim]", "[flaim]")]
    )
    checks = [word for name in ("A.promise", "I.distance", "M.runs") for word in ("--only", name)]
    assert main(["audit", "--quick", *checks, "--study", str(trial.path), "--backend", "replicated"]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("asks no oracle of all rows: no whole run is made here") == 3


def test_a_study_against_deviations_is_audited_with_its_proofs(tmp_path: Path) -> None:
    changes = [('backend = "replicated"', 'backend = "replicated"\nsecurity = "malicious"')]
    trial, out = small.write(tmp_path, changes=changes), tmp_path / "found.json"
    checks = [word for name in ("V.opened", "C.order", "C.resume") for word in ("--only", name)]
    arguments = ["audit", "--quick", *checks, "--study", str(trial.path), "--backend", "replicated"]
    assert main([*arguments, "--json", str(out)]) == 3
    found = [check for group in json.loads(out.read_text())["groups"] for check in group["checks"]]
    assert {check["id"]: check["verdict"] for check in found} == {
        "C.order": "pass",
        "C.resume": "uninformative",  # such a run keeps no shares
        "V.opened": "pass",
    }


def test_a_violation_exits_with_1_and_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    with mutations.named("M33").apply():
        assert main(["audit", "--only", "A.conversion", "--seed", "x"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "VIOLATION" in said and "rho 0.001 at delta 1e-05 is said to be epsilon" in said


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["audit", "--out", str(tmp_path / "file" / "audit")]) == 2
    seen = capsys.readouterr()
    assert "cannot be written" in seen.err and not seen.out
