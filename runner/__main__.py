"""`python -m runner` and the console script `cosynth`."""

import os
import sys
from contextlib import suppress
from typing import NoReturn

from runner.cli import main

__all__ = ["main", "program"]


def program() -> NoReturn:
    """Run one command and end the process with its exit code.

    At once: a thread that was left behind in a library (reading a table, importing) must not hold up a failed run, and taking
    the libraries down in order would cost every party a third of a second of CPU. Files are closed where they are written; what
    a query that is left behind has put on disk, perhaps records, is removed.
    """
    code = main()
    if "parties.source" in sys.modules:
        from parties.source import remove_spills

        remove_spills()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    program()
