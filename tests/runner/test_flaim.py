"""FLAIM as a word of the study file: whole runs by processes and in the clear, studies that are refused, what
plans say."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import StudyInvalid
from parties.budget.journal import read
from parties.budget.ledger import Ledger
from runner.__main__ import main
from runner.forecast import forecast
from runner.forecast.plan_text import words
from runner.party.ideal import run_ideal
from runner.party.options import PartyOptions
from runner.party.synthesis import plan_of
from runner.results.outdir import JOURNALS
from runner.study import load
from runner.study.read import problems
from synth.algorithms.flaim.variants import VARIANTS
from tests.runner import small
from tests.runner.processes import run

NAMED = ('algorithm = "aim"', 'algorithm = "flaim"')
IDEAL = ('backend = "replicated"', 'backend = "ideal"')
AIM = "[aim]\nrounds = 3"


def write(directory: Path, table: str, *changes: tuple[str, str], **more: Any) -> small.Trial:
    return small.write(directory, changes=[NAMED, (AIM, f"[flaim]\n{table}"), *changes], **more)


def content(out: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((out / "run.json").read_text())
    return facts


@pytest.mark.slow
def test_cohorts_of_processes_choose_and_each_custodian_is_charged_by_itself(tmp_path: Path) -> None:
    """Five processes: three compute, one of them without data; two cohorts of two custodians."""
    trial = write(tmp_path / "study", "rounds = 2\ngroup = 1", parties=5, data={"south": None})
    out, ledger = tmp_path / "out", tmp_path / "ledger.db"
    end = run("run", trial.path, "--out", out, ledger=ledger, scratch=tmp_path / "scratch")
    assert end.code == 0, end.complaint
    assert "2 clients chose, each one of 10 candidates" in end.output
    facts, study = content(out), load(trial.path)
    privacy, plan = facts["privacy"], plan_of(study)
    assert sum(event["rho"] for event in privacy["events"]) <= privacy["rho"] * (1 + 1e-12)
    told = {client["name"]: client["rho_spent"] for client in privacy["clients"]}
    assert set(told) == {"north", "west", "east", "hill"}
    assert privacy["rho_spent"] == max(told.values()) <= float(plan.budget.rho_cap)
    for name, spent in told.items():
        (entry,) = Ledger(ledger).entries(f"trial/{name}")
        assert entry.state == "settled" and float(entry.spent.rho) == spent
        own = [event for event in privacy["all_events"] if name in event["of"]]
        assert [begun.event.what for begun in entry.events] == [event["what"] for event in own]
        assert [event["what"] for event in own][:3] == ["sizes", "sum", "choices"]
    assert not Ledger(ledger).entries("trial/south")
    for name in ("north", "south", "west"):
        [journal] = (out / "parties" / name).glob(JOURNALS)
        record = read(journal)
        assert [release.event.what for release in record.releases] == [
            event["what"] for event in privacy["all_events"]
        ]
        assert record.code == 0 and all(release.opened for release in record.releases)
    assert abs(facts["rows"] - len(trial.pooled)) < 100
    rows = [m.get("rows") for m in json.loads((out / "measurements.json").read_text())["measurements"]]
    assert len(rows) >= 10 and all(isinstance(counted, int) for counted in rows)
    page = (out / "report.html").read_text()
    assert page == (out / "parties" / "hill" / "report.html").read_text()
    assert "FLAIM" in page and "which client chose what" in page
    # what a dry run counts hardly depends on what is chosen
    expected = forecast(study, len(trial.pooled))
    sent = sum(party["bytes_sent"] for party in facts["parties"])
    assert 0.8 < expected.bytes_sent / sent < 1.25


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_runs_in_the_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    research = [] if VARIANTS[variant].private else [('name = "trial"', 'name = "trial"\nresearch = true')]
    table = f'variant = "{variant}"\nrounds = 2\ngroup = 1\nsynthetic_rows = 20'
    trial = write(tmp_path / "study", table, IDEAL, *research, parties=4)
    assert main(["run", str(trial.path), "--out", str(tmp_path / "out")]) == 0
    facts, plan = content(tmp_path / "out"), plan_of(load(trial.path))
    assert facts["rows"] == 20
    for entry in Ledger().entries():
        assert 0 < entry.spent.rho <= plan.budget.rho_cap
        assert entry.claimless != VARIANTS[variant].private
    assert (tmp_path / "out" / "synthetic.research.csv").exists() != VARIANTS[variant].private
    if VARIANTS[variant].chooses:
        assert facts["selected"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert ("is charged by itself" in page) != VARIANTS[variant].union
    assert ("Custodians chose them" in page) == VARIANTS[variant].chooses
    assert facts["claim"].startswith("Everything" if VARIANTS[variant].private else "No privacy claim")


def test_a_study_about_nobody_ends_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    nobody: dict[str, Any] = {name: [] for name in small.NAMES[:3]}
    trial = write(tmp_path / "study", "rounds = 2", IDEAL, data=nobody)
    private = tmp_path / "private.toml"
    private.write_text("allow_empty = true\n")
    study = load(trial.path)
    out = tmp_path / "out"
    out.mkdir()
    named = {party.name: private for party in study.parties}
    run_ideal(PartyOptions(trial.path, None, out, private=named, one_machine=True))
    assert content(out)["rows"] < 100


@pytest.mark.parametrize(
    ("table", "changes", "sentence"),
    [
        ('variant = "bold"', (), '[flaim] variant must be "private"'),
        ("participations = 0", (), "[flaim] participations must be"),
        ('variant = "oracle"', (), 'for research, without a sound claim or utility; use variant = "private"'),
        (
            "",
            (('backend = "replicated"', 'backend = "shamir"'),),
            "serves no clients that choose by themselves",
        ),
        (
            "",
            (("[session]", '[contributors]\nkeys = "none.txt"\n\n[session]'),),
            "[contributors] has no meaning",
        ),
    ],
)
def test_what_a_study_may_not_say(
    tmp_path: Path, table: str, changes: tuple[tuple[str, str], ...], sentence: str
) -> None:
    assert any(sentence in found for found in problems(write(tmp_path, table, *changes).path))


@pytest.mark.parametrize(
    ("table", "changes", "sentence"),
    [
        ("group = 4", (), "group = 4 is more than the 3 custodians"),
        ("", (("max_rows = 4096", "max_rows = 400000000"),), "lower it to at most 357,913,941"),
    ],
)
def test_what_could_never_be_carried_out_is_told_before(
    tmp_path: Path, table: str, changes: tuple[tuple[str, str], ...], sentence: str
) -> None:
    with pytest.raises(StudyInvalid, match=sentence) as error:
        plan_of(load(write(tmp_path, table, *changes).path))
    assert error.value.exit_code == 10


def test_the_plan_says_who_learns_what(tmp_path: Path) -> None:
    study = load(write(tmp_path, "participations = 2").path)
    text = words(study, forecast(study))
    assert "of up to 10 cohorts, with each client in at most 2: their rows, their columns" in text
    assert "which client chose what" in text
    shares = plan_of(study).shares  # type: ignore[attr-defined]
    assert shares.most == plan_of(study).budget.rho_cap and shares.release > Fraction(0)
