"""Private temporary folders: theirs alone while they last, gone afterwards, also after a process that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from parties.data import scratch
from parties.data.scratch import LOCK, PREFIX, Scratch

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def holder(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process with a folder, a key in it."""
    program = (
        "import sys; from parties.data.scratch import Scratch; made = Scratch(); (made.path / 'key').write_text('secret'); "
        "print(made.path, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    process.communicate(timeout=30)


def test_a_folder_is_private_and_goes_with_its_block(temporary: Path) -> None:
    with pytest.raises(KeyError), Scratch() as path:
        assert path.parent == temporary and path.stat().st_mode & 0o777 == 0o700
        (path / "deep").mkdir()
        (path / "deep" / "file").write_text("x")
        raise KeyError
    made = Scratch()
    made.close()
    made.close()
    assert not os.listdir(temporary)


def test_the_dead_are_cleared_away_the_living_and_the_stopped_are_not(temporary: Path) -> None:
    killed, dead = holder(temporary)
    living, kept = holder(temporary)
    stopped, still = holder(temporary)
    stopped.send_signal(signal.SIGSTOP)
    end(killed, signal.SIGKILL)
    assert (dead / "key").exists()
    with Scratch() as mine, Scratch() as second:
        assert mine != second and mine.exists()
        assert not dead.exists() and (kept / "key").exists() and (still / "key").exists()
    for process in (living, stopped):
        end(process, signal.SIGKILL)


def test_what_is_not_known_to_be_ours_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, dead = holder(temporary)
    end(process, signal.SIGKILL)
    elsewhere = temporary.parent / "elsewhere"
    dead.rename(elsewhere)  # what a link points to
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    unmade, open_to_all, other = (temporary / name for name in (f"{PREFIX}unmade", f"{PREFIX}open", "other"))
    for folder in (unmade, open_to_all, other):
        folder.mkdir(mode=0o700)
        (folder / "file").write_text("x")
    (open_to_all / LOCK).touch()
    open_to_all.chmod(0o755)
    (other / LOCK).touch()
    linked = temporary / f"{PREFIX}linked"
    linked.mkdir(mode=0o700)
    (linked / LOCK).symlink_to(elsewhere / LOCK)
    (temporary / f"{PREFIX}file").write_text("x")
    before = sorted(temporary.rglob("*"))
    Scratch().close()
    assert sorted(temporary.rglob("*")) == before and (elsewhere / "key").exists()
    (unmade / LOCK).touch()  # now one more sign says that it is ours, but another user's
    monkeypatch.setattr(scratch.os, "getuid", lambda: os.geteuid() + 1)
    Scratch().close()
    assert unmade.exists()
    monkeypatch.undo()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    Scratch().close()
    assert not unmade.exists()
