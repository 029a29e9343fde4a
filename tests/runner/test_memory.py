"""A study that needs more memory than the machine has is refused in one sentence, before anybody asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.__main__ import main
from runner.forecast import plan_text
from runner.forecast.predict import forecast
from runner.study import load
from tests.runner import small

WIDE = [
    ('backend = "replicated"', 'backend = "ideal"'),
    ("grade = 3", "grade = 3500"),
    ("bins = 4", "bins = 3500"),
    ("bins = 6, integral = true", "bins = 3500"),
    ("rounds = 3", "rounds = 3\nmax_model_mb = 1000"),
]
"""Three pairs of 12 million cells each."""


def test_a_run_and_its_check_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("parties.data.counting.counters.free_memory", lambda: 100_000_000)
    study = small.write(tmp_path, changes=WIDE).path
    assert main(["run", str(study), "--out", str(tmp_path / "out"), "--quiet"]) == 60
    told = capsys.readouterr().err
    assert (
        "Counting the study's marginals by 3 custodians takes 0.4 GB of memory" in told
        and told.count("\n") == 1
    )
    assert not (tmp_path / "out" / "synthetic.csv").exists()
    assert main(["check", str(study), "--party", "north"]) != 0  # of the first problem: it has no certificate
    assert "north: Counting the study's marginals takes 0.1 GB of memory" in capsys.readouterr().out


def test_a_plan_says_what_the_machine_has_left_if_it_is_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load(small.write(tmp_path).path)
    expected = forecast(study, 300)
    assert "left" not in plan_text.words(study, expected)
    monkeypatch.setattr(plan_text, "free_memory", lambda: 9 << 20)
    assert (
        f"about {expected.memory_mb:,} MB at the party that takes most; this machine has 9 MB left"
        in plan_text.words(study, expected)
    )
