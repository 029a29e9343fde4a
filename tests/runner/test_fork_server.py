"""The fork server: what it forks is the launcher's own child, with its own streams, environment, directory
and command line; and without it everything works as before."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpc_protocols.process.installation import STARTED_AS
from runner.launch import fork_server
from runner.launch.children import _start, environment
from runner.launch.fork_server import PROGRAM, ForkServer, begin, forked
from runner.launch.fork_server_process import _end_if_left
from runner.launch.launcher import _interruptions
from runner.version import VERSION
from tests.runner import small
from tests.runner.processes import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fork server needs Linux")


@pytest.fixture(scope="module")
def kept() -> Iterator[list[Any]]:
    """The fork server that the test before has left, if one: each imports everything."""
    left: list[Any] = [None]
    yield left
    fork_server._running = left[0]
    fork_server.end()


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch, kept: list[Any]) -> Iterator[None]:
    """A fork server of these tests' own, which cannot spoil those of others."""
    monkeypatch.setattr(fork_server, "_running", kept[0])
    monkeypatch.setattr(fork_server, "_available", True)
    yield
    kept[0] = fork_server._running


class Process:
    """What was forked with these arguments; its output and errors in files."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        self.files = (folder / "output", folder / "errors")
        reader, self.input = os.pipe()
        with self.files[0].open("wb") as output, self.files[1].open("wb") as errors:
            self.number = forked(
                environment() | variables, arguments, (reader, output.fileno(), errors.fileno())
            )
        os.close(reader)

    def end(self) -> tuple[int, str, str]:
        """Exit code, output and errors."""
        assert self.number is not None
        _, status, usage = os.wait4(self.number, 0)
        os.close(self.input)
        assert usage.ru_utime + usage.ru_stime > 0
        output, errors = (file.read_text() for file in self.files)
        return os.waitstatus_to_exitcode(status), output, errors


def server() -> int:
    """The process number of the fork server that runs now."""
    assert fork_server._running is not None
    return fork_server._running[1]._process.pid


def test_what_is_forked_is_a_child_with_streams_of_its_own(tmp_path: Path) -> None:
    assert Process(tmp_path, "--version").end() == (0, f"cosynth {VERSION}\n", "")
    code, output, errors = Process(tmp_path, "rnu", "study.toml").end()
    assert (code, output) == (2, "") and "run" in errors and errors.count("\n") == 1


def test_environment_and_directory_are_those_of_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    told = [
        Process(tmp_path, "init", "study", **{STARTED_AS: way}).end()[1]
        for way in ("cosynth", "python -m cosynth")
    ]
    assert (tmp_path / "here" / "study" / "study.toml").exists()
    assert "python -m cosynth" not in told[0]
    help_text = Process(tmp_path, "run", "--help", **{STARTED_AS: "python -m cosynth"}).end()[1]
    assert "python -m cosynth run" in help_text


def test_the_process_shows_as_what_it_runs_in_a_group_of_its_own(tmp_path: Path) -> None:
    job = tmp_path / "job"
    os.mkfifo(job)  # who reads it waits until somebody writes
    out = tmp_path / ("a" * fork_server.ROOM)  # longer than there is room for
    process = Process(
        tmp_path, "run", "no-such-study.toml", "--party", "north", "--job", str(job), "--out", str(out)
    )
    assert process.number is not None
    shown = Path(f"/proc/{process.number}/cmdline")
    assert eventually(
        lambda: (
            shown.read_bytes().rstrip(b"\0").split(b"\0")[1:7]
            == [b"-P", b"-m", b"runner", b"run", b"no-such-study.toml", b"--party"]
        )
    )
    assert os.getpgid(process.number) == process.number
    job.write_text("no job")
    assert process.end()[0] == 2


def test_one_server_forks_all_until_something_that_is_inherited_changes(tmp_path: Path) -> None:
    numbers = []
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    for variables in ({}, {"COSYNTH_LEDGER": "elsewhere"}, {"OMP_NUM_THREADS": "1"}):
        assert Process(tmp_path, "--version", **variables).end()[0] == 0
        numbers.append(server())
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[0] - 1, limits[1]))
    try:
        assert Process(tmp_path, "--version", OMP_NUM_THREADS="1").end()[0] == 0
        numbers.append(server())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert numbers[0] == numbers[1] and len(set(numbers)) == 3


GIVEN_UP = """
import ctypes, os
from runner.launch import fork_server
from runner.launch.children import environment

def server():
    fork_server.begin(environment())
    return fork_server._running[1]._process.pid

before = server()
assert server() == before
assert not ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
after = server()
assert after != before and server() == after
if not os.getuid():
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    assert server() not in (before, after)
    after = server()
    os.setresuid(65534, 65534, 65534)
    fork_server.begin(environment())
    assert fork_server._running is None or server() != after  # whoever it is may not read this interpreter
"""


def test_rights_that_were_given_up_do_not_come_back() -> None:
    """A session that runs studies as another user, or may gain no more rights: its server began before."""
    subprocess.run([sys.executable, "-c", GIVEN_UP], check=True, env=environment())


def test_nothing_is_there_that_would_not_survive_a_fork(tmp_path: Path) -> None:
    """One thread of Python's, no pool of any library: Arrow's allocator alone has a thread, and locks itself
    while something forks."""
    assert Process(tmp_path, "--version").end()[0] == 0
    tasks = Path(f"/proc/{server()}/task")
    threads = [(task / "comm").read_text().strip() for task in tasks.iterdir() if task.name != str(server())]
    assert set(threads) <= {"jemalloc_bg_thd"}
    maps = Path(f"/proc/{server()}/maps").read_text()
    assert "duckdb" in maps and "libarrow" in maps and "gmpy2" in maps


DRAWING = """
import socket, sys
from runner.launch.fork_server_process import serve

def draw(arguments):
    import os, random, secrets, ssl, tempfile, uuid
    import numpy as np
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    drawn = [secrets.token_hex(16), random.random(), ssl.RAND_bytes(16).hex(), uuid.uuid4().hex]
    drawn += [X25519PrivateKey.generate().private_bytes_raw().hex(), os.urandom(16).hex(), next(tempfile._get_candidate_names())]
    drawn += [ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value, np.random.default_rng().integers(1 << 62)]
    print(*drawn)
    sys.stdout.flush()
    os._exit(0)

serve(socket.socket(fileno=int(sys.argv[1])), draw)
"""


def test_what_is_forked_shares_no_random_number(tmp_path: Path) -> None:
    """OpenSSL's generator has a state when the server forks, and seeds itself anew in each fork."""
    (tmp_path / "drawing.py").write_text(DRAWING)
    server = ForkServer(environment(), (sys.executable, "-P", str(tmp_path / "drawing.py")))
    drawn = []
    try:
        for number in range(3):
            with (tmp_path / str(number)).open("w+b") as output, open(os.devnull, "r+b") as nothing:
                streams = nothing.fileno(), output.fileno(), nothing.fileno()
                process = server.start(environment(), str(tmp_path), (), streams)
                assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
                output.seek(0)
                drawn.append(output.read().split())
    finally:
        server.close()
    for values in zip(*drawn, strict=True):
        assert len(set(values)) == 3, values
    assert len(drawn[0]) == 9


ARROW = """
import os, sys
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

table = pa.table({"place": np.arange(100_000), "name": pa.array(np.arange(100_000) % 50).cast(pa.string())})
for number in range(20):
    process = os.fork()
    if not process:
        parquet.write_table(table, sys.argv[1])
        read = parquet.read_table(sys.argv[1])
        sums = read.group_by("name").aggregate([("place", "sum")])
        os._exit(sums.num_rows != 50 or pc.sum(read["place"]).as_py() != 99_999 * 50_000)
    assert os.waitpid(process, 0)[1] == 0
"""


def test_arrow_computes_in_forks_with_threads_of_their_own(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", ARROW, str(tmp_path / "table")], check=True)


MPYC = """
import os, sys
from parties.mpyc_environment import settle
from parties.session.mpyc_runtime import load, prepare

sys.argv = ["cosynth", "--help"]
if sys.orig_argv[-1] == "prepared":
    prepare()
assert "mpyc.runtime" not in sys.modules and sys.argv == ["cosynth", "--help"]
if not (process := os.fork()):
    os.environ.pop("MPYC_MAXWORKERS", None)
    settle()
    changes = []
    sys.addaudithook(lambda event, _: changes.append(event) if event in ("os.putenv", "os.unsetenv") else None)
    load(1, 3)
    os._exit(os.environ["MPYC_MAXWORKERS"] != "0" or "mpyc.runtime" not in sys.modules or bool(changes))
assert os.waitpid(process, 0)[1] == 0
"""


@pytest.mark.parametrize("state", ["prepared", "not prepared"])
def test_mpyc_is_ready_but_for_its_runtime_which_reads_the_command_line(state: str) -> None:
    """Which is loaded in a thread beside others: it sets no variable of the environment then."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", MPYC, state], check=True)


def test_without_a_server_processes_are_started_as_usual(tmp_path: Path) -> None:
    begin(environment())
    os.kill(server(), signal.SIGKILL)
    assert Process(tmp_path, "--version").number is None
    with (tmp_path / "output").open("wb") as output, open(os.devnull, "r+b") as nothing:
        number = _start(
            PROGRAM, ("--version",), environment(), (nothing.fileno(), output.fileno(), nothing.fileno())
        )
    assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 0
    assert (tmp_path / "output").read_text() == f"cosynth {VERSION}\n"


def test_an_order_that_is_too_long_is_not_given(tmp_path: Path) -> None:
    assert Process(tmp_path, "--version", "x" * fork_server.MAX_ORDER).number is None


@pytest.mark.parametrize("ending", ["os._exit(0)", "os.kill(os.getpid(), 9)", "sys.exit(0)"])
def test_the_server_ends_with_its_launcher(ending: str) -> None:
    program = f"""
import os, sys
from runner.launch import fork_server
fork_server.begin(dict(os.environ))
print(fork_server._running[1]._process.pid, flush=True)
{ending}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert eventually(lambda: not Path(f"/proc/{int(done.stdout)}/stat").exists())


AHEAD = """
import argparse, sys
from pathlib import Path
from runner.launch import ahead, fork_server
from runner.launch.children import environment

def begun(study, **given):
    with ahead.importing(argparse.Namespace(**{"study": Path(study), "party": None, "resume": False} | given)):
        return fork_server._running

study, text = Path(sys.argv[1]), Path(sys.argv[1]).read_text()
server = begun(study)
fork_server.begin(environment(3))
assert server is not None and fork_server._running is server
fork_server.end()
assert begun(study, party="north") is None and begun(study, resume=True) is None and begun("nowhere.toml") is None
for instead in ('"ideal"', '"no such"', "[]", "broken"):
    other = study.with_name("other.toml")
    other.write_text(text.replace('"replicated"', instead))
    assert other.read_text() != text and begun(other) is None, instead
other.write_text(".".join("a" * 100) + " = 1\\n" + text)  # a parser of TOML takes long for such keys
assert begun(other) is None
try:
    with ahead.importing(argparse.Namespace(study=study, party=None, resume=False)):
        process = fork_server._running[1]._process
        raise KeyboardInterrupt
except KeyboardInterrupt:
    assert process.returncode == -9 and fork_server._running is None
"""


def test_a_run_lets_its_server_begin_first_and_end_with_a_failure(tmp_path: Path) -> None:
    study = small.write(tmp_path).path
    subprocess.run([sys.executable, "-c", AHEAD, str(study)], check=True, env=environment())


def test_a_server_that_still_imports_ends_with_its_launcher() -> None:
    """One whose run was refused while it began."""
    channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    _end_if_left(channel)  # its launcher is there
    process = os.fork()
    if not process:
        theirs.close()
        _end_if_left(channel)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7  # this process holds the other end
    theirs.close()
    process = os.fork()
    if not process:
        _end_if_left(channel)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    channel.close()


COMPILING = """
import socket
import jinja2
from runner.launch.fork_server_process import _compiling
from runner.report import compiled

def never(*_, **__):
    raise AssertionError("compiled here")

_, ours = socket.socketpair()
template, compiled.template = compiled.template, never
assert _compiling(ours)() == {}  # the other process has failed
compiled.template = template
codes = _compiling(ours)()
jinja2.Environment.compile = never
try:
    template()
except AssertionError:
    pass
else:
    raise AssertionError("nobody has compiled it yet")
compiled.KEPT.codes.update(codes)
assert template().name == "report.html.j2" and len(codes) == 1
"""


def test_the_report_s_template_is_compiled_by_another_process() -> None:
    subprocess.run([sys.executable, "-c", COMPILING], check=True, env=environment())


def test_a_process_is_adopted_by_nobody_else(tmp_path: Path) -> None:
    """Orphans of this process's descendants are its own for the moment of a fork only."""
    assert Process(tmp_path, "--version").end()[0] == 0
    script = (
        "(until grep -q '^State:.*Z' /proc/$$/status; do sleep 0.01; done; exec sh -c 'echo $PPID') & exit 0"
    )
    orphan = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert int(orphan.stdout) != os.getpid()


def test_who_adopted_orphans_before_goes_on_with_it(tmp_path: Path) -> None:
    prctl, adopts = ctypes.CDLL(None).prctl, ctypes.c_int()
    prctl(fork_server.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        assert Process(tmp_path, "--version").end()[0] == 0
        prctl(fork_server.PR_GET_CHILD_SUBREAPER, ctypes.byref(adopts), 0, 0, 0)
    finally:
        prctl(fork_server.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    assert adopts.value == 1


def test_an_interrupted_order_does_not_answer_the_next_one(tmp_path: Path) -> None:
    """Ctrl-C between an order and its answer."""
    begin(environment())
    os.kill(server(), signal.SIGSTOP)
    before = server()
    pressed = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            Process(tmp_path, "init", str(tmp_path / "interrupted"))
    finally:
        signal.signal(signal.SIGALRM, pressed)
    with pytest.raises(ProcessLookupError):
        os.kill(before, signal.SIGCONT)
    assert Process(tmp_path, "--version").end() == (0, f"cosynth {VERSION}\n", "")
    assert not (tmp_path / "interrupted").exists()


def test_a_fork_of_the_launcher_has_no_server_and_no_locked_lock() -> None:
    """A thread of the parent was starting a process at that moment."""
    begin(environment())
    with fork_server._lock:
        child = os.fork()
        if not child:
            free = fork_server._lock.acquire(blocking=False)
            os._exit(0 if free and fork_server._running is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.kill(server(), 0)


def test_ctrl_c_does_not_wait_for_a_server_that_does_not_answer(tmp_path: Path) -> None:
    begin(environment())
    os.kill(server(), signal.SIGSTOP)
    alarms = iter([lambda: os.kill(os.getpid(), signal.SIGINT)])

    def press(*_: object) -> None:
        next(alarms)()  # the second time there is none: StopIteration ends the test

    earlier = signal.signal(signal.SIGALRM, press)
    try:
        with _interruptions() as reader:
            assert reader is not None
            signal.setitimer(signal.ITIMER_REAL, 0.2, 20.0)
            assert Process(tmp_path, "--version").number is None
            assert os.read(reader, 1) == b"!"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier)
