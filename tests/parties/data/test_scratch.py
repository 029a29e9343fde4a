"""Private temporary folders: theirs alone while they last, gone afterwards, also after a process that was
killed."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from parties.data.scratch import LOCK, PREFIX, Scratch

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def holder(temporary: Path, watched: bool = False) -> tuple[subprocess.Popen[str], Path]:
    """A process with a folder, a key in it."""
    program = (
        f"import sys; from parties.data.scratch import Scratch; made = Scratch(watched={watched}); "
        "(made.path / 'key').write_text('secret'); print(made.path, flush=True); sys.stdin.read()"
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
    process.communicate()


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


def test_a_folder_that_is_closed_while_it_is_being_removed_is_closed_once(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process ends (`remove_spills`) while the thread that reads a table leaves its block: EBADF, or worse,
    before."""
    made, removed = Scratch(), []

    def remove(path: Path, ignore_errors: bool = False) -> None:
        removed.append(path)
        if len(removed) == 1:
            made.close()
        shutil_rmtree(path, ignore_errors=ignore_errors)

    shutil_rmtree = shutil.rmtree
    monkeypatch.setattr("parties.data.scratch.shutil.rmtree", remove)
    made.close()
    assert removed == [made.path] and not os.listdir(temporary)


def test_nobody_who_closes_a_folder_goes_on_before_it_is_gone(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, begun, may_go_on, ends = Scratch(), threading.Event(), threading.Event(), []

    def slow(path: Path, ignore_errors: bool = False) -> None:
        begun.set()
        may_go_on.wait()
        shutil_rmtree(path, ignore_errors=ignore_errors)

    def close() -> None:
        made.close()
        ends.append(made.path.exists())

    shutil_rmtree = shutil.rmtree
    monkeypatch.setattr("parties.data.scratch.shutil.rmtree", slow)
    threads = [threading.Thread(target=close) for _ in range(2)]
    threads[0].start()
    begun.wait()
    threads[1].start()
    may_go_on.set()
    for thread in threads:
        thread.join()
    assert ends == [False, False]


def test_a_descriptor_that_was_closed_is_not_closed_again_for_its_next_owner(temporary: Path) -> None:
    made = Scratch()
    made.close()
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]  # one of them has the lock's old number
    made.close()
    for descriptor in others:
        os.close(descriptor)  # EBADF if `close` had taken it


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_watched_folder_goes_at_once_with_a_process_that_is_killed(temporary: Path) -> None:
    process, folder = holder(temporary, watched=True)
    assert (folder / "key").exists()
    watchman = watching(folder)
    end(process, signal.SIGKILL)
    assert select.select([watchman], [], [], 60)[0]  # readable: the watchman has ended
    os.close(watchman)
    assert not folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_watched_folder_that_is_closed_leaves_no_watchman(temporary: Path) -> None:
    with Scratch(watched=True) as folder:
        watchman = watching(folder)
    assert select.select([watchman], [], [], 0)[0]
    os.close(watchman)
    assert not os.listdir(temporary)


def watching(folder: Path) -> int:
    """A process descriptor of the shell that watches a folder; it becomes readable when that ends."""
    while True:  # a process that has just been made may not show its arguments yet
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else [b""]
                if words[0].endswith(b"sh") and os.fsencode(folder) in words:
                    return os.pidfd_open(int(entry.name))


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
    monkeypatch.setattr("parties.data.scratch.os.getuid", lambda: os.geteuid() + 1)
    Scratch().close()
    assert unmade.exists()
    monkeypatch.undo()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    Scratch().close()
    assert not unmade.exists()
