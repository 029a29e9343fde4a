"""The ideal backend runs in the caller's process, which lives on: a run that failed must not keep its
reservation."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc_protocols.errors import DataRefused
from parties.budget.ledger import Ledger
from runner.launch.launcher import launch
from runner.party import ideal, synthesis
from tests.runner import small


def test_a_run_that_fails_is_charged_what_it_had_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    trial = small.write(tmp_path / "study", changes=[("replicated", "ideal")])
    whole = synthesis.synthesize

    def stopped(*arguments: object) -> object:
        whole(*arguments)  # type: ignore[arg-type]
        raise RuntimeError("after the last release")

    monkeypatch.setattr(ideal, "synthesize", stopped)
    with pytest.raises(RuntimeError):
        launch(trial.path, tmp_path / "out")
    entries = Ledger().entries()
    assert [entry.state for entry in entries] == ["settled"] * 3
    assert all(0 < entry.spent.rho <= entry.reservation.rho for entry in entries)


def test_one_custodians_refusal_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    trial = small.write(tmp_path / "study", changes=[("replicated", "ideal")], data={"west": []})
    with pytest.raises(DataRefused):
        launch(trial.path, tmp_path / "out")
    entries = Ledger().entries()
    assert [entry.spent.rho for entry in entries] == [0, 0] and {entry.state for entry in entries} == {
        "settled"
    }
