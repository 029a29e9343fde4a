"""The launcher with party programs that fail in every way: first cause, exit code, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.errors import (
    BudgetRefused,
    CosynthError,
    DataRefused,
    Interrupted,
    PeerLost,
    PeerUnreachable,
    ProtocolAborted,
    StudyInvalid,
    UsageError,
)
from runner.launch.first_failure import Report, read_report, write_report
from runner.launch.launcher import launch
from runner.launch.ports import free_ports, is_free
from runner.results.outdir import MARK, claim
from tests.patience import PATIENCE_S, eventually
from tests.runner.studies import write_study

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-m", "tests.runner.fake_party")
SHORT = ("silence_s = 200", "silence_s = 2")
Steps = dict[str, list[list[Any]]]


def told(monkeypatch: pytest.MonkeyPatch, **steps: list[list[Any]]) -> None:
    monkeypatch.setenv("FAKE_PARTY", json.dumps(steps))


def failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *changes: tuple[str, str], **steps: list[list[Any]]
) -> CosynthError:
    """Launch with these parties; what the launcher raises. No party process is left, and no result is there.

    Parties that come one after another ("after") all get the time to do so; else the launcher ends those that
    are left.
    """
    in_turn = any(step[0] == "after" for own in steps.values() for step in own)
    monkeypatch.setattr("runner.launch.children.GRACE_TERM", PATIENCE_S if in_turn else 1.0)
    monkeypatch.setattr("runner.launch.children.GRACE_KILL", PATIENCE_S if in_turn else 1.6)
    told(monkeypatch, **steps)
    out = tmp_path / "out"
    with pytest.raises(CosynthError) as raised:
        launch(write_study(tmp_path, *changes), out, program=PROGRAM)
    assert not party_processes(tmp_path)
    assert not (out / "synthetic.csv").exists() and not (out / "run.json").exists()
    return raised.value


def party_processes(tmp_path: Path) -> list[int]:
    """Processes whose arguments name a party and this test's directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if b"--party" in arguments and str(tmp_path).encode() in b" ".join(arguments) and state != "Z":
                found.append(int(entry.name))
    return found


def gone(tmp_path: Path) -> bool:
    """Whether every party process ends."""
    return eventually(lambda: not party_processes(tmp_path))


def test_success_puts_the_leaders_files_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    selected = {
        "phase": "select",
        "event": "selected",
        "round": 1,
        "rounds": 4,
        "clique": ["age", "sex"],
        "candidates": 6,
    }
    told(
        monkeypatch,
        south=[["event", selected], ["event", {"phase": "connect", "event": "listening"}], ["write", None]],
        north=[["event", selected], ["write", None]],
    )
    out = tmp_path / "out"
    run = launch(write_study(tmp_path), out, progress="verbose", program=PROGRAM)
    assert {entry.name for entry in out.iterdir()} == {
        ".cosynth",
        "parties",
        "synthetic.csv",
        "report.html",
        "run.json",
        "model.npz",
        "events.jsonl",
        "measurements.json",
        "cosynth.log",
    }
    assert (out / "synthetic.csv").read_text() == "synthetic.csv of south\n"
    assert json.loads((out / "run.json").read_text()) == run and run["deployment"] == "one-machine"
    for entry in run["parties"]:
        assert "cpu_s" not in entry and "peak_rss_mb" not in entry  # functions of private sizes
        used = json.loads((out / "parties" / entry["name"] / "usage.json").read_text())
        assert 0 < used["cpu_s"] < 60 and used["peak_rss_mb"] > 5
    shown = capsys.readouterr().out
    assert shown.count("round 1 of 4: age x sex (1 of 6 candidates)") == 1
    # an earlier run's files are replaced where that was said
    launch(write_study(tmp_path), out, replace=True, program=PROGRAM)


def test_a_party_is_told_what_memory_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher has a process of its own: Linux counts what a parent has taken as its child's, and this
    one has run tests."""
    told(monkeypatch, **{name: [["write", None]] for name in ("north", "south")})
    out = tmp_path / "out"
    program = (
        "from pathlib import Path; from runner.launch.launcher import launch; "
        f"launch(Path({str(write_study(tmp_path))!r}), Path({str(out)!r}), program={PROGRAM!r})"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    for name in ("north", "south"):
        assert 5 < json.loads((out / "parties" / name / "usage.json").read_text())["peak_rss_mb"] < 2000


def test_json_shows_the_raw_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    event = {"phase": "select", "event": "selected", "clique": ["age"]}
    told(monkeypatch, **{name: [["event", event], ["write", None]] for name in ("north", "south")})  # type: ignore[arg-type]
    launch(write_study(tmp_path), tmp_path / "out", progress="json", program=PROGRAM)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(line["party"] for line in lines) == ["north", "south"] and all(
        line["clique"] == ["age"] for line in lines
    )


ABORTED = "stopped: the protocol was aborted (exit 40), perhaps because of what another party sent it."


@pytest.mark.parametrize(
    ("steps", "kind", "words"),
    [
        # a refusal at one party, told by the others as an abort: before or after
        (
            {
                "north": [["fail", ["ProtocolAborted", "south stopped: its data does not fit."]]],
                "south": [["after", "north"], ["fail", ["DataRefused", "south.csv, line 3: x."]]],
                "west": [["after", "south"]],
            },
            DataRefused,
            "line 3",
        ),
        (
            {
                "north": [["after", "west"], ["fail", ["PeerLost", "The connection to west ended."]]],
                "west": [["fail", ["BudgetRefused", "The cap of west is reached."]]],
                "south": [["after", "north"]],
            },
            BudgetRefused,
            "The cap",
        ),
        # peers only: the party that the others complain of has its own complaint of a third
        (
            {
                "north": [["fail", ["PeerLost", "south is lost."]]],
                "south": [["after", "north"], ["fail", ["PeerLost", "west is lost."]]],
                "west": [
                    ["after", "south"],
                    ["fail", ["PeerUnreachable", "West cannot listen: port 7103 is in use."]],
                ],
            },
            PeerUnreachable,
            "7103",
        ),
        # two that blame each other: the first
        (
            {
                "north": [["fail", ["ProtocolAborted", "south sent 3 bytes."]]],
                "south": [["after", "north"], ["fail", ["ProtocolAborted", "north aborted."]]],
                "west": [["after", "south"]],
            },
            ProtocolAborted,
            "3 bytes",
        ),
        # a reason that names several parties without blaming them, and somebody who passes on that a party
        # has stopped
        (
            {
                "north": [["fail", ["ProtocolAborted", f"Party west {ABORTED}"]]],
                "west": [
                    ["after", "north"],
                    ["fail", ["ProtocolAborted", "The key holds text at north and integers at south."]],
                ],
                "south": [["after", "west"]],
            },
            ProtocolAborted,
            "holds text at north",
        ),
        # ... at third hand
        (
            {
                "north": [
                    [
                        "fail",
                        [
                            "ProtocolAborted",
                            "Party west stopped: it could not accept what came from party south.",
                        ],
                    ]
                ],
                "west": [["after", "north"], ["fail", ["ProtocolAborted", f"Party south {ABORTED}"]]],
                "south": [
                    ["after", "west"],
                    ["fail", ["ProtocolAborted", "The key holds text at north and integers at south."]],
                ],
            },
            ProtocolAborted,
            "holds text at north",
        ),
        # they only quote each other
        (
            {
                "north": [["fail", ["PeerLost", "Party west stopped: it lost party south."]]],
                "west": [
                    ["after", "north"],
                    ["fail", ["PeerLost", "Party north stopped: it lost party south."]],
                ],
                "south": [["after", "west"]],
            },
            PeerLost,
            "it lost party south",
        ),
        # killed: worth more than what the others say of it
        (
            {
                "north": [["fail", ["PeerLost", "south is lost."]]],
                "south": [["after", "north"], ["kill", 9]],
                "west": [["after", "north"]],
            },
            PeerLost,
            "Party south was killed (signal 9, SIGKILL)",
        ),
        (
            {"south": [["default", 2], ["kill", 2]], "west": [["wait", None]], "north": [["wait", None]]},
            Interrupted,
            "Party south was interrupted.",
        ),
        (
            {"south": [["kill", 11]], "west": [["wait", None]], "north": [["wait", None]]},
            PeerLost,
            "signal 11, SIGSEGV",
        ),
        # nobody else fails by itself: the launcher ends the rest
        (
            {
                "north": [["fail", ["StudyInvalid", "The study cannot be run."]]],
                "south": [["hang", None]],
                "west": [["hang", None]],
            },
            StudyInvalid,
            "cannot be run",
        ),
    ],
)
def test_first_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: Steps, kind: type[CosynthError], words: str
) -> None:
    error = failure(tmp_path, monkeypatch, **steps)
    assert type(error) is kind and words in error.sentence


def test_a_crash_is_an_internal_error_and_its_text_stays_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = failure(
        tmp_path, monkeypatch, west=[["crash", None]], north=[["wait", None]], south=[["wait", None]]
    )
    log = tmp_path / "out" / "parties" / "west" / "private.log"
    assert error.exit_code == 1 and "ValueError" in error.sentence and str(log) in error.sentence
    assert "secret" not in error.sentence and "a secret value" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600  # and nobody else on this machine reads it


def test_two_threads_of_a_party_leave_one_whole_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its watchdog writes in the middle of what its main thread writes: the one that is there first stands."""
    path, first = tmp_path / "report", Report("west", 40, "The watchdog's sentence.", 1.0)
    link, sources = os.link, list[Path]()

    def meanwhile(source: Path, target: Path) -> None:
        sources.append(source)
        if len(sources) == 1:
            watchdog = threading.Thread(target=write_report, args=(path, first))
            watchdog.start()
            watchdog.join()
        link(source, target)

    monkeypatch.setattr(os, "link", meanwhile)
    write_report(path, Report("west", 40, "The main thread's sentence.", 2.0))
    assert sources[0] != sources[1]  # or one would link what the other has only begun to write
    assert read_report(path) == first and list(tmp_path.iterdir()) == [path]


def test_a_stopped_party_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = failure(
        tmp_path,
        monkeypatch,
        SHORT,
        west=[["stop", None]],
        north=[["wait", None]],
        south=[["sleep", 1.9], ["fail", ["PeerLost", "west has been silent for 2 s."]]],
    )
    assert isinstance(error, PeerLost) and error.sentence.startswith("Party west was stopped (signal 19)")


def test_a_failed_run_leaves_an_earlier_result_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, study = tmp_path / "out", write_study(tmp_path)
    told(monkeypatch)
    launch(study, out, program=PROGRAM)
    told(monkeypatch, west=[["fail", ["DataRefused", "No."]]])

    def written() -> dict[str, int]:
        """When each file of the result was; the mark says who has a table, for whoever comes last."""
        return {
            path.name: path.stat().st_mtime_ns
            for path in out.iterdir()
            if path.is_file() and path.name != MARK
        }

    before = written()
    with pytest.raises(UsageError, match="holds a finished run"):
        launch(study, out, program=PROGRAM)
    with pytest.raises(DataRefused):
        launch(study, out, replace=True, program=PROGRAM)
    assert len(before) > 3 and written() == before


def test_foreign_and_busy_directories_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").touch()
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        launch(write_study(tmp_path), foreign, program=PROGRAM)
    assert [entry.name for entry in foreign.iterdir()] == ["thesis.tex"]

    with claim(tmp_path / "busy"), pytest.raises(UsageError, match="in use by another run"):
        launch(write_study(tmp_path), tmp_path / "busy", program=PROGRAM)


def test_certificates_are_made_and_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    told(monkeypatch, north=[["certified", None], ["fail", ["DataRefused", "No."]]])
    study = write_study(tmp_path, ("insecure-loopback", "mutual"))
    with pytest.raises(DataRefused):
        launch(study, tmp_path / "out", program=PROGRAM)
    assert not any(temporary.iterdir())


class Launcher:
    """The launcher as a process, its parties waiting until `ready`."""

    def __init__(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        last: list[list[Any]],
        *changes: tuple[str, str],
    ) -> None:
        marks = {name: tmp_path / f"{name}.ready" for name in ("north", "south", "west")}
        told(monkeypatch, **{name: [["touch", str(mark)], *last] for name, mark in marks.items()})
        command = [
            sys.executable,
            "-m",
            "tests.runner.fake_launcher",
            str(write_study(tmp_path, *changes)),
            str(tmp_path / "out"),
        ]
        self.process = subprocess.Popen(
            command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while not all(mark.exists() for mark in marks.values()):
            assert self.process.poll() is None
            time.sleep(0.02)

    def end(self) -> tuple[int, str]:
        """Exit code and standard error."""
        _, complaint = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, complaint


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    launcher = Launcher(tmp_path, monkeypatch, [["wait", None]])
    os.kill(launcher.process.pid, number)
    code, complaint = launcher.end()
    assert code == 130 and complaint.startswith("Interrupted") and complaint.count("\n") == 1
    assert gone(tmp_path)


def test_ctrl_c_with_deaf_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Launcher(tmp_path, monkeypatch, [["hang", None]])
    time.sleep(0.3)
    os.kill(launcher.process.pid, signal.SIGINT)
    assert launcher.end()[0] == 130 and gone(tmp_path)


def test_ctrl_c_at_one_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Launcher(tmp_path, monkeypatch, [["wait", None]])
    os.kill(party_processes(tmp_path)[0], signal.SIGINT)
    code, complaint = launcher.end()
    assert code == 130 and "was interrupted" in complaint and gone(tmp_path)


def test_the_parties_die_with_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Launcher(tmp_path, monkeypatch, [["hang", None]])
    launcher.process.kill()
    assert gone(tmp_path)
    launcher.end()


def test_the_parties_end_when_the_launcher_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Launcher(tmp_path, monkeypatch, [["wait", None]], SHORT)
    os.kill(launcher.process.pid, signal.SIGSTOP)
    assert gone(tmp_path)
    os.kill(launcher.process.pid, signal.SIGCONT)
    code, complaint = launcher.end()
    assert code == 41 and "launcher was silent for 2 s" in complaint


def test_what_a_killed_launcher_left_goes_with_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    (temporary / "cosynth-dead").mkdir(parents=True, mode=0o700)
    (temporary / "cosynth-dead" / ".lock").touch()
    (temporary / "cosynth-dead" / "north.key").write_text("a throw-away key")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    told(monkeypatch, **{name: [["write", None]] for name in ("north", "south")})
    launch(write_study(tmp_path), tmp_path / "out", program=PROGRAM)
    assert not list(temporary.iterdir())


def test_ports_for_a_moment_are_free_and_no_connections_own() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20 and all(is_free(port) for port in ports)
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(ports) < lowest, "the kernel may give one of them to a connection before the party listens"
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", ports[0]))
        assert not is_free(ports[0])
