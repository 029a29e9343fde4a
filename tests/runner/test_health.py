"""What operators are told of a run: a file, and systemd's datagrams."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpc_protocols.errors import Interrupted, PeerLost, UsageError
from runner.report.watch import health
from runner.report.watch.health import Health
from tests.runner.test_watch import EVENTS


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A directory in which a run is about to tell of itself."""
    directory = tmp_path / "out"
    directory.mkdir()
    return directory


def tell(out: Path) -> None:
    (out / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Where it would listen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(str(tmp_path / "notify"))
        end.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield end


def told(end: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(end.recv(4096).decode())
        except BlockingIOError:
            return found


def test_a_file_says_how_it_goes_and_how_it_ended(out: Path, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    with Health(out, file):
        begun = json.loads(file.read_text())
        assert begun["state"] == "running" and begun["code"] is None and begun["step"] == 0
        tell(out)
    ended = json.loads(file.read_text())
    assert ended["state"] == "finished" and ended["code"] == 0 and ended["step"] > 0
    assert 0 < ended["budget_spent"] <= 1 and ended["renewed"] >= ended["began"]
    assert [path.name for path in tmp_path.iterdir() if "health" in path.name] == ["health.json"]


def test_a_run_that_fails_leaves_its_code_as_a_metric_and_systemd_is_told(
    out: Path, tmp_path: Path, systemd: socket.socket
) -> None:
    file = tmp_path / "cosynth.prom"
    with pytest.raises(PeerLost), Health(out, file):
        raise PeerLost("north has gone.")
    text = file.read_text()
    assert 'cosynth_run_state{state="failed"} 1' in text and 'state="running"} 0' in text
    assert f"cosynth_run_exit_code {PeerLost.exit_code}" in text
    assert all(len(line.split(" ")) == 2 for line in text.splitlines())
    messages = told(systemd)
    assert messages[0].startswith("READY=1\n")
    assert messages[-1] == f"STOPPING=1\nSTATUS=failed, code {PeerLost.exit_code}"


def test_without_systemd_or_a_file_nothing_is_told(out: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    with Health(out, None):
        pass
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_that_cannot_be_written_is_refused_first_and_ends_nothing_later(
    out: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="--health"):
        Health(out, tmp_path / "nowhere" / "health.json")
    folder = tmp_path / "there"
    folder.mkdir()
    with Health(out, folder / "health.json"):
        (folder / "health.json").unlink()
        folder.rmdir()


def test_an_earlier_run_in_the_directory_is_not_this_one(out: Path, tmp_path: Path) -> None:
    tell(out)
    with pytest.raises(PeerLost), Health(out, tmp_path / "health.json"):
        raise PeerLost("north has gone.")
    told_of = json.loads((tmp_path / "health.json").read_text())
    assert told_of["step"] == 0 and told_of["budget_spent"] == 0.0 and told_of["parties_done"] == 0


def test_an_interrupted_run_leaves_its_own_code(out: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Health(out, tmp_path / "health.json"):
        raise KeyboardInterrupt
    assert json.loads((tmp_path / "health.json").read_text())["code"] == Interrupted.exit_code


@pytest.mark.parametrize("kind", ["text", "link", "pipe", "folder"])
def test_nothing_but_an_earlier_health_is_replaced(out: Path, tmp_path: Path, kind: str) -> None:
    file, study = tmp_path / "health.json", tmp_path / "study.toml"
    study.write_text("[study]\n")
    if kind == "text":
        file = study
    elif kind == "link":
        file.symlink_to(study)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    before = file.lstat().st_ino
    with pytest.raises(UsageError, match="--health"):
        Health(out, file)
    assert file.lstat().st_ino == before and study.read_text() == "[study]\n"
    for ours in (tmp_path / "again.json", tmp_path / "again.prom"):
        ours.touch()
        for _ in range(2):
            with Health(out, ours):
                pass


def test_no_result_of_the_run_is_replaced(out: Path) -> None:
    with pytest.raises(UsageError, match="among the run's results"):
        Health(out, out / "run.json")
    assert not list(out.iterdir())


def test_a_full_queue_of_systemds_holds_nothing_up(
    out: Path, systemd: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever listens has stopped reading: `sendto` would wait without end."""
    monkeypatch.setattr(health, "HEARD_S", 0.01)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as more, contextlib.suppress(BlockingIOError):
        more.setblocking(False)
        while True:
            more.sendto(b"STATUS=x", systemd.getsockname())
    with Health(out, None):
        pass
    assert not any(text.startswith("READY") for text in told(systemd))
