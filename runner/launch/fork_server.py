"""A process that has imported what party processes need, and forks one whenever it is asked: imports are paid
for once, not once a party (`docs/design/session.md` 7).

The fork server reads no study, no data and no key, runs one thread, and ends when its launcher does. A
process that it forks becomes the launcher's own child, as if the launcher had started it: the fork's parent
ends at once, and the kernel gives its child to the launcher, who is its *subreaper* for that moment
(prctl(2), PR_SET_CHILD_SUBREAPER). So waiting, stopping, killing and accounting are those of any child. Linux
only; elsewhere, and where anything here fails, party processes are started as usual. Standard library only.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
PROGRAM = (sys.executable, "-P", "-m", "runner")
PROCESS = (sys.executable, "-P", "-m", "runner.launch.fork_server_process")
ROOM = 4096
"""Bytes for the arguments of what is forked, where ps(1) looks for them."""
MAX_ORDER = 1 << 17
"""Bytes of an order: a process's environment, directory and arguments."""
PATIENCE_S = 600.0
"""Seconds until a server that does not answer is given up; what it should have started is then started
without it."""
LATE = ("COSYNTH_", "HOME", "PYTEST_", "XDG_")
"""Variables that nobody reads while it is imported begin so: each process has its own, whenever its fork
server was started."""
_STATUS = Path("/proc/self/status")
_RIGHTS = ("Cap", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Uid", "Umask")
"""Lines of it that begin so are what a process may do: one that has given up rights must not have them back by a
server that began before."""


class ForkServer:
    """A running fork server; `start` may be called from any thread."""

    def __init__(self, environment: Mapping[str, str], process: Sequence[str] = PROCESS) -> None:
        """Start it: it begins to import, while this returns at once. process: a program that serves on the
        descriptor which its next argument names (`fork_server_process.serve`). Raises `OSError`."""
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(PATIENCE_S)
        with theirs:
            self._process = subprocess.Popen(
                [*process, str(theirs.fileno()), " " * ROOM],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # what it cannot import a party cannot either, and says so
                pass_fds=(theirs.fileno(),),
                env=dict(environment),
                process_group=0,
            )

    def start(
        self, environment: Mapping[str, str], directory: str, arguments: Sequence[str], streams: Sequence[int]
    ) -> int:
        """Fork a process that runs `cosynth` with these arguments in a process group of its own. Returns its
        number: a child's.

        environment: may differ from that of the server in variables that nobody reads while it is imported.
        directory: where it runs. streams: descriptors that become its standard input, output and error.
        Raises `OSError` if it cannot be had.
        """
        order = json.dumps([dict(environment), directory, list(arguments)]).encode("utf-8", "surrogatepass")
        if len(order) > MAX_ORDER:
            raise OSError("the order is too long")
        with _Subreaper():
            socket.send_fds(self._channel, [order], list(streams))
            answer = self._channel.recv(MAX_ORDER)
        process = json.loads(answer)["process"] if answer else None
        if process is None:
            raise OSError("the fork server has ended, or forks no more")
        return int(process)

    def close(self) -> None:
        """End it, at whatever it is; what it has forked goes on."""
        self._channel.close()
        with suppress(
            PermissionError
        ):  # of another user than this process is by now: it sees that nobody is there
            self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        """End it without waiting for that: who waits for its answer gets none."""
        self._process.kill()

    def leave(self) -> None:
        """Close this process's end: the server ends with the last process that holds one."""
        self._channel.close()


class _Subreaper:
    """Orphans of this process's descendants become its children, as long as this lasts; longer, if they did before:
    this may be a session of somebody else's program."""

    def __enter__(self) -> None:
        before = ctypes.c_int()
        self._prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before))
        self._before = before.value
        self._prctl(PR_SET_CHILD_SUBREAPER, 1)

    def __exit__(self, *_: object) -> None:
        self._prctl(PR_SET_CHILD_SUBREAPER, self._before)

    @staticmethod
    def _prctl(what: int, value: Any) -> None:
        if ctypes.CDLL(None, use_errno=True).prctl(what, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "this kernel gives no orphans to who asks for them")


_lock = threading.Lock()
_running: tuple[object, ForkServer] | None = None
_available = sys.platform == "linux"


def begin(environment: Mapping[str, str]) -> None:
    """Let the fork server begin to import, if there is none yet; this returns at once."""
    with _lock:
        _server(environment)


def forked(environment: Mapping[str, str], arguments: Sequence[str], streams: Sequence[int]) -> int | None:
    """`ForkServer.start` by this process's server; None where there can be none: once one has failed, there
    is none any more."""
    global _available
    with _lock:
        server = _server(environment)
        if server is None:
            return None
        try:
            return server.start(environment, os.getcwd(), arguments, streams)
        except OSError:
            _available = False
            end()
            return None
        except BaseException:  # Ctrl-C: an answer that nobody has read would be taken for the next order's
            end()
            raise


def abandon() -> None:
    """Wait no longer for a server that does not answer; may be called by a signal's handler."""
    if _lock.locked() and _running is not None:
        _running[1].kill()


def _server(environment: Mapping[str, str]) -> ForkServer | None:
    """One that was started under another environment (but for `LATE`), under other limits, with other rights or in
    another process (before a fork) is not taken: what is forked from it would inherit those."""
    global _running, _available
    if not _available:
        return None
    inherited = _inherited(environment)
    if _running is not None and _running[0] != inherited:
        end()
    if _running is None:
        try:
            _running = inherited, ForkServer(environment)
        except OSError:
            _available = False
            return None
    return _running[1]


def end() -> None:
    """End this process's server, if there is one; what it has forked goes on."""
    global _running
    if _running is not None:
        _running[1].close()
        _running = None


def _forget() -> None:
    """In a fork of this process: the server is its parent's, and the lock may have been held by a thread that
    is not here."""
    global _lock, _running
    _lock = threading.Lock()
    if _running is not None:
        _running[1].leave()
        _running = None


atexit.register(end)
os.register_at_fork(after_in_child=_forget)


def _inherited(environment: Mapping[str, str]) -> tuple[Any, ...]:
    """All that a process passes on to those which it starts, but its directory and its streams."""
    rights = tuple(line for line in _STATUS.read_text().splitlines() if line.startswith(_RIGHTS))
    return (
        os.getpid(),
        tuple(sorted(item for item in environment.items() if not item[0].startswith(LATE))),
        rights,
        tuple(
            resource.getrlimit(getattr(resource, name))
            for name in dir(resource)
            if name.startswith("RLIMIT_")
        ),
        os.getpriority(os.PRIO_PROCESS, 0),
        frozenset(os.sched_getaffinity(0)),
    )
