"""Studies with `security = "malicious"`: what may be asked for, runs of them, and a leader that hands out what was not agreed on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.errors import ProtocolAborted, UsageError
from parties.budget.ledger import Ledger
from runner.check.run import findings
from runner.forecast import forecast
from runner.forecast.plan_text import words
from runner.launch.launcher import launch
from runner.party.collective import Collective
from runner.party.course import agreed_table
from runner.party.resume.earlier_attempt import cannot_resume
from runner.party.synthesis import facts_of
from runner.results.release import Release, parse
from runner.study import load, problems
from tests.runner import in_memory, small, split

ASKED = ('backend = "replicated"', 'backend = "replicated"\nsecurity = "malicious"')
PLAIN = ("[session]", '[session]\ntls = "insecure-loopback"')
LEADER, FOLLOWER, CONTRIBUTOR = "south", "west", "east"


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))


def wanted(tmp_path: Path, parties: int = 4, **how: Any) -> small.Trial:
    """A study of three that compute and one that does not."""
    return small.write(tmp_path / "study", parties=parties, **{"changes": [ASKED], **how})


def in_memory_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parties: int = 3
) -> dict[str, dict[str, Any]]:
    """A run of such a study as threads."""
    path = wanted(tmp_path, parties, changes=[ASKED, PLAIN]).path
    return in_memory.run(path, tmp_path / "out", monkeypatch)


def told(tmp_path: Path, *changes: tuple[str, str]) -> list[str]:
    """The problems of such a study with these changes, without the file's name."""
    path = wanted(tmp_path, changes=[ASKED, *changes]).path
    return [sentence.removeprefix(f"{path}: ") for sentence in problems(path)]


# -- what may be asked for -----------------------------------------------------------------------------------------------------


def test_what_does_not_hold_is_refused_with_one_sentence(tmp_path: Path) -> None:
    path = split.write(tmp_path / "vertical", changes=[ASKED]).path
    assert [sentence.removeprefix(f"{path}: ") for sentence in problems(path)] == [
        '[study] security = "malicious" holds with partition = "horizontal" only: parties do not prove what they do with rows of '
        "split columns; remove it."
    ]
    for backend in BACKENDS:
        if backend.name != "replicated":
            [sentence] = told(tmp_path, ('backend = "replicated"', f'backend = "{backend.name}"'))
            assert sentence.startswith(
                f'[study] security = "malicious" is not offered by backend = "{backend.name}", which has semi-honest'
            )
    in_rounds = ('algorithm = "aim"', 'algorithm = "flaim"'), ("[aim]\nrounds = 3", "[flaim]\nrounds = 3")
    [sentence] = told(tmp_path, *in_rounds)
    assert "does more than ask for them" in sentence


def test_how_long_a_party_waits_is_asked_of_such_a_study_only(tmp_path: Path) -> None:
    later = ("[session]", "[session]\nanswer_s = 30")
    assert load(wanted(tmp_path, changes=[ASKED, later]).path).session.answer_s == 30
    path = small.write(tmp_path / "study", changes=[later]).path
    [sentence] = problems(path)
    assert '[session] answer_s has no meaning with security = "semi-honest"' in sentence


def test_who_has_no_data_counts_as_if_it_had(tmp_path: Path) -> None:
    """It could share some all the same."""
    study = load(wanted(tmp_path, data={"north": None}).path)
    assert facts_of(study, 3, bytes(32)).row_cap == 4 * study.privacy.max_rows
    assert {party.name for party in study.to_check} == {party.name for party in study.parties}


def test_check_and_plan_say_what_holds(tmp_path: Path) -> None:
    study = load(wanted(tmp_path).path)
    said = [finding.text for finding in findings(study.path, None, None, False)]
    assert any("everybody's counts are checked on shares" in text for text in said)
    assert any("one computing party that does whatever it likes" in text for text in said)
    assert "a run of this study that is interrupted cannot be resumed" in said
    assert not study.resumes and 'security = "malicious" cannot go on' in cannot_resume(study)
    expected = forecast(study)
    text = words(study, expected)
    assert "aim on replicated (malicious)" in text and "whatever one of them does" in text
    plain = forecast(load(small.write(tmp_path / "plain", parties=4).path), expected.rows)
    assert expected.bytes_sent > 2 * plain.bytes_sent and expected.rounds > plain.rounds


# -- runs ----------------------------------------------------------------------------------------------------------------------


def test_a_run_in_memory_says_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = wanted(tmp_path, changes=[ASKED, PLAIN])
    drawn: list[Any] = []
    original = agreed_table.drawn

    def noted(fixed: Release, rows: int, coin: bytes, run: Any) -> Release:
        release = original(fixed, rows, coin, run)
        drawn.append((run.name, coin, release.codes.tobytes(), release.decode_seed))
        return release

    monkeypatch.setattr(agreed_table, "drawn", noted)
    found = in_memory.run(trial.path, tmp_path / "out", monkeypatch)
    assert {facts["security"] for facts in found.values()} == {"malicious"}
    assert all(facts["inputs"] == {"checked": list(trial.names), "left_out": []} for facts in found.values())
    assert {name for name, *_ in drawn} == {"north", LEADER, FOLLOWER}
    assert len({rest for _, *rest in map(tuple, drawn) for rest in [tuple(rest)]}) == 1
    assert not list((tmp_path / "out").rglob("state-*"))
    for entry in Ledger(tmp_path / "ledger.db").entries():
        assert entry.state == "settled" and entry.spent.rho > 0


def lying(monkeypatch: pytest.MonkeyPatch, lie: Callable[[Release, int], Release]) -> None:
    """The leader hands out something else to some parties. lie: of the release and the party's number."""

    def hand_out(self: Collective, release: bytes) -> None:
        stream, domain = self._wire.fork("release"), self._study.domain
        true = parse(memoryview(release), domain, 1 << 20, LEADER)
        for number in self._others:
            stream.send(number, lie(true, number).to_bytes(domain))

    monkeypatch.setattr(Collective, "hand_out", hand_out)


def other_rows(release: Release) -> Release:
    codes = release.codes.copy()
    codes[0] = 0
    codes[1] = 1
    return replace(release, codes=codes)


def test_a_leader_that_hands_out_another_table_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying(monkeypatch, lambda release, _: other_rows(release))
    with pytest.raises(ProtocolAborted, match=f"Party {LEADER} handed out another table than party"):
        in_memory_of(tmp_path, monkeypatch)


def test_or_another_seed_or_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lying(monkeypatch, lambda release, _: replace(release, decode_seed=release.decode_seed ^ 1))
    with pytest.raises(ProtocolAborted, match=f"Party {LEADER} handed out another result than"):
        in_memory_of(tmp_path, monkeypatch)


def test_or_another_release_to_a_contributor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its account would be settled by fewer releases than there were: now its reservation stands."""
    lying(monkeypatch, lambda release, number: other_rows(release) if number == 3 else release)
    with pytest.raises(ProtocolAborted, match=f"Party {LEADER} handed out different results to this party"):
        in_memory_of(tmp_path, monkeypatch, 4)


def test_a_leader_that_tells_two_parties_of_different_models_has_no_coin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fixed is what both others have: the random numbers of the table depend on it."""
    seen: list[bytes] = []
    original = DistributedBackend.coin
    backend = type(BACKENDS["replicated"].secured("malicious"))
    own = backend.coin  # type: ignore[attr-defined]

    def coin(self: Any, wire: Any, public: bytes) -> bytes:
        seen.append(public)
        found: bytes = own(self, wire, public if wire.me != 2 else bytes(32))
        return found

    assert own is not original
    monkeypatch.setattr(backend, "coin", coin)
    with pytest.raises(ProtocolAborted, match="do not agree on what precedes a common coin"):
        in_memory_of(tmp_path, monkeypatch)


def test_a_table_too_large_is_refused_before_it_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = agreed_table.agree

    def agree(run: Any, draft: Release | None, rows: int, check: Any) -> Release:
        return original(run, draft, rows and run.limit + 1, check)

    monkeypatch.setattr(agreed_table, "agree", agree)
    with pytest.raises(ProtocolAborted, match=f"Party {LEADER} wants a table of"):
        in_memory_of(tmp_path, monkeypatch)


def test_it_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = wanted(tmp_path, 3, changes=[ASKED, PLAIN])
    monkeypatch.setattr(agreed_table, "agree", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        in_memory.run(trial.path, tmp_path / "out", monkeypatch)
    monkeypatch.undo()
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    with pytest.raises(UsageError, match='security = "malicious" cannot go on where it was interrupted'):
        in_memory.run(trial.path, tmp_path / "out", monkeypatch, resume=True)


@pytest.mark.slow
def test_a_run_of_processes(tmp_path: Path) -> None:
    """Over TLS, with a contributor: everybody has the same table, and the plan has counted the oracle's part of the rounds."""
    trial = wanted(tmp_path, count=60)
    out = tmp_path / "out"
    launch(trial.path, out)
    folders = [out / "parties" / name for name in trial.names]
    assert len({(folder / "synthetic.csv").read_bytes() for folder in folders}) == 1
    facts = json.loads((out / "run.json").read_text())
    assert facts["security"] == "malicious" and facts["inputs"]["checked"] == list(trial.names)
    report = (out / "report.html").read_text()
    assert "may depart from the protocol as it likes" in report and "Semi-honest parties" not in report
    assert np.isfinite(facts["privacy"]["rho"])
