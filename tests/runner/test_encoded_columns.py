"""VertiMRF with encoded columns, from the study file to the files of a run: refusals, claims, whole runs with
real processes.

What is asserted of noisy values is stated with its false-alarm rate; together they are below 1e-9 per
execution of this file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner import run_study
from runner.__main__ import main
from runner.party.resume.earlier_attempt import cannot_resume
from runner.results.outdir import RESEARCH_TABLE, TABLE
from runner.study import load
from tests.runner import split
from tests.runner.processes import CONTRACT_FILES, End, parties, run_whole

ALIGNED = split.STUDY.replace('method = "psu"\nvia = "merge3"\nid = "person"\n', 'method = "row-order"\n')
COUNT = 900


def study(
    directory: Path,
    encoder: str,
    *changes: tuple[str, str],
    research: bool = True,
    aligned: bool = True,
    **options: Any,
) -> split.Trial:
    named = [
        ('algorithm = "aim"', 'algorithm = "vertimrf"' + ("\nresearch = true" if research else "")),
        ("[aim]\nrounds = 3", f'[vertimrf]\nencoder = "{encoder}"'),
    ]
    text = ALIGNED if aligned else split.STUDY
    return split.write(
        directory, changes=[*named, *changes], text=text, aligned=aligned, count=COUNT, **options
    )


def carry_out(directory: Path, trial: split.Trial, *options: object) -> End:
    return run_whole(directory, trial.path, *options)


@pytest.mark.parametrize("encoder", ["fo", "fm"])
def test_without_the_research_switch_a_study_is_refused_with_the_alternative(
    tmp_path: Path, encoder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = study(tmp_path, encoder, research=False)
    assert main(["check", str(trial.path)]) == 10
    said = " ".join(capsys.readouterr().err.split())
    assert 'use [vertimrf] encoder = "mpc", or set research = true' in said


@pytest.mark.parametrize("encoder", ["fo", "fm"])
@pytest.mark.parametrize("what", ["hidden membership", "add-remove"])
def test_rows_whose_number_is_not_public_are_refused_with_the_alternative(
    tmp_path: Path, encoder: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    added = [('adjacency = "replace"', 'adjacency = "add-remove"')] if what == "add-remove" else []
    trial = study(tmp_path, encoder, *added, aligned=what == "add-remove")
    assert main(["check", str(trial.path)]) == 10
    said = " ".join(capsys.readouterr().err.split())
    assert 'adjacency = "replace" and [alignment] method = "row-order"' in said
    assert 'use [vertimrf] encoder = "mpc" for any other' in said


def test_marginals_on_shares_need_no_switch_and_any_alignment(tmp_path: Path) -> None:
    trial = study(tmp_path, "mpc", research=False, aligned=False)
    assert main(["check", str(trial.path)]) == 0


def test_plan_says_first_what_can_be_read_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = study(tmp_path, "fm", ("epsilon = 4.0", "epsilon = 0.8"))
    assert main(["plan", str(trial.path), "--rows", "20000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("RESEARCH   No privacy claim: the leader can read whole rows")
    # t n / (n + k_p sum u) with 4 + 4 + 4 + 4 + 3 values told
    assert (
        lines[2].startswith("WARNING    whoever holds the sketches can read about ")
        and " of 20,000 rows" in lines[2]
    )
    assert any(line.startswith("  Each owner: The hash of every row") for line in lines)


@pytest.mark.slow
def test_responses_in_three_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = study(tmp_path / "study", "fo")
    end = carry_out(tmp_path, trial)
    assert end.code == 0 and end.complaint == "", end
    assert "RESEARCH, not for anybody's real records. Every owner's report" in end.output
    out = tmp_path / "out"
    assert not parties(tmp_path) and {entry.name for entry in out.iterdir()} >= CONTRACT_FILES
    told = json.loads((out / "run.json").read_text())
    events = told["privacy"]["events"]
    assert [event["what"] for event in events] == ["own model"] * 2 + ["responses"] * 2
    spent = sum(event["rho"] for event in events)
    assert 0.97 * told["privacy"]["rho"] <= spent <= told["privacy"]["rho"] * (1 + 1e-12)
    assert (
        "private towards everybody" in told["claim"] and "no claim about who is in the data" in told["claim"]
    )
    # noise of the total below 8 standard deviations of 60 cells of variance 200
    assert abs(told["privacy"]["noisy_total"] - COUNT) < 900 and told["rows"] > 0
    for event in events[2:]:
        assert len(event["keep"]) == len(event["columns"])
    measured = json.loads((out / "measurements.json").read_text())["measurements"]
    own = [set(event["columns"]) for event in events[:2]]
    assert measured and all(any(set(m["clique"]) <= columns for columns in own) for m in measured)
    page = (out / "report.html").read_text()
    assert "Each owner made one report of its own columns" in page and "on secret shares" not in page
    assert page.count("This run is research") == 1
    assert main(["plan", str(trial.path), "--json"]) == 0
    printed = capsys.readouterr().out
    plan = json.loads(printed[printed.index("{") :])
    sent = {party["name"]: party["bytes_sent"] for party in told["parties"]}
    for party in plan["parties"]:
        assert sent[party["name"]] <= 2.5 * party["bytes_sent"] + 1000, (plan["parties"], sent)


@pytest.mark.slow
def test_sketches_in_three_processes_say_that_there_is_no_claim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = study(tmp_path / "study", "fm")
    end = carry_out(tmp_path, trial)
    assert end.code == 0 and end.complaint == "", end
    out = tmp_path / "out"
    files = {entry.name for entry in out.iterdir()}
    assert RESEARCH_TABLE in files and TABLE not in files and RESEARCH_TABLE in end.output
    told = json.loads((out / "run.json").read_text())
    assert told["table"] == RESEARCH_TABLE and told["claim"].startswith(
        "No privacy claim: the leader can read whole rows"
    )
    assert [event.get("claim") for event in told["privacy"]["events"]] == [None, None, "none", "none"]
    page = (out / "report.html").read_text()
    first = page[page.index("<p") :]
    assert first.startswith('<p class="warning">No privacy claim: the leader can read whole rows')
    assert "Nothing is promised to anybody" in page and "still guesses right" not in page
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    assert main(["ledger", "show", "--all"]) == 0
    said = capsys.readouterr().out
    assert said.count("no claim: 1 of these released what no epsilon bounds") == 2
    again = carry_out(tmp_path, trial, "--resume")
    assert again.code == 0, again  # finished: there is nothing to go on with
    capped = tmp_path / "capped.toml"
    capped.write_text(f'[ledger]\nfile = "{tmp_path / "other.db"}"\ncap_epsilon = 50.0\ncap_delta = 1e-5\n')
    refused = carry_out(tmp_path / "capped", trial, "--private", f"north={capped}")
    assert refused.code == 50 and "no privacy claim" in refused.complaint


def test_in_the_clear_a_table_of_sketches_is_named_for_research_and_gives_way_to_a_sound_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    out = tmp_path / "out"
    for encoder, left, gone in (("fm", RESEARCH_TABLE, TABLE), ("fo", TABLE, RESEARCH_TABLE)):
        trial = study(tmp_path / encoder, encoder, ('"replicated"', '"ideal"'))
        done = run_study(trial.path, out=out, replace=True)
        assert (out / left).is_file() and not (out / gone).exists()
        assert len(done.synthetic) == done.summary["rows"]


def test_an_interrupted_run_is_not_gone_on_with(tmp_path: Path) -> None:
    """Owners would report once more, with fresh noise."""
    assert load(study(tmp_path / "mpc", "mpc").path).resumes
    for encoder in ("fo", "fm"):
        found = load(study(tmp_path / encoder, encoder).path)
        assert not found.resumes and "custodians would report once more" in cannot_resume(found)


@pytest.mark.slow
def test_an_owner_that_only_contributes_reports_too(tmp_path: Path) -> None:
    """Four parties: the last owns columns and does not compute."""
    own = {"north": ("age", "income"), split.small.NAMES[3]: ("work", "grade", "sick")}
    trial = study(tmp_path / "study", "fm", own=own, parties=4)
    end = carry_out(tmp_path, trial)
    assert end.code == 0, end
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert {party["role"] for party in told["parties"]} == {"compute", "contribute"}
