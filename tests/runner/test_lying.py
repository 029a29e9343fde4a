"""A contributor whose counts are those of no table, among real processes: named, and left out or the end of the run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mpc_protocols.errors import ProtocolAborted
from parties.budget.ledger import Ledger
from runner.launch.launcher import launch
from tests.runner import small

LYING = (sys.executable, "-m", "tests.runner.lying")
EXACT = [("epsilon = 4.0", "epsilon = 4000.0")]


@pytest.fixture(autouse=True)
def liar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    monkeypatch.setenv("LIAR", "hill")


@pytest.mark.slow
def test_a_contributor_with_impossible_counts_is_named_and_ends_the_run(tmp_path: Path) -> None:
    trial = small.write(tmp_path / "study", parties=5)
    with pytest.raises(
        ProtocolAborted, match="Party hill sent counts that no table of at most 4096 rows has"
    ):
        launch(trial.path, tmp_path / "out", program=LYING)
    for entry in Ledger(tmp_path / "ledger.db").entries():
        assert not entry.reservation.computes or (entry.state == "settled" and entry.spent.rho == 0)
    events = [
        json.loads(line)["event"]
        for path in (tmp_path / "out").glob("parties/*/events.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert "shared" in events and not {"selected", "opened"} & set(events)


@pytest.mark.slow
def test_or_is_left_out_and_everybody_is_told(tmp_path: Path) -> None:
    trial = small.write(
        tmp_path / "study", parties=5, changes=[*EXACT, ("[session]", '[session]\nbad_input = "exclude"')]
    )
    launch(trial.path, tmp_path / "out", program=LYING)
    for name in trial.names:
        facts = json.loads((tmp_path / "out" / "parties" / name / "run.json").read_text())
        assert facts["inputs"] == {"checked": ["east", "hill"], "left_out": ["hill"]}
        assert round(facts["privacy"]["noisy_total"]) == 4 * 300
