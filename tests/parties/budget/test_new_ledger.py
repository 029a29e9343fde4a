"""A ledger is there whole or not at all, and what is left of one is never taken for a new one."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from mpc_protocols.errors import BudgetRefused, CosynthError, OutOfResources
from parties.budget import ledger_file
from parties.budget.collected_lists import CollectedList
from parties.budget.ledger import Ledger
from parties.budget.ledger_file import MIN_BYTES, NoLedger
from parties.budget.spending import Proposal
from parties.new_file import put_in_place
from tests.parties.budget.test_ledger import EVENT, ROWS, RUN, another

PROPOSAL = Proposal("patients", "study", "cd" * 32, ("south",), ROWS, "ef" * 32, 500)
USES: dict[str, Callable[[Ledger], object]] = {
    "reserve": lambda ledger: ledger.reserve(RUN),
    "entries": lambda ledger: ledger.entries(),
    "refuse": lambda ledger: ledger.refuse(PROPOSAL, 30),
    "refusals": lambda ledger: ledger.refusals(),
    "has ended": lambda ledger: ledger.has_ended("patients", "run-1"),
    "alignments": lambda ledger: ledger.alignments("patients", "south"),
    "list": lambda ledger: CollectedList(ledger, b"study", "north").fixed,
    "rehearse": lambda ledger: ledger.rehearse(),
    "exists": lambda ledger: ledger.exists(),
}
AT_ONCE = 12


@pytest.fixture
def used(tmp_path: Path) -> Ledger:
    """A ledger with one run that has ended."""
    ledger = Ledger(tmp_path / "ledger.db")
    run = ledger.reserve(RUN)
    run.begin(EVENT)
    run.settle()
    return ledger


def files(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def without_tables(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        for statement in ("CREATE TABLE x (y)", "DROP TABLE x"):
            database.execute(statement)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("size", [0, 1, MIN_BYTES - 1, None])
def test_what_is_left_of_an_emptied_ledger_is_no_new_one(used: Ledger, use: str, size: int | None) -> None:
    if size is None:
        without_tables(used.path)
    else:
        os.truncate(used.path, size)
    before = files(used.path.parent)
    if use == "exists" and size is None:
        assert used.exists()  # it has a size; its content is looked at by who uses it
        return
    with pytest.raises(NoLedger) as caught:
        USES[use](used)
    assert caught.value.exit_code == 50 and caught.value.sentence == (
        f"{used.path} is empty or cut, and no ledger; restore it from a backup, or remove it if no run was ever charged there."
    )
    assert files(used.path.parent) == before


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.9999])
def test_a_ledger_of_which_the_end_is_missing_is_damaged(used: Ledger, share: float) -> None:
    size = used.path.stat().st_size
    os.truncate(used.path, MIN_BYTES + int(share * (size - MIN_BYTES)))
    for use in ("reserve", "entries", "rehearse"):
        with pytest.raises(BudgetRefused, match=r"is damaged, so nothing .* restore it from a backup"):
            USES[use](used)
    assert not used.is_whole()


def test_a_short_file_of_somebody_else_s_is_not_to_be_removed(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("remember the milk\n")
    for use in ("reserve", "entries", "rehearse"):
        with pytest.raises(BudgetRefused, match="cannot be used") as caught:
            USES[use](Ledger(tmp_path / "notes"))
        assert "remove" not in caught.value.sentence


def test_a_ledger_of_zeros_is_refused(used: Ledger) -> None:
    used.path.write_bytes(bytes(used.path.stat().st_size))  # what a crash of some file systems leaves
    for use in ("reserve", "entries", "rehearse"):
        with pytest.raises(BudgetRefused, match="cannot be used"):
            USES[use](used)
    assert not used.is_whole()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("trace", ["-journal", "-wal", ".open"])
def test_a_ledger_that_was_removed_is_missed(tmp_path: Path, use: str, trace: str) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    left = tmp_path / f"ledger.db{trace}"
    left.mkdir() if trace == ".open" else left.write_bytes(b"x" * 600)
    with pytest.raises(BudgetRefused) as caught:
        USES[use](ledger)
    assert caught.value.sentence == (
        f"The ledger {ledger.path} is missing, and {left} shows that there was one; restore it from a backup, or remove "
        f"{left.name}, too, if no run on real data was ever charged there."
    )
    assert files(tmp_path).keys() == {left.name}


def test_a_ledger_that_is_removed_during_a_run_is_not_begun_anew_by_its_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    run = ledger.reserve(RUN)
    run.begin(EVENT)
    ledger.path.unlink()
    with pytest.raises(BudgetRefused, match="is missing"):
        run.settle()
    assert not ledger.path.exists()


KILLED_WHILE_WRITING = """
import os, signal, sys
from parties.budget.ledger import Ledger
from tests.parties.budget.test_ledger import another
ledger = Ledger(sys.argv[1])
with ledger.transaction() as database:
    database.execute("PRAGMA cache_size = 1")  # the file is written before the commit
    for number in range(2, 200):
        ledger._insert(database, another(number))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_while_writing(ledger: Ledger) -> Path:
    """Leave half a transaction in a ledger's file; its journal, which undoes it."""
    assert subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(ledger.path)]).returncode == -9
    journal = ledger.path.with_name("ledger.db-journal")
    assert journal.read_bytes()[0]  # SQLite rolls back into whatever bears the ledger's name
    return journal


def test_a_ledger_is_whole_whose_transaction_a_kill_has_left_half_done(used: Ledger) -> None:
    journal = killed_while_writing(used)
    assert used.is_whole() and not journal.exists()
    assert [entry.reservation.run for entry in used.entries()] == ["run-1"]


def test_a_new_ledger_does_not_meet_the_journal_of_one_that_was_removed(used: Ledger) -> None:
    journal = killed_while_writing(used)
    used.path.unlink()
    shutil.rmtree(used.path.with_name("ledger.db.open"))
    with pytest.raises(BudgetRefused, match=r"ledger\.db-journal shows that there was one"):
        used.reserve(RUN)
    assert journal.exists() and not used.path.exists()
    journal.unlink()
    used.reserve(RUN).settle()


def test_another_process_s_new_ledger_is_no_trace_of_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be created, and used, between the look for it and the look for what it leaves."""
    ledger, look = Ledger(tmp_path / "ledger.db"), ledger_file._trace

    def late(path: Path, file: Path) -> Path | None:
        monkeypatch.undo()
        Ledger(path).reserve(another(2)).settle()
        return look(path, file)

    monkeypatch.setattr(ledger_file, "_trace", late)
    ledger.reserve(RUN).settle()
    assert [entry.reservation.run for entry in ledger.entries()] == ["run-2", "run-1"]


@pytest.mark.parametrize("links", [True, False])
def test_who_creates_a_ledger_takes_the_one_that_was_there_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    ledger, put = Ledger(tmp_path / "ledger.db"), put_in_place
    if not links:
        monkeypatch.setattr("os.link", no_links)

    def second(part: Path, path: Path) -> None:
        monkeypatch.setattr(ledger_file, "put_in_place", put)
        Ledger(path).reserve(another(2)).settle()
        put(part, path)

    monkeypatch.setattr(ledger_file, "put_in_place", second)
    ledger.reserve(RUN).settle()
    assert [entry.reservation.run for entry in ledger.entries()] == ["run-2", "run-1"]
    assert files(tmp_path).keys() == {"ledger.db", "ledger.db.open"}


def no_links(*_: object, **__: object) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted")


NO_LINKS = """
import errno, os
def no_links(*_, **__):
    raise PermissionError(errno.EPERM, "Operation not permitted")
if sys.argv[2] == "without":
    os.link = no_links
"""
AT_THE_SAME_MOMENT = (
    f"""
import sys
from dataclasses import replace
from parties.budget.ledger import Ledger
from tests.parties.budget.test_ledger import EVENT, RUN
{NO_LINKS}"""
    + """
gate, opened = os.pipe()
for number in range(int(sys.argv[3])):
    if not os.fork():
        os.close(opened)
        os.read(gate, 1)  # until the last one is there, and the parent lets go
        run = Ledger(sys.argv[1]).reserve(replace(RUN, run=str(number)))
        run.begin(EVENT)
        run.settle()
        os._exit(0)
os.close(opened)
print([os.wait()[1] for _ in range(int(sys.argv[3]))])
"""
)


@pytest.mark.parametrize("links", ["with", "without"])
def test_many_processes_that_create_a_ledger_at_once_are_all_charged_there(
    tmp_path: Path, links: str
) -> None:
    ledger = Ledger(tmp_path / "new" / "ledger.db")
    command = [sys.executable, "-c", AT_THE_SAME_MOMENT, str(ledger.path), links, str(AT_ONCE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == f"{[0] * AT_ONCE}\n", done.stderr
    entries = ledger.entries()
    assert {entry.reservation.run for entry in entries} == {str(number) for number in range(AT_ONCE)}
    assert all(entry.state == "settled" and entry.spent.rho == EVENT.rho for entry in entries)
    assert files(ledger.path.parent).keys() == {"ledger.db", "ledger.db.open"}


def test_threads_that_create_a_ledger_at_once_are_all_charged_there(tmp_path: Path) -> None:
    ledger, together = Ledger(tmp_path / "ledger.db"), threading.Barrier(AT_ONCE)
    failures: list[BaseException] = []

    def created(number: int) -> None:
        together.wait()
        try:
            ledger.reserve(another(number)).settle()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=created, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(ledger.entries()) == AT_ONCE


KILLED_AT_EACH_LINE = (
    f"""
import signal, sys
from itertools import count
from pathlib import Path
from parties import new_file
from parties.budget import ledger_file
from parties.budget.ledger import Ledger
{NO_LINKS}"""
    + """
own = {new_file.__file__} | ({ledger_file.__file__} if sys.argv[2] == "with" else set())

def dying(at):
    lines = count()
    def line(frame, event, _):
        if event == "line" and next(lines) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return line
    return lambda frame, event, _: line if frame.f_code.co_filename in own else None

for at in count():
    ledger = Ledger(Path(sys.argv[1]) / str(at) / "data" / "ledger.db")
    child = os.fork()
    if not child:
        sys.settrace(dying(at))
        with ledger.transaction():
            pass
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status == 0:
        break
    assert os.WTERMSIG(status) == signal.SIGKILL, status
print(at)
"""
)


@pytest.mark.parametrize("links", ["with", "without"])
def test_a_kill_at_any_line_of_the_creation_leaves_no_ledger_or_a_whole_one(
    tmp_path: Path, links: str
) -> None:
    """The process kills itself at its first line, at its second, and so on until it is through."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EACH_LINE, str(tmp_path), links],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = int(done.stdout)
    assert lines > (40 if links == "with" else 10)  # it did die while it created
    outcomes = set()
    for at in range(lines):
        ledger = Ledger(tmp_path / str(at) / "data" / "ledger.db")
        if ledger.path.exists():
            with closing(sqlite3.connect(ledger.path)) as database:
                tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            assert {"runs", "events", "refusals", "collections"} <= tables
            assert ledger.path.stat().st_mode & 0o777 == 0o600
        outcomes.add(ledger.path.exists())
        ledger.rehearse()
        ledger.reserve(RUN).close()
        left = files(ledger.path.parent).keys() - {"ledger.db", "ledger.db.open", "ledger.db.open/1"}
        assert left <= (set() if links == "with" else {".ledger.db.lock.part"})
    assert outcomes == {False, True}


def test_a_ledger_that_cannot_be_built_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ledger = Ledger(tmp_path / "ledger.db")
    for broken in ("os.fsync", "os.link", "os.open"):
        with monkeypatch.context() as patch:
            patch.setattr(broken, full)
            if broken == "os.link":
                patch.setattr("os.rename", full)
            with pytest.raises(OutOfResources, match="the disk is full"):
                ledger.reserve(RUN)
        assert not ledger.path.exists()
    ledger.reserve(RUN).settle()
    assert files(tmp_path).keys() == {"ledger.db", "ledger.db.open"}


@pytest.fixture(params=[0, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    old = os.umask(request.param)
    yield
    os.umask(old)


@pytest.mark.usefixtures("umask")
def test_a_ledger_s_mode_is_its_own_whatever_the_umask(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "target.db")
    for name in ("ledger.db", "link.db"):
        with Ledger(tmp_path / name).transaction():
            pass
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("ledger.db", "target.db")] == [0o600] * 2
    assert (tmp_path / "link.db").is_symlink()


@pytest.mark.parametrize("link", ["ledger.db", "data"])
def test_a_link_to_a_disk_that_is_not_there_is_no_place_for_a_new_ledger(tmp_path: Path, link: str) -> None:
    disk = tmp_path / "disk"
    (tmp_path / link).symlink_to(disk / "ledger.db" if link == "ledger.db" else disk)
    ledger = Ledger(tmp_path / "ledger.db" if link == "ledger.db" else tmp_path / "data" / "ledger.db")
    for use in ("reserve", "entries", "rehearse"):
        with pytest.raises(BudgetRefused, match=r"that folder does not exist; see that its disk is there"):
            USES[use](ledger)
    assert not disk.exists()
    disk.mkdir()
    ledger.reserve(RUN).settle()
    assert (disk / "ledger.db").is_file()


def test_a_pipe_is_no_ledger_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ledger.db")
    for use in ("reserve", "entries", "rehearse"):
        with pytest.raises(BudgetRefused, match=r"ledger\.db is a pipe or a device; name a file"):
            USES[use](Ledger(tmp_path / "ledger.db"))


def test_a_link_that_leads_to_itself_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").symlink_to(tmp_path / "ledger.db")
    for use in ("reserve", "entries", "rehearse"):
        with pytest.raises(CosynthError, match="cannot be used"):
            USES[use](Ledger(tmp_path / "ledger.db"))


def test_names_that_mean_something_to_sqlite_are_names(tmp_path: Path) -> None:
    for name in ("a?mode=memory", "b%20.db", "c#d.db", "file:e.db", ":memory:", "[f]*.db"):
        ledger = Ledger(tmp_path / name)
        ledger.reserve(RUN).settle()
        assert (tmp_path / name).is_file() and len(ledger.entries()) == 1
        with suppress(FileNotFoundError):
            (tmp_path / f"{name}-journal").unlink()
    assert all(not path.name.endswith(".part") for path in tmp_path.iterdir())


def test_a_ledger_that_another_program_has_set_to_a_write_ahead_log_is_one(used: Ledger) -> None:
    with closing(sqlite3.connect(used.path)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM runs").fetchone()  # so that nothing goes over into the file
        for number in range(2, 60):
            used.reserve(another(number)).settle()
        assert len(used.entries()) == 59 and used.is_whole()
    used.path.unlink()
    used.path.with_name("ledger.db-wal").touch()
    with pytest.raises(BudgetRefused, match="is missing"):
        used.entries()


def test_a_ledger_under_a_relative_name_is_beside_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Ledger("ledger.db").reserve(replace(RUN, run="here")).settle()
    assert [entry.reservation.run for entry in Ledger(tmp_path / "ledger.db").entries()] == ["here"]
