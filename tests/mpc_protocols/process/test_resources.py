"""What a machine lacked is told by the error's number, and by nothing that only looks like one."""

from __future__ import annotations

import errno
import sqlite3

import pytest

from mpc_protocols.process.resources import lack


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "x"), "the disk is full"),
        (PermissionError(errno.EPERM, "x"), "it may not be written"),
        (OSError(errno.EMFILE, "x"), "no file descriptors are left"),
        (MemoryError(), "memory"),
        (OSError("without a number"), None),
        (OSError(errno.EPIPE, "x"), None),
        (sqlite3.OperationalError("without a code"), None),
        (ValueError("x"), None),
    ],
)
def test_what_was_lacking(error: BaseException, said: str | None) -> None:
    told = lack(error)
    assert told is None if said is None else told is not None and said in told


def test_a_database_that_cannot_be_opened_says_what_opening_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = sqlite3.OperationalError("unable to open database file")
    failed.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN

    def closed(*_: object) -> int:
        raise OSError(*number)

    monkeypatch.setattr("os.open", closed)
    number: tuple[object, ...] = (errno.EMFILE, "x")
    assert lack(failed) == "no file descriptors are left"
    number = ("without a number",)
    assert lack(failed) is None
