"""A step of several releases of which one custodian's ledger refuses one, in a whole run: nothing of it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Event
from parties.budget.journal import read
from parties.budget.ledger import Ledger, OpenRun
from parties.budget.run_state import RunState
from runner.results import outdir
from tests.runner import in_memory, small

CHANGES = (
    ('algorithm = "aim"', 'algorithm = "mosaic"'),
    ("[aim]\nrounds = 3", "[mosaic]\nrounds = 6\nbatch = 3"),
    ("[session]\n", '[session]\ntls = "insecure-loopback"\n'),
)
PICKS = 3


def test_a_ledger_that_refuses_one_pick_of_several_begins_none_and_nobody_opens_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of three does not fit. Journals, which come first, hold the step; no party has a result of it."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    opened, plain, learn = set[int](), OpenRun.begin_all, RunState.learn

    def begin_all(run: OpenRun, releases: Sequence[tuple[Event, int | None]]) -> None:
        if run._number == 2 and len(releases) == PICKS:
            run._left = (releases[0][0].rho * 3 / 2, run._left[1])
        plain(run, releases)

    def learned(state: RunState, number: int, *result: object) -> None:
        opened.add(number)
        learn(state, number, *result)  # type: ignore[arg-type]

    monkeypatch.setattr(OpenRun, "begin_all", begin_all)
    monkeypatch.setattr(RunState, "learn", learned)
    trial = small.write(tmp_path / "study", count=80, changes=CHANGES)
    with pytest.raises(BudgetRefused, match="The release select would exceed what this run reserved"):
        in_memory.run(trial.path, tmp_path / "out", monkeypatch)
    assert opened == {0}
    begun = [len(entry.events) for entry in Ledger(tmp_path / "ledger.db").entries()]
    assert min(begun) == 1 and set(begun) <= {1, 1 + PICKS}
    told = [
        [release.event.what for release in read(path).releases]
        for path in (tmp_path / "out").glob(f"*/{outdir.JOURNALS}")
    ]
    whole = ["measure", *["select"] * PICKS]
    assert whole in told and all(each in (whole[:1], whole) for each in told)
