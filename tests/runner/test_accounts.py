"""Accounts of whole runs: under which name they are kept, what a cap refuses, what a custodian is warned of;
and shared clocks.

What the ledger adds up: `tests/parties/budget`. What peers see of a refusal: `test_deployment`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from mpc_protocols.errors import BudgetRefused, StudyInvalid
from mpc_protocols.wire import Traffic
from parties.budget.ledger import Ledger
from parties.budget.spending import Proposal
from runner import run_study
from runner.commands.cli import main
from runner.party.custodian import Custodian
from runner.party.record import events
from runner.party.record.events import UNTIMED, WITHHELD, Meter
from runner.study import load, private_file
from tests.runner import small
from tests.runner.folders import Folders
from tests.runner.processes import run
from tests.runner.test_vertical_study import write_vertical

IDEAL = [("replicated", "ideal")]
PERSON = ("max_rows = 4096", 'max_rows = 4096\nunit = { id = "person", max_rows = 3, max_custodians = 1 }')


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    return Ledger()


def frames(trial: small.Trial, person: bool = False) -> dict[str, pd.DataFrame]:
    found = {}
    for name, table in trial.rows.items():
        frame = pd.DataFrame(table).replace("", None)
        for column in ("age", "income", "grade"):
            frame[column] = pd.to_numeric(frame[column])
        if person:
            frame["person"] = [f"p{number // 3}" for number in range(len(frame))]
        found[name] = frame
    return found


def accounts(ledger: Ledger) -> dict[str, int]:
    """Runs by account."""
    names = [entry.reservation.dataset for entry in ledger.entries()]
    return {name: names.count(name) for name in names}


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """`ledger show --json`, by data set."""
    capsys.readouterr()
    assert main(["ledger", "show", "--json", *map(str, arguments)]) == 0
    return {one["dataset"]: one for one in json.loads(capsys.readouterr().out)["datasets"]}


def test_runs_on_frames_add_up(tmp_path: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    trial = small.write(tmp_path / "study", changes=IDEAL)
    data = frames(trial)
    for number in range(2):
        run_study(trial.path, data, tmp_path / f"out-{number}")
    assert accounts(ledger) == {"trial/north": 2, "trial/south": 2, "trial/west": 2}
    told = shown(capsys)["trial/north"]
    assert told["notion"] == {"unit": "one row", "adjacency": "add-remove"}
    assert told["rho"] == pytest.approx(2 * told["runs"][0]["rho"]) and 5 < told["epsilon"] < 6
    assert [facts["counts"] for facts in told["runs"]] == [1.0, 1.0]


def test_frames_have_a_cap_and_a_name(tmp_path: Path, ledger: Ledger) -> None:
    trial = small.write(tmp_path / "study", changes=IDEAL)
    data = frames(trial)
    settings: Mapping[str, Mapping[str, Any]] = {
        "north": {"dataset": "patients", "cap_epsilon": 5.0, "cap_delta": 1e-6, "file": tmp_path / "own.db"}
    }
    run_study(trial.path, data, tmp_path / "out", ledger=settings)
    with pytest.raises(BudgetRefused, match=r"Dataset patients has spent epsilon 3\.99"):
        run_study(trial.path, data, tmp_path / "again", ledger=settings)
    assert accounts(Ledger(tmp_path / "own.db")) == {"patients": 1}
    assert accounts(ledger) == {"trial/south": 1, "trial/west": 1}
    for wrong, words in (
        ({"east": {}}, "a ledger is given for east"),
        ({"north": {"cap": 1}}, 'ledger of north: [ledger] unknown key "cap"'),
        ({"north": {"cap_unit": "rows"}}, 'cap_unit must be "row" or'),
    ):
        with pytest.raises(StudyInvalid) as caught:
            run_study(trial.path, data, tmp_path / "wrong", ledger=wrong)
        assert words in caught.value.sentence


def test_parties_on_one_machine_have_private_files(tmp_path: Path, ledger: Ledger) -> None:
    """The ledger's settings reach party processes, by file and by argument; the account is not the table's
    place."""
    trial = small.write(tmp_path / "study")
    own = tmp_path / "north.toml"
    own.write_text(
        '[ledger]\nfile = "own.db"\ndataset = "patients"\ncap_epsilon = 4.5\ncap_delta = 1e-6\n'
        'cap_unit = "row"\ncap_adjacency = "replace"\n'
    )
    end = run(
        "run", trial.path, "--private", f"north={own}", "--out", tmp_path / "out",
        ledger=ledger.path, scratch=tmp_path / "scratch",
    )  # fmt: skip
    assert end.code == 50 and "counted 4 times for one row (replace)" in end.complaint, end
    assert end.complaint.count("\n") == 1
    assert [refusal.code for refusal in Ledger(tmp_path / "own.db").refusals("patients")] == [50]
    assert all(not entry.spent.rho for entry in ledger.entries())
    with pytest.raises(BudgetRefused):
        run_study(trial.path, out=tmp_path / "api", private={"north": own})
    done = run_study(trial.path, out=tmp_path / "api", ledger={"north": {"dataset": "people"}})
    assert done.summary["rows"] > 0
    spenders = {entry.reservation.dataset for entry in ledger.entries() if entry.spent.rho}
    assert spenders == {"people", "trial/south", "trial/west"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["own.toml"], "write --private NAME=FILE"),
        (["north=a.toml", "north=b.toml"], "given twice for north"),
        (["east=a.toml"], "a private file is given for east"),
    ],
)
def test_private_files_name_their_party(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], words: str
) -> None:
    trial = small.write(tmp_path / "study", changes=IDEAL)
    options = [text for file in given for text in ("--private", file)]
    assert main(["run", str(trial.path), "--out", str(tmp_path / "out"), *options]) in (2, 10)
    assert words in capsys.readouterr().err


def test_rows_and_persons_are_not_added_up_as_if_they_were_the_same(
    tmp_path: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run at unit row, one at 3 rows of a person: together 10 times rho for the person, and `ledger show`
    says for whom."""
    row = small.write(tmp_path / "row", changes=IDEAL)
    person = small.write(tmp_path / "person", changes=[*IDEAL, PERSON])
    data = frames(row, person=True)
    run_study(row.path, data, tmp_path / "out-0")
    run_study(person.path, data, tmp_path / "out-1")
    told = shown(capsys)["trial/north"]
    assert told["notion"] == {
        "unit": "everybody who shares one person: at most 3 rows per custodian, at most 1 custodians",
        "adjacency": "add-remove",
    }
    assert [facts["counts"] for facts in told["runs"]] == [9.0, 1.0]
    assert told["rho"] == pytest.approx(9 * told["runs"][0]["rho"] + told["runs"][1]["rho"])
    assert main(["ledger", "show", "--all"]) == 0
    out = capsys.readouterr().out
    assert "x 9" in out and "person (3 rows)" in out and "everybody who shares one person" in out
    cap = {"north": {"cap_epsilon": 100.0, "cap_delta": 1e-3, "cap_unit": "row"}}
    with pytest.raises(BudgetRefused, match="its earlier run of trial"):
        run_study(row.path, data, tmp_path / "out-2", ledger=cap)
    own = tmp_path / "own.toml"
    own.write_text('[ledger]\ncap_epsilon = 100\ncap_delta = 1e-3\ncap_unit = "row"\n')
    assert main(["ledger", "show", "--all", "--private", str(own)]) == 0
    assert "no sum holds for one row (add-remove): 1 of 2 runs cannot be counted" in capsys.readouterr().out


def test_a_second_proposal_is_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that was refused and one that was not; by `check` and by `run`, to the custodian whom they asked."""
    trial = small.write(
        tmp_path / "study", changes=[("connect_s = 300", 'connect_s = 12\ntls = "insecure-loopback"')]
    )
    folders = Folders.make(tmp_path, trial, certify=False)
    for folder in folders:
        text = (folder / "private.toml").read_text().splitlines(keepends=True)
        (folder / "private.toml").write_text(
            "".join(line for line in text if not line.startswith(("cert", "key", "ca ")))
        )
    south = folders["south"]

    def check() -> str:
        capsys.readouterr()
        main(
            [
                *("check", str(south / "study.toml"), "--party", "south"),
                *("--private", str(south / "private.toml")),
            ]
        )
        return " ".join(capsys.readouterr().out.split())

    assert "asked the same data" not in check()
    south.edit("study.toml", ("max_rows = 4096", "max_rows = 299"))  # it has 300
    assert folders.run("south")["south"].code == 30
    assert "asked the same data" not in check()  # the same study again
    south.edit("study.toml", ("max_rows = 299", "max_rows = 300"), ("grade = 3", "grade = 4"))
    told = check()
    assert "note A study with north and west on " in told and "which was refused with 30, asked" in told
    assert "differed in the domain and max_rows (299 then, 300 now)" in told
    end = folders.run("south")["south"]
    assert end.code == 20 and "warning: A study with north and west on " in end.output


def test_a_search_by_the_size_that_an_alignment_asks_for_is_pointed_out(tmp_path: Path) -> None:
    """`min_size` and `pad_to` are refused or not by the number of records, as `max_rows` is."""
    own = private_file.Private(ledger=private_file.LedgerSettings(dataset="patients"))

    def asked(name: str, *changes: tuple[str, str]) -> Proposal:
        (tmp_path / name).mkdir()
        study = load(write_vertical(tmp_path / name, *changes))
        return Custodian(study, "north", own, None).proposal(b"")

    first = asked("first")
    assert asked("again").differs(first) == ()
    for number, change in enumerate(("min_size = 11", "min_size = 10\npad_to = 500")):
        assert asked(str(number), ("min_size = 10", change)).differs(first) == ("the alignment",)


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 5000.0

    def monotonic(self) -> float:
        return self.now


def test_the_runs_clock_starts_when_all_have_assembled(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, traffic = Clock(), Traffic()
    monkeypatch.setattr(events, "time", clock)
    meter = Meter()
    meter.traffic = lambda: traffic

    def passes(phase: str, seconds: float, rounds: int = 0) -> None:
        nonlocal traffic
        clock.now += seconds
        traffic = Traffic(traffic.bytes_sent + 10 * rounds, 0, 0, traffic.rounds + rounds)
        meter.mark(phase)

    passes("connect", 3)
    passes("agree", 1, rounds=1)
    passes("input", 900)  # a party reads its table
    meter.start("input")
    assert meter.clock() == 0
    passes("input", 2, rounds=2)
    passes("select", 4, rounds=3)
    assert meter.clock() == 6
    assert meter.phases() == [
        {"name": "agree", "wall_s": 0.0, "rounds": 1, "bytes_sent": 10},
        {"name": "input", "wall_s": 2.0, "rounds": 2, "bytes_sent": 20},
        {"name": "select", "wall_s": 4.0, "rounds": 3, "bytes_sent": 30},
    ]
    assert meter.sent() == [
        {"name": name, "bytes_sent": sent} for name, sent in (("agree", 10), ("input", 20), ("select", 30))
    ]
    assert {phase["name"]: phase["wall_s"] for phase in meter.whole()} == {
        "connect": 3,
        "agree": 1,
        "input": 902,
        "select": 4,
    }


def test_it_stands_still_while_records_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(events, "time", clock)
    meter = Meter(WITHHELD, UNTIMED)
    meter.start("input")
    for phase, seconds in (
        ("align", 50),
        ("agree", 30),
        ("input", 20),
        ("select", 4),
        ("input", 9),
        ("fit", 1),
    ):
        clock.now += seconds
        meter.mark(phase)
    assert meter.clock() == 5
    assert {phase["name"]: phase["wall_s"] for phase in meter.phases()} == {
        "input": 0.0,
        "align": 0.0,
        "select": 4.0,
        "fit": 1.0,
    }


@pytest.mark.parametrize("vertical", [False, True])
def test_no_shared_file_says_how_long_a_table_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vertical: bool
) -> None:
    """A custodian whose table takes 70,000 seconds, by a clock that jumps."""
    from tests.runner import split

    late = SimpleNamespace(by=0.0)
    monkeypatch.setattr(events, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + late.by))
    ready = Custodian.ready

    def slowly(self: Custodian, *arguments: Any) -> None:
        ready(self, *arguments)
        late.by += 70_000

    monkeypatch.setattr(Custodian, "ready", slowly)
    trial = (
        split.write(tmp_path / "study", changes=[('"replicated"', '"ideal"')])
        if vertical
        else small.write(tmp_path / "study", changes=IDEAL)
    )
    done = run_study(trial.path, out=tmp_path / "out")
    assert late.by > 100_000
    assert 0 < done.summary["wall_s"] < 60_000
    assert all(phase["wall_s"] < 60_000 for phase in done.summary["phases"])
    assert all(0 < t < 60_000 for times in done.summary["timeline"].values() for t in times)
    lines = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()]
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines) and lines[-1]["t"] < 60_000
    assert lines[0]["t"] == 0.0
