"""`evaluate` of linked tables: what is kept and what is lost is told apart, part by part."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mpc_protocols.errors import CosynthError, UsageError
from parties.data.linked.rows import CodedTables
from runner.api.run import Run
from runner.commands.cli import main
from runner.report.files import load
from runner.results.finished_run import agreed_study
from runner.results.linked import linked_of
from runner.review.evaluation.linked import LinkedEvaluation, judge_linked
from runner.review.evaluation.linked_rows import real_tables, released_tables
from runner.review.evaluation.linked_words import verdict
from runner.study.model import DataLocation
from tests.runner import linked
from tests.runner.test_linked import CLEAR, LOUD, PLAIN


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, and a folder `real` with all patients and visits."""
    directory = tmp_path_factory.mktemp("judged")
    trial = linked.write(directory, changes=[CLEAR, LOUD, PLAIN], count=300)
    assert main(["run", str(trial.path), "--out", str(directory / "out")]) == 0
    (directory / "real").mkdir()
    linked.write_csv(directory / "real" / "patients.csv", trial.patients, ("pid", "age", "sex"))
    linked.write_csv(directory / "real" / "visits.csv", trial.visits, ("pid", "day", "diag", "cost"))
    return directory


def opened(run: Path) -> tuple[Any, Any, CodedTables]:
    finished = load(run / "out")
    study = agreed_study(finished.facts, run / "out" / "run.json")
    return (
        finished,
        linked_of(finished.facts, finished.domain, run / "out"),
        real_tables(DataLocation(run / "real"), study, None),
    )


def test_tables_are_read_by_person_in_order_and_cut_as_a_run_cuts_them(run: Path) -> None:
    _, tables, real = opened(run)
    with (run / "real" / "visits.csv").open(newline="") as file:
        visits = list(csv.DictReader(file))
    with (run / "real" / "patients.csv").open(newline="") as file:
        people = [row["pid"] for row in csv.DictReader(file)]
    assert len(real.people) == len(people) == 900
    own = real.children["visits"]
    assert (np.diff(own.person) >= 0).all() and real.counts("visits").max() == linked.MOST
    for number in (3, 77, 500):
        days = sorted(int(row["day"][5:7]) - 1 for row in visits if row["pid"] == people[number])
        here = own.codes[own.person == number, 0].tolist()
        assert here == sorted(here) and len(here) == min(len(days), linked.MOST)
        if len(days) <= linked.MOST:
            assert here == days
    some = np.array([77, 3])
    cut = real.of_people(some)
    assert cut.people.tolist() == real.people[some].tolist()
    assert cut.counts("visits").tolist() == real.counts("visits")[some].tolist()
    assert cut.children["visits"].codes[cut.children["visits"].person == 1].tolist() == (
        own.codes[own.person == 3].tolist()
    )
    made = released_tables(run / "out", tables)
    assert (np.diff(made.children["visits"].person) >= 0).all()


def test_real_tables_judged_as_synthetic_ones_are_perfect_and_dealt_children_are_not(run: Path) -> None:
    finished, tables, real = opened(run)
    perfect = judge_linked(finished, tables, real, real, held_out=real, label="age")
    child = perfect.children[0]
    assert (
        child.counts.value == 0
        and perfect.people.distances[2].value == 0
        and child.rows.distances[2].value == 0
    )
    assert {(one.column, one.lag) for one in child.within} == {
        (name, lag) for name in ("day", "diag", "cost") for lag in (1, 2)
    }
    assert all(one.distance.value == 0 < (one.distance.apart or 0) for one in child.within)
    assert child.sums[0].column == "cost" and child.sums[0].distance.value == 0
    assert child.sums[0].mean[0] == child.sums[0].mean[1] and perfect.nearest.value == 0
    assert perfect.prediction is not None and perfect.prediction.value == perfect.prediction.real > 0.55
    said = " ".join(verdict(perfect))
    assert "Numbers of visits are right" in said and "lost" not in said and "look for copies" not in said

    rng = np.random.default_rng(3)
    own = real.children["visits"]
    dealt = CodedTables(real.people, {"visits": replace(own, codes=rng.permutation(own.codes))})
    lost = judge_linked(finished, tables, dealt, real)
    diag = next(one for one in lost.children[0].within if (one.column, one.lag) == ("diag", 1))
    assert diag.likeness.real > 0.3 > 0.15 > diag.likeness.table and not diag.likeness.kept
    assert diag.distance.value > 3 * diag.distance.real
    assert "lost: day, diag" in " ".join(verdict(lost))


def test_a_loud_run_is_judged_well_and_copies_and_missing_children_are_seen(run: Path) -> None:
    finished, tables, real = opened(run)
    made = released_tables(run / "out", tables)
    found = judge_linked(finished, tables, made, real)
    diag = next(one for one in found.children[0].within if (one.column, one.lag) == ("diag", 1))
    assert diag.likeness.kept and "Numbers of visits are right" in " ".join(verdict(found))
    assert "no closer to real ones" in " ".join(verdict(found))
    copied = judge_linked(finished, tables, real, real)
    assert "look for copies" in " ".join(verdict(copied))
    own = made.children["visits"]
    fewer = made.of_people(np.arange(len(made.people)))
    half = np.arange(0, len(own.person), 2)
    fewer = CodedTables(made.people, {"visits": replace(own, person=own.person[half], codes=own.codes[half])})
    said = " ".join(verdict(judge_linked(finished, tables, fewer, real)))
    assert "Numbers of visits are not right" in said and "cost over a person are not right" in said


def test_the_command_and_python(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [
        "--real",
        f"visits={run / 'real' / 'visits.csv'}",
        "--real",
        f"patients={run / 'real' / 'patients.csv'}",
    ]
    capsys.readouterr()
    assert main(["evaluate", str(run / "out"), *files, "--label", "visits_diag"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Not private") and "visits: diag and the next but one" in said
    assert "prediction of visits_diag" in said
    assert (
        main(
            ["evaluate", str(run / "out"), "--real", str(run / "real"), "--test", str(run / "real"), "--json"]
        )
        == 0
    )
    facts = json.loads(capsys.readouterr().out)
    assert facts["tables"]["visits"]["sums"][0]["column"] == "cost" and facts["note"].startswith(
        "Not private"
    )
    for more, sentence in (
        (
            ["--real", str(run / "real" / "visits.csv")],
            "name each once, as --real patients=FILE --real visits=FILE",
        ),
        ([*files, "--label", "height"], "the run has no such column; its columns are age, sex, visits_day"),
        ([*files, "--html", str(tmp_path / "page.html")], "--html is a page of one table"),
    ):
        assert main(["evaluate", str(run / "out"), *more]) == 2
        assert sentence in capsys.readouterr().err
    private = tmp_path / "own.toml"
    private.write_text(
        '[ledger]\nfile = "ledger.db"\ndataset = "clinic"\ncap_epsilon = 5.0\ncap_delta = 1e-5\n'
    )
    scored = ["evaluate", str(run / "out"), *files, "--private-score", "4", "--private", str(private)]
    assert main(scored) == 0 and "Private score: 0." in capsys.readouterr().out
    assert main(scored) == 50

    frames = {name: pd.read_csv(run / "real" / f"{name}.csv", dtype=str) for name in ("patients", "visits")}
    found = Run(run / "out", {}).evaluate(frames)
    assert isinstance(found, LinkedEvaluation) and "Numbers of visits" in str(found)
    with pytest.raises(UsageError, match="a frame of each"):
        Run(run / "out", {}).evaluate(frames["patients"])


def test_a_visit_of_nobody_is_refused_by_its_place(run: Path, tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("pid,age,sex\na,1,f\n")
    (tmp_path / "visits.csv").write_text("pid,day,diag,cost\na,2024-02-03,u,1\nZebra-9,2024-02-03,u,1\n")
    finished, _, _ = opened(run)
    with pytest.raises(CosynthError) as refused:
        real_tables(DataLocation(tmp_path), agreed_study(finished.facts, run / "out" / "run.json"), None)
    assert "visits.csv" in refused.value.sentence and "line 3" in refused.value.sentence
    assert "Zebra-9" not in refused.value.sentence
