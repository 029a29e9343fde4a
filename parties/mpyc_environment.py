"""The one variable of the environment that MPyC sets while it is imported, set before: the import happens in a
thread beside others (`parties.session.mpyc_runtime.load`), and a variable that is set while another thread looks one up,
as the C library does to resolve a name or to tell the time, may end the process (getenv(3), setenv(3):
MT-Unsafe)."""

from __future__ import annotations

import os


def settle() -> None:
    """Say that MPyC starts no workers of its own, unless the user has said how many. Call it in the main
    thread, before there are others."""
    os.environ.setdefault("MPYC_MAXWORKERS", "0")
