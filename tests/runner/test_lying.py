"""A contributor whose counts are those of no table, among real processes: named, and left out or the end of
the run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import InputRule
from parties.budget.ledger import Ledger
from runner.check.run import findings
from runner.forecast import forecast
from runner.forecast.plan_text import words
from runner.launch.launcher import launch
from runner.party.synthesis import facts_of
from runner.study import load, problems
from tests.runner import small, split

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
        # the noise of a total has a standard deviation below 3: off by 60 with a chance below 1e-80
        assert abs(facts["privacy"]["noisy_total"] - 4 * 300) < 60


EXCLUDE = ("[session]", '[session]\nbad_input = "exclude"')


def test_exclude_is_refused_where_nothing_is_checked(tmp_path: Path) -> None:
    """Not pretended: of owners' columns, and of ciphertexts, nobody knows whether they are counts."""
    assert not problems(small.write(tmp_path / "shares", parties=4, changes=[EXCLUDE]).path)
    ciphertexts = [("replicated", "paillier"), EXCLUDE]
    owned = split.write(tmp_path / "split", changes=[EXCLUDE])
    for path, why in (
        (
            small.write(tmp_path / "encrypted", parties=4, changes=ciphertexts).path,
            "ciphertexts of all are added up",
        ),
        (owned.path, "owners of columns share rows, not counts"),
    ):
        (sentence,) = (found for found in problems(path) if "bad_input" in found)
        assert why in sentence and sentence.startswith(
            f'{path}: [session] bad_input = "exclude" needs counts'
        )
    typo = small.write(tmp_path / "typo", changes=[("[session]", '[session]\nbad_input = "excludes"')])
    assert '(did you mean "exclude"?)' in " ".join(problems(typo.path))


def test_a_study_knows_whether_inputs_are_checked(tmp_path: Path) -> None:
    contributed = load(small.write(tmp_path / "a", parties=4, changes=[EXCLUDE]).path)
    assert contributed.checks_inputs and facts_of(contributed, 4, b"s" * 32).inputs == InputRule(4096, True)
    assert contributed.public()["session"]["bad_input"] == "exclude"
    all_compute = load(small.write(tmp_path / "b").path)
    assert not all_compute.checks_inputs and facts_of(all_compute, 3, b"s" * 32).inputs is None
    shares = [("replicated", "paillier"), ("[session]", '[paillier]\ninput = "shares"\n\n[session]')]
    assert "ciphertexts" not in str(
        load(small.write(tmp_path / "c", parties=4, changes=shares).path).inputs_unchecked
    )


def test_plan_and_check_say_what_is_checked_and_what_it_costs(tmp_path: Path) -> None:
    def told(*changes: tuple[str, str], parties: int = 4) -> tuple[str, str]:
        path = small.write(
            tmp_path / str(len(list(tmp_path.iterdir()))), parties=parties, changes=changes
        ).path
        expected = forecast(load(path), rows=100)
        return words(load(path), expected), " ".join(
            found.text for found in findings(path, None, None, False)
        )

    planned, checked = told(EXCLUDE)
    assert (
        "inputs     counts of east are checked on shares, " in planned and "rows has is left out" in planned
    )
    assert "who sends impossible ones is left out of it" in checked
    planned, checked = told()
    assert "rows has ends the run" in planned and "who sends impossible ones ends the run" in checked
    planned, checked = told(("replicated", "paillier"))
    assert "inputs     of contributors are not checked: ciphertexts of all" in planned
    assert "is not checked: ciphertexts of all are added up" in checked
    assert "inputs" not in told(parties=3)[0]
