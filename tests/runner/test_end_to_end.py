"""Whole runs with real processes, TLS and files: what the contract promises (`docs/reference/outputs.md`),
and that it is true of the data.

Statistical assertions state their false-alarm rate; together they are below 1.5e-6 per execution of this
file.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mpc_protocols.errors import DataRefused, UsageError
from runner.study import load
from synth.budget.accounting import rho_of
from tests.runner import small
from tests.runner.processes import CONTRACT_FILES, End, events, parties, run

PHASES = ("connect", "agree", "input", "align", "select", "measure", "fit", "sample", "report")


class Finished:
    """A run that succeeded: its study and its files."""

    def __init__(self, trial: small.Trial, out: Path, end: End | None = None) -> None:
        self.trial, self.out, self.end = trial, out, end
        self.run: dict[str, Any] = json.loads((out / "run.json").read_text())
        self.measurements: dict[str, Any] = json.loads((out / "measurements.json").read_text())
        with (out / "synthetic.csv").open(newline="") as file:
            self.header, *self.rows = list(csv.reader(file))

    def deviations(self) -> list[tuple[float, float]]:
        """(noisy - true, sigma) of every measured cell, against counts made by plain Python."""
        return self.trial.deviations(self.out)


def carry_out(directory: Path, trial: small.Trial) -> Finished:
    out = directory / "out"
    end = run("run", trial.path, "--out", out, ledger=directory / "ledger.db", scratch=directory / "scratch")
    assert end.code == 0 and end.complaint == "", end
    assert not parties(directory)
    return Finished(trial, out, end)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """Three custodians, all of which compute; fixed rounds."""
    directory = tmp_path_factory.mktemp("base")
    yield carry_out(directory, small.write(directory / "study"))


@pytest.fixture(scope="module")
def generous(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """Six parties, one of which only computes and three only contribute; hardly any noise."""
    directory = tmp_path_factory.mktemp("generous")
    trial = small.write(
        directory / "study",
        parties=6,
        count=120,
        data={"north": None},
        changes=[("epsilon = 4.0", "epsilon = 400.0")],
        party=dict.fromkeys(("north", "south", "hill"), "compute = true"),
    )
    yield carry_out(directory, trial)


@pytest.fixture(scope="module")
def adaptive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """Adaptive rounds, replace adjacency, every candidate shared and scored."""
    directory = tmp_path_factory.mktemp("adaptive")
    trial = small.write(
        directory / "study",
        changes=[
            ("rounds = 3", 'rounds = "adaptive"\nprune = false\nsynthetic_rows = 500\nselect_share = 0.3'),
            ('adjacency = "add-remove"', 'adjacency = "replace"'),
        ],
    )
    yield carry_out(directory, trial)


@pytest.fixture(scope="module")
def ideal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    directory = tmp_path_factory.mktemp("ideal")
    yield carry_out(directory, small.write(directory / "study", changes=[("replicated", "ideal")]))


ALL = ("base", "generous", "adaptive", "ideal")


@pytest.fixture(params=ALL)
def finished(request: pytest.FixtureRequest) -> Finished:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Finished)
    return found


def check_shape(run: dict[str, Any], names: tuple[str, ...]) -> None:
    """Every key of `docs/reference/outputs.md` with its type; bool is no int."""

    def typed(table: dict[str, Any], **types: type) -> None:
        for key, kind in types.items():
            assert type(table[key]) is kind, (key, table[key])

    typed(
        run,
        study=str,
        algorithm=str,
        backend=str,
        partition=str,
        deployment=str,
        rows=int,
        wall_s=float,
        privacy=dict,
        selected=list,
        phases=list,
        parties=list,
    )
    assert run["deployment"] in ("one-machine", "distributed")
    typed(run["privacy"], epsilon=float, delta=float, rho=float, adjacency=str, unit=str, events=list)
    for event in run["privacy"]["events"]:
        typed(event, what=str, rho=float)
    for clique in run["selected"]:
        assert type(clique) is list and all(type(column) is str for column in clique)
    for phase in run["phases"]:
        typed(phase, name=str, wall_s=float, rounds=int, bytes_sent=int)
        assert phase["wall_s"] >= 0 and phase["rounds"] >= 0 and phase["bytes_sent"] >= 0
    assert [party["name"] for party in run["parties"]] == list(names)
    for party in run["parties"]:
        typed(party, bytes_sent=int, bytes_received=int, rounds=int)
    order = [
        PHASES.index(phase["name"]) for phase in run["phases"]
    ]  # known, each once, in the contract's order
    assert order == sorted(set(order))


def test_contract_files(finished: Finished) -> None:
    found = {entry.name for entry in finished.out.iterdir()}
    assert found >= CONTRACT_FILES and found - CONTRACT_FILES <= {".cosynth", "parties", "signatures.json"}
    assert ("signatures.json" in found) == (finished.run["backend"] != "ideal")
    assert not [
        entry for entry in finished.out.rglob("*") if "partial" in entry.name or entry.name.endswith(".part")
    ]


def test_what_lies_beside_the_results_tells_no_custodians_counts(finished: Finished) -> None:
    """All of DIR but DIR/parties may be passed on: how many rows a custodian read is in its private log and
    nowhere else."""
    logs = [*finished.out.glob("parties/**/private.log")]
    told = "".join(log.read_text() for log in logs)
    assert "own data:" in told and all(log.stat().st_mode & 0o777 == 0o600 for log in logs)
    for entry in finished.out.rglob("*"):
        if entry.is_file() and entry.name != "private.log":
            assert b"own data:" not in entry.read_bytes(), entry


def test_run_json(finished: Finished) -> None:
    run, trial = finished.run, finished.trial
    check_shape(run, trial.names)
    study = load(trial.path)
    assert (run["study"], run["algorithm"], run["backend"], run["partition"]) == (
        "trial",
        "aim",
        study.backend,
        "horizontal",
    )
    assert run["deployment"] == "one-machine" and run["rows"] == len(finished.rows)
    privacy = run["privacy"]
    assert (privacy["epsilon"], privacy["delta"]) == (
        float(study.privacy.epsilon),
        float(study.privacy.delta),
    )
    assert privacy["adjacency"] == study.privacy.adjacency and privacy["unit"] == "one row"
    closure = {frozenset(clique) for clique in study.workload.closure}
    assert run["selected"] and all(frozenset(clique) in closure for clique in run["selected"])


def test_budget(finished: Finished) -> None:
    """The events stay below the cap, the cap below what (epsilon, delta) allows; fixed rounds use all but the
    last grain."""
    privacy = finished.run["privacy"]
    spent = math.fsum(event["rho"] for event in privacy["events"])
    # below what the whole delta would allow: part of it is set aside for the samplers
    assert spent <= privacy["rho"] <= float(rho_of(privacy["epsilon"], privacy["delta"]))
    if (
        finished.run["privacy"]["epsilon"] < 100
    ):  # with hardly any noise sigma is at its lower limit, and budget is left
        assert spent >= 0.99 * privacy["rho"]
    measured = [event for event in privacy["events"] if event["what"] == "measure"]
    assert len(measured) == 1 + len(finished.run["selected"])
    assert sum(event["what"] == "select" for event in privacy["events"]) == len(finished.run["selected"])


def test_events(finished: Finished) -> None:
    lines = events(finished.out / "events.jsonl")
    assert {line["phase"] for line in lines} <= set(PHASES)
    assert all(type(line["t"]) is float and line["t"] >= 0 and type(line["event"]) is str for line in lines)
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
    assert len({line["party"] for line in lines}) == 1  # an events.jsonl is one party's
    chosen = [line["clique"] for line in lines if line["phase"] == "select" and "clique" in line]
    assert chosen == finished.run["selected"]


def test_values_lie_in_the_domain(finished: Finished) -> None:
    assert finished.header == list(small.COLUMNS)
    assert finished.rows
    for row in finished.rows:
        age, work, income, grade, sick = row
        assert age == str(int(age)) and small.AGE[0] <= int(age) <= small.AGE[1]  # integral
        assert work in (*small.WORK, "")
        assert income == "" or small.INCOME[0] <= float(income) <= small.INCOME[1]
        assert grade in ("0", "1", "2") and sick in small.SICK
    values = list(zip(*finished.rows, strict=True))
    assert "" in values[1] and "" in values[2] and "" not in values[0]
    assert any(value and not float(value).is_integer() for value in values[2])


def test_every_party_has_the_same(base: Finished, generous: Finished) -> None:
    for finished in (base, generous):
        for name in finished.trial.names:
            own = finished.out / "parties" / name
            assert {entry.name for entry in own.iterdir()} >= CONTRACT_FILES
            for file in ("synthetic.csv", "measurements.json", "model.npz"):
                assert (own / file).read_bytes() == (finished.out / file).read_bytes()
            assert (own / "report.html").read_bytes() == (
                finished.out / "parties" / finished.trial.names[0] / "report.html"
            ).read_bytes()
            run = json.loads((own / "run.json").read_text())
            check_shape(run, finished.trial.names)
            assert run["deployment"] == "one-machine" and not any(
                "cpu_s" in party for party in run["parties"]
            )
            assert run == finished.run
            used = json.loads((own / "usage.json").read_text())
            assert used["cpu_s"] > 0 and used["peak_rss_mb"] > 0
            assert events(own / "events.jsonl")[0]["party"] == name


def test_the_report_is_rebuilt_byte_for_byte(finished: Finished) -> None:
    from runner.report import render

    page = (finished.out / "report.html").read_bytes()
    assert render(finished.out).read_bytes() == page


def test_shared_times_count_from_the_moment_all_have_assembled(base: Finished, generous: Finished) -> None:
    """Before it they would tell how long each party read its own table; counters of parties hold bytes and
    rounds only."""
    for finished in (base, generous):
        lines = events(finished.out / "events.jsonl")
        place = next(number for number, line in enumerate(lines) if line["event"] == "assembled")
        assert place > 0 and all(line["t"] == 0 for line in lines[:place])
        assert all(line["t"] > 0 for line in lines[place + 1 :])
        run = finished.run
        assert (
            "connect" not in [phase["name"] for phase in run["phases"]] and "connect" not in run["timeline"]
        )
        assert run["wall_s"] == pytest.approx(sum(phase["wall_s"] for phase in run["phases"]), abs=0.01)
        for party in run["parties"]:
            assert party.keys() == {"name", "role", "bytes_sent", "bytes_received", "rounds"}


def test_counters_add_up(base: Finished, generous: Finished) -> None:
    for finished in (base, generous):
        total = sum(party["bytes_sent"] for party in finished.run["parties"])
        assert sum(phase["bytes_sent"] for phase in finished.run["phases"]) <= total
        # what is sent is received, but for what is still under way when the counters are taken: these very
        # messages
        received = sum(party["bytes_received"] for party in finished.run["parties"])
        assert 0 <= total - received < 0.2 * total
        assert all(party["rounds"] > 0 for party in finished.run["parties"])


def test_shares_add_up(generous: Finished) -> None:
    """With hardly any noise the measured marginals are everybody's counts: clamped, missing and contributed
    rows included.

    sigma is 0.5 or less: |noise| > 5 has probability below 1e-20 a cell.
    """
    assert len(generous.run["selected"]) == 3
    for deviation, sigma in generous.deviations():
        assert abs(deviation) <= max(5, 10 * sigma) and sigma < 1
    assert abs(generous.measurements["noisy_total"] - len(generous.trial.pooled)) < 5
    assert abs(generous.run["rows"] - len(generous.trial.pooled)) < 5
    # and so is the table, for what was measured: sampling keeps marginals to within rounding, a few rows a
    # cell
    codes = [
        [small.code(name, value) for name, value in zip(small.COLUMNS, row, strict=True)]
        for row in generous.rows
    ]
    for clique in generous.run["selected"]:
        columns = [small.COLUMNS.index(name) for name in clique]
        table = np.zeros([small.SIZES[name] for name in clique], int)
        np.add.at(table, tuple(np.array(codes)[:, columns].T), 1)
        true = np.array(generous.trial.marginal(clique))
        assert np.abs(table.ravel() - true).sum() <= 0.1 * len(codes)


def test_noise_has_the_law_that_is_charged(base: Finished, adaptive: Finished, ideal: Finished) -> None:
    """Every backend's noise around the true counts: zero mean and the stated variance. False alarms: 3 x 2e-7
    each."""
    for finished in (base, adaptive, ideal):
        z = np.array([deviation / sigma for deviation, sigma in finished.deviations()])
        assert len(z) >= 20
        assert 1e-7 < stats.chi2.cdf(float((z * z).sum()), len(z)) < 1 - 1e-7
        assert abs(z.sum()) / math.sqrt(len(z)) < stats.norm.isf(1e-7)
    real, clear = (np.array([d / s for d, s in finished.deviations()]) for finished in (base, ideal))
    assert stats.ks_2samp(real, clear).pvalue > 2e-7


def test_adaptive_replace_unpruned(adaptive: Finished) -> None:
    assert adaptive.run["rows"] == 500 and adaptive.run["privacy"]["adjacency"] == "replace"
    sigmas = [Fraction(measured["sigma2"]) for measured in adaptive.measurements["measurements"]]
    assert sigmas == sorted(sigmas, reverse=True)  # noise only ever shrinks
    shared = [line for line in events(adaptive.out / "events.jsonl") if line["event"] == "shared"]
    assert shared[0]["marginals"] == 5 and shared[1]["marginals"] == 10  # nothing was left out
    # replace: one row's change moves a marginal by sqrt(2): rho = 2 / (2 sigma^2) each
    first = adaptive.run["privacy"]["events"][0]
    assert first["rho"] == pytest.approx(5 / float(sigmas[0]), rel=1e-6)


def test_units_and_dataframes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python API on tables in memory; the unit is a person with up to two rows: twice the sensitivity."""
    import pandas as pd

    from runner import run_study

    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    trial = small.write(
        tmp_path / "study",
        changes=[
            ("max_rows = 4096", 'max_rows = 4096\nunit = { id = "person", max_rows = 2, max_custodians = 1 }')
        ],
    )
    frames = {}
    for name in trial.names:
        table = pd.DataFrame(trial.rows[name])
        frames[name] = pd.DataFrame(
            {
                "age": table["age"].astype(int),
                "income": pd.to_numeric(table["income"].replace("", None)),
                "work": table["work"].replace("", None),
                "grade": table["grade"].astype("int8"),
                "sick": table["sick"],
                "person": [f"p{number // 2}" for number in range(len(table))],
            }
        )
        (trial.path.parent / f"{name}.csv").unlink()
    done = run_study(trial.path, frames, tmp_path / "out")
    finished = Finished(trial, tmp_path / "out")
    assert (
        done.report.is_file() and done.summary["rows"] == len(done.synthetic) and done.summary == finished.run
    )
    assert done.synthetic["income"].isna().any() and done.synthetic["age"].between(*small.AGE).all()
    assert "person" in finished.run["privacy"]["unit"] and "2 rows" in finished.run["privacy"]["unit"]
    sigma2 = float(Fraction(finished.measurements["measurements"][0]["sigma2"]))
    assert finished.run["privacy"]["events"][0]["rho"] == pytest.approx(5 * 2**2 / (2 * sigma2), rel=1e-6)
    z = np.array([deviation / sigma for deviation, sigma in finished.deviations()])
    assert (
        1e-7 < stats.chi2.cdf(float((z * z).sum()), len(z)) < 1 - 1e-7
    )  # the frames' rows are what was measured
    # a third row of one person is refused, in a sentence without the person
    frames["west"].loc[2, "person"] = "p0"
    with pytest.raises(
        UsageError, match=r"^out .* holds a finished run; .* take its place with replace=True\.$"
    ):
        run_study(trial.path, frames, tmp_path / "out")
    with pytest.raises(DataRefused, match='"person"') as refused:
        run_study(trial.path, frames, tmp_path / "out", replace=True)
    assert "p0" not in refused.value.sentence
    assert json.loads((tmp_path / "out" / "run.json").read_text()) == finished.run  # an earlier result stays


def test_ideal_says_so_and_takes_no_party(ideal: Finished, tmp_path: Path) -> None:
    assert ideal.end is not None and "protects nothing" in ideal.end.output
    assert ideal.run["backend"] == "ideal"
    end = run(
        "run",
        ideal.trial.path,
        "--party",
        "north",
        "--out",
        tmp_path / "o",
        ledger=tmp_path / "l",
        scratch=tmp_path / "s",
    )
    assert end.code == 2 and "ideal" in end.complaint and end.complaint.count("\n") == 1
    assert not (tmp_path / "o" / "run.json").exists() and not (tmp_path / "l").exists()


def test_progress_and_launcher_output(base: Finished) -> None:
    assert base.end is not None
    for word in (
        "measure  round 3: ",
        "epsilon",
        str(base.out / "report.html"),
        str(base.out / "synthetic.csv"),
    ):
        assert word in base.end.output


def test_the_ledger_holds_the_events(base: Finished) -> None:
    from parties.budget.ledger import Ledger

    entries = Ledger(base.out.parent / "ledger.db").entries()
    assert len(entries) == 3 and all(entry.state == "settled" for entry in entries)
    spent = math.fsum(event["rho"] for event in base.run["privacy"]["events"])
    for entry in entries:
        assert float(entry.spent.rho) == pytest.approx(spent, rel=1e-12)
        assert [begun.event.what for begun in entry.events] == [
            event["what"] for event in base.run["privacy"]["events"]
        ]


def test_contributors_are_charged_the_events_too(generous: Finished) -> None:
    from parties.budget.ledger import Ledger

    entries = Ledger(generous.out.parent / "ledger.db").entries()
    assert len(entries) == 5 and all(
        entry.state == "settled" for entry in entries
    )  # north has no data and no account
    assert sorted(entry.reservation.computes for entry in entries) == [False, False, False, True, True]
    spent = math.fsum(event["rho"] for event in generous.run["privacy"]["events"])
    assert all(float(entry.spent.rho) == pytest.approx(spent, rel=1e-12) for entry in entries)
    west = next(party for party in generous.run["parties"] if party["name"] == "west")
    assert (
        0 < west["bytes_sent"] < 10_000
    )  # seeds and masked counts of 175 cells; a computing party sends 300,000


def test_more_rows_and_marginals_cost_nothing(base: Finished, tmp_path: Path) -> None:
    """`sample`, `query` and `report` on what a run left."""
    for arguments in (
        ("sample", base.out, "--rows", 50),
        ("query", base.out, "age", "sick"),
        ("report", base.out),
    ):
        end = run(*arguments, ledger=tmp_path / "ledger.db", scratch=tmp_path / "scratch")
        assert end.code == 0 and end.complaint == "", end
    assert not (tmp_path / "ledger.db").exists()
