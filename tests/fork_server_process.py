"""The fork server of tests: `python -m tests.fork_server_process DESCRIPTOR`, for `tests.forks` only."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from unittest import mock

from runner.launch import children, fork_server, fork_server_process
from runner.launch.fork_server import ForkServer

IMPORTED = ("tests.trio", "pytest", "hypothesis", "scipy.stats", "runner.review.conformance")
"""By jobs of a trio; nothing that starts a thread."""


class Prepared(fork_server.ForkServer):
    """A launcher's fork server that is itself forked, from a process that has imported everything; before the
    launcher begins, for that has threads later."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = fork_server._inherited(environment)[1]
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(fork_server.PATIENCE_S)
        self._number = os.fork()
        if not self._number:
            self._channel.close()
            os.setpgid(0, 0)
            with open(os.devnull, "r+b") as nothing:
                for stream in range(3):
                    os.dup2(nothing.fileno(), stream)
            os.environ.update(environment)
            fork_server_process.show_as([*fork_server.PROCESS, str(theirs.fileno())])
            fork_server_process.serve(theirs)
        theirs.close()

    def begun(self, environment: Mapping[str, str]) -> fork_server.ForkServer:
        """As if it were started now: what the launcher has set of its limits since then is the server's, too.
        Raises `AssertionError` for another environment than the launcher began with."""
        assert fork_server._inherited(environment)[1] == self._environment
        for name in filter(lambda name: name.startswith("RLIMIT_"), dir(resource)):
            limit = getattr(resource, name)
            resource.prlimit(self._number, limit, resource.getrlimit(limit))
        return self

    def kill(self) -> None:
        os.kill(self._number, signal.SIGKILL)

    def close(self) -> None:
        self._channel.close()
        self.kill()
        os.waitpid(self._number, 0)


def main(arguments: Sequence[str]) -> None:
    """`python -m` with these arguments, where `cosynth` is `runner`."""
    module, *rest = arguments
    if module == "runner":
        if rest[:1] == ["run"] and "--party" not in rest:
            servers = [Prepared(children.environment()).begun]
            first = mock.patch.object(
                fork_server, "ForkServer", lambda environment: (servers or [ForkServer]).pop()(environment)
            )
            first.start()
        fork_server_process.cosynth(rest)
    else:
        sys.argv = list(arguments)
        fork_server_process.show_as([sys.executable, "-m", *arguments])
        import_module(module).main()


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    fork_server_process.serve(socket.socket(fileno=int(sys.argv[1])), main)
