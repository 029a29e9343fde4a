"""Vertical deployments: a folder and a process per party; quotas, kept events, parties that die while the
records are joined."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from signal import SIGKILL

import pytest

from mpc_protocols.errors import PeerLost
from mpc_protocols.functionality import Event
from mpc_protocols.in_memory.memory_wire import run_parties
from parties.budget.journal import read
from parties.budget.ledger import Ledger
from parties.budget.spending import Reservation
from runner.party.alignment import Account, join
from runner.study import VerticalStudy, load
from runner.study.owners import ownership
from tests.runner import split
from tests.runner.folders import Folders
from tests.runner.processes import Program, eventually, happened, results

ADDED = ('adjacency = "replace"', 'adjacency = "add-remove"')
HELPER = ("merge3", "helper")


def in_common(people: int, count: int) -> dict[str, range]:
    """Two lists that share so many people."""
    return {"north": range(count), "south": range(count - people, 2 * count - people)}


def test_three_folders(tmp_path: Path) -> None:
    """Two owners and a helper; the study names neither data nor columns: who owns what is announced and
    agreed."""
    trial = split.write(tmp_path / "study", changes=[HELPER, ADDED, ("epsilon = 4.0", "epsilon = 400.0")])
    folders = Folders.make(tmp_path, trial)
    (folders["west"] / "west.key").chmod(0o640)
    folders["west"].options = ("--insecure-key",)
    ends = folders.run()
    assert all(end.code == 0 and end.complaint == "" for end in ends.values()), ends
    warned = {
        name for name, end in ends.items() if "can be read by other users of this machine" in end.output
    }
    assert warned == {"west"} and "chmod 600" in ends["west"].output
    runs = [json.loads((folder.out / "run.json").read_text()) for folder in folders]
    assert runs[0] == runs[1] == runs[2] and runs[0]["deployment"] == "distributed"
    assert [owner["name"] for owner in runs[0]["alignment"]["owners"]] == ["north", "south"]
    for file in ("synthetic.csv", "report.html", "model.npz"):
        assert len({(folder.out / file).read_bytes() for folder in folders}) == 1
    for measured in json.loads((folders["west"].out / "measurements.json").read_text())["measurements"]:
        sigma = float(Fraction(measured["sigma2"])) ** 0.5
        assert all(
            abs(noisy - true) < 10 * sigma
            for noisy, true in zip(measured["values"], trial.marginal(measured["clique"]), strict=True)
        )
    assert not folders["west"].ledger.exists()
    for name in ("north", "south"):
        (entry,) = Ledger(folders[name].ledger).entries()
        assert entry.reservation.aligns and entry.spent.size_rho == 2 * Fraction(1, 200)
        assert "records" in (folders[name].out / "private.log").read_text()
    # what is shown to others says nothing of an owner's list
    count = str(len(trial.rows["north"]))
    for folder in folders:
        told = "".join((folder.out / file).read_text() for file in ("events.jsonl", "cosynth.log"))
        # a message may take as many microseconds as there are rows: by chance in one of some hundred runs
        public = "\n".join(line for line in told.split("\n") if '"paced"' not in line)
        assert f" {count} " not in public and f": {count}," not in public


def test_the_quota_is_kept_before_anything_is_sent(tmp_path: Path) -> None:
    trial = split.write(tmp_path / "study", count=100)
    folders = Folders.make(tmp_path, trial)
    folders["south"].edit("private.toml", ("[ledger]\n", "[ledger]\nmax_alignments = 1\n"))
    assert all(end.code == 0 for end in folders.run().values())
    ends = folders.run(replace=True)
    assert (ends["south"].code, ends["north"].code, ends["west"].code) == (50, 40, 40)
    assert (
        "max_alignments = 1" in ends["south"].complaint
        and "aligned once with north" in ends["south"].complaint
    )
    assert all(
        "Party south" in ends[name].complaint and ends[name].complaint.count("\n") == 1
        for name in ("north", "west")
    )
    for folder in folders:  # nothing of the alignment began: only the first run's journal is there
        assert len(list(folder.out.glob("journal-*.jsonl"))) == 1
        assert happened(folder.out / "unfinished.jsonl", "connect") and not happened(
            folder.out / "unfinished.jsonl", "align"
        )
    entries = Ledger(folders["north"].ledger).entries()
    assert all(entry.state == "settled" for entry in entries) and not any(
        entry.events for entry in entries[1:]
    )


REFUSED = {
    "too few": (
        [],
        {"north": range(100), "south": range(5)},
        "Party south has fewer records than [alignment] min_size = 10",
    ),
    "above pad_to": (
        [ADDED, ("min_size = 10", "min_size = 10\npad_to = { north = 70, south = 50 }")],
        in_common(20, 60),
        "Party south has more records than [alignment] pad_to = 50",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_lists_that_do_not_fit_are_refused_by_their_owner(tmp_path: Path, case: str) -> None:
    changes, held, words = REFUSED[case]
    folders = Folders.make(tmp_path, split.write(tmp_path / "study", count=200, held=held, changes=changes))
    ends = folders.run()
    assert {name: end.code for name, end in ends.items()} == {"north": 40, "south": 30, "west": 40}
    assert words in ends["south"].complaint and all(end.complaint.count("\n") == 1 for end in ends.values())
    assert not any(results(folder.out) for folder in folders)
    # before anybody's sizes were on record as told
    assert not any(
        entry.events for name in ("north", "south") for entry in Ledger(folders[name].ledger).entries()
    )


@contextmanager
def joining(tmp_path: Path, count: int) -> Iterator[tuple[Folders, dict[str, Program]]]:
    """A deployment whose owners are in the middle of a Diffie-Hellman union, which takes seconds."""
    trial = split.write(
        tmp_path / "study",
        count=2 * count,
        held=in_common(count // 2, count),
        changes=[("merge3", "florist"), ADDED, ("max_rows = 4096", "max_rows = 65536")],
    )
    folders = Folders.make(tmp_path, trial)
    with folders.started() as programs:
        assert eventually(
            lambda: all(happened(folder.out / "events.jsonl", "align", "started") for folder in folders)
        )
        assert eventually(
            lambda: all(sizes_on_record(folders, name) == (2, 2) for name in ("north", "south"))
        )
        yield folders, programs


def sizes_on_record(folders: Folders, name: str) -> tuple[int, int]:
    """How many sizes are in an owner's journal, and in its ledger, which comes second and still before any
    message."""
    entries = Ledger(folders[name].ledger).entries()
    return (
        journal(folders, name).count("alignment.size"),
        sum(begun.event.what == "alignment.size" for entry in entries for begun in entry.events),
    )


def journal(folders: Folders, name: str) -> str:
    return "".join(path.read_text() for path in folders[name].out.glob("journal-*.jsonl"))


@pytest.mark.parametrize("victim", ["south", "west"])
def test_a_party_killed_while_records_are_joined(tmp_path: Path, victim: str) -> None:
    """What the sizes revealed stays charged at the owners, dead or alive; nothing of the study's budget is."""
    with joining(tmp_path, 12_000) as (folders, programs):
        programs[victim].send(SIGKILL)
        ends = {name: program.end() for name, program in programs.items()}
    for name, end in ends.items():
        if name != victim:
            assert (
                end.code in (40, 41)
                and f"party {victim}" in end.complaint.lower()
                and end.complaint.count("\n") == 1
            ), end
            assert not happened(folders[name].out / "events.jsonl", "align", "aligned")
    for name in ("north", "south"):
        (entry,) = Ledger(folders[name].ledger).entries()
        assert entry.state == "settled" and entry.spent.rho == entry.spent.size_rho == Fraction(1, 100)
        assert [begun.event.what for begun in entry.events][:3] == [
            "alignment.started",
            "alignment.size",
            "alignment.size",
        ]
        (path,) = folders[name].out.glob("journal-*.jsonl")
        kinds = [event.what for event in read(path).alignment]
        assert kinds == ["alignment.started", "alignment.size", "alignment.size"] + ["alignment.aborted"] * (
            name != victim
        )
    assert not any(results(folder.out) for folder in folders)


def test_events_are_on_record_before_the_first_message(tmp_path: Path) -> None:
    """At every owner, whatever the protocol; and an alignment that cannot be put on record does not begin."""
    for via in ("merge3", "helper", "dh2"):
        trial = split.write(tmp_path / via, count=40, changes=[ADDED, ("merge3", via)])
        study = load(trial.path)
        assert isinstance(study, VerticalStudy)
        owned = ownership(study, {name: tuple(split.TWO[name]) for name in trial.rows})
        records = {name: records_of(study, trial, name) for name in trial.rows}

        def job(wire, study=study, owned=owned, records=records):  # type: ignore[no-untyped-def]
            name, seen = study.numbered[wire.me].name, []

            def record(event: Event, inputs: bytes) -> None:
                seen.append((event.what, wire.traffic().messages_sent))

            with Account(record, wire.session_id, owned) as account:
                join(study, owned, wire, bytes(32), records.get(name), account)
            return seen

        for name, seen in zip(trial.names, run_parties([job, job, job]), strict=True):
            kinds = ["alignment.started"] + 2 * ["alignment.size"] * (name in trial.rows)
            assert seen == [(kind, 0) for kind in kinds]


def test_a_third_aborted_alignment_in_a_row_is_the_last_without_a_persons_word(tmp_path: Path) -> None:
    """What dh2 lets a deviating owner guess once it could otherwise guess as often as it likes: aborted runs
    spend nothing."""
    trial = split.write(tmp_path / "study", count=60)
    folders = Folders.make(tmp_path, trial)
    north = Ledger(folders["north"].ledger)
    for number in range(3):
        run = north.reserve(
            Reservation(
                "people of north",
                f"{number:064x}",
                "earlier",
                "00" * 32,
                1.0,
                1e-9,
                load(trial.path).privacy.notion,
                Fraction(1, 100),
                Fraction(0),
                ("south", "west"),
                aligns=True,
            )
        )
        run.begin(Event("alignment.started", Fraction(0), Fraction(0), {"owners": ["north", "south"]}))
        run.begin(Event("alignment.aborted", Fraction(0), Fraction(0), {"code": 40}))
        run.settle()
    ends = folders.run()
    assert {name: end.code for name, end in ends.items()} == {"north": 50, "south": 40, "west": 40}
    assert (
        "The last 3 alignments of dataset people of north with south were aborted" in ends["north"].complaint
    )
    assert "--allow-retry" in ends["north"].complaint
    for name in ("south", "west"):
        assert "aborted" not in ends[name].complaint and "50" not in ends[name].complaint
    folder = folders["north"]
    arguments = ("check", "study.toml", "--party", "north", "--private", "private.toml")
    program = Program(*arguments, ledger=folder.ledger, scratch=folder.path / "s", cwd=folder.path)
    checked = program.end()
    assert checked.code == 50 and "The last 3 alignments" in checked.complaint
    folder.options = ("--allow-retry",)
    assert {name: end.code for name, end in folders.run().items()} == dict.fromkeys(ends, 0)
    folder.options = ()
    program = Program(*arguments, ledger=folder.ledger, scratch=folder.path / "s", cwd=folder.path)
    assert "with each of the others, if any, was not aborted" in program.end().output


def test_an_abort_is_on_record_and_keeps_its_cause(tmp_path: Path) -> None:
    study = load(split.write(tmp_path).path)
    assert isinstance(study, VerticalStudy)
    owned = ownership(study, {name: tuple(own) for name, own in split.TWO.items()})
    seen: list[tuple[str, dict[str, object]]] = []
    with (
        pytest.raises(PeerLost),
        Account(lambda event, _: seen.append((event.what, dict(event.detail))), bytes(32), owned),
    ):
        raise PeerLost("south is gone.")
    assert seen == [
        ("alignment.started", {"owners": ["north", "south"]}),
        ("alignment.aborted", {"code": 41}),
    ]


def records_of(study, trial: split.Trial, name: str):  # type: ignore[no-untyped-def]
    from parties.data.linked.opening import open_source
    from parties.data.location import locate
    from parties.data.records import read
    from runner.party.alignment import identifier_policy

    with open_source(locate(trial.path.parent / f"{name}.csv")) as source:
        return read(source, study.domain.subset(split.TWO[name]), identifier_policy(study), max_rows=4096)
