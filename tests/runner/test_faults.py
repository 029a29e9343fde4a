"""Every party and the launcher killed, stopped and interrupted, in every phase: codes, sentences, time,
ledger, files.

What must be true afterwards, whatever happened when:

    code       the contract's: 41 naming a party that was killed or stopped, 130 where Ctrl-C was pressed, 40 naming it elsewhere
    time       everything ends, long before silence_s is over where somebody dies; no process is left
    files      a party holds all of its results or none; nothing half written
    ledger     a computing custodian is charged the releases begun, which cover everything that was opened at anybody; a
               contributor, once its shares have left, the whole reservation; nobody anything before shares have left
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from signal import SIGCONT, SIGINT, SIGKILL, SIGSTOP, Signals

import pytest

from mpc_protocols.errors import UsageError
from parties.budget.ledger import Ledger
from parties.budget.spending import Entry
from runner.results.outdir import claim
from tests.runner import small
from tests.runner.folders import Folders
from tests.runner.processes import RESULTS, End, Program, events, eventually, gone, happened, parties

LEADER = "south"
VICTIMS = ("north", LEADER, "west")
CHANGES = [("rounds = 3", "rounds = 8")]
STOPPED = [*CHANGES, ("silence_s = 200", "silence_s = 10")]
"""For signals that leave a process alive: only its silence tells; of nobody else so long a one, on however
busy a machine."""
ROWS = [("rounds = 3", "rounds = 8\nsynthetic_rows = 400_000")]
"""A run whose parties write for seconds, so that who is to be killed at it is still there."""
LONG = [("rounds = 3", "rounds = 400"), ("silence_s = 200", "silence_s = 3")]
"""A run that takes longer than its parties wait for a launcher that has been stopped."""

PHASES: dict[str, Callable[[Callable[[str], Path], str], bool]] = {
    # by what is in events.jsonl: files(name) is a party's, victim the one that will get the signal
    "connect": lambda files, victim: (
        all(  # who lacks a link to the victim would wait for it as for one that never came
            happened(files(name), "connect", "connected", times=2) for name in VICTIMS
        )
    ),
    "input": lambda files, victim: happened(files(victim), "agree", "agreed"),
    "mid": lambda files, victim: happened(files(LEADER), "select", times=4),
    "end": lambda files, victim: happened(files(LEADER), "sample", "sampled"),
}


def opened(path: Path) -> int:
    """Releases that a party has seen opened: its own record of selections and measurements has a step."""
    return sum("step" in line for line in events(path))


def journalled(out: Path) -> int:
    """Releases in the newest journal of a directory."""
    journals = sorted(out.glob("journal-*.jsonl"), key=lambda path: path.stat().st_mtime)
    return (
        sum(json.loads(line)["record"] == "event" for line in journals[-1].read_text().splitlines())
        if journals
        else 0
    )


def whole_or_nothing(out: Path) -> None:
    """All of the results or none of them, and nothing on the way."""
    names = {entry.name for entry in out.iterdir()} if out.exists() else set()
    assert names & RESULTS in (set(), RESULTS), names
    assert not [name for name in names if "partial" in name or name.endswith(".part")], names


def clean_up(out: Path) -> None:
    """What the next run does first: a process that was killed cannot take away what it was writing."""

    def cleaned() -> bool:
        try:
            with claim(out, replace=True):
                return True
        except UsageError:  # a process whose memory is gone already may hold its lock a moment longer
            return False

    assert eventually(cleaned)


def entries_of(ledger: Path) -> list[Entry]:
    """A ledger's entries, those of processes that are gone closed: a killed one may hold its lock a moment
    longer."""
    found: list[Entry] = []

    def closed() -> bool:
        found[:] = Ledger(ledger).entries()
        return all(entry.state == "settled" for entry in found if entry.reservation.computes)

    eventually(closed)
    return found


def charged_right(entries: list[Entry], begun: int, seen: int, phase: str) -> None:
    """One custodian's entries against its journal and against what anybody has seen opened."""
    assert len(entries) <= 1
    if phase in ("mid", "end"):
        assert len(entries) == 1
    for entry in entries:
        if entry.reservation.computes:
            # journal, then ledger, then the opening: the end may have come in between
            assert entry.state == "settled" and seen <= len(entry.events) <= begun <= len(entry.events) + 1
            assert entry.spent.rho == sum(item.event.rho for item in entry.events) <= entry.reservation.rho
        elif phase in ("connect", "input"):
            assert entry.spent.rho == 0
        else:
            assert entry.state == "open" and entry.spent.rho == entry.reservation.rho


# A deployment: the parties' own processes.


@contextmanager
def under_way(
    tmp_path: Path, count: int, phase: str, victim: str, changes: list[tuple[str, str]]
) -> Iterator[tuple[Folders, dict[str, Program]]]:
    """A deployment that has reached the phase."""
    folders = Folders.make(tmp_path, small.write(tmp_path / "study", parties=count, changes=changes))
    with folders.started() as programs:
        reached = PHASES[phase]
        assert eventually(lambda: reached(lambda name: folders[name].out / "events.jsonl", victim)), {
            name: program.said() for name, program in programs.items()
        }
        yield folders, programs


def fault(tmp_path: Path, number: Signals, phase: str, victim: str, count: int = 3) -> Folders:
    """Send the signal; check everything that must hold."""
    changes = STOPPED if number is SIGSTOP else CHANGES
    with under_way(tmp_path, count, phase, victim, changes) as (folders, programs):
        programs[victim].send(number)
        ends = {name: program.end() for name, program in programs.items() if name != victim}
        if number is SIGSTOP:
            programs[victim].send(SIGCONT)
        own = programs[victim].end()
        judge(ends, own, number, victim)
        assert not parties(folders.root)
        seen = max(opened(folder.out / "events.jsonl") for folder in folders)
        for folder in folders:
            if folder.name == victim and number is SIGKILL:
                clean_up(folder.out)
            whole_or_nothing(folder.out)
            charged_right(entries_of(folder.ledger), journalled(folder.out), seen, phase)
        return folders


def judge(ends: dict[str, End], own: End, number: Signals, victim: str) -> None:
    """Exit codes and sentences of the others and of the party that got the signal."""
    expected = 40 if number is SIGINT else 41
    for name, end in ends.items():
        assert end.code == expected, (name, end)
        assert end.complaint.count("\n") == 1 and f"party {victim}" in end.complaint.lower(), end.complaint
    if number is SIGKILL:
        assert own.code == -SIGKILL and own.complaint == ""
    elif number is SIGINT:
        assert own.code == 130 and own.complaint.count("\n") == 1, own
    else:  # it wakes up among parties that have gone
        assert own.code in (40, 41) and own.complaint.count("\n") == 1, own


def test_the_leader_killed_in_a_round(tmp_path: Path) -> None:
    folders = fault(tmp_path, SIGKILL, "mid", LEADER)
    before = {folder.name: Ledger(folder.ledger).entries()[0].spent.rho for folder in folders}
    assert all(before.values())
    for end in folders.run().values():  # the same directories, the same ledgers
        assert end.code == 2 and all(
            word in end.complaint for word in ("interrupted", "--resume", "--replace")
        )
    ends = folders.run(replace=True)
    assert all(end.code == 0 for end in ends.values()), ends
    for folder in folders:
        whole_or_nothing(folder.out)
        dead, done = Ledger(folder.ledger).entries()
        assert (
            dead.spent.rho == before[folder.name]
            and done.state == "settled"
            and done.spent.rho > dead.spent.rho
        )


def test_a_follower_stopped_in_a_round(tmp_path: Path) -> None:
    fault(tmp_path, SIGSTOP, "mid", "north")


def test_ctrl_c_at_one_party_while_it_reads_its_table(tmp_path: Path) -> None:
    fault(tmp_path, SIGINT, "input", "west")


UNMARKED = {(SIGKILL, "mid", LEADER), (SIGSTOP, "mid", "north"), (SIGINT, "input", "west")}
SIGNALS = (SIGKILL, SIGSTOP, SIGINT)
MATRIX = [
    # each signal in each phase, each party by turns; the rest with --campaigns
    pytest.param(*case, marks=() if sum(place) % len(VICTIMS) == 0 else pytest.mark.campaign)
    for place in product(range(len(SIGNALS)), range(len(PHASES)), range(len(VICTIMS)))
    if (case := (SIGNALS[place[0]], tuple(PHASES)[place[1]], VICTIMS[place[2]])) not in UNMARKED
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "phase", "victim"), MATRIX, ids=lambda value: getattr(value, "name", value)
)
def test_signals_in_every_phase(tmp_path: Path, number: Signals, phase: str, victim: str) -> None:
    fault(tmp_path, number, phase, victim)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "phase", "victim"),
    [
        (SIGKILL, "mid", "east"),
        (SIGSTOP, "mid", "east"),
        (SIGINT, "input", "east"),
        (SIGKILL, "mid", "north"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_contributors(tmp_path: Path, number: Signals, phase: str, victim: str) -> None:
    folders = fault(tmp_path, number, phase, victim, count=4)
    if phase == "mid":  # its shares have left, and it cannot know what became of them
        (entry,) = Ledger(folders["east"].ledger).entries()
        assert entry.state == "open" and entry.spent.rho == entry.reservation.rho > 0


# One machine: the launcher and its parties.


@contextmanager
def launched(
    tmp_path: Path, phase: str, victim: str, changes: list[tuple[str, str]]
) -> Iterator[tuple[Program, Path, Path]]:
    """A launcher whose parties have reached the phase; its output directory and the ledger."""
    trial = small.write(tmp_path / "study", changes=changes)
    out, ledger = tmp_path / "out", tmp_path / "ledger.db"
    program = Program("run", trial.path, "--out", out, ledger=ledger, scratch=tmp_path / "scratch")
    try:
        reached = PHASES[phase]
        assert eventually(lambda: reached(lambda name: out / "parties" / name / "events.jsonl", victim)), (
            program.said()
        )
        yield program, out, ledger
    finally:
        program.kill()
        assert gone(out)


def left_right(out: Path, ledger: Path, phase: str, launcher_killed: bool) -> None:
    """Files and charges after a run of the launcher that failed."""
    assert not {entry.name for entry in out.iterdir()} & RESULTS
    seen = max(opened(own / "events.jsonl") for own in (out / "parties").iterdir())
    for own in (out / "parties").iterdir():
        if launcher_killed:
            clean_up(own)
        whole_or_nothing(own)
    entries = entries_of(ledger)
    begun = {str(own.name): journalled(own) for own in (out / "parties").iterdir()}
    for entry in entries:
        name = Path(entry.reservation.dataset).stem
        charged_right([entry], begun[name], seen, phase)
    if phase in ("mid", "end"):
        assert len(entries) == 3


def launcher_fault(
    tmp_path: Path, number: Signals, phase: str, victim: str | None, code: int, words: str
) -> None:
    changes = STOPPED if number is SIGSTOP else ROWS if phase == "end" else CHANGES
    if number is SIGSTOP and victim is None and phase != "end":
        changes = LONG
    with launched(tmp_path, phase, victim or LEADER, changes) as (program, out, ledger):
        if victim is None:
            program.send(number)
        else:
            os.kill(parties(out)[victim], number)
        if victim is None and number in (SIGKILL, SIGSTOP):
            assert gone(out)
            program.send(SIGCONT) if number is SIGSTOP else None
        end = program.end()
        assert gone(out)
        if (
            number is SIGSTOP and victim is None and end.code == 0
        ):  # they were done before they missed the launcher
            whole_or_nothing(out)
            assert phase == "end" and (out / "run.json").exists()
            return
        assert end.code == code, end
        assert words in end.complaint and end.complaint.count("\n") == (code > 0), end.complaint
        left_right(out, ledger, phase, victim is None and number is SIGKILL)


def test_ctrl_c_at_the_launcher_in_a_round(tmp_path: Path) -> None:
    launcher_fault(tmp_path, SIGINT, "mid", None, 130, "Interrupted")


def test_the_launcher_killed_in_a_round(tmp_path: Path) -> None:
    launcher_fault(tmp_path, SIGKILL, "mid", None, -SIGKILL, "")


def test_a_party_of_the_launcher_killed_while_it_writes(tmp_path: Path) -> None:
    launcher_fault(tmp_path, SIGKILL, "end", "west", 41, "Party west was killed")


LAUNCHER = [
    (number, phase)
    for number in (SIGKILL, SIGSTOP, SIGINT)
    for phase in PHASES
    if (number, phase) not in ((SIGINT, "mid"), (SIGKILL, "mid"))
]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "phase"), LAUNCHER, ids=lambda value: getattr(value, "name", value))
def test_the_launcher_in_every_phase(tmp_path: Path, number: Signals, phase: str) -> None:
    code, words = {
        SIGKILL: (-SIGKILL, ""),
        SIGSTOP: (41, "launcher was silent"),
        SIGINT: (130, "Interrupted"),
    }[number]
    launcher_fault(tmp_path, number, phase, None, code, words)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "phase", "victim", "code", "words"),
    [
        (SIGKILL, "connect", "south", 41, "Party south was killed"),
        (SIGSTOP, "mid", "west", 41, "west"),
        (SIGINT, "input", "north", 130, "north"),
        (SIGINT, "mid", "south", 130, "south"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_parties_of_the_launcher(
    tmp_path: Path, number: Signals, phase: str, victim: str, code: int, words: str
) -> None:
    launcher_fault(tmp_path, number, phase, victim, code, words)
