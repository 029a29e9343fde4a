"""`run STUDY` without `--party`: all parties of a study as processes of this machine
(`docs/design/session.md` 7).

The launcher starts one process per party, makes throw-away certificates while these load (TLS is on even
here), shows their progress, and puts the leader's results into DIR when all have succeeded; each party's own
files lie in DIR/parties/NAME. If anything fails, the first cause decides the exit code and the sentence, an
earlier run's results in DIR stay as they were, and no process is left; what a launcher that is killed leaves
behind (throw-away keys) the next one removes (`parties.data.scratch`). A run on one machine protects nobody
from that machine: run.json says `deployment = "one-machine"`. Standard library only, and `cryptography` for
the certificates: the processes load what they need themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS
from mpc_protocols.errors import Interrupted, StudyInvalid, UsageError
from mpc_protocols.process.later import Later
from parties.data.scratch import Scratch
from runner.launch.children import Child, Command, supervise
from runner.launch.first_failure import as_error, first_cause
from runner.launch.fork_server import PROGRAM, abandon
from runner.launch.watchdog import Job
from runner.party.options import PartyOptions, Progress
from runner.party.record.progress import Display
from runner.results.outdir import (
    MARK,
    ONE_MACHINE,
    PARTY_FOLDERS,
    PRIVATE_LOG,
    USAGE,
    begun,
    claim,
    finished,
    install,
    note_tables,
    nothing_to_resume,
    sweep,
    tables_noted,
)
from runner.study import Study, load, private_file
from runner.study.claim import claim_of
from runner.study.trained import trained
from synth.algorithm import ALGORITHMS

if TYPE_CHECKING:
    from parties import certificates
    from runner.party import ideal
else:
    certificates = Later("parties.certificates")
    ideal = Later("runner.party.ideal")


def launch(
    path: Path,
    out: Path,
    *,
    progress: Progress = "human",
    data: Mapping[str, Path] | None = None,
    replace: bool = False,
    private: Mapping[str, Path] | None = None,
    ledger: Mapping[str, Mapping[str, Any]] | None = None,
    allow_retry: bool = False,
    resume: bool = False,
    alone: bool = False,
    program: Sequence[str] = PROGRAM,
) -> dict[str, Any]:
    """Run a study on this machine; the results are in `out` afterwards. Returns the content of its run.json.

    data: files that replace the study's `data` of the parties named. private: their private files; keys,
    addresses and `out` in them are not used here. ledger: by the keys of [ledger], what replaces that table
    of their private files; a relative `file` is in the current directory. allow_retry: see `PartyOptions`.
    replace: an earlier run in `out` may be replaced. resume: an interrupted run in `out` goes on. alone: one
    party may be the only one with a table (`private_file.only_table`). program: what party processes
    run. Raises the first cause as the `CosynthError` of its exit code.
    """
    study = load(path)
    for what, given in (("data", data), ("a private file", private), ("a ledger", ledger)):
        for name in given or {}:
            if name not in {party.name for party in study.parties}:
                raise StudyInvalid(f"{path}: {what} is given for {name}, which is not a party of the study.")
    accounts = {name: _absolute(given) for name, given in (ledger or {}).items()}
    options = PartyOptions(
        path,
        None,
        out,
        private={name: file.resolve() for name, file in (private or {}).items()},
        one_machine=True,
        data=dict(data or {}),
        ledger={
            name: private_file.ledger_settings(given, f"ledger of {name}", Path.cwd())
            for name, given in accounts.items()
        },
        allow_retry=allow_retry,
        resume=resume,
        progress=progress,
    )
    if study.prior is not None:
        study.prior.check_out(out)
    if resume and not (out / MARK).exists():
        raise UsageError(
            f"--resume: no run was ever started in {out}, so there is none to go on with; name the directory of the interrupted "
            "run, or leave --resume out to begin one."
        )
    tables = _with_table(study, options, alone)
    without = [party.name for party in study.parties if party.name not in tables]
    display = Display(progress, study)
    if resume and not begun(out):
        display.say("study", nothing_to_resume(out))
    with claim(out, replace or resume):
        note_tables(out, tables)
        display.say(
            "study",
            f"{study.name}: {study.algorithm} on {study.backend}, {len(study.parties)} parties on this machine, "
            f"epsilon {float(study.privacy.epsilon):g}, delta {float(study.privacy.delta):g}",
        )
        if without:
            display.say("study", f"no table here, so these only compute: {', '.join(without)}")
        if ALGORITHMS[study.algorithm].alternative(study.config) is not None:
            display.say("study", f"RESEARCH, not for anybody's real records. {claim_of(study)}")
        if (algorithm := trained(study)) is not None:
            display.say("study", algorithm.limits)
        if BACKENDS[study.backend].ideal:
            display.say(
                "study",
                f"the {study.backend} backend protects nothing: one process sees every custodian's records",
            )
            return _ideal(options)
        return _parties(study, options, accounts, display, program)


def _absolute(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a process that may start elsewhere."""
    file = ledger.get("file")
    return {**ledger, "file": str(Path(file).resolve())} if isinstance(file, str | Path) else dict(ledger)


def _with_table(study: Study, options: PartyOptions, alone: bool) -> tuple[str, ...]:
    """The parties that have a table. Somebody must have one, or bundles of contributors; a single one must be meant; nobody
    may be without both data and computing; and a run that goes on has those that it began with: of another table nobody
    would notice. Private files are read. Raises `StudyInvalid`, `UsageError`."""
    private = {party.name: options.settings(party.name) for party in study.parties}
    tables = private_file.tables_here(study, private, options.data)
    if not tables and study.contributors is None:
        raise StudyInvalid(
            f"{study.path}: no party has data; give each custodian's [[party]] a data file, or name its private file "
            "(--private), which does."
        )
    before = tables_noted(options.out) if options.resume and begun(options.out) else None
    if before is not None and set(before) != set(tables):
        raise UsageError(
            f"--resume: the run in {options.out} began with the tables of {' and '.join(before) or 'contributors'}, and here are "
            f"those of {' and '.join(tables) or 'contributors'}; name the same (--private), or begin anew with --replace."
        )
    if not alone and before is None and (problem := private_file.only_table(study, tables)):
        raise UsageError(problem)
    return tuple(tables)


def _ideal(options: PartyOptions) -> dict[str, Any]:
    ideal.run_ideal(options)
    return finished(options.out)


def _parties(
    study: Study,
    options: PartyOptions,
    accounts: Mapping[str, dict[str, Any]],
    display: Display,
    program: Sequence[str],
) -> dict[str, Any]:
    out = options.out
    with Scratch(watched=True) as temporary, _interruptions() as interruptions, _aside(display) as show:
        commands = [
            _command(study, party.name, options, accounts.get(party.name), temporary)
            for party in study.parties
        ]
        children, by_user = supervise(
            commands,
            study.session.silence_s,
            lambda _, line: show(line.decode("utf-8", "replace")),
            program,
            interruptions,
            lambda: _certificates(study, temporary),
        )
        _conclude(out, children, by_user)
    run = finished(out / PARTY_FOLDERS / study.leader.name)
    run["deployment"] = ONE_MACHINE
    for child in children:  # functions of how much data a party has: not for the folder that is passed on
        used = {"cpu_s": round(child.usage.cpu_s, 3), "peak_rss_mb": round(child.usage.peak_rss_mb, 1)}
        (out / PARTY_FOLDERS / child.party / USAGE).write_text(json.dumps(used) + "\n", encoding="utf-8")
    install(out / PARTY_FOLDERS / study.leader.name, out, run)
    return run


def _conclude(out: Path, children: Sequence[Child], by_user: bool) -> None:
    """Raise the first cause, if the run failed; what killed parties left half written is removed."""
    for child in children:
        sweep(out / PARTY_FOLDERS / child.party)
    if by_user:
        raise Interrupted(f"Interrupted; {out} holds no result of this run, only the parties' logs.")
    cause = first_cause([child.report for child in children])
    if cause is not None:
        raise as_error(cause)


def _command(
    study: Study, party: str, options: PartyOptions, account: dict[str, Any] | None, temporary: Path
) -> Command:
    out, data = options.out / PARTY_FOLDERS / party, options.data.get(party)
    certificates = (temporary / "ca.crt", temporary / f"{party}.crt", temporary / f"{party}.key")
    ca, cert, key = map(str, certificates) if study.session.tls == "mutual" else (None, None, None)
    report, job = temporary / f"{party}.report", temporary / f"{party}.job"
    job.write_text(
        json.dumps(
            asdict(
                Job(
                    os.getpid(),
                    str(report),
                    study.session.silence_s,
                    ca,
                    cert,
                    key,
                    str(data) if data else None,
                    account,
                    str(temporary),
                )
            )
        ),
        encoding="utf-8",
    )
    return Command(
        party,
        (
            *("run", str(study.path), "--party", party, "--out", str(out), "--json", "--job", str(job)),
            *(("--private", str(options.private[party])) if party in options.private else ()),
            *(("--allow-retry",) if options.allow_retry else ()),
            *(("--resume",) if options.resume else ()),
        ),
        report,
        temporary / f"{party}.stderr",
        out / PRIVATE_LOG,
    )


def _certificates(study: Study, directory: Path) -> None:
    """A CA and certificates that live as long as this run."""
    if study.session.tls == "mutual":
        certificates.make_all(directory, [party.name for party in study.parties])


@contextlib.contextmanager
def _interruptions() -> Iterator[int | None]:
    """A file descriptor on which every Ctrl-C, SIGTERM and SIGHUP is a byte; None outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)

    def press(*_: object) -> None:
        os.write(writer, b"!")
        abandon()

    earlier = {
        number: signal.signal(number, press) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield reader
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


@contextlib.contextmanager
def _aside(display: Display) -> Iterator[Callable[[str], None]]:
    """Show lines from a thread of its own: a terminal that is paused must not stop the heartbeats."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def show() -> None:
        while (line := lines.get()) is not None:
            display.feed(line)

    thread = threading.Thread(target=show, name="display", daemon=True)
    thread.start()
    try:
        yield lines.put
    finally:
        lines.put(None)
        thread.join()
        display.close()
