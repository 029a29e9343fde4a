"""Whole runs that are killed with SIGKILL at a chosen place and resumed: real processes, files and ledgers."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused, CosynthError
from parties.budget.aborted import ABORTED
from parties.budget.journal import read
from parties.budget.ledger import Ledger
from parties.budget.spending import SIZE, STARTED
from runner.__main__ import main
from runner.launch.launcher import launch
from runner.results import outdir
from tests.runner import small, split
from tests.runner.folders import Folders
from tests.runner.processes import run

DYING = (sys.executable, "-m", "tests.runner.dying")


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    yield


def check(directories: Sequence[Path], ledger: Path, attempts: int) -> None:
    """One table and one report; ledgers equal journals; no event twice; no share left."""
    for name in ("synthetic.csv", "measurements.json", "model.npz", "run.json"):
        assert len({(directory / name).read_bytes() for directory in directories}) == 1, name
    journals = [read(path) for directory in directories for path in directory.glob(outdir.JOURNALS)]
    assert len({journal.header.session for journal in journals}) == 1
    assert all(journal.code == 0 and journal.attempts == attempts for journal in journals)
    [events] = {repr([release.event for release in journal.releases]) for journal in journals}
    assert all(release.opened for journal in journals for release in journal.releases)
    assert len({release.inputs for release in journals[0].releases}) == len(journals[0].releases)
    for entry in Ledger(ledger).entries():
        assert entry.state == "settled"
        begun = [each.event for each in entry.events if not each.event.what.startswith("alignment.")]
        assert repr(begun) == events
    for directory in directories:
        [state] = directory.glob(outdir.STATES)
        assert state.stat().st_mode & 0o777 == 0o600 and b'"held"' not in state.read_bytes()


@pytest.mark.slow
def test_a_run_whose_parties_all_die_goes_on_without_spending_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Vertical: the owners are joined again, which is charged and counted again; what was released is not."""
    changes = [('adjacency = "replace"', 'adjacency = "add-remove"'), ("epsilon = 4.0", "epsilon = 400.0")]
    trial = split.write(tmp_path / "study", changes=changes)
    out = tmp_path / "out"
    monkeypatch.setenv("DIE_AT", "* held 3")
    with pytest.raises(CosynthError):
        launch(trial.path, out, program=DYING)
    held = [path.read_bytes() for path in out.glob(f"parties/*/{outdir.STATES}")]
    assert all(content.count(b'"held"') == 3 and content.count(b'"opened"') == 2 for content in held)

    assert main(["run", str(trial.path), "--out", str(out)]) == 2
    assert "go on with it with --resume" in capsys.readouterr().err
    (state,) = (out / "parties" / "north").glob(outdir.STATES)
    content = state.read_bytes()
    state.write_bytes(content[:-40] + bytes(40))
    command = [
        "run",
        str(trial.path),
        "--party",
        "north",
        "--out",
        str(out / "parties" / "north"),
        "--resume",
    ]
    trial.path.write_text(trial.path.read_text().replace("[session]", '[session]\ntls = "insecure-loopback"'))
    assert main(command) == 2
    assert "was altered or is of another version" in capsys.readouterr().err
    state.write_bytes(content)
    assert main(command) == 2  # the study is another one
    assert "of another study" in capsys.readouterr().err
    trial.path.write_text(trial.path.read_text().replace('[session]\ntls = "insecure-loopback"', "[session]"))

    monkeypatch.setenv("DIE_AT", "")
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    launch(trial.path, out, resume=True, program=DYING)
    directories = [out / "parties" / name for name in trial.names]
    check(directories, tmp_path / "ledger.db", attempts=2)
    entries = Ledger(tmp_path / "ledger.db").entries()
    for entry in entries:
        whats = [each.event.what for each in entry.events]
        assert whats.count(STARTED) == 2 and ABORTED not in whats
        assert whats.count(SIZE) % 2 == 0 and entry.spent.size_rho > Fraction(0)
    first, second = "split/north", "south"
    assert Ledger(tmp_path / "ledger.db").alignments(first, second) == 2

    with pytest.raises(BudgetRefused, match=r"releases of the run .* no release is made anew"):
        launch(
            trial.path, copy, resume=True, program=DYING
        )  # all would be made a second time, and charged once
    assert Ledger(tmp_path / "ledger.db").entries() == entries


@pytest.mark.slow
def test_a_deployment_goes_on_and_the_finished_serve_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader dies when it holds a result; then a contributor, its account settled, before it writes its
    files."""
    folders = Folders.make(tmp_path / "folders", small.write(tmp_path / "study", parties=4))
    for folder in folders:
        folder.module = "tests.runner.dying"
    for number, die in enumerate(("south held 2", "east settled 1", "")):
        monkeypatch.setenv("DIE_AT", die)
        with folders.started([], *["--resume"] * (number > 0)) as programs:
            codes = {name: program.end().code for name, program in programs.items()}
        assert codes["east"] == (-9 if number == 1 else 0 if number == 2 else 41)
        assert number == 0 or all(code in (0, 41) for name, code in codes.items() if name != "east")
    assert set(codes.values()) == {0}
    for folder in folders:
        computes = folder.name != "east"
        [entry] = Ledger(folder.ledger).entries()
        assert entry.state == "settled" and len(entry.events) == 7
        if computes:
            [journal] = [read(path) for path in folder.out.glob(outdir.JOURNALS)]
            assert [each.event for each in entry.events] == [each.event for each in journal.releases]
    for name in ("synthetic.csv", "run.json"):
        assert len({(folder.out / name).read_bytes() for folder in folders}) == 1


@pytest.mark.slow
def test_a_run_in_the_clear_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = small.write(tmp_path / "study", changes=[('"replicated"', '"ideal"')])
    out, ledger = tmp_path / "out", tmp_path / "ledger.db"
    monkeypatch.setenv("DIE_AT", "ideal learn 3")
    arguments = ["run", str(trial.path), "--out", str(out)]
    dead = run(*arguments, ledger=ledger, scratch=tmp_path / "a", module="tests.runner.dying")
    assert dead.code == -9
    assert main(arguments) == 2
    assert main([*arguments, "--resume"]) == 0
    for entry in Ledger(ledger).entries():
        assert entry.state == "settled" and len(entry.events) == 7


def test_a_resumed_run_has_the_tables_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that was begun on one table alone need not say so again; and a forgotten private file is told: of counts that
    lack a table nobody would notice."""
    trial = small.write(tmp_path / "study", changes=[('"replicated"', '"ideal"')])
    text = trial.path.read_text()
    for name in trial.names:
        text = text.replace(f'data = "{name}.csv"\n', "")
        (tmp_path / f"{name}.toml").write_text(f'data = "{trial.path.parent / name}.csv"\n')
    trial.path.write_text(text)
    private = {name: ["--private", f"{name}={tmp_path / name}.toml"] for name in trial.names}
    north, south = private[trial.names[0]], private[trial.names[1]]
    monkeypatch.setenv("DIE_AT", "ideal learn 3")
    for out, began, other in (("one", [*north, "--alone"], south), ("two", [*north, *south], north)):
        run_here = ["run", str(trial.path), "--out", str(tmp_path / out)]
        scratch = tmp_path / f"scratch-{out}"
        program = run(
            *run_here, *began, ledger=tmp_path / "ledger.db", scratch=scratch, module="tests.runner.dying"
        )
        assert program.code == -9
        capsys.readouterr()
        assert main([*run_here, *other, "--resume", "--alone"]) == 2
        assert f"began with the tables of {trial.names[0]}" in capsys.readouterr().err
        assert main([*run_here, *[word for word in began if word != "--alone"], "--resume"]) == 0


def test_a_resumed_run_leaves_what_an_uninterrupted_one_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With seeded draws: the same table, model, measurements, ledger entry and report but for times and the
    run's number."""
    trial = small.write(tmp_path / "study", changes=[('"replicated"', '"ideal"')])
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    accounts = []
    for out, moments in ((whole, [""]), (resumed, ["ideal learn 3", "ideal held 2", ""])):
        ledger, codes = tmp_path / f"{out.name}.db", []
        for number, moment in enumerate(moments):
            monkeypatch.setenv("DIE_AT", moment)
            arguments = ["run", str(trial.path), "--out", str(out), *["--resume"] * (number > 0)]
            scratch = tmp_path / f"{out.name}-{number}"
            codes.append(run(*arguments, ledger=ledger, scratch=scratch, module="tests.runner.seeded").code)
        assert codes == [-9] * (len(moments) - 1) + [0]
        entries = Ledger(ledger).entries()
        accounts.append(
            [
                (entry.reservation.charge, entry.state, entry.spent, [each.event for each in entry.events])
                for entry in entries
            ]
        )
    assert accounts[0] == accounts[1]
    for name in ("synthetic.csv", "measurements.json", "model.npz"):
        assert (whole / name).read_bytes() == (resumed / name).read_bytes(), name

    told, other = (json.loads((out / outdir.RUN).read_text()) for out in (whole, resumed))
    of_this_run = {name: told[name] for name in ("wall_s", "phases", "timeline", "started", "session")}
    assert {**other, **of_this_run} == told
    shutil.copy(whole / outdir.RUN, resumed / outdir.RUN)
    assert main(["report", str(resumed)]) == 0
    assert (whole / "report.html").read_bytes() == (resumed / "report.html").read_bytes()
