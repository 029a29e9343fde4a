"""The moments at which the audit's faults strike are places that runs come to."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from runner.review.audit.subjects.processes.faults import MOMENTS
from tests.runner import in_memory, small


def test_a_run_comes_to_every_record_and_every_step_that_a_fault_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often as the fault waits. The other moments are of a session and of files, which no run does without."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    calls = Counter[str]()

    def counted(place: str, real: Any) -> Any:
        def call(*given: Any, **more: Any) -> Any:
            calls[place] += 1
            return real(*given, **more)

        return call

    awaited = {
        moment.function: moment.number
        for moment in MOMENTS
        if moment.function.startswith(("mpc_protocols.engine.step", "parties.budget.journal"))
    }
    for place in awaited:
        module, _, rest = place.partition(":")
        owner, _, name = rest.partition(".")
        holder = getattr(import_module(module), owner)
        monkeypatch.setattr(holder, name, counted(place, getattr(holder, name)))
    on_one_machine = ("[session]\n", '[session]\ntls = "insecure-loopback"\n')
    trial = small.write(tmp_path / "study", changes=[on_one_machine])
    in_memory.run(trial.path, tmp_path / "out", monkeypatch)
    assert len(awaited) == 4
    for place, number in awaited.items():
        assert calls[place] >= 3 * number, f"{place} is called {calls[place]} times by three parties"
