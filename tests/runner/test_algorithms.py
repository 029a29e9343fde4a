"""`mwem` and `mst` from the study file to the files of a run: tables, plan, check, and whole runs with real
processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import StudyInvalid
from runner.__main__ import main
from runner.party.synthesis import plan_of
from runner.study import load
from synth.algorithms.mst.config import MstConfig
from synth.algorithms.mwem.config import MwemConfig
from tests.runner.studies import write_study
from tests.runner.test_forecast import SIZES, predicted_and_counted, study_of

TABLES = {"mwem": "[mwem]\nrounds = 3", "mst": "[mst]"}


def changes(algorithm: str, table: str | None = None) -> tuple[tuple[str, str], tuple[str, str]]:
    return ('algorithm = "aim"', f'algorithm = "{algorithm}"'), (
        "[aim]\nrounds = 4",
        table or TABLES[algorithm],
    )


def test_the_tables_of_the_contract(tmp_path: Path) -> None:
    table = "[mwem]\nrounds = 7\nmax_model_mb = 2\nprune = false\nsynthetic_rows = 50"
    study = load(write_study(tmp_path, *changes("mwem", table)))
    assert plan_of(study).config == MwemConfig(rounds=7, max_model_mb=2.0, prune=False, synthetic_rows=50)
    assert study.public()["mwem"] == {"rounds": 7, "max_model_mb": 2.0, "prune": False, "synthetic_rows": 50}
    study = load(write_study(tmp_path, *changes("mst", "[mst]\nmax_model_mb = 2\nsynthetic_rows = 50")))
    assert plan_of(study).config == MstConfig(max_model_mb=2.0, synthetic_rows=50)
    assert study.public()["mst"] == {"max_model_mb": 2.0, "synthetic_rows": 50}


@pytest.mark.parametrize(("algorithm", "config"), [("mwem", MwemConfig()), ("mst", MstConfig())])
def test_no_table_means_the_defaults(tmp_path: Path, algorithm: str, config: object) -> None:
    study = load(
        write_study(tmp_path, ('algorithm = "aim"', f'algorithm = "{algorithm}"'), ("[aim]\nrounds = 4", ""))
    )
    assert plan_of(study).config == config


@pytest.mark.parametrize(
    ("algorithm", "table", "words"),
    [
        ("mwem", "[mwem]\nselect_share = 0.5", '[mwem] unknown key "select_share"'),
        ("mwem", '[mwem]\nrounds = "adaptive"', "[mwem] rounds must be a whole number"),
        ("mst", "[mst]\nprune = true", '[mst] unknown key "prune"'),
        ("mst", "[mst]\nrounds = 2", '[mst] unknown key "rounds"'),
        ("mst", "[mst]\n[mwem]", '[mwem] has no meaning with algorithm = "mst"'),
    ],
)
def test_keys_that_the_algorithm_does_not_have(
    tmp_path: Path, algorithm: str, table: str, words: str
) -> None:
    with pytest.raises(StudyInvalid) as raised:
        load(write_study(tmp_path, *changes(algorithm, table)))
    assert words in raised.value.sentence


@pytest.mark.parametrize(
    ("algorithm", "events", "asked"),
    [
        (
            "mwem",
            ["total", *["select", "measure"] * 3],
            "the number of rows, then 3 rounds: which of 10 cliques",
        ),
        ("mst", ["measure", *["select"] * 4, "measure"], "each column once, then 4 times which of 10 pairs"),
    ],
)
def test_a_run_among_three_parties(
    tmp_path: Path,
    algorithm: str,
    events: list[str],
    asked: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enough = ("epsilon = 1.0", "epsilon = 9.0")  # for 3,000 rows: else the table is small
    study = study_of(tmp_path, *changes(algorithm), enough)
    plan, run = predicted_and_counted(tmp_path, study, capsys, monkeypatch)
    for expected, counted in zip(plan["parties"], run["parties"], strict=True):
        assert 1 / 1.5 < expected["bytes_sent"] / counted["bytes_sent"] < 1.5
        assert 1 / 1.5 < plan["rounds"] / counted["rounds"] < 1.5
    assert run["algorithm"] == algorithm
    assert [event["what"] for event in run["privacy"]["events"]] == events
    spent, cap = sum(event["rho"] for event in run["privacy"]["events"]), run["privacy"]["rho"]
    assert 0.99 * cap <= spent <= cap * (1 + 1e-12)  # a sum of rounded numbers
    measured: list[Any] = json.loads((tmp_path / "out" / "measurements.json").read_text())["measurements"]
    assert [m["clique"] for m in measured if m["round"]] == run["selected"]
    assert [m["clique"] for m in measured if not m["round"]] == (
        [[name] for name in SIZES] if algorithm == "mst" else []
    )
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    assert main(["check", str(study)]) == 0
    assert main(["plan", str(study)]) == 0
    assert asked in capsys.readouterr().out
