"""Studies with backend = "additive": a whole run of real processes, what `plan` says, and studies that do not
fit."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from runner.study import problems
from tests.runner import small, split
from tests.runner.processes import parties, run

ADDITIVE = ('backend = "replicated"', 'backend = "additive"')


@pytest.mark.usefixtures("crypten")
def test_a_study_of_real_processes(tmp_path: Path) -> None:
    """Two parties, a dealer with data of its own, and a contributor. Hardly any noise: each measured cell is
    off by more than 8 sigma with probability below 1e-14."""
    trial = small.write(
        tmp_path / "study",
        parties=4,
        count=80,
        changes=[ADDITIVE, ("epsilon = 4.0", "epsilon = 400.0")],
        party={small.NAMES[3]: "compute = false"},
    )
    out = tmp_path / "out"
    end = run("run", trial.path, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0 and end.complaint == "", end
    assert not parties(tmp_path)
    said = json.dumps(json.loads((out / "run.json").read_text()))
    assert (
        '"backend": "additive"' in said and "among the computing parties no two of them work together" in said
    )
    assert len(json.loads((out / "measurements.json").read_text())["measurements"]) > 5
    assert all(abs(noise) <= 8 * sigma + 1 for noise, sigma in trial.deviations(out))


@pytest.mark.usefixtures("crypten")
def test_the_first_three_compute_and_plan_says_who_must_not_collude(tmp_path: Path) -> None:
    trial = small.write(tmp_path, parties=4, changes=[ADDITIVE])
    assert problems(trial.path) == []
    end = run("plan", trial.path, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0, end
    said = " ".join(end.output.split())
    assert "north, south, west (they compute)" in said and "as long as no two of them work together" in said


@pytest.mark.usefixtures("crypten")
def test_a_vertical_study_of_real_processes(tmp_path: Path) -> None:
    """Two owners, of whom one holds no shares, since the first party only computes. Hardly any noise, as
    above."""
    held = {"south": range(300), "west": range(50, 350)}
    trial = split.write(
        tmp_path / "study",
        count=350,
        held=held,
        own=dict(zip(held, split.TWO.values(), strict=True)),
        changes=[ADDITIVE, ("epsilon = 4.0", "epsilon = 400.0")],
    )
    out = tmp_path / "out"
    end = run("run", trial.path, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0 and end.complaint == "", end
    assert not parties(tmp_path)
    said = json.loads((out / "run.json").read_text())
    assert said["backend"] == "additive" and said["partition"] == "vertical"
    assert len(json.loads((out / "measurements.json").read_text())["measurements"]) > 5
    assert all(abs(noise) <= 8 * sigma + 1 for noise, sigma in trial.deviations(out))


@pytest.mark.usefixtures("crypten")
def test_three_owners_are_told_of_backends_that_join_their_columns(tmp_path: Path) -> None:
    [problem] = problems(split.write(tmp_path, count=20, own=split.THREE, changes=[ADDITIVE]).path)
    assert 'backend = "additive" joins the columns of two parties that compute' in problem
    assert 'use backend = "replicated"' in problem


@pytest.mark.usefixtures("crypten")
def test_plan_counts_the_tables_of_two_owners(tmp_path: Path) -> None:
    trial = split.write(tmp_path, count=60, changes=[ADDITIVE])
    end = run("plan", trial.path, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0, end
    assert "as long as no two of them work together" in " ".join(end.output.split())


def test_an_installation_without_crypten_is_told_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "crypten" else found(name))
    [problem] = problems(small.write(tmp_path, changes=[ADDITIVE]).path)
    assert problem.endswith(
        "needs crypten, which this installation lacks; run `make crypten` at every party."
    )
