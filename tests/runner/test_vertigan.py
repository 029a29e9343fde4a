"""Whole trainings: by real processes and in the clear, gates, and what runs, plans and reports say first."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import StudyInvalid
from parties.budget.ledger import Ledger
from runner.forecast import forecast
from runner.forecast.plan_text import words
from runner.party.synthesis import plan_of
from runner.review.verification.place import Place
from runner.review.verification.recomputed import recomputed
from runner.study import VerticalStudy, load
from runner.study.owners import ownership
from runner.study.read import problems
from synth.budget.accounting import epsilon_beside
from tests.runner import split
from tests.runner.processes import run

NAMED = ('algorithm = "aim"', 'algorithm = "vertigan"\nresearch = true')
TABLE = ("[aim]\nrounds = 3", "[vertigan]\nrounds = 3\ncritic_steps = 2\nrate = 0.25\nsynthetic_rows = 200")
ADDED = ('adjacency = "replace"', 'adjacency = "add-remove"')
OUTSIDE = {"north": ("age", "income"), "east": ("work", "grade", "sick")}
LIMITS = "Nothing that lies across owners is learned"


def write(directory: Path, *changes: tuple[str, str], **more: Any) -> split.Trial:
    return split.write(directory, changes=[NAMED, TABLE, ADDED, *changes], **more)


def content(out: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((out / "run.json").read_text())
    return facts


@pytest.mark.slow
def test_owners_train_over_the_session(tmp_path: Path) -> None:
    """South is the server and has no data, west has no part, east contributes: four processes, TLS, files,
    ledger."""
    pytest.importorskip("torch")
    trial = write(tmp_path / "study", own=OUTSIDE, parties=4)
    out, ledger = tmp_path / "out", tmp_path / "ledger.db"
    end = run("run", trial.path, "--out", out, ledger=ledger, scratch=tmp_path / "scratch")
    assert end.code == 0, end.complaint
    assert LIMITS in end.output and "RESEARCH, not for anybody's real records" in end.output
    facts, study = content(out), load(trial.path)
    assert facts["rows"] == 200 == len((out / "synthetic.csv").read_text().splitlines()) - 1
    assert "alignment" not in facts and LIMITS[8:] in facts["claim"].replace("nothing", "Nothing")
    assert "secret shares" not in facts["claim"] and "work together" not in facts["claim"]
    assert isinstance(study, VerticalStudy)
    plan = plan_of(study).knowing(ownership(study, OUTSIDE).columns)
    assert [event["what"] for event in facts["privacy"]["events"]] == ["total", "total", "train"]
    fit = next(phase for phase in facts["phases"] if phase["name"] == "fit")
    sizes = [plan.branch_size(name) for name in OUTSIDE]  # type: ignore[attr-defined]
    assert fit["rounds"] == 2 * 3
    assert 0 <= fit["bytes_sent"] - 3 * sum(16 + 8 * size for size in sizes) <= 16
    for name in OUTSIDE:
        (entry,) = Ledger(ledger).entries(f"split/{name}")
        assert entry.state == "settled" and not entry.reservation.aligns
        assert entry.spent.curves == (plan.budget.curve,)
        spent = epsilon_beside(entry.spent.rho, 1e-6, entry.spent.beta, entry.spent.curves)
        assert 3.8 < spent <= 4.0
    assert not [finding.text for finding in recomputed(Place.at(out)) if finding.error]
    page = (out / "report.html").read_text()
    assert page.index(LIMITS) < page.index("What is promised")
    assert "secret shares" not in page and "Trained" in page and "nothing in this run ties" not in page
    assert page == (out / "parties" / "east" / "report.html").read_text()


@pytest.mark.parametrize("sampling", ["own", "buckets"])
def test_owners_train_in_the_clear(tmp_path: Path, sampling: str) -> None:
    pytest.importorskip("torch")
    ideal = ('backend = "replicated"', 'backend = "ideal"')
    loud = [("epsilon = 4.0", "epsilon = 40.0"), ("rate = 0.25", f'rate = 0.25\nsampling = "{sampling}"')]
    trial = write(tmp_path / "study", ideal, *loud)
    out = tmp_path / "out"
    end = run("run", trial.path, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0, end.complaint
    facts = content(out)
    train = facts["privacy"]["events"][-1]
    assert train["what"] == "train" and train["sampling"] == sampling
    assert (train["rho"] > 0) == (sampling == "buckets")
    assert "no privacy claim towards whoever can read the one process" in facts["claim"]
    page = (out / "report.html").read_text()
    assert LIMITS in page and "This run protected nothing" in page


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ([(NAMED[1], 'algorithm = "vertigan"')], 'use algorithm = "vertimrf" or "aim"'),
        ([("rate = 0.25", "rate = 1.5")], "[vertigan] rate must be"),
        ([("rate = 0.25", 'sampling = "common"')], "[vertigan] sampling must be"),
    ],
)
def test_what_a_study_may_not_say(tmp_path: Path, changes: Sequence[tuple[str, str]], sentence: str) -> None:
    (found,) = problems(write(tmp_path, *changes).path)
    assert sentence in found


def test_replace_is_refused_where_batches_are_own(tmp_path: Path) -> None:
    study = load(write(tmp_path, ('adjacency = "add-remove"', 'adjacency = "replace"')).path)
    with pytest.raises(StudyInvalid, match="buckets") as error:
        plan_of(study)
    assert error.value.exit_code == 10


def test_it_runs_on_columns_of_owners_only(tmp_path: Path) -> None:
    path = write(tmp_path).path
    path.write_text(path.read_text().replace('partition = "vertical"', 'partition = "horizontal"'))
    assert any(
        'algorithm = "vertigan" runs with partition = "vertical" only' in each for each in problems(path)
    )


def test_without_the_extra_the_command_that_gets_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else real(name, *rest)
    )
    (found,) = problems(write(tmp_path).path)
    assert "python -m pip install 'torch>=" in found


def test_a_plan_says_first_what_is_not_learned_and_counts_every_byte(tmp_path: Path) -> None:
    study = load(write(tmp_path).path)
    expected = forecast(study, 300)
    text = words(study, expected)
    assert text.startswith(LIMITS) and "the server" in text and "and a training" in text
    assert "joined" not in text.replace("No records were joined", "")
    assert expected.rounds == 2 + 1 + 2 * 3 + 5 and expected.joining is None


def test_planning_does_not_load_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from runner.study import load; from runner.forecast import forecast; "
        f"forecast(load({str(write(tmp_path).path)!r}), 300); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parents[2])
