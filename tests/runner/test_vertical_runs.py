"""Whole vertical runs with real processes, TLS and files: the join is right, and nothing of its sizes is
handed out.

With epsilon 400 the noise is sigma < 1.5 a count: |noise| > 10 sigma has probability below 1e-22 a cell.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from parties.budget.journal import read
from parties.budget.ledger import Ledger
from tests.runner import split
from tests.runner.processes import CONTRACT_FILES, End, events, parties, run_whole
from tests.runner.test_end_to_end import check_shape

LOUD = ("epsilon = 4.0", "epsilon = 400.0")
UNION = ('population = "intersection"', 'population = "union"')
ADDED = ('adjacency = "replace"', 'adjacency = "add-remove"')
ROWS = ('method = "psu"\nvia = "merge3"\nid = "person"', 'method = "row-order"')
OUTSIDE = {"north": "compute = true", "south": "compute = true", "west": "compute = true"}


class Finished:
    """A vertical run that succeeded."""

    def __init__(self, directory: Path, trial: split.Trial, end: End) -> None:
        self.directory, self.trial, self.end = directory, trial, end
        self.out, self.ledger = directory / "out", directory / "ledger.db"
        self.run: dict[str, Any] = json.loads((self.out / "run.json").read_text())
        self.measurements = json.loads((self.out / "measurements.json").read_text())["measurements"]

    def deviations(self) -> list[tuple[float, float]]:
        """(noisy - true, sigma) of every measured cell, against a join in plain Python."""
        return self.trial.deviations(self.out)

    def whole(self, party: str) -> list[dict[str, Any]]:
        """The phases as a party's private log has them, with nothing withheld."""
        text = (self.out / "parties" / party / "private.log").read_text()
        found: list[dict[str, Any]] = ast.literal_eval(re.findall(r"by phase: (\[.*\])", text)[-1])
        return found

    def traffic(self, party: str, phase: str) -> dict[str, Any]:
        """What the private log says of one phase."""
        return next(entry for entry in self.whole(party) if entry["name"] == phase)


def carry_out(directory: Path, trial: split.Trial) -> Finished:
    end = run_whole(directory, trial.path)
    assert end.code == 0 and end.complaint == "", end
    assert not parties(directory)
    return Finished(directory, trial, end)


VARIANTS: dict[str, dict[str, Any]] = {
    "merge3": {"changes": [LOUD]},
    "three owners": {"own": split.THREE, "changes": [LOUD, UNION, ADDED]},
    "helper": {
        "changes": [LOUD, ADDED, ("merge3", "helper"), ("min_size = 10", "min_size = 10\npad_to = 400")]
    },
    "dh2": {
        "changes": [LOUD, UNION, ("merge3", "dh2"), ("min_size = 10", 'min_size = 10\nsecurity = "proofs"')],
        "count": 150,
    },
    "florist": {"changes": [LOUD, ADDED, ("merge3", "florist")], "count": 150},
    "row order": {"changes": [LOUD, ADDED, ROWS], "aligned": True},
    # owners that contribute only, two of three; the third owner computes
    "outside": {
        "own": {"east": ("age", "income"), "north": ("work",), "hill": ("grade", "sick")},
        "parties": 5,
        "party": OUTSIDE,
        "changes": [LOUD, ("merge3", "auto")],
    },
    "ideal": {"changes": [LOUD, UNION, ("replicated", "ideal")]},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Finished]]:
    """Made when first asked for; one of each variant."""

    class Made(dict[str, Finished]):
        def __missing__(self, name: str) -> Finished:
            directory = tmp_path_factory.mktemp(name.replace(" ", "-"))
            self[name] = carry_out(directory, split.write(directory / "study", **VARIANTS[name]))
            return self[name]

    yield Made()


@pytest.mark.parametrize("name", VARIANTS)
def test_the_counts_are_those_of_the_join(runs: dict[str, Finished], name: str) -> None:
    finished = runs[name]
    assert len(finished.run["selected"]) == 3 and len(finished.deviations()) > 60
    assert all(sigma < 1.5 and abs(deviation) <= 10 * sigma for deviation, sigma in finished.deviations())
    assert abs(finished.run["rows"] - len(finished.trial.pooled)) < 15


@pytest.mark.parametrize("name", VARIANTS)
def test_files_and_their_shape(runs: dict[str, Finished], name: str) -> None:
    finished = runs[name]
    own, alignment = finished.trial.rows, finished.run["alignment"]
    check_shape(finished.run, finished.trial.names)
    assert finished.run["partition"] == "vertical"
    assert {entry.name for entry in finished.out.iterdir()} >= CONTRACT_FILES
    assert {owner["name"]: set(owner["columns"]) for owner in alignment["owners"]} == {
        name: set(next(iter(people.values()))) for name, people in own.items()
    }
    if name != "ideal":
        assert [view["name"] for view in alignment["views"]] == list(finished.trial.names)
        whole = [phase["name"] for phase in finished.run["phases"]]
        assert whole.index("agree") < whole.index("input") < whole.index("align") < whole.index("measure")
    report = (finished.out / "report.html").read_text()
    assert "Whose records" in report and ("in common" in report or "records of" in report)
    # the parties' files are the same everywhere
    for party in finished.trial.names if name != "ideal" else ():
        for file in ("synthetic.csv", "measurements.json", "model.npz", "report.html"):
            theirs = (finished.out / "parties" / party / file).read_bytes()
            assert theirs == (finished.out / "parties" / finished.trial.names[0] / file).read_bytes()


def test_what_is_handed_out_has_no_traffic_that_follows_the_sizes(runs: dict[str, Finished]) -> None:
    for name in ("merge3", "three owners", "outside"):
        finished = runs[name]
        for phase in finished.run["phases"]:
            hidden = phase["name"] in ("input", "align")
            assert phase.get("withheld", False) == hidden and (
                not hidden or phase["rounds"] == phase["bytes_sent"] == phase["wall_s"] == 0
            )
        assert not {"align", "connect"} & finished.run["timeline"].keys()
        timed = sum(phase["wall_s"] for phase in finished.run["phases"])
        assert finished.run["wall_s"] == pytest.approx(timed, abs=0.01)
        shown = sum(phase["rounds"] for phase in finished.run["phases"])
        assert all(party["rounds"] <= shown + 2 for party in finished.run["parties"])
        for party in finished.run["parties"]:
            real = finished.traffic(party["name"], "align")
            assert real["bytes_sent"] > 1000
        shown = sum(phase["bytes_sent"] for phase in finished.run["phases"])
        assert shown <= sum(party["bytes_sent"] for party in finished.run["parties"]) < 2 * shown + 20_000
        # an outside owner sends its columns, and nothing of how many these were is to be seen
        for party in finished.trial.names[3:]:
            entry = next(one for one in finished.run["parties"] if one["name"] == party)
            assert entry["bytes_sent"] < 3000 < finished.traffic(party, "input")["bytes_sent"]


def test_size_events_and_own_views(runs: dict[str, Finished]) -> None:
    """With add-remove every size is an event, on record at its owner with its delta; a party's own view is
    the sum."""
    for name, each in (("three owners", 2), ("helper", 1), ("florist", 2), ("row order", 1)):
        finished = runs[name]
        entries = {entry.reservation.dataset: entry for entry in Ledger(finished.ledger).entries()}
        assert len(entries) == len(finished.trial.rows) and all(
            entry.state == "settled" for entry in entries.values()
        )
        for entry in entries.values():
            begun = [one.event for one in entry.events]
            assert begun[0].what == "alignment.started" and entry.reservation.aligns
            sizes = [event for event in begun if event.what == "alignment.size"]
            assert begun[1 : 1 + each] == sizes and len(sizes) == each  # before everything else
            assert entry.spent.size_rho == sum(event.rho for event in sizes) == each * Fraction(1, 200)
            assert entry.spent.size_delta == sum(event.beta for event in sizes) > 0
            told = {recipient for event in sizes for recipient in event.detail["recipients"]}  # type: ignore[attr-defined]
            owner = Path(entry.reservation.dataset).stem
            assert owner not in told and told <= set(finished.trial.names) and told
        for view in finished.run["alignment"]["views"]:
            epsilon = finished.run["privacy"]["epsilon"] + sum(size["epsilon"] for size in view["sizes"])
            delta = finished.run["privacy"]["delta"] + sum(size["delta"] for size in view["sizes"])
            assert finished.run["privacy"]["epsilon"] <= view["epsilon"] <= epsilon + 1e-9
            assert view["delta"] == pytest.approx(delta)
        assert all(
            event["what"] in ("select", "measure", "total") for event in finished.run["privacy"]["events"]
        )
    rows = {view["name"]: view["sizes"] for view in runs["row order"].run["alignment"]["views"]}
    assert (
        len(rows["west"]) == 1 and not rows["north"] and not rows["south"]
    )  # owners know the number of rows: it is theirs
    unions = {
        view["name"]: [size["of"] for size in view["sizes"]]
        for view in runs["florist"].run["alignment"]["views"]
    }
    assert [of for name, of in unions.items() if name not in runs["florist"].trial.rows] == [["union"]]
    for name in ("merge3", "outside"):  # replace: sizes are public among the parties, and cost nothing
        for entry in Ledger(runs[name].ledger).entries():
            assert (
                entry.spent.size_rho == 0
                and [one.event.what for one in entry.events].count("alignment.started") == 1
            )


def test_journals_have_the_alignment(runs: dict[str, Finished]) -> None:
    for name, each in (("three owners", 2), ("merge3", 0)):
        for party in ("north", "south", "west"):
            (path,) = (runs[name].out / "parties" / party).glob("journal-*.jsonl")
            record = read(path)
            assert [event.what for event in record.alignment] == ["alignment.started"] + each * [
                "alignment.size"
            ]
            assert record.code == 0 and len(record.releases) == len(runs[name].run["privacy"]["events"])


def test_events_name_the_phase_and_no_size(runs: dict[str, Finished]) -> None:
    for name in ("merge3", "three owners", "outside"):
        finished = runs[name]
        for party in finished.trial.names:
            lines = events(finished.out / "parties" / party / "events.jsonl")
            begun, joined = [line for line in lines if line["phase"] == "align"]
            assert (begun["event"], joined["event"]) == ("started", "aligned")
            assert set(joined) <= {"t", "party", "phase", "event", "owners", "via", "bytes_sent"}
            assert joined.get("bytes_sent", 0) < 1000 and joined["via"] == "merge3"
            assert joined["owners"] == len(finished.trial.rows)


def test_what_the_alignment_sends_is_the_same_for_every_overlap(tmp_path: Path) -> None:
    """Lists of 60: nobody or everybody in common. An empty intersection is no error: an error would tell it."""
    seen = set()
    for number, first in enumerate((60, 0)):
        own = {"north": range(60), "south": range(first, first + 60)}
        trial = split.write(tmp_path / str(number) / "study", count=120, held=own)
        finished = carry_out(tmp_path / str(number), trial)
        shape = [
            (finished.traffic(party, "align")["bytes_sent"], finished.traffic(party, "align")["rounds"])
            for party in trial.names
        ]
        seen.add(tuple(shape))
        assert finished.run["rows"] < 10 or first < 60
    assert len(seen) == 1


def test_the_python_api_takes_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed identifiers (integers), default ownership, and one owner's duplicates left out on request."""
    import pandas as pd

    from mpc_protocols.errors import DataRefused, ProtocolAborted
    from runner import run_study

    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    trial = split.write(
        tmp_path / "study",
        changes=[LOUD, ("min_size = 10", 'min_size = 10\nduplicates = "first"'), ("replicated", "ideal")],
    )
    frames = {}
    for name, people in trial.rows.items():
        (trial.path.parent / f"{name}.csv").unlink()
        frames[name] = pd.DataFrame(
            [{"person": int(person[2:]), **values} for person, values in people.items()]
        )
    repeated = frames["north"].iloc[[0, 0, 1]].assign(age="20", income="0")
    done = run_study(
        trial.path, {**frames, "north": pd.concat([frames["north"], repeated])}, tmp_path / "out"
    )
    assert abs(done.summary["rows"] - len(trial.pooled)) < 15
    for measured in json.loads((tmp_path / "out" / "measurements.json").read_text())["measurements"]:
        true = trial.marginal(measured["clique"])
        assert all(abs(noisy - count) < 15 for noisy, count in zip(measured["values"], true, strict=True))
    # identifiers of different types can never be equal: refused by the protocol, not joined to nothing
    trial.path.write_text(trial.path.read_text().replace('"ideal"', '"replicated"'))
    texts = frames["south"].assign(person=frames["south"]["person"].astype(str))
    with pytest.raises(ProtocolAborted, match="holds text at party south and integer at party north"):
        run_study(trial.path, {"north": frames["north"], "south": texts}, tmp_path / "out", replace=True)
    trial.path.write_text(trial.path.read_text().replace('"first"', '"refuse"'))
    with pytest.raises(DataRefused, match="several rows with the same identifier") as refused:
        run_study(
            trial.path,
            {"north": pd.concat([frames["north"], repeated]), "south": frames["south"]},
            tmp_path / "out",
            replace=True,
        )
    assert str(repeated["person"].iloc[0]) not in refused.value.sentence.split()
