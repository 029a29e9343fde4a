"""The fork server itself: `python -m runner.launch.fork_server_process DESCRIPTOR`, for the launcher's own
use (`runner.launch.fork_server`).

It imports what a party's run needs whatever the study says. MPyC's runtime reads the command line when it is
imported, and comes later. Arrow has one thread as soon as it is imported, which gives memory back for its
allocator (jemalloc) and whose locks that holds while a process forks; Arrow makes its own pools of threads
anew in a fork (`arrow/util/atfork_internal.h`).
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mpc_protocols.process.later import Later
from runner.launch.fork_server import MAX_ORDER, PROGRAM

if TYPE_CHECKING:
    from mpc_protocols import backend
    from mpc_protocols.mechanisms import gumbel
    from parties.session import mpyc_runtime
    from runner.party.record import software
    from runner.report import compiled
    from synth import algorithm
else:  # after the other process has begun (`_compiling`)
    algorithm = Later("synth.algorithm")
    backend = Later("mpc_protocols.backend")
    compiled = Later("runner.report.compiled")
    gumbel = Later("mpc_protocols.mechanisms.gumbel")
    mpyc_runtime = Later("parties.session.mpyc_runtime")
    software = Later("runner.party.record.software")

IMPORTED = (
    "runner.__main__",
    "runner.commands.declared.running.run",
    "runner.commands.running.run",
    "runner.launch.ahead",
    "runner.party.process",
    "runner.party.own_counts",
    "runner.party.course.table",
    "runner.party.course.answers",
    "runner.party.course.agreed_table",
    "runner.party.record.software",
    "runner.report.page",
    "runner.party.synthesis",
    "runner.contributors.result",
    "runner.results.outputs",
    "runner.results.linked",
    "parties.budget.account",
    "parties.budget.run_state",
    "parties.core_dumps",
    "parties.session.admission",
    "parties.session.transport.codec",
    "parties.data.counting.local_marginals",
    "parties.data.tallies.counting",
    "parties.data.tallies.workers",
    "_strptime",
    "configparser",
    "cryptography.x509",
    "cryptography.hazmat.backends.openssl.backend",
    "duckdb",
    "encodings.cp437",
    "encodings.idna",
    "encodings.utf_8_sig",
    "numpy.ma",
    "numpy.random",
    "pyarrow.compute",
    "pyarrow.csv",
    "mpc_protocols.engine.inputs.check.seed",
    "mpc_protocols.engine.inputs.sourced_engine",
    "mpc_protocols.engine.oracle",
    "mpc_protocols.backends.replicated.oracle",
    "synth.algorithms.aim.loop",
    "synth.algorithms.mosaic.loop",
    "synth.budget.noisy_sizes",
    "synth.budget.prices",
    "synth.domain.decoding",
    "synth.run",
    "synth.budget.small.small_table",
)
"""NumPy loads the two modules of its own when they are asked for. Its global generator is nobody's here: what a
party draws comes from the kernel, or from a seed that is an argument."""


def cosynth(arguments: Sequence[str]) -> None:
    """The command line, with these arguments."""
    main = import_module("runner.__main__")
    sys.argv = [str(main.__file__), *arguments]
    show_as([*PROGRAM, *arguments])
    main.program()


def serve(channel: socket.socket, main: Callable[[Sequence[str]], None] = cosynth) -> None:
    """Fork a process for each order, until the launcher has gone; returns in none of them. main: what it
    does with its arguments."""
    gc.disable()  # nearly all that is made here stays
    codes = _compiling(channel)
    for name in IMPORTED:
        import_module(name)
        _end_if_left(channel)
    for registry in (algorithm.ALGORITHMS, backend.BACKENDS):
        tuple(registry)  # each is imported
    mpyc_runtime.prepare()
    gumbel.invert(0)  # its table is computed
    software.software()
    compiled.KEPT.codes.update(codes())
    compiled.template()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a process that is interrupted before it listens ends by it
    gc.freeze()  # pages that are never written to are shared by all
    gc.enable()
    while True:
        try:
            message, streams, _, _ = socket.recv_fds(channel, MAX_ORDER, 3)
        except OSError:
            message = b""
        if not message:
            os._exit(0)
        _fork(channel, main, streams, *json.loads(message.decode("utf-8", "surrogatepass")))
        for stream in streams:
            os.close(stream)


def _compiling(channel: socket.socket) -> Callable[[], dict[str, bytes]]:
    """Let another process compile the report's template beside the imports. Returns a function that waits for
    it, and gives what it has made: nothing if it has failed, and then the template is compiled here."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        try:
            channel.close()  # whose other end shall see at once that this process's parent has ended
            os.close(reader)
            compiled.template()
            with open(writer, "w", encoding="ascii") as pipe:
                json.dump({key: code.hex() for key, code in compiled.KEPT.codes.items()}, pipe)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)

    def wait() -> dict[str, bytes]:
        with open(reader, encoding="ascii") as pipe:
            told = pipe.read()
        _, status = os.waitpid(process, 0)
        return {} if status else {key: bytes.fromhex(code) for key, code in json.loads(told).items()}

    return wait


def _end_if_left(channel: socket.socket) -> None:
    """End this process if its launcher has gone, which a run does that was refused at once."""
    with suppress(BlockingIOError):
        if not channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            os._exit(0)


def _fork(
    channel: socket.socket,
    main: Callable[[Sequence[str]], None],
    streams: Sequence[int],
    environment: Mapping[str, str],
    directory: str,
    arguments: Sequence[str],
) -> None:
    """Fork a process that runs these arguments there, and answer with its number, or None. It begins once it
    is the launcher's; if this server ends before that, so does it: it would run beside the one that takes its
    place."""
    number, tell_number = os.pipe()
    begin, tell_begin = os.pipe()
    between = os.fork()
    if not between:
        try:
            process = os.fork()
        except OSError:
            os._exit(1)
        if process:
            os.write(tell_number, str(process).encode())
            os._exit(0)
        os.close(tell_begin)
        if not os.read(begin, 1):
            os._exit(1)
        for descriptor in (number, tell_number, begin, channel.detach()):
            os.close(descriptor)
        _run(main, streams, environment, directory, arguments)
    _, status = os.waitpid(between, 0)
    answer = b"" if status else os.read(number, 32)
    if answer:
        os.write(tell_begin, b".")  # before the answer: a launcher that has it may end this server at once
    channel.send(json.dumps({"process": int(answer) if answer else None}).encode())
    for descriptor in (number, tell_number, begin, tell_begin):
        os.close(descriptor)


def _run(
    main: Callable[[Sequence[str]], None],
    streams: Sequence[int],
    environment: Mapping[str, str],
    directory: str,
    arguments: Sequence[str],
) -> NoReturn:
    """Be a process that was started with these arguments, there."""
    try:
        os.setpgid(0, 0)
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
            os.close(stream)
        os.environ.clear()
        os.environ.update(environment)
        with suppress(OSError):  # one that was removed: paths are absolute
            os.chdir(directory)
        main(arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(1)


def show_as(arguments: Sequence[str]) -> None:
    """What ps(1) and /proc show of this process from now on: written where the kernel keeps what it was
    started with (proc(5)).

    The fork server's own arguments end with blanks (`ROOM`), so that there is room; what is longer is cut.
    """
    numbers = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    start, end = int(numbers[45]), int(numbers[46])
    words = b"\0".join(map(os.fsencode, arguments))[: max(end - start - 1, 0)]
    if start:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, words, len(words))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
