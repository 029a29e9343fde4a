"""Studies with backend = "shamir": whole runs of real processes, what `plan` says, and parties that do not
fit."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from runner.study import problems
from tests.runner import small, split
from tests.runner.processes import parties, run

SHAMIR = ('backend = "replicated"', 'backend = "shamir"')


@pytest.mark.parametrize(("computing", "contributing"), [(3, 1), (5, 0), (7, 0)])
def test_a_study_of_real_processes(computing: int, contributing: int, tmp_path: Path) -> None:
    """Hardly any noise: each measured cell is off by more than 8 sigma with probability below 1e-14."""
    everybody = computing + contributing
    trial = small.write(
        tmp_path / "study",
        parties=everybody,
        count=80,
        changes=[SHAMIR, ("epsilon = 4.0", "epsilon = 400.0")],
        party=dict.fromkeys(small.NAMES[computing:everybody], "compute = false"),
        data={"south": None},
    )
    out = tmp_path / "out"
    end = run("run", trial.path, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0 and end.complaint == "", end
    assert not parties(tmp_path)
    said = json.loads((out / "run.json").read_text())
    assert '"backend": "shamir"' in json.dumps(said)
    assert "among the computing parties fewer than half of them work together" in json.dumps(said)
    assert len(json.loads((out / "measurements.json").read_text())["measurements"]) > 5
    assert all(abs(noise) <= 8 * sigma + 1 for noise, sigma in trial.deviations(out))
    with (out / "synthetic.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) > 80


@pytest.mark.parametrize(("computing", "contributing"), [(3, 0), (5, 1)])
def test_owners_of_columns_run_as_real_processes(computing: int, contributing: int, tmp_path: Path) -> None:
    """The same where columns are split: three by merge3, over the union; five, and an owner that only
    contributes, by dh2."""
    own = split.TWO if not contributing else {"south": ("age", "income"), "lake": ("work", "grade", "sick")}
    changes = [SHAMIR, ("epsilon = 4.0", "epsilon = 400.0"), ("merge3", "auto")]
    if not contributing:
        changes.append(('population = "intersection"', 'population = "union"'))
    trial = split.write(
        tmp_path / "study",
        own=own,
        parties=computing + contributing,
        changes=changes,
        party=dict.fromkeys(small.NAMES[computing : computing + contributing], "compute = false"),
    )
    out = tmp_path / "out"
    end = run("run", trial.path, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0 and end.complaint == "", end
    assert not parties(tmp_path)
    measured = json.loads((out / "measurements.json").read_text())["measurements"]
    assert any(len(one["clique"]) == 2 for one in measured)
    assert all(abs(noise) <= 8 * sigma + 1 for noise, sigma in trial.deviations(out))
    assert "columns, record by record" in (out / "report.html").read_text()


def test_all_parties_that_do_not_decline_compute(tmp_path: Path) -> None:
    trial = small.write(tmp_path, parties=6, changes=[SHAMIR], party={"lake": "compute = false"})
    assert problems(trial.path) == []
    end = run("plan", trial.path, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0, end
    assert "north, south, west, east, hill (they compute)" in end.output
    assert "as long as fewer than half of them work together" in " ".join(end.output.split())


def test_two_parties_are_told_of_the_pair(tmp_path: Path) -> None:
    trial = small.write(tmp_path, parties=2, changes=[SHAMIR])
    [problem] = problems(trial.path)
    assert 'backend = "shamir" needs three to nine' in problem and 'or use backend = "pair"' in problem


@pytest.mark.parametrize("via", ["auto", "dh2", "helper"])
def test_three_owners_among_five_parties_are_told_who_lines_up_their_records(
    via: str, tmp_path: Path
) -> None:
    """No alignment of three owners withstands two that collude."""
    everybody = dict.fromkeys(small.NAMES[:5], "compute = true")
    changes = [SHAMIR, ("merge3", via)]
    trial = split.write(tmp_path, own=split.THREE, parties=5, count=40, changes=changes, party=everybody)
    [problem] = problems(trial.path)
    assert (
        'aligns two owners, and there are 3 (north, south, west); let three parties compute (via = "merge3")'
        in problem
    )
