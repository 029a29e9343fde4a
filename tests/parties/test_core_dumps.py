"""A party leaves no image of its memory, whatever the user's limits are."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import ctypes, os, resource, signal, sys
from parties.core_dumps import forbid_core_dumps
if sys.argv[1] == "forbid":
    forbid_core_dumps()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE)[0], flush=True)
os.abort()
"""


def aborted(word: str, folder: Path) -> tuple[str, bool]:
    """PR_GET_DUMPABLE and the limit; whether the kernel dumped the process when it aborted."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.chdir(folder)
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM, word], {"PYTHONPATH": str(ROOT)})
    os.close(write)
    _, status = os.waitpid(pid, 0)
    with open(read) as pipe:
        said = pipe.read()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT, said
    return said.strip(), os.WCOREDUMP(status)


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_process_that_forbids_them_is_not_dumped(tmp_path: Path) -> None:
    for word in ("allow", "forbid"):
        (tmp_path / word).mkdir()
    assert aborted("allow", tmp_path / "allow")[0].startswith(
        "1 "
    )  # whether it is dumped is the machine's matter
    assert aborted("forbid", tmp_path / "forbid") == ("0 0", False)
    assert not list((tmp_path / "forbid").iterdir())


def test_what_it_starts_keeps_the_limit() -> None:
    code = (
        "import subprocess, sys; from parties.core_dumps import forbid_core_dumps; forbid_core_dumps();"
        "subprocess.run([sys.executable, '-c', 'import resource; print(resource.getrlimit(resource.RLIMIT_CORE))'])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout
        == "(0, 0)\n"
    )
