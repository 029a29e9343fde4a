"""`python -m runner` and the console script `cosynth`."""

import gc
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

from runner.commands.cli import main

__all__ = ["main", "program"]


def program(embedded: Mapping[str, object] | None = None) -> NoReturn:
    """Run one command (`cli.main`) and end the process with its exit code.

    Cycles are looked for once in 50,000 new objects instead of 700: NumPy, DuckDB and the others come as some
    100,000 objects that stay, and going through them again and again is a twentieth of the start.

    The end comes at once: a thread that was left behind in a library (reading a table, importing) must not
    hold up a failed run, and taking the libraries down in order would cost every party a third of a second of
    CPU. Files are closed where they are written; what a query that is left behind has put on disk, perhaps
    records, is removed.
    """
    _open_streams()
    gc.set_threshold(50_000)
    code = main(None, embedded)
    if "parties.data.scratch" in sys.modules:
        from parties.data.scratch import remove_spills

        remove_spills()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _open_streams() -> None:
    """Standard streams that whoever started this has closed are the null device.

    Else the first files that are opened, a ledger perhaps, would have their numbers, and get what a library
    prints.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            if descriptor > number:  # it is taken already
                os.close(descriptor)
            setattr(sys, name, open(os.devnull, "w" if number else "r"))  # noqa: SIM115 (for as long as this process lives)


if __name__ == "__main__":
    program()
