"""A directory that holds an earlier run: what has been paid for gives way only to who says so."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import Event
from parties.budget.journal import Header, Journal
from runner.__main__ import main
from runner.results.outdir import MARK, claim, state
from runner.starting import demo
from tests.runner import small

IDEAL = [('"replicated"', '"ideal"')]


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))


def journal(folder: Path, session: bytes = b"s" * 32) -> Journal:
    folder.mkdir(parents=True, exist_ok=True)
    return Journal(folder / f"journal-{session.hex()[:16]}.jsonl", Header(b"d" * 32, session, "north", "1"))


def spent(folder: Path) -> None:
    """The journal of a run that had begun to release and was interrupted."""
    made = journal(folder)
    made.events([(Event("total", Fraction(1, 100), Fraction(0), {}), b"inputs")])
    made.close()


def test_what_a_directory_holds(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert state(out) == "free"
    journal(out).close()  # nothing released: nothing lost
    assert state(out) == "free"
    (out / "journal-ffff.jsonl").write_bytes((out / f"journal-{(b's' * 32).hex()[:16]}.jsonl").read_bytes())
    (out / "run.json").write_text("{}")
    assert state(out) == "finished"


@pytest.mark.parametrize("place", ["", "parties/south"])
def test_a_run_that_had_begun_to_release_is_interrupted_until_one_finishes_there(
    tmp_path: Path, place: str
) -> None:
    out = tmp_path / "out"
    spent(out / place)
    assert state(out) == "interrupted"
    (out / "run.json").write_text("{}")
    os.utime(out / "run.json", ns=(1, 1))  # of an earlier run
    assert state(out) == "interrupted"
    (journalled,) = (out / place).glob("journal-*")
    os.utime(journalled, ns=(0, 0))
    assert state(out) == "finished"


def test_a_directory_is_claimed_from_an_earlier_run_only_by_who_says_so(tmp_path: Path) -> None:
    for number, words in enumerate(("finished run; name another directory", "--resume")):
        out = tmp_path / str(number)
        with claim(out):
            (out / "unfinished.log").write_text("what the earlier run says")
        if number == 0:
            (out / "run.json").write_text("{}")
        else:
            spent(out)
        (out / "unfinished.log").write_text("what the earlier run says")
        with pytest.raises(UsageError, match=words) as refused, claim(out):
            pass
        assert "--replace" in refused.value.sentence
        assert (out / "unfinished.log").exists()
        with claim(out, replace=True):
            assert not (out / "unfinished.log").exists()


def test_a_second_run_into_a_directory_needs_to_say_replace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial, out = small.write(tmp_path / "study", changes=IDEAL), tmp_path / "out"
    command = ["run", str(trial.path), "--out", str(out)]
    assert main(command) == 0
    first = {entry.name: entry.read_bytes() for entry in out.iterdir() if entry.is_file()}
    capsys.readouterr()
    assert main(command) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and f"--out {out} holds a finished run" in told and "--replace" in told
    assert {entry.name: entry.read_bytes() for entry in out.iterdir() if entry.is_file()} == first
    assert main([*command, "--replace"]) == 0
    assert json.loads((out / "run.json").read_text())["session"] != json.loads(first["run.json"])["session"]


def test_resuming(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing released: anew. Finished: done already. Another study's: refused. Interrupted: not in this
    version, and says so."""
    trial, out = small.write(tmp_path / "study", changes=IDEAL), tmp_path / "out"
    command = ["run", str(trial.path), "--out", str(out), "--resume"]
    journal(out).close()
    (out / MARK).touch()
    assert main(command) == 0
    first = (out / "run.json").read_bytes()
    capsys.readouterr()
    assert main(command) == 0
    assert f"done already: results in {out}" in capsys.readouterr().out
    assert (out / "run.json").read_bytes() == first
    trial.path.write_text(trial.path.read_text().replace("rounds = 3", "rounds = 4"))
    assert main(command) == 2
    assert "a finished run of another study" in capsys.readouterr().err
    spent(out / "parties" / "north")
    assert main(command) == 2
    assert "of another study; name the directory of the run to resume" in capsys.readouterr().err
    assert main([*command, "--replace"]) == 2
    assert "not allowed with" in capsys.readouterr().err


def test_a_party_s_own_directory_is_asked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = small.write(
        tmp_path / "study", changes=[("silence_s = 200", 'silence_s = 200\ntls = "insecure-loopback"')]
    )
    out = tmp_path / "out"
    with claim(out):
        spent(out)
    command = ["run", str(trial.path), "--party", "north", "--out", str(out)]
    assert main(command) == 2
    told = capsys.readouterr().err
    assert "holds an interrupted run" in told and "--resume" in told and "--replace" in told
    assert main([*command, "--resume"]) == 2


def test_the_demo_replaces_its_own_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    with claim(out):
        (out / "run.json").write_text(json.dumps({"study": "trial", "parties": []}))
    assert main(["demo", "--out", str(out)]) == 2
    assert f"--out {out} holds a run that is not the demo's" in capsys.readouterr().err
    assert {entry.name for entry in out.iterdir()} == {MARK, "run.json"}


def test_a_comparison_belongs_to_the_run_it_was_made_for(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "run.json").write_text(json.dumps({"session": "a", "parties": []}))
    assert demo.comparison_of(tmp_path) is None
    (tmp_path / demo.COMPARISON).write_text(json.dumps({"session": "a", "comparison": {"metrics": {}}}))
    assert demo.comparison_of(tmp_path) == {"metrics": {}}
    (tmp_path / "run.json").write_text(json.dumps({"session": "b", "parties": []}))
    assert demo.comparison_of(tmp_path) is None
