"""`privmrf` and `vertimrf` from the study file to the files of a run: whole runs with real processes.

Statistical assertions state their false-alarm rate; together they are below 1e-6 per execution of this file.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from runner.__main__ import main
from tests.runner import small, split
from tests.runner.processes import CONTRACT_FILES, parties, run

AIM = "[aim]\nrounds = 3"


def named(algorithm: str) -> list[tuple[str, str]]:
    return [('algorithm = "aim"', f'algorithm = "{algorithm}"'), (AIM, f"[{algorithm}]\nmax_columns = 3")]


def carry_out(directory: Path, trial: small.Trial | split.Trial) -> dict[str, Any]:
    """run.json with measurements.json, of a run that succeeded."""
    out = directory / "out"
    end = run("run", trial.path, "--out", out, ledger=directory / "ledger.db", scratch=directory / "scratch")
    assert end.code == 0 and end.complaint == "", end
    assert not parties(directory) and {entry.name for entry in out.iterdir()} >= CONTRACT_FILES
    told: dict[str, Any] = json.loads((out / "run.json").read_text())
    return told | json.loads((out / "measurements.json").read_text())


def check_budget(told: dict[str, Any]) -> None:
    """Columns, dependences, first marginals, then batches; all of it within the cap, and nearly all of it
    spent."""
    events = told["privacy"]["events"]
    spent = math.fsum(event["rho"] for event in events)
    assert 0.94 * told["privacy"]["rho"] <= spent <= told["privacy"]["rho"] * (1 + 1e-12)
    whats = [event["what"] for event in events]
    assert whats[:2] == ["measure", "distances"] and whats.count("distances") == 1
    assert whats.count("select") == len(told["selected"]) > 0
    assert len(events[1]["cliques"]) == math.comb(len(small.SIZES), 2)


def check_noise(told: dict[str, Any], trial: small.Trial | split.Trial) -> None:
    """What was measured is true of the data but for noise of the stated variance: chi-square, two-sided,
    false alarms 1e-7."""
    deviations = [
        (noisy - count) / math.sqrt(Fraction(entry["sigma2"]))
        for entry in told["measurements"]
        for noisy, count in zip(entry["values"], trial.marginal(entry["clique"]), strict=True)
    ]
    z = np.array(deviations)
    assert 5e-8 < stats.chi2.cdf(float((z * z).sum()), len(z)) < 1 - 5e-8


@pytest.mark.slow
def test_rows_of_three_custodians_and_a_contributor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = small.write(tmp_path / "study", changes=named("privmrf"), parties=4)
    told = carry_out(tmp_path, trial)
    check_budget(told)
    check_noise(told, trial)
    assert main(["plan", str(trial.path), "--json"]) == 0
    text = capsys.readouterr().out
    plan = json.loads(text[text.index("{") :])
    low, high = plan["range"]["rounds"]
    assert all(low <= party["rounds"] <= high for party in told["parties"][:3]), (
        plan["range"],
        told["parties"],
    )
    page = (tmp_path / "out" / "report.html").read_text()
    assert "PrivMRF" in page


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["replicated", "ideal"])
def test_columns_of_two_owners(tmp_path: Path, backend: str) -> None:
    in_the_clear = [('"replicated"', '"ideal"')] if backend == "ideal" else []
    trial = split.write(
        tmp_path / "study",
        count=3000,
        changes=[
            *named("vertimrf"),
            *in_the_clear,
            ("epsilon = 4.0", "epsilon = 9.0"),
        ],  # else the table is small
    )
    told = carry_out(tmp_path, trial)
    assert told["backend"] == backend and told["algorithm"] == "vertimrf"
    check_budget(told)
    check_noise(told, trial)


def test_vertimrf_is_for_columns_of_several_owners(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = small.write(tmp_path / "study", changes=named("vertimrf"))
    assert main(["check", str(trial.path)]) == 10
    assert '"vertimrf" runs with partition = "vertical" only' in " ".join(capsys.readouterr().err.split())
