"""How a failure becomes an exit code and one sentence (`docs/reference/exit-codes.md`); tracebacks go to the
party's private log only."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from pathlib import Path

from mpc_protocols import errors
from mpc_protocols.errors import CosynthError
from mpc_protocols.process.resources import lacking


def reason(error: OSError) -> str:
    """Why a file, directory or address cannot be used, as words within a sentence."""
    return (error.strerror or "no reason given").lower()


def append_private(path: Path, text: bytes) -> None:
    """Append to a private log; if there is none yet, it is made for its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as file:
        file.write(text)


def complain(sentence: str) -> None:
    """Tell the final sentence of a failure. The exit code holds also where standard error is a file on a full
    disk."""
    with contextlib.suppress(OSError):
        print(sentence, file=sys.stderr, flush=True)


def describe(error: BaseException, log: Path | None = None) -> tuple[int, str]:
    """(exit code, sentence) of what ended a command. The traceback of a failure nobody foresaw is appended to
    `log`.

    The sentence names the kind and the place of such a failure, never its text, which may quote a record.
    """
    if isinstance(error, CosynthError):
        return error.exit_code, error.sentence
    if isinstance(error, KeyboardInterrupt):
        return errors.Interrupted.exit_code, "Interrupted."
    place = "the traceback was not kept"
    if log is not None:
        with contextlib.suppress(OSError):
            text = time.strftime("%Y-%m-%d %H:%M:%S ") + "".join(traceback.format_exception(error))
            append_private(log, text.encode("utf-8", "replace"))
            place = f"the traceback is in {log}"
    if (lacked := lacking(error)) is not None:
        return lacked.exit_code, lacked.sentence
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return (
        CosynthError.exit_code,
        f"Internal error: {type(error).__name__}{where}; please report it ({place}).",
    )
