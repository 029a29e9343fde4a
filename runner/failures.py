"""How a failure becomes an exit code and one sentence (DESIGN section 8); tracebacks go to the party's own log only."""

from __future__ import annotations

import contextlib
import time
import traceback
from pathlib import Path

from mpc_protocols import errors
from mpc_protocols.errors import CosynthError


def reason(error: OSError) -> str:
    """Why a file, directory or address cannot be used, as words within a sentence."""
    return (error.strerror or "no reason given").lower()


def describe(error: BaseException, log: Path | None = None) -> tuple[int, str]:
    """(exit code, sentence) of what ended a command. The traceback of a failure nobody foresaw is appended to `log`.

    The sentence names the kind and the place of such a failure, never its text, which may quote a record.
    """
    if isinstance(error, CosynthError):
        return error.exit_code, error.sentence
    if isinstance(error, KeyboardInterrupt):
        return errors.Interrupted.exit_code, "Interrupted."
    place = "the traceback was not kept"
    if log is not None:
        with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
            file.write(time.strftime("%Y-%m-%d %H:%M:%S ") + "".join(traceback.format_exception(error)))
            place = f"the traceback is in {log}"
    if isinstance(error, MemoryError):
        return CosynthError.exit_code, f"Out of memory; `python -m runner plan` says what a run needs ({place})."
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return CosynthError.exit_code, f"Internal error: {type(error).__name__}{where}; please report it ({place})."
