"""A backend that brings the algebra only (`tests.toys.dealt_backend`) gets studies, plan, report, bench and
audit for nothing."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.backend import BACKENDS
from runner.review.audit import driver
from runner.review.audit.check import Profile, Verdict, load
from runner.review.audit.subjects.subject import Subject, subject
from tests.runner import small, split
from tests.runner.processes import ROOT
from tests.toys.dealt_backend import BACKEND
from tests.worlds.site import distribution

DEALT = ('backend = "replicated"', 'backend = "dealt"')
LOUD = ("epsilon = 4.0", "epsilon = 400.0")
ENTRY_POINT = "[cosynth.backends]\ndealt = tests.toys.dealt_backend:BACKEND\n"
CHECKS = (
    "A.events",
    "C.order",
    "S.values",
    "T.sizes",
    "T.counted",
    "U.repeated",
    "V.opened",
    "V.streams",
)


def command(tmp_path: Path, *arguments: object) -> str:
    """Standard output of a command whose processes all find the backend as an entry point."""
    site = tmp_path / "site"
    if not site.exists():
        distribution(site, "dealt", "1", ENTRY_POINT)
    environment = os.environ | {
        "PYTHONPATH": f"{site}{os.pathsep}{ROOT}",
        "COSYNTH_LEDGER": str(tmp_path / "ledger.db"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "runner", *map(str, arguments)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_a_study_of_processes_is_planned_run_and_reported(tmp_path: Path, partition: str) -> None:
    """At this epsilon a count is off by less than seven sigma: 3e-12 a cell that a right build fails."""
    trial: small.Trial | split.Trial
    if partition == "horizontal":
        trial = small.write(tmp_path, changes=[DEALT, LOUD])
    else:
        trial = split.write(tmp_path, parties=2, count=150, changes=[DEALT, LOUD, ("merge3", "dh2")])
    planned = json.loads(command(tmp_path, "plan", trial.path, "--rows", "150", "--json"))
    assert "no privacy claim between the two computing parties" in json.dumps(planned)
    command(tmp_path, "run", trial.path, "--out", tmp_path / "out")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["backend"] == "dealt" and len(run["selected"]) == 3
    for measured in json.loads((tmp_path / "out" / "measurements.json").read_text())["measurements"]:
        sigma, true = math.sqrt(Fraction(measured["sigma2"])), trial.marginal(measured["clique"])
        assert all(
            abs(noisy - count) < 7 * sigma for noisy, count in zip(measured["values"], true, strict=True)
        )
    assert run["claim"] in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.slow
def test_its_steps_are_measured(tmp_path: Path) -> None:
    shape = ("--cells", 640, "--candidates", 5, "--bits", 12, "--repeats", 1, "--warmup", 0, "--no-baseline")
    command(tmp_path, "bench", "select", "--backend", "dealt", *shape, "--json", tmp_path / "lines")
    line = json.loads((tmp_path / "lines").read_text())
    assert all(line["bytes_sent"][:2]) and not any(line["bytes_sent"][2:]) and line["rounds"] > 0


@pytest.fixture(scope="module")
def audited() -> Iterator[Subject]:
    with BACKENDS.registered(BACKEND), subject(None, [BACKEND.name], Profile.QUICK, "tests") as of:
        yield of


@pytest.mark.parametrize("name", CHECKS)
def test_it_is_audited_without_new_code(audited: Subject, name: str) -> None:
    [result] = driver.carry_out(audited, driver.chosen(load(), (), [name], Profile.QUICK))
    assert result.finding.verdict is Verdict.PASS, result.finding.evidence


def test_its_masks_are_seen_to_be_known_to_both(audited: Subject) -> None:
    """It claims nothing between the two; a real backend's triples are dealt by somebody else."""
    [result] = driver.carry_out(audited, driver.chosen(load(), (), ["V.masks"], Profile.QUICK))
    evidence = result.finding.evidence
    assert result.finding.verdict is Verdict.FAIL and "dealt, no contributor, party 1" in evidence, evidence
    assert "dealt, party" not in evidence  # where a contributor's coins are in every share, none is seen
