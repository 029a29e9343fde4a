"""What a failure that nobody raised a sentence for comes to: memory and disks run out everywhere, all else is
a defect."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from mpc_protocols.errors import OutOfResources, PeerLost
from parties.budget.spending import STARTED
from runner.commands.cli import main
from runner.failures import describe
from runner.launch.first_failure import unexplained
from runner.party.alignment import Account
from runner.party.record.logs import LogFile
from runner.party.resume.attempt import Attempt
from tests.runner import small

FULL = os.strerror(errno.ENOSPC)


def of_sqlite(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("private words")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "Out of memory; "),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "Out of memory; "),
        (ImportError("/x/_common.so: failed to map segment from shared object"), "Out of memory; "),
        (
            OSError(errno.EFBIG, "File too large", "a.csv", None, "b.csv"),
            "b.csv cannot be used (the disk is full); free",
        ),
        (OSError(errno.ENOSPC, FULL), "A file cannot be used (the disk is full); "),
        (
            OSError(errno.EMFILE, "private words"),
            "A file cannot be used (no file descriptors are left); raise the limit",
        ),
        (OSError(errno.EROFS, "private words", "out"), "out cannot be used (it may not be written); "),
        (of_sqlite(sqlite3.SQLITE_FULL), "A file cannot be used (the disk is full); "),
        (of_sqlite(sqlite3.SQLITE_IOERR_NOMEM), "Out of memory; "),
        (ImportError("no such name"), "Internal error: ImportError"),
        (OSError(errno.EIO, "private words"), "Internal error: OSError"),
    ],
)
def test_what_a_machine_lacks_has_a_code_of_its_own_and_all_else_is_a_defect(
    tmp_path: Path, error: Exception, words: str
) -> None:
    log = tmp_path / "private.log"
    code, sentence = describe(error, log)
    assert code == (1 if words.startswith("Internal") else 60) and sentence.startswith(words)
    assert "private words" not in sentence and type(error).__name__ in log.read_text()


def test_a_log_that_cannot_be_written_writes_nothing_elsewhere(capfd: pytest.CaptureFixture[str]) -> None:
    """Python's own handler prints the record, with its arguments, to stderr, which the host keeps."""
    for kind, quiet in ((logging.FileHandler, False), (LogFile, True)):
        log = kind("/dev/full", encoding="utf-8")
        logger = logging.Logger("private")
        logger.addHandler(log)
        logger.info("own data: %d rows; clamped %s", 300, {"age": 57})
        with contextlib.suppress(OSError):
            log.close()
        assert ("57" not in capfd.readouterr().err) == quiet


@pytest.mark.parametrize("room", [0, 1500, 6000])
def test_a_full_disk_ends_a_run_with_one_sentence_and_nothing_private(tmp_path: Path, room: int) -> None:
    """A limit on the size of any file stands in for the disk: the system refuses the same writes, in each of
    the processes."""
    trial = small.write(tmp_path / "study")
    asked = [sys.executable, "-m", "runner", "run", str(trial.path), "--out", str(tmp_path / "out")]
    environment = {**os.environ, "COSYNTH_LEDGER": str(tmp_path / "ledger.db")}

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    end = subprocess.run(
        asked, env=environment, preexec_fn=limited, capture_output=True, text=True, timeout=300
    )
    assert end.returncode == 60, (end.returncode, end.stderr)
    assert end.stderr.count("cannot be used (") == 1 and "Traceback" not in end.stderr + end.stdout
    for words in ("own data", "clamped", "internal error", "Logging error"):
        assert words not in end.stderr + end.stdout
    assert not list((tmp_path / "out").rglob("synthetic.csv")) and not list(
        (tmp_path / "out").rglob("run.json")
    )
    again = subprocess.run(
        [*asked, "--resume" if list((tmp_path / "out").rglob("state-*")) else "--replace"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "out" / "synthetic.csv").is_file()


def test_a_full_disk_hides_no_other_end() -> None:
    """Not the cause of an alignment's end, nor a run that has its results and only clears up."""

    def full(*arguments: object) -> None:
        raise OutOfResources("The disk is full.")

    account = Account(lambda event, _: None if event.what == STARTED else full(), b"", Mock(owners=()))
    with pytest.raises(PeerLost), account:
        raise PeerLost("Party north is gone.")
    attempt = Mock(_state=Mock(finish=full))
    Attempt.finish(attempt, b"")


def test_a_full_disk_under_standard_error_and_reports_leaves_the_code(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        asked = [sys.executable, "-m", "runner", "run", str(tmp_path / "absent.toml")]
        assert subprocess.run(asked, stderr=full, stdout=subprocess.DEVNULL, timeout=300).returncode == 10
    for code, kept in ((60, 60), (40, 40), (7, 1), (1, 1)):
        report = unexplained("north", code, "nowhere")
        assert report.code == kept and "Party north ended with code" in report.sentence


def test_check_finds_a_ledger_without_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OutOfResources("The ledger has no room.")

    monkeypatch.setattr("parties.budget.ledger.Ledger.rehearse", full)
    trial = small.write(tmp_path, changes=[("[session]", '[session]\ntls = "insecure-loopback"')])
    assert main(["check", str(trial.path), "--party", "north"]) == OutOfResources.exit_code
    assert "problem  The ledger has no room." in capsys.readouterr().out


def test_a_failure_with_a_sentence_keeps_it() -> None:
    assert describe(PeerLost("Party north is gone.")) == (41, "Party north is gone.")


@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_whose_streams_are_closed_ends_as_any_other(tmp_path: Path, closed: str) -> None:
    """Whoever starts it from a service may close them; nothing of the run is then taken for one."""
    trial = small.write(tmp_path)
    command = [sys.executable, "-m", "runner", "run", str(trial.path), "--out", str(tmp_path / "out")]
    environment = os.environ | {"COSYNTH_LEDGER": str(tmp_path / "ledger.db"), "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command], env=environment, capture_output=True
    )
    assert done.returncode == 0 and (tmp_path / "out" / "run.json").exists()
    assert not any(b"Traceback" in file.read_bytes() for file in (tmp_path / "out").rglob("*.log"))
