"""An alignment method, and an engine that counts a table's parts, of other distributions, in whole runs of processes
(`test_plug_ins.py`: an algorithm; `test_dealt_backend.py`: a backend)."""

from __future__ import annotations

import csv
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from tests.runner import small, split
from tests.runner.test_plug_ins import runner
from tests.worlds.site import distribution

LOUD = ("epsilon = 4.0", "epsilon = 400.0")


def assert_right(trial: small.Trial, out: Path) -> None:
    """At this epsilon a count is off by less than seven sigma: 3e-12 a cell that a right build fails."""
    for measured in json.loads((out / "measurements.json").read_text())["measurements"]:
        sigma, true = math.sqrt(Fraction(measured["sigma2"])), trial.marginal(measured["clique"])
        for noisy, count in zip(measured["values"], true, strict=True):
            assert abs(noisy - count) < 7 * sigma


@pytest.mark.slow
def test_an_engine_counts_in_a_run_and_is_its_custodians_business(tmp_path: Path) -> None:
    site = distribution(
        tmp_path / "site", "lakehouse", "7.1", "[cosynth.engines]\nfolder = tests.toys.folder_engine:ENGINE\n"
    )
    trial = small.write(tmp_path, changes=[LOUD])
    with (tmp_path / "north.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    (tmp_path / "north.csv").unlink()
    for part in range(3):
        with (tmp_path / f"part{part}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([head, *rows[part::3]])
    private = tmp_path / "north.toml"
    private.write_text('data = { tallies = { engine = "folder", files = "part*.csv" }, parts = 3 }\n')
    done = runner(
        site,
        tmp_path,
        "run",
        str(trial.path),
        "--out",
        str(tmp_path / "out"),
        "--private",
        f"north={private}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert_right(trial, tmp_path / "out")
    told = {
        path for path in (tmp_path / "out").rglob("*") if path.is_file() and b"lakehouse" in path.read_bytes()
    }
    assert told == {tmp_path / "out" / "parties" / "north" / "private.log"}
    assert "engine folder (lakehouse 7.1)" in told.pop().read_text()
    (tmp_path / "empty").mkdir()  # who has no such engine checks the run as well
    done = runner(tmp_path / "empty", tmp_path, "verify", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_an_alignment_method_joins_in_a_run_and_is_agreed_upon(tmp_path: Path) -> None:
    site = distribution(
        tmp_path / "site", "open-join", "2", "[cosynth.alignments]\nopen = tests.toys.open_method:METHOD\n"
    )
    trial = split.write(tmp_path, count=150, changes=[LOUD, ("merge3", "open")])
    for command in (["plan", "--rows", "150"], ["run", "--out", str(tmp_path / "out")]):
        done = runner(site, tmp_path, command[0], str(trial.path), *command[1:])
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["agreed"]["plug_ins"] == {"alignment": "open-join 2"}
    assert_right(trial, tmp_path / "out")
    done = runner(site, tmp_path, "verify", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout + done.stderr
