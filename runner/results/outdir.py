"""The output directory of a run: whose it is, who may write to it, and how files get into it
(`docs/reference/outputs.md`).

Rule: a run writes into a directory that is new, empty, or this program's own. The mark is the file
`.cosynth`, which is also the lock: two runs never share a directory. A finished run, which has been paid for
with privacy budget, and an interrupted one, which has spent some and has no results yet, give way only to who
says so (`replace`). Even then an earlier run's files are replaced only by those of a run that succeeded;
until then, and if it fails, its events and its log stand beside them under names of their own (UNFINISHED).
Anything else in such a directory is left alone. What only the party may know (its row count, a traceback that
may quote a record) goes to a log of its own, PRIVATE_LOG, which is nobody else's to read and is never put
beside the results of a run on one machine: DIR can be passed on as it is, but for DIR/parties. Every run
appends to it. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mpc_protocols.errors import UsageError
from mpc_protocols.process.resources import lacking
from parties.data.files.absent import meant_beside
from parties.new_file import sync
from runner.failures import reason

MARK = ".cosynth"
"""The mark of a directory, and its lock. Of a run on one machine it says which parties have a table."""
LOG = "cosynth.log"
PRIVATE_LOG = "private.log"
PARTY_FOLDERS = "parties"
"""Where a run on one machine keeps each party's own files, inside its directory."""
USAGE = "usage.json"
"""A party's CPU seconds and largest resident memory (MiB) in a run on one machine: with its own files, not
beside the results."""
EVENTS = "events.jsonl"
RUN = "run.json"
ONE_MACHINE, DISTRIBUTED = "one-machine", "distributed"
"""What run.json calls the deployment."""
STATES = "state-*.bin"
"""What a party keeps so that its run can be resumed (`parties.budget.run_state`)."""
JOURNALS = "journal-*.jsonl"
"""What a computing party's journals are called (`parties.budget.journal`)."""
STAGING = ".partial-"
"""How the name of a directory begins in which results are being made."""
RESULT = "result.json"
"""Of a run over bundles: what it has cost contributors, signed by the computing parties."""
SIGNATURES = "signatures.json"
"""Of a run between parties with certificates: what each has signed of it (`runner.results.signatures`)."""
TABLE, RESEARCH_TABLE = "synthetic.csv", "synthetic.research.csv"
"""The synthetic table; of a run without any privacy claim it says so in its name."""
FILES = (
    TABLE,
    RESEARCH_TABLE,
    "measurements.json",
    "model.npz",
    "report.html",
    RESULT,
    SIGNATURES,
    EVENTS,
    LOG,
    RUN,
)
"""What a finished run leaves, in the order in which it is put in place: run.json last, the sign that all is
there."""
HALVES = ("*-passive.npz", "*-active.npz", "calibration.json", "evaluation.json")
"""An owner's own half of a trained model, and what goes with it: never copied to where results are passed on."""
GRAPH, TREE = "graph.graphml", "junction-tree.graphml"
"""What `graph` writes beside them: gone when another run takes their place."""
UNFINISHED = {EVENTS: "unfinished.jsonl", LOG: "unfinished.log"}
"""Where a run that is under way, or has failed, tells of itself in a directory that holds an earlier run's
results."""


def spare(target: Path, option: str = "--out", *, replace: bool = False, streamed: bool = False) -> None:
    """Raise `UsageError` for what no command writes over: a file of a finished run, a directory, a device, and, unless
    the user has said --replace, any other file. To be asked before the work is done. streamed: a device or a pipe may
    be meant, for nothing there is replaced."""
    if target.name in FILES and (target.parent / RUN).is_file():
        raise UsageError(
            f"{option} {target} is a file of a finished run, which nothing replaces; name another file."
        )
    if target.is_dir():
        raise UsageError(f"{option} {target} is a directory; name a file in it.")
    if not os.path.lexists(target):
        return
    if target.exists() and not target.is_file():
        if streamed:
            return
        raise UsageError(f"{option} {target} is no file that could be replaced; name another one.")
    if not replace:
        raise UsageError(
            f"{option} {target} is there already; name another file, or let this one take its place with --replace."
        )


def writable(target: Path, option: str) -> None:
    """Raise `UsageError` now for a file that could not be written in the end; one that is not there yet is not there
    afterwards either."""
    absent = not os.path.lexists(target)
    try:
        target.open("a", encoding="utf-8").close()
        if absent:
            target.unlink()
    except OSError as error:
        raise UsageError(
            f"{option} {target} cannot be written ({reason(error)}); name another file."
        ) from None


ATTEMPTS, AGAIN_S = 10, 0.03
"""How often a run tries to lock its directory, and after how many seconds again."""


State = Literal["free", "finished", "interrupted"]
"""What a directory holds: nothing that a run would cost anybody, results, or a record of releases without
results."""


def state(directory: Path) -> State:
    """What the last run that got anywhere has left in `directory`, or in those of its parties."""
    results = directory / RUN
    finished_ns = results.stat().st_mtime_ns if results.exists() else 0
    for journal in [*directory.glob(JOURNALS), *directory.glob(f"{PARTY_FOLDERS}/*/{JOURNALS}")]:
        if journal.stat().st_mtime_ns > finished_ns and _has_spent(journal):
            return "interrupted"
    for kept in directory.glob(f"{PARTY_FOLDERS}/{STATES}"):  # of a run in one process, which has no journal
        if kept.stat().st_mtime_ns > finished_ns and b'"kind": "held"' in kept.read_bytes():
            return "interrupted"
    return "finished" if finished_ns else "free"


def begun(directory: Path) -> bool:
    """Whether there is anything in `directory`, or in those of its parties, that `run --resume` could go on
    with."""
    places = (directory, directory / PARTY_FOLDERS, *directory.glob(f"{PARTY_FOLDERS}/*"))
    return state(directory) != "free" or any(True for place in places for _ in place.glob(STATES))


def note_tables(directory: Path, parties: Sequence[str]) -> None:
    """Keep in the mark, of a run on one machine, which of its parties have a table. Raises `OutOfResources`,
    `UsageError`."""
    mark = directory / MARK
    try:
        mark.write_text(json.dumps({"tables": list(parties)}) + "\n", encoding="utf-8")
    except OSError as error:
        raise lacking(error, mark) or _unusable(directory, error) from None


def tables_noted(directory: Path) -> tuple[str, ...] | None:
    """What `note_tables` has kept; None where nothing was."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        return tuple(str(name) for name in json.loads((directory / MARK).read_text("utf-8"))["tables"])
    return None


def nothing_to_resume(directory: Path) -> str:
    """What is told where `run --resume` has nothing to go on with."""
    return f"nothing to resume in {directory}: no release is on record there, and this run begins anew"


def _has_spent(journal: Path) -> bool:
    """Whether an event is on record: a run that ended before its first has cost nobody anything."""
    with contextlib.suppress(OSError):
        return (
            b'{"record": "event"' in (content := journal.read_bytes()) or b'{"record": "alignment"' in content
        )
    return True


@contextlib.contextmanager
def claim(
    directory: Path, replace: bool = False, wait: Callable[[float], None] = time.sleep
) -> Iterator[Path]:
    """Make `directory` ours for the time of a run, creating it.

    replace: an earlier run there, finished or interrupted, may be replaced, or gone on with. Raises
    `UsageError` if the directory is foreign, busy, not writable, or holds a run that may not be replaced.
    wait: for seconds, between attempts to lock it.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        entries = {entry.name for entry in directory.iterdir()}
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"--out {directory} is not a directory; name another one.") from None
    except OSError as error:
        raise _unusable(directory, error) from None
    if entries and MARK not in entries:
        raise UsageError(
            f'--out {directory} holds files of others (such as "{min(entries)}"); name a directory that is new, '
            "empty, or holds an earlier run."
        )
    try:
        lock = os.open(directory / MARK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _unusable(directory, error) from None
    try:
        if not _locked(lock, wait):
            raise UsageError(
                f"--out {directory} is in use by another run; wait for it or name another directory."
            )
        if not replace and (held := state(directory)) != "free":
            raise UsageError(_OCCUPIED[held].format(directory))
        sweep(directory)
        for name in UNFINISHED.values():
            (directory / name).unlink(missing_ok=True)
        yield directory
    finally:
        os.close(lock)


def _locked(lock: int, wait: Callable[[float], None]) -> bool:
    """Lock the mark; False if another run holds it. A page that follows the directory holds it for an instant
    of each look."""
    for _ in range(ATTEMPTS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            wait(AGAIN_S)
        else:
            return True
    return False


_OCCUPIED: dict[State, str] = {
    "finished": "--out {} holds a finished run; name another directory, or let this run take its place with --replace.",
    "interrupted": "--out {} holds an interrupted run, which has spent privacy budget; go on with it with --resume, let this "
    "run take its place with --replace, or name another directory.",
}


def sweep(directory: Path) -> None:
    """Remove what a run that was killed was about to put in place. Only for who knows that no run is writing
    there."""
    for entry in [*directory.glob(f"{STAGING}*"), *directory.glob(".*.part")]:
        shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)


def _unusable(directory: Path, error: OSError) -> UsageError:
    return UsageError(f"--out {directory} cannot be used ({reason(error)}); name another one.")


def account(directory: Path) -> dict[str, Path]:
    """Where a run that begins writes its EVENTS and its LOG."""
    kept = (directory / RUN).exists()
    return {name: directory / (other if kept else name) for name, other in UNFINISHED.items()}


def private_log(directory: Path) -> Path:
    """The PRIVATE_LOG in `directory`, made if there is none, readable by its owner alone."""
    path = directory / PRIVATE_LOG
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    os.fchmod(log, 0o600)
    os.close(log)
    return path


def table_of(run: Mapping[str, Any]) -> str:
    """The name of a run's table. run: the content of run.json. Raises `ValueError`."""
    name = run.get("table", TABLE)
    if name not in (TABLE, RESEARCH_TABLE):
        raise ValueError(f"A run has no table called {name!r:.50}.")
    return str(name)


def linked_tables_of(run: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the files of a run's linked tables; none of a run of one table. run: the content of
    run.json, which may be of another party and is not believed: nothing that is no plain name of a file comes
    back."""
    with contextlib.suppress(KeyError, TypeError, AttributeError):
        stated = run["linked"]
        names = [stated["parent"], *(one["name"] for one in stated["tables"])]
        return tuple(f"{name}.csv" for name in names if str(name).isidentifier() and str(name).isascii())
    return ()


def beside(directory: Path) -> str:
    """A hint at the only finished run in a directory that holds none itself, or at what is called like a directory
    that is not there; empty if there is neither."""
    inside = [run.parent for run in directory.glob(f"*/{RUN}")]
    if len(inside) == 1:
        return f' (did you mean "{inside[0]}"?)'
    return "" if directory.exists() else meant_beside(directory)


def finished(directory: Path) -> dict[str, Any]:
    """The run.json of a finished run in `directory`. Raises `UsageError` if there is none."""
    try:
        run = json.loads((directory / RUN).read_text(encoding="utf-8"))
        if isinstance(run, dict) and isinstance(run.get("parties"), list):
            return run
    except OSError:
        inside = directory.is_file() and (directory.parent / RUN).exists()
        raise UsageError(
            f"{directory} is a file of a run; name its directory, {directory.parent}."
            if inside
            else f"{directory} holds no finished run (no {RUN}){beside(directory)}; name the directory of a run's results."
        ) from None
    except (ValueError, RecursionError):
        pass
    raise UsageError(
        f"{directory / RUN} is not the file of a finished run; name the directory of a run's results."
    )


def install(
    source: Path, target: Path, run: dict[str, Any], halves: Mapping[str, bytes] | None = None
) -> None:
    """Copy a finished run's files from `source` to `target`, with `run` as run.json: all are written before
    one is replaced.

    halves: content of a party's own files (`HALVES`), by name: mode 0600, durable before run.json stands for
    them. The events and the log that the run has written in `target` itself take their places there; they may
    still be open.
    """
    staged, places, gone = [], [], []
    with contextlib.suppress(UsageError):
        gone += [
            target / name for name in linked_tables_of(finished(target)) if name not in linked_tables_of(run)
        ]
    try:
        for name, content in (halves or {}).items():
            part = target / f".{name}.part"
            staged.append(part)
            _write_own(part, content)
            places.append((part, target / name))
        for name in (*linked_tables_of(run), *FILES):
            part = target / f".{name}.part"
            if name == RUN:
                part.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
            elif (source / name).exists():
                shutil.copyfile(source / name, part)
            elif name in UNFINISHED and (own := target / UNFINISHED[name]).exists():
                places.append((own, target / name))
                continue
            else:
                if name not in UNFINISHED:  # an earlier run's, of another kind
                    gone.append(target / name)
                continue
            staged.append(part)
            places.append((part, target / name))
        for part, final in places:
            if halves and final.name == RUN:
                sync(target)
            os.replace(part, final)
        made = {final for _, final in places}
        for path in (
            *gone,
            target / GRAPH,
            target / TREE,
            *(p for name in HALVES for p in target.glob(name)),
        ):
            if path not in made:
                path.unlink(missing_ok=True)
    finally:
        for part in staged:
            part.unlink(missing_ok=True)


def _write_own(path: Path, content: bytes) -> None:
    """A new file of mode 0600, durable but for its name."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
