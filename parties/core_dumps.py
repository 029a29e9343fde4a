"""No memory image of a party: it would hold keys, shares and the custodian's table, and outlive the run.

Two doors. A crash writes a core file, or hands it to a program that keeps it: the limit of its size is zero,
also for processes started from here. And another process of the same user may read the memory (ptrace,
/proc/PID/mem) or provoke the dump: the kernel refuses it for a process that is not dumpable (Linux, prctl(2);
elsewhere the limit alone applies). The administrator of the machine can still read everything.
"""

from __future__ import annotations

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """For this process from now on. Undone by nothing but another program in this process (exec), which keeps
    the limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
