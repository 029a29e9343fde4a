"""What operators are told of a run: a file, and systemd's datagrams."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpc_protocols.errors import PeerLost, UsageError
from runner.watch.health import Health
from tests.runner.test_watch import EVENTS


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A directory in which a run tells of itself."""
    directory = tmp_path / "out"
    directory.mkdir()
    (directory / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    return directory


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
        assert begun["state"] == "running" and begun["code"] is None
    ended = json.loads(file.read_text())
    assert ended["state"] == "finished" and ended["code"] == 0 and ended["step"] == begun["step"] > 0
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
