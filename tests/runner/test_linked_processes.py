"""Linked tables, three levels of them, in runs that something happens to: a party may deviate, all parties
die, and what such a run refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpc_protocols.errors import CosynthError
from runner.launch.launcher import launch
from runner.study.read import problems
from tests.runner import linked
from tests.runner.processes import run
from tests.runner.test_linked import LOUD, carried_out, check_drugs, check_tables, deviations
from tests.runner.test_resume import DYING, check

MALICIOUS = ('backend = "replicated"', 'backend = "replicated"\nsecurity = "malicious"')


@pytest.mark.slow
@pytest.mark.parametrize("vertical", [False, True])
def test_linked_tables_where_a_party_may_deviate(tmp_path: Path, vertical: bool) -> None:
    trial = linked.write(tmp_path, count=100, drugs=True, vertical=vertical, changes=[LOUD, MALICIOUS])
    out = carried_out(tmp_path, trial)
    check_tables(out)
    check_drugs(out)
    assert json.loads((out / "run.json").read_text())["security"] == "malicious"
    assert all(abs(noise) <= 10 * sigma for noise, sigma in deviations(out, trial))
    assert run("verify", out, ledger=tmp_path / "ledger.db", scratch=tmp_path).code == 0


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_the_same_draws_and_spends_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    trial, out = linked.write(tmp_path, drugs=True, changes=[LOUD]), tmp_path / "out"
    monkeypatch.setenv("DIE_AT", "* held 3")
    with pytest.raises(CosynthError):
        launch(trial.path, out, program=DYING)
    assert not (out / "visits.csv").exists()
    secret = (tmp_path / "ledger.db.draws").read_bytes()
    monkeypatch.setenv("DIE_AT", "")
    launch(trial.path, out, resume=True, program=DYING)
    check([out / "parties" / name for name in linked.NAMES], tmp_path / "ledger.db", attempts=2)
    assert (tmp_path / "ledger.db.draws").read_bytes() == secret
    check_tables(out)
    check_drugs(out)
    assert all(abs(noise) <= 10 * sigma for noise, sigma in deviations(out, trial))


def test_contributors_bundles_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    listed = '[contributors]\nkeys = "contributors.txt"\nreceivers = "receivers.json"\n\n[session]'
    trial = linked.write(tmp_path, changes=[("[session]", listed)])
    said = "[table] has no meaning with [contributors]"
    assert any(said in sentence for sentence in problems(trial.path))
    for command in (
        ("run", trial.path, "--out", tmp_path / "out"),
        ("contribute", trial.path, "--party", "north", "--out", tmp_path / "north.bundle"),
    ):
        end = run(*command, ledger=tmp_path / "ledger.db", scratch=tmp_path)
        assert end.code == 10, end.complaint
    assert not (tmp_path / "ledger.db").exists() and not (tmp_path / "out" / "run.json").exists()
