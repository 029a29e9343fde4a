"""Studies that train a model: what is refused, and whole runs with real processes."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import stat
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from signal import SIGKILL

import numpy as np
import pytest

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.errors import BudgetRefused, StudyInvalid, UsageError
from parties.budget.ledger import Ledger
from runner.forecast import forecast
from runner.forecast.plan_text import words
from runner.party.custodian import Custodian
from runner.party.synthesis import plan_of
from runner.report import render
from runner.results.finished_run import open_run
from runner.study import VerticalStudy, load, private_file, problems
from runner.study.claim import claim_of
from runner.study.owners import Ownership
from runner.study.trained import check_owners, training_of
from synth.algorithm import ALGORITHMS
from tests.runner import trained
from tests.runner.processes import End, Program, events, eventually, happened, parties, run

PRIVATE = ("florist-passive.npz", "florist-active.npz", "calibration.json", "evaluation.json")


@pytest.fixture
def torch() -> None:
    """Skips where PyTorch is not installed."""
    pytest.importorskip("torch")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch is there, as far as a study's reader asks."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: object() if name == "torch" else find(name, *more)
    )


def vertical(path: Path) -> VerticalStudy:
    study = load(path)
    assert isinstance(study, VerticalStudy)
    return study


# -- the study
# ------------------------------------------------------------------------------------------------------------

BAD = {
    "no label": (('label = "ill"\n', ""), "[florist] label must name the column that the model predicts."),
    "another label": (
        ('label = "ill"', 'label = "well"'),
        'the column "well", which the domain does not have',
    ),
    "three values": (("ill = 2", "ill = 3"), 'names the column "ill" of 3 values; a label has two'),
    "not for research": (("research = true\n", ""), "is for research, without a sound claim or utility; use"),
    "neighbours answer": (
        ("cut = 8", 'labels = "neighbors"'),
        "[florist] label_epsilon cannot be kept with labels",
    ),
    "answers anew": (
        ("cut = 8", 'labels = "random-pred"'),
        "[florist] label_epsilon cannot be kept with labels",
    ),
    "a workload": (("[florist]", "[workload]\ndegree = 2\n\n[florist]"), "[workload] has no meaning with"),
    "one process": (('"replicated"', '"ideal"'), 'algorithm = "florist" trains between two; use'),
    "rows in order": (
        ('method = "psu"\nid = "person"', 'method = "row-order"'),
        '[alignment] method must have method = "psu"',
    ),
    "of the union": (
        ('id = "person"', 'id = "person"\npopulation = "union"'),
        "[alignment] population has no meaning",
    ),
    "by rows": (('"vertical"', '"horizontal"'), 'runs with partition = "vertical" only'),
    "a step of nothing": (
        ("batch = 16", "batch = 0"),
        "[florist] batch must be a whole number of at least 1",
    ),
    "a rate of 1": (
        ("cut = 8", "label_rate = 1.0"),
        "[florist] label_rate must be a number greater than 0 and less than 1",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_study_that_cannot_be_is_told_why(tmp_path: Path, installed: None, name: str) -> None:
    change, expected = BAD[name]
    path = trained.write(tmp_path, change)
    found = problems(path)
    assert any(expected in sentence for sentence in found), found
    with pytest.raises(StudyInvalid) as raised:
        load(path)
    assert raised.value.exit_code == 10


def test_what_is_not_installed_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "torch" else find(name, *more)
    )
    [sentence] = problems(trained.write(tmp_path))
    assert "run `python -m pip install 'torch>=2.13'` at every party" in sentence


def test_every_key_is_read_and_shown(tmp_path: Path, installed: None) -> None:
    config = ALGORITHMS["florist"].config
    study = load(trained.write(tmp_path))
    assert study.public()["florist"]["label_epsilon"] == 2.0 and "workload" not in study.public()
    for key in config.options():
        kept = [line for line in trained.STUDY.split("[florist]\n")[1].split("\n\n")[0].splitlines()]
        lines = [line for line in kept if not line.startswith(f"{key} =")]
        path = trained.write(tmp_path, ("\n".join(kept), "\n".join([*lines, f"{key} = []"])))
        assert f"{path}: [florist] {key} must be {config.options()[key].expected}, got []." in problems(path)


def test_two_owners_that_compute(tmp_path: Path, installed: None) -> None:
    study = vertical(trained.write(tmp_path))
    columns = {"age": "north", "work": "north", "region": "west", "ill": "south"}
    with pytest.raises(StudyInvalid, match="trains a model of two owners, and 3 parties own columns"):
        check_owners(study, Ownership(("north", "south", "west"), columns))
    two = Ownership(("north", "south"), {**columns, "region": "north"})
    check_owners(study, two)
    fourth = '\n[[party]]\nname = "east"\naddress = "127.0.0.1:7999"\n'
    path = trained.write(tmp_path / "other", ('name = "south"', 'name = "south"\ncompute = false'))
    path.write_text(path.read_text() + fourth)
    with pytest.raises(StudyInvalid, match="needs both owners to compute, and party south does not"):
        check_owners(vertical(path), two)


def test_a_plan_says_before_anything_runs_what_each_side_reads_off(tmp_path: Path, installed: None) -> None:
    responses = vertical(trained.write(tmp_path))
    said = words(responses, forecast(responses, 1000))
    assert "the owner without the label: reads every response" in said and "2-differentially private" in said
    plain = vertical(trained.write(tmp_path, ("label_epsilon = 2.0\n", 'labels = "majority"\n')))
    expected = forecast(plain, 1000)
    said = words(plain, expected)
    assert "reads every label that is trained on" in said and "certainly held by the other owner" in said
    assert "claim: No privacy claim" in said and claim_of(plain).startswith("No privacy claim")
    assert expected.questions["training_bytes"][0] > 2 * 4 * 8 * 1000


def test_the_budget_of_what_is_released_and_of_what_goes_beside_it(tmp_path: Path, installed: None) -> None:
    study = vertical(trained.write(tmp_path))
    plan, training = plan_of(study), training_of(study)
    assert training is not None
    rate, asked = training.rate_event(plan), training.evaluation(plan)
    assert rate is not None and asked is not None and rate.rho <= Fraction(1, 1000)
    assert rate.rho + plan.charges.measuring(asked.sigma2) <= plan.budget.rho_cap
    [response] = training.own_events(plan, True)
    assert response.what == "label" and response.rho == Fraction(2)
    assert plan.beside(("ill",)) == (Fraction(2), Fraction(0))
    [none] = training.own_events(plan, False)
    assert none.detail == {"claim": "none", "of": "features"}
    model = training.own_model(plan, study.domain.subset(("age", "work", "region")))
    assert model is not None and plan.beside(("age", "work", "region"))[0] == model[1].budget.rho_cap
    own = plan_of(load(trained.write(tmp_path, ("cut = 8", 'evaluation = "own"\nlabel_rate = 0.3'))))
    assert training.evaluation(own) is None and training.rate_event(own) is None
    with pytest.raises(StudyInvalid, match="leaves nothing for the evaluation"):
        plan_of(load(trained.write(tmp_path, ("epsilon = 2.0\ndelta", "epsilon = 0.01\ndelta"))))


def test_a_training_is_not_resumed(tmp_path: Path, installed: None) -> None:
    backend = BACKENDS["replicated"]
    assert isinstance(backend, DistributedBackend) and backend.resumes
    assert not load(trained.write(tmp_path)).resumes


OPEN = ("label_epsilon = 2.0\n", "")


@pytest.mark.parametrize(
    ("name", "changes", "refused"),
    [("south", (), False), ("north", (), True), ("south", (OPEN,), True), ("north", (OPEN,), True)],
    ids=["responses", "features", "open labels", "features beside open labels"],
)
def test_a_cap_refuses_what_no_epsilon_bounds(
    tmp_path: Path, installed: None, name: str, changes: tuple[tuple[str, str], ...], refused: bool
) -> None:
    """Before anything is charged; the owner of labels that are responses is counted, and kept to its cap, as
    in any study."""
    study = vertical(trained.write(tmp_path, *changes))
    ledger = private_file.LedgerSettings(tmp_path / "ledger.db", cap_epsilon=1000.0, cap_delta=1e-6)
    own = private_file.Private(ledger=ledger)
    party = Custodian(study, name, own, study.party(name).data, one_machine=True)
    if not refused:
        party.reserve(plan_of(study), bytes(32), bytes(32), True)
        assert [entry.reservation.dataset for entry in Ledger(ledger.file).entries()] == [f"trained/{name}"]
        party.close()
        return
    with pytest.raises(
        BudgetRefused, match="no privacy claim and cannot be counted against the cap"
    ) as error:
        party.reserve(plan_of(study), bytes(32), bytes(32), True)
    assert error.value.exit_code == 50
    assert not Ledger(ledger.file).entries()


# -- whole runs
# -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, End]]:
    pytest.importorskip("torch")
    directory = tmp_path_factory.mktemp("florist")
    path = trained.write(directory / "study")
    end = run(
        "run", path, "--out", directory / "out", ledger=directory / "ledger.db", scratch=directory / "scratch"
    )
    assert end.code == 0 and end.complaint == "", end
    assert not parties(directory)
    yield directory, end


def test_each_owner_has_its_half_and_nobody_else(finished: tuple[Path, End]) -> None:
    out = finished[0] / "out"
    where = {name: [path.parent.name for path in sorted(out.rglob(name))] for name in PRIVATE}
    assert where == {
        "florist-passive.npz": ["north"],
        "florist-active.npz": ["south"],
        "calibration.json": ["south"],
        "evaluation.json": [],
    }
    for name in PRIVATE[:3]:
        [path] = out.rglob(name)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for name in PRIVATE[:2]:
        [path] = out.rglob(name)
        with np.load(path, allow_pickle=False) as half:
            head = json.loads(half["head"].tobytes())
            assert head["run"] == json.loads((out / "run.json").read_text())["session"]
            assert head["half"] in name and all(np.isfinite(half[key]).all() for key in half.files)
    assert not list(out.rglob("synthetic.csv")) and not list(out.rglob("model.npz"))


def test_what_everybody_gets_says_first_what_is_not_claimed(finished: tuple[Path, End]) -> None:
    out, end = finished[0] / "out", finished[1]
    facts = json.loads((out / "run.json").read_text())
    assert facts["rows"] == 0 and facts["model"]["owners"] == {"active": "south", "passive": "north"}
    assert (
        set(facts["evaluation"]) == {"auc", "ace", "people", "rho"} and 0 <= facts["evaluation"]["auc"] <= 1
    )
    assert [event["what"] for event in facts["privacy"]["events"]] == ["label-rate", "measure"]
    assert facts["privacy"]["rho_spent"] <= facts["privacy"]["rho"]
    assert facts["claim"] in end.output and "2-differentially private" in facts["claim"]
    report = (out / "report.html").read_text()
    first = report.index('<p class="warning">')
    assert "reads every response" in report[first : report.index("</p>", first)]
    for name in trained.PARTIES:
        own = json.loads((out / "parties" / name / "run.json").read_text())
        assert {**own, "deployment": ""} == {**facts, "deployment": ""}
    render(out)
    assert (out / "report.html").read_text() == report


def test_nothing_of_the_unions_size_is_handed_out(finished: tuple[Path, End]) -> None:
    """300 people in steps of 16, twice: more than 60 rounds, which are in no count."""
    facts = json.loads((finished[0] / "out" / "run.json").read_text())
    [fit] = [phase for phase in facts["phases"] if phase["name"] == "fit"]
    assert fit == {"name": "fit", "wall_s": 0.0, "rounds": 0, "bytes_sent": 0, "withheld": True}
    assert max(party["rounds"] for party in facts["parties"]) < 60
    for name in trained.PARTIES:
        for event in events(finished[0] / "out" / "parties" / name / "events.jsonl"):
            assert event["phase"] != "fit" or (event["t"] == 0 and event.get("bytes_sent", 0) < 100), event


def test_there_is_nothing_to_sample(finished: tuple[Path, End]) -> None:
    with pytest.raises(UsageError, match="makes no table"):
        open_run(finished[0] / "out")


def test_ledgers_keep_what_was_shown_beside_the_budget(finished: tuple[Path, End]) -> None:
    directory = finished[0]
    spent = {entry.reservation.dataset: entry for entry in Ledger(directory / "ledger.db").entries()}
    south = [begun.event for begun in spent["trained/south"].events]
    [label] = [event for event in south if event.what == "label"]
    assert label.rho == 2 and label.detail["epsilon"] == 2.0
    north = [begun.event for begun in spent["trained/north"].events]
    assert any(event.what.startswith("features.") for event in north)
    assert [event.detail["of"] for event in north if event.detail.get("claim") == "none"] == ["features"]
    told = run("ledger", "show", "--all", ledger=directory / "ledger.db", scratch=directory / "scratch")
    assert "no privacy claim: in the run of trained with south, west the features were open" in told.output


def test_its_halves_predict(finished: tuple[Path, End], tmp_path: Path) -> None:
    directory = finished[0]
    asked, ledger = tmp_path / "asked.csv", tmp_path / "ledger.db"
    asked.write_text("person\np1\np2\n")
    shutil.copy(directory / "ledger.db", ledger)
    end = run(
        *("predict", directory / "out", directory / "study" / "study.toml", "--people", asked),
        ledger=ledger,
        scratch=tmp_path,
    )
    assert end.code == 0 and end.output.count("\n") == 3, end


def test_a_party_under_a_cap_takes_no_part_in_what_has_no_claim(tmp_path: Path, torch: None) -> None:
    path, own = trained.write(tmp_path / "study"), tmp_path / "north.toml"
    own.write_text('[ledger]\nfile = "own.db"\ncap_epsilon = 1000.0\ncap_delta = 1e-6\n')
    end = run(
        *("run", path, "--out", tmp_path / "out", "--private", f"north={own}"),
        ledger=tmp_path / "ledger.db",
        scratch=tmp_path / "scratch",
    )
    assert end.code == 50 and "cannot be counted against the cap of trained/north" in end.complaint, end
    assert not list((tmp_path / "out").rglob("*.npz"))
    assert not Ledger(tmp_path / "own.db").entries()
    for entry in Ledger(tmp_path / "ledger.db").entries():  # of south, if it had got so far
        assert not entry.events and entry.state == "settled"


def test_a_peer_that_dies_in_the_middle_is_named(tmp_path: Path, torch: None) -> None:
    path = trained.write(tmp_path / "study", ("epochs = 2", "epochs = 1000"))
    out = tmp_path / "out"
    program = Program("run", path, "--out", out, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
    try:
        assert eventually(lambda: happened(out / "parties" / "north" / "events.jsonl", "fit", "epoch"))

        os.kill(parties(tmp_path)["north"], SIGKILL)
        end = program.end()
    finally:
        program.kill()
    assert end.code == 41 and "north" in end.complaint and end.complaint.count("\n") == 1, end
    assert not list(out.rglob("*.npz")) and not (out / "run.json").exists()
    assert eventually(lambda: not parties(tmp_path))
