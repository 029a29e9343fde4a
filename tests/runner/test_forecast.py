"""`plan` against `run`: rounds and bytes of every party within a factor of 1.5."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from runner.__main__ import main
from runner.api.conditions import allowed
from runner.commands.prepare.plan import Meter
from runner.forecast.intervals import foretold
from runner.forecast.presumed.presumed_tables import PresumedTable
from runner.forecast.trial import rehearsed
from runner.party.synthesis import plan_of
from runner.study import Study, load
from synth.algorithm import ALGORITHMS
from synth.budget.accounting import Accountant
from synth.inference import infer
from synth.judgement.metrics import marginal
from tests.runner import split
from tests.runner.processes import run
from tests.runner.studies import STUDY, write_study
from tests.runner.test_vertical_runs import carry_out
from tests.synth.oracles import counts_of
from tests.worlds.ports import free_ports

SIZES = {"a": 12, "b": 7, "c": 3, "d": 20, "e": 2}


def study_of(directory: Path, *changes: tuple[str, str]) -> Path:
    """Five columns that depend on one another, 3,000 rows at three custodians."""
    draw = random.Random(7)
    for name in ("north", "south", "west"):
        lines = []
        for _ in range(1000):
            kind = draw.random()
            drawn = [kind if draw.random() < 0.5 else draw.random() for _ in SIZES]
            lines.append(
                ",".join(str(int(size * place**2)) for size, place in zip(SIZES.values(), drawn, strict=True))
            )
        (directory / f"{name}.csv").write_text("\n".join([",".join(SIZES), *lines]) + "\n")
    (directory / "domain.json").write_text(json.dumps(SIZES))
    text = (
        STUDY[: STUDY.index("[domain.columns.age]")]
        + '[domain]\nfile = "domain.json"\n'
        + STUDY[STUDY.index("[session]") :]
    )
    moved = [(f"127.0.0.1:{7101 + i}", f"127.0.0.1:{port}") for i, port in enumerate(free_ports(3))]
    return write_study(directory, *moved, *changes, text=text)


def as_far_apart(out: Path) -> tuple[str, str]:
    """Options of `plan` for parties as far apart as those of a run measured themselves, which rests on how busy
    the machine was."""
    events = map(json.loads, (out / "events.jsonl").read_text().splitlines())
    delay_us = next(event["delay_us"] for event in events if event["event"] == "paced")
    return "--delay-ms", str(delay_us / 1000)


def predicted_and_counted(
    directory: Path, study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    monkeypatch.setenv("COSYNTH_LEDGER", str(directory / "ledger.db"))
    assert main(["run", str(study), "--out", str(directory / "out")]) == 0
    capsys.readouterr()
    assert main(["plan", str(study), "--json", *as_far_apart(directory / "out")]) == 0
    plan = json.loads(capsys.readouterr().out)
    return plan, json.loads((directory / "out" / "run.json").read_text())


def test_plan_foretells_that_parties_far_apart_take_fewer_rounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, told = str(study_of(tmp_path)), []
    for options in ([], ["--delay-ms", "1"], ["--delay-ms", "20"]):
        capsys.readouterr()
        assert main(["plan", study, "--json", *options]) == 0
        told.append(json.loads(capsys.readouterr().out)["rounds"])
    near, close, far = told
    assert near >= close > far


def level(told: Mapping[str, Any]) -> float:
    """What the busiest party sends, as a multiple of the mean."""
    sent = [party["bytes_sent"] for party in told["parties"]]
    return float(max(sent) * len(sent) / sum(sent))


def test_registered_questions_are_foretold_and_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three processes: what they send, too; triples, so that a marginal of three columns is measured whatever AIM
    selects."""
    registered = "[inference]\nqueries = ['mean(a | e == 1) | c', 'corr(b, d)']\nshare = 0.3\n[session]"
    study = study_of(tmp_path, ("[session]", registered))
    plan, run = predicted_and_counted(tmp_path, study, capsys, monkeypatch)
    assert plan["rows"] == 3000 and "tables on this machine" in plan["rows_from"]
    for expected, counted in zip(plan["parties"], run["parties"], strict=True):
        assert expected["name"] == counted["name"]
        assert 1 / 1.5 < expected["bytes_sent"] / counted["bytes_sent"] < 1.5
        assert 1 / 1.5 < plan["rounds"] / counted["rounds"] < 1.5
    assert level(plan) == pytest.approx(level(run), abs=0.1)
    assert plan["privacy"]["rho"] == pytest.approx(run["privacy"]["rho"])
    assert [one["name"] for one in plan["intervals"]] == [
        *(f"mean(a | e == 1): c = {code}" for code in range(3)),
        "corr(b, d)",
    ]
    assert run["public_study"]["inference"]["cliques"] == [["a", "c", "e"], ["b", "d"]]
    capsys.readouterr()
    assert main(["infer", str(tmp_path / "out"), "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert [one["name"] for one in answers] == [one["name"] for one in plan["intervals"]]
    assert all(one["licence"] == "measured" for one in answers)
    assert main(["verify", str(tmp_path / "out")]) == 0
    assert main(["plan", str(study)]) == 0
    assert "30% of the budget is theirs" in capsys.readouterr().out


def test_on_rows_like_the_runs_own_the_widths_come_out_as_foretold(tmp_path: Path) -> None:
    """MST, whose tree may measure a registered pair once more: then the interval is narrower than foretold."""
    text = study_of(
        tmp_path,
        ("[session]", "[inference]\nqueries = ['mean(a) | c', 'corr(b, d)']\n[session]"),
        ('"aim"', '"mst"'),
        ("[aim]\nrounds = 4", ""),
    )
    study = load(text)
    plan = plan_of(study)
    rows = np.concatenate(
        [
            np.loadtxt(tmp_path / f"{name}.csv", np.int64, delimiter=",", skiprows=1)
            for name in ["north", "south", "west"]
        ]
    )
    expected = foretold(study, plan, len(rows), rows)
    facts = StudyFacts(study.domain.sizes, "add-remove", 1, 1 << 20, bytes(32))
    ratios = []
    for seed in range(5):
        oracle = IdealOracle(
            facts, counts_of(rows, study.domain), Accountant(plan.budget), np.random.default_rng(seed).bytes
        )
        got = ALGORITHMS["mst"].run(oracle, plan, unobserved)
        answers = infer(
            study.inference.queries if study.inference else (),
            study.domain,
            got.model,
            got.measurements,
            {"privacy": {"events": []}},
            lambda name, value: allowed(study.domain, {name: value})[name],
        )
        ratios.append([(a.high - a.low) / 2 / e.half for a, e in zip(answers, expected, strict=True)])  # type: ignore[operator]
    assert np.all((np.array(ratios) > 0.75) & (np.array(ratios) < 1.15))


def test_what_a_run_selects_besides_is_in_the_widths_that_are_foretold() -> None:
    """AIM at 600 rows: its own picks sharpen what is registered for little of the budget by two fifths, and the tries have
    that; five runs with other noise than theirs, seeded."""
    draw = np.random.default_rng(5)
    kind = draw.random((600, 1))
    drawn = np.where(draw.random((600, len(SIZES))) < 0.5, kind, draw.random((600, len(SIZES))))
    rows = (np.array(list(SIZES.values())) * drawn**2).astype(np.int64)
    queries = ["mean(a) | c", "corr(b, d)", "share(e == 1 | c == 0)"]
    study = Study.of(
        "widths",
        SIZES,
        ["one", "two", "three"],
        epsilon=2.0,
        delta=1e-5,
        algorithm="aim",
        backend="ideal",
        aim={"rounds": 8},
        inference={"queries": queries, "share": 0.06},
    )
    plan = plan_of(study)
    expected = foretold(study, plan, len(rows), rows)
    usual, alone = [], []
    for seed in range(100, 105):
        got = rehearsed(study, lambda clique: marginal(rows, study.domain, clique), len(rows), seed)
        answers = infer(
            queries,
            study.domain,
            got.model,
            got.measurements,
            {"privacy": {"events": []}},
            lambda name, value: allowed(study.domain, {name: value})[name],
        )
        for answer, one in zip(answers, expected, strict=True):
            if answer.low is not None and answer.high is not None and one.half and one.widest:
                usual.append((answer.high - answer.low) / 2 / one.half)
                alone.append((answer.high - answer.low) / 2 / one.widest)
    assert len(usual) >= 20
    assert 1 / 1.15 < np.median(usual) < 1.15
    assert np.median(alone) < 1 / 1.15


@pytest.mark.slow
def test_plan_bounds_an_adaptive_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(tmp_path, ("rounds = 4", 'rounds = "adaptive"'))
    plan, run = predicted_and_counted(tmp_path, study, capsys, monkeypatch)
    sent = sum(party["bytes_sent"] for party in run["parties"])
    low, high = plan["range"]["bytes_sent"]
    assert low <= sent <= high and low <= plan["bytes_sent"] <= high
    low, high = plan["range"]["rounds"]
    assert all(low <= party["rounds"] <= high for party in run["parties"])


def test_the_text_says_what_it_costs_and_who_learns_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = study_of(tmp_path)
    assert main(["plan", str(study), "--rows", "20000"]) == 0
    text = capsys.readouterr().out
    for words in (
        "epsilon 1, delta 1e-09",
        "for about 20,000 rows (from --rows)",
        "north      sends",
        "rounds, ",
        "MB at the party that takes most",
        "who learns what",
        "nobody: another party's records",
    ):
        assert words in text
    (tmp_path / "ideal").mkdir()
    labelled = ("degree = 2", 'degree = 2\nlabel = "sex"')
    assert "every marginal of the workload" not in text
    assert main(["plan", str(write_study(tmp_path / "ideal", ('"replicated"', '"ideal"'), labelled))]) == 0
    text = capsys.readouterr().out
    assert "every marginal of the workload has the column sex" in text
    assert "protects nothing" in text and "max_rows in the study" in text and "learns every record" in text


def offered(run: Path) -> list[int]:
    """Of how many candidates each round of a run chose one, as its report says."""
    lines = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    return [line["candidates"] for line in lines if line["event"] == "selected"]


def test_the_text_says_why_fewer_candidates_are_offered_than_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run leaves out those that cannot win once it knows its noisy total; `plan` says for which rows it
    expects how many."""
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    # at this noise a marginal of more than 185 cells cannot win; the noisy total would have to be off by 18
    # sd to say 140 or 240
    many = ("rounds = 4", "rounds = 24")
    study = study_of(tmp_path, ('"replicated"', '"ideal"'), ("epsilon = 1.0", "epsilon = 0.8"), many)
    assert main(["run", str(study), "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["plan", str(study), "--json"]) == 0
    asked = json.loads(capsys.readouterr().out)["questions"]
    low, high = asked["offered"]
    assert (asked["candidates"], high) == (15, 14)
    assert all(low <= count <= high for count in offered(tmp_path / "out"))
    assert main(["plan", str(study)]) == 0
    text = capsys.readouterr().out
    assert f"which of {asked['candidates']} marginals is worst" in text
    chosen = f"{low}" if low == high else f"{low} to {high}"
    assert (
        f"for about 3,000 rows a round chooses one of {chosen} of them; left out are those whose noise"
        in text
    )
    # where nothing is left out there is nothing to explain
    easy = study_of(tmp_path, ("epsilon = 1.0", "epsilon = 5.0"))
    assert main(["plan", str(easy)]) == 0
    assert "left out" not in capsys.readouterr().out


def test_invented_marginals_are_marginals() -> None:
    sizes = {"x": 6, "y": 9, "z": 2}
    wide, x, y = PresumedTable(sizes, 10_000).counts([("x", "y", "z"), ("x",), ("y",)])
    cube = wide.reshape(6, 9, 2)
    assert wide.min() >= 0 and wide.sum() == x.sum() == y.sum() == 10_000
    # every cell is rounded by less than 1, a sum over k cells in a row by less than 1, over k scattered ones
    # by less than k
    assert np.abs(cube.sum((1, 2)) - x).max() <= 1 and np.abs(cube.sum((0, 2)) - y).max() <= 12


@pytest.mark.parametrize("variant", ["helper", "outside"])
def test_plan_predicts_a_vertical_run(tmp_path: Path, variant: str) -> None:
    """The real traffic stands in private logs only. Lists and overlap are as assumed; what is selected is
    not."""
    changes = [("merge3", variant)] if variant == "helper" else []
    held = {"north": range(300), "south": range(150, 450)}
    kwargs: dict[str, Any] = {}
    if variant == "outside":  # two owners that only contribute; a union
        changes = [('population = "intersection"', 'population = "union"'), ('"replace"', '"add-remove"')]
        held = {"east": held["north"], "hill": held["south"]}
        kwargs = {
            "own": dict(zip(held, split.TWO.values(), strict=True)),
            "parties": 5,
            "party": dict.fromkeys(("north", "south", "west"), "compute = true"),
        }
    trial = split.write(tmp_path / "study", count=450, held=held, changes=changes, **kwargs)
    finished = carry_out(tmp_path, trial)
    asked = trial.path, "--rows", 300, "--json", *as_far_apart(finished.out)
    plan = run("plan", *asked, ledger=tmp_path / "l", scratch=tmp_path / "p")
    assert plan.code == 0, plan
    expected = json.loads(plan.output)
    phases = {
        party: {phase["name"]: phase["bytes_sent"] for phase in finished.whole(party)}
        for party in trial.names
    }
    for party in expected["parties"]:
        counted = sum(phases[party["name"]].values())
        assert 0.75 < party["bytes_sent"] / counted < 1.35, (party, phases[party["name"]])
    joining = expected["joining"]
    aligned = sum(sent["align"] for sent in phases.values())
    assert 0.95 < joining["bytes_sent"] / aligned < 1.05 and joining["records"] == 300
    assert (
        joining["views"] == finished.run["alignment"]["views"]
        and joining["owners"] == finished.run["alignment"]["owners"]
    )
    rounds = max(phase["rounds"] for phase in finished.whole("west") if phase["name"] == "align")
    assert abs(joining["rounds"] - rounds) <= max(3, 0.1 * rounds)


def test_plan_presumes_what_only_private_files_say(tmp_path: Path) -> None:
    """No party's data or columns are in the study: columns are dealt out, and the text says so."""
    trial = split.write(tmp_path, changes=[('adjacency = "replace"', 'adjacency = "add-remove"')])
    trial.path.write_text(
        "".join(
            line
            for line in trial.path.read_text().splitlines(keepends=True)
            if not line.startswith("data = ")
        )
    )
    end = run("plan", trial.path, "--rows", 5000, ledger=tmp_path / "l", scratch=tmp_path / "p")
    assert end.code == 0, end
    for words in (
        "records by person inside the three-party computation (merge3)",
        "north: age, income, sick (presumed",
        "for about 5,000 records at each owner (from --rows), half of them common to all",
        "joining    ",
        "west, from joining: the lengths of the owners' lists",
        "together with the results epsilon ",
        "nobody: another owner's records, or which of its own another owner holds",
    ):
        assert words in end.output, words


def test_a_dry_run_shows_how_far_it_is_on_a_terminal_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        with Meter(stream) as meter:
            for share in (0.101, 0.1012, 1.0001):
                meter.show(share)
    lines = terminal.getvalue().split("\r")
    assert [line.strip() for line in lines if line.strip()] == [
        "dry run: 10% of the budget spent",
        "dry run: 100% of the budget spent",
    ]
    assert lines[-1] == "" and pipe.getvalue() == ""


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_question_that_the_noise_refuses_in_some_tries_is_foretold_number_by_number() -> None:
    """Refused as a whole it has one answer, else one for each coefficient: 60 rows, three of whose values nearly nobody has."""
    rows = np.stack([np.arange(60) % 2, np.minimum(np.arange(60) % 9, 3)], 1).astype(np.int64)
    study = Study.of(
        "few",
        {"y": 2, "x": 4},
        ["one", "two", "three"],
        epsilon=1.0,
        delta=1e-5,
        algorithm="mosaic",
        backend="ideal",
        inference={"queries": ["y ~ C(x)", "share(y == 1)"], "share": 0.3},
    )
    for number in (60, 120, 240, 480):
        found = foretold(study, plan_of(study), number, rows[np.arange(number) % 60])
        assert all(one.half is not None or one.reason for one in found)
        assert found[-1].name == "share(y == 1)" and found[-1].half is not None
