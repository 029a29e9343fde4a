"""Studies with ciphertexts: which input they choose, what they need, what they say, and a whole run at 3,072
bits."""

from __future__ import annotations

import json
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.backends.pair.backend import BACKEND as PAIR
from mpc_protocols.errors import UsageError
from runner.__main__ import main
from runner.report.words.statement import how_computed
from runner.review.audit.check import Profile
from runner.review.audit.subjects.subject import subject
from runner.study import load, problems
from tests.runner import small, split
from tests.runner.processes import run
from tests.runner.test_end_to_end import carry_out

BACKEND = ('"replicated"', '"paillier"')
SHARES = ("[domain.columns]", '[paillier]\ninput = "shares"\n\n[domain.columns]')


def without_phe(name: str, *rest: Any) -> Any:
    return None if name == "phe" else _find_spec(name, *rest)


_find_spec = util.find_spec


def test_the_input_is_chosen_in_the_study(tmp_path: Path) -> None:
    plain = load(small.write(tmp_path / "plain", changes=[BACKEND]).path)
    shares = load(small.write(tmp_path / "shares", changes=[BACKEND, SHARES]).path)
    assert plain.public()["paillier"] == {"input": "paillier"} and "Paillier" in plain.descriptor.claim
    assert shares.public()["paillier"] == {"input": "shares"} and shares.descriptor.claim == PAIR.claim
    public = [
        {"algorithm": "aim", "backend": "paillier", "public_study": study.public()}
        for study in (plain, shares)
    ]
    assert "encrypted" in how_computed(public[0]) and "encrypted" not in how_computed(public[1])
    path = small.write(
        tmp_path / "typo", changes=[BACKEND, (SHARES[0], SHARES[1].replace("shares", "share"))]
    ).path
    assert problems(path) == [
        f'{path}: [paillier] input must be "paillier" or "shares", got "share" (did you mean "shares"?).'
    ]


def test_only_ciphertexts_need_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(util, "find_spec", without_phe)
    path = small.write(tmp_path / "plain", changes=[BACKEND]).path
    assert problems(path) == [
        f'{path}: [study] backend = "paillier" needs phe, which this installation lacks; run '
        "`python -m pip install 'gmpy2>=2.2' 'phe>=1.5'` at every party."
    ]
    assert main(["check", str(path)]) == 10
    assert problems(small.write(tmp_path / "shares", changes=[BACKEND, SHARES]).path) == []


def test_a_comparison_tells_a_study_of_shares_what_it_rests_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for changes, words in (([BACKEND], True), ([BACKEND, SHARES], False)):
        trial = small.write(tmp_path / str(len(changes)), parties=3, changes=changes)
        assert main(["plan", str(trial.path), "--compare", "--json", "--rows", "600"]) == 0
        text = capsys.readouterr().out
        [own] = [each for each in json.loads(text[text.index("{") :])["alternatives"] if each["own"]]
        assert own["backend"] == "paillier"
        assert all(("Paillier" in own[key]) == words for key in ("summary", "claim", "assumption"))


def test_an_audit_looks_at_what_the_study_would_run(tmp_path: Path) -> None:
    for changes in ([BACKEND], [BACKEND, SHARES]):
        trial = small.write(tmp_path / str(len(changes)), parties=3, changes=changes)
        with subject(trial.path, ["paillier"], Profile.QUICK, "seed") as audited:
            assert [backend.claim for backend in audited.distributed] == [audited.study.descriptor.claim]


def test_an_audit_leaves_out_what_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(util, "find_spec", without_phe)
    path = small.write(tmp_path).path
    with subject(path, [], Profile.QUICK, "seed") as audited:
        assert "pair" in audited.backends and "paillier" not in audited.backends
    with pytest.raises(UsageError, match="--backend paillier needs phe, which"):
        subject(path, ["paillier"], Profile.QUICK, "seed").__enter__()


@pytest.mark.parametrize("changes", [[], [SHARES]])
def test_two_owners_who_compute_have_nothing_to_encrypt(
    changes: list[tuple[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the input would be: neither the extra, nor Paillier's assumption, nor a message more than
    `pair` sends."""
    monkeypatch.setattr(util, "find_spec", without_phe)
    trial = split.write(tmp_path, count=60, changes=[BACKEND, *changes, ("merge3", "dh2")])
    study = load(trial.path)
    assert problems(trial.path) == [] and study.descriptor.claim == PAIR.claim
    assert main(["plan", str(trial.path), "--compare", "--json"]) == 0
    text = capsys.readouterr().out
    found = {each["backend"]: each for each in json.loads(text[text.index("{") :])["alternatives"]}
    assert found["paillier"]["own"]
    for key in ("assumption", "rounds", "together"):
        assert found["paillier"][key] == found["pair"][key]
    sent = [found[name]["computing_bytes"] for name in ("paillier", "pair")]
    assert abs(sent[0] / sent[1] - 1) < 1e-3  # the model's answers are rounded by another study's hash


@pytest.mark.parametrize("name", ["pair", "paillier"])
def test_owners_that_do_not_compute_are_told_before_anything_runs(name: str, tmp_path: Path) -> None:
    changes = [(BACKEND[0], f'"{name}"'), ("merge3", "auto")]
    trial = split.write(tmp_path, count=60, changes=changes, party={"north": "compute = false"})
    [problem] = problems(trial.path)
    assert f'backend = "{name}" joins the columns of two parties that compute, and north does not;' in problem
    assert 'let the owners compute; use backend = "replicated"' in problem
    assert main(["check", str(trial.path)]) == 10


def test_plan_counts_ciphertexts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sent = []
    for changes in ([BACKEND], [BACKEND, SHARES]):
        trial = small.write(tmp_path / str(len(changes)), parties=3, changes=changes)
        assert main(["plan", str(trial.path), "--json"]) == 0
        text = capsys.readouterr().out
        sent.append(json.loads(text[text.index("{") :])["parties"][2]["bytes_sent"])
    assert sent[0] > sent[1]


@pytest.mark.slow
def test_a_whole_run(tmp_path: Path) -> None:
    """Two computing parties, one of them without data, and two contributors; at this epsilon noise is a few
    rows at most."""
    trial = small.write(
        tmp_path / "study",
        parties=4,
        count=120,
        data={"north": None},
        changes=[BACKEND, ("epsilon = 4.0", "epsilon = 400000.0")],
        party=dict.fromkeys(("north", "south"), "compute = true"),
    )
    finished = carry_out(tmp_path, trial)
    assert finished.run["backend"] == "paillier" and "Paillier" in finished.run["claim"]
    assert all(abs(noise) <= 9 * sigma + 1e-9 for noise, sigma in finished.deviations())
    assert max(sigma for _, sigma in finished.deviations()) < 1


@pytest.mark.slow
def test_two_owners_run_as_processes(tmp_path: Path) -> None:
    """What `pair` runs, whatever the input: tables of two owners, whose noise is a few people at this
    epsilon."""
    loud = ("epsilon = 4.0", "epsilon = 400.0")
    trial = split.write(tmp_path / "study", parties=2, changes=[BACKEND, ("merge3", "dh2"), loud])
    out = tmp_path / "out"
    end = run("run", trial.path, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    assert end.code == 0 and end.complaint == "", end
    said = json.loads((out / "run.json").read_text())
    assert said["backend"] == "paillier" and "Paillier" not in said["claim"]
    measured = json.loads((out / "measurements.json").read_text())["measurements"]
    assert any(len(one["clique"]) == 2 for one in measured)
    assert all(abs(noise) <= 9 * sigma + 1 for noise, sigma in trial.deviations(out))
