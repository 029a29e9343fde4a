"""`run STUDY`: all parties on this machine, or (`--party`) this one party of a deployment."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS
from mpc_protocols.errors import CosynthError, PeerIdentity, PeerUnreachable, UsageError
from mpc_protocols.process.later import Later
from parties import core_dumps, mpyc_environment
from runner.commands import one_thread, private_file_of_one, private_files_of_all
from runner.failures import complain, describe
from runner.launch.first_failure import Report, interrupted, write_report
from runner.launch.launcher import launch
from runner.launch.watchdog import Job, watch
from runner.party.options import PartyOptions, Progress
from runner.results.outdir import (
    EVENTS,
    PARTY_FOLDERS,
    PRIVATE_LOG,
    RUN,
    UNFINISHED,
    begun,
    claim,
    finished,
    linked_tables_of,
    nothing_to_resume,
    state,
    table_of,
)
from runner.results.warnings import tell, texts_of
from runner.study import load, private_file
from runner.study.declared.table import nearest
from runner.study.private_file import CertificateFiles

if TYPE_CHECKING:
    from parties import certificates
    from runner.party import process, second_proposal
    from runner.report.watch import health, server
    from runner.report.words import statement
else:
    certificates = Later("parties.certificates")
    health = Later("runner.report.watch.health")
    process = Later("runner.party.process")
    second_proposal = Later("runner.party.second_proposal")
    server = Later("runner.report.watch.server")
    statement = Later("runner.report.words.statement")


SYSTEMD = "NOTIFY_SOCKET"
"""Where systemd listens, if it has started this process."""


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    core_dumps.forbid_core_dumps()
    if arguments.party is not None:
        if arguments.alone:
            raise UsageError("--alone is for a run of all parties here; leave it out, or leave --party out.")
        _party(arguments)
        return
    if arguments.insecure_key:
        raise UsageError("--insecure-key belongs to one party: name it with --party NAME.")
    private = private_files_of_all(arguments.private)
    out = arguments.out or Path("out")
    if arguments.resume and _is_done(arguments, out):
        with _watched(arguments, out):  # operators wait to be told
            return
    began = time.monotonic()
    if BACKENDS[load(arguments.study).backend].ideal:
        one_thread()
    earlier = _stamp(out)
    try:
        with _watched(arguments, out):
            result = launch(
                arguments.study,
                out,
                progress=progress_of(arguments),
                private=private,
                allow_retry=arguments.allow_retry,
                replace=arguments.replace,
                resume=arguments.resume,
                alone=arguments.alone,
            )
    except CosynthError as error:
        if not isinstance(error, UsageError):
            _note_earlier(out, earlier, arguments.json)
        raise
    if not arguments.json and not arguments.quiet:
        _warn_if_faint(result)
        made = f"{result['rows']:,} synthetic rows in {out / table_of(result)}"
        if linked := linked_tables_of(result):
            made += f", folded to {' and '.join(linked)}"
        if "model" in result:
            made = f"each owner's half of the model is in its own directory under {out / PARTY_FOLDERS}"
            _warn(result["claim"], False)
        print(f"done in {time.monotonic() - began:.1f} s: {made}\nreport: {out / 'report.html'}")
    tell(texts_of(result))


def progress_of(arguments: argparse.Namespace) -> Progress:
    """What is told while a run goes on."""
    return (
        "json"
        if arguments.json
        else "verbose"
        if arguments.verbose
        else "quiet"
        if arguments.quiet
        else "human"
    )


def _party(arguments: argparse.Namespace) -> None:
    """Be one party; when the launcher started it, tell it how this ended."""
    mpyc_environment.settle()
    name, job, out, ready, earlier = str(arguments.party), None, None, None, None
    _interruptible()
    try:
        if arguments.job is not None:
            job = Job.read(arguments.job)
            ready = watch(job, name)
        options = _options(arguments, name, job)
        if job is None and not arguments.quiet and not _has_table(options, name):
            _note(f"{name} has no table of its own and only computes", arguments.json)
        if job is None and options.certs is not None:
            _check_key(options.certs, arguments.json)
        done = arguments.resume and _is_done(arguments, options.out, job is None)
        if arguments.resume and job is None and not begun(options.out) and not arguments.quiet:
            _note(nothing_to_resume(options.out), arguments.json)
        if job is None and not done:
            for sentence in _second_proposal(options, name):
                _warn(sentence, arguments.json)
        # what the launcher's own directory holds has been asked already
        with claim(options.out, arguments.replace or arguments.resume or job is not None) as out:
            earlier = _stamp(out)
            run_party = process.run_party  # loaded while others start
            if ready is not None:
                ready.wait()
            with _watched(arguments, out):
                try:
                    run_party(options)
                except PeerUnreachable:
                    if not done:
                        raise
            if done:  # what was to be told of this session alone
                for name_of_log in UNFINISHED.values():
                    (out / name_of_log).unlink(missing_ok=True)
                return
    except BaseException as error:
        code, sentence = describe(error, out / PRIVATE_LOG if out else None)
        if out is not None and job is None:
            _note_earlier(out, earlier, arguments.json)
        if job is not None:
            write_report(
                Path(job.report),
                interrupted(name)
                if isinstance(error, KeyboardInterrupt)
                else Report(name, code, sentence, time.monotonic()),
            )
        if isinstance(error, Exception) and code == 1:
            complain(sentence)
            raise SystemExit(code) from None
        raise
    facts = finished(options.out) if job is None else {}
    if not arguments.json and not arguments.quiet:
        if facts:
            _warn_if_faint(facts)
        print(f"done: results in {options.out}, report: {options.out / 'report.html'}")
    tell(texts_of(facts))


@contextmanager
def _watched(arguments: argparse.Namespace, out: Path) -> Iterator[None]:
    """As long as the run in `out` lasts: with --watch a page that follows it, with --health a file, and what
    systemd is told."""
    with ExitStack() as watchers:
        if arguments.health is not None or (SYSTEMD in os.environ and arguments.job is None):
            watchers.enter_context(health.Health(out, arguments.health))
        if arguments.watch:
            page = watchers.enter_context(closing(server.Watch(out)))
            _note(f"watch it: {page.address}", arguments.json)
        yield


def _check_key(certs: CertificateFiles, as_json: bool) -> None:
    """Raise `PeerIdentity` for a key that others can read; with --insecure-key, warn."""
    try:
        certificates.check_private(certs.key)
    except PeerIdentity as error:
        if not certs.insecure_key:
            raise
        _warn(error.sentence, as_json)


def _is_done(arguments: argparse.Namespace, out: Path, told: bool = True) -> bool:
    """Whether a run that is to be resumed is finished here; then, if it is to be `told`, its user is. Raises
    `UsageError`."""
    if state(out) != "finished":
        return False
    if finished(out).get("public_study") != json.loads(json.dumps(load(arguments.study).public())):
        raise UsageError(
            f"{out} holds a finished run of another study than {arguments.study}; name the directory of the run "
            "to resume."
        )
    if told and not arguments.json:
        print(f"done already: results in {out}, report: {out / 'report.html'}", flush=True)
    if told:
        tell(texts_of(finished(out)))
    return True


def _has_table(options: PartyOptions, name: str) -> bool:
    """Whether this party has records of its own."""
    return private_file.location(load(options.study), name, options.settings(name)) is not None


def _second_proposal(options: PartyOptions, name: str) -> tuple[str, ...]:
    """What the custodian should know of earlier studies of the same parties on the same data."""
    return second_proposal.warnings(load(options.study), name, options.settings(name), options.certs)


def _stamp(out: Path) -> int | None:
    """When the results in a directory were put there; None if there are none."""
    try:
        return (out / RUN).stat().st_mtime_ns
    except OSError:
        return None


def _note_earlier(out: Path, earlier: int | None, as_json: bool) -> None:
    """A run that failed leaves an earlier one's results as they were: nobody shall take them for its own."""
    if not as_json and earlier is not None and _stamp(out) == earlier:
        told = out / UNFINISHED[EVENTS]
        print(
            f"note: the results in {out} are those of an earlier run; this one left none"
            + (f", and its events in {told}" if told.exists() else ""),
            flush=True,
        )


def _warn_if_faint(facts: Mapping[str, Any]) -> None:
    """As the report does."""
    if sentence := statement.faint(facts):
        _warn(sentence.translate({0x2019: "'", 0x201C: '"', 0x201D: '"'}), False)


def _warn(sentence: str, as_json: bool) -> None:
    """Something that does not end the run but that its user must know; not an event, for these are handed to
    the others."""
    print(json.dumps({"warning": sentence}) if as_json else f"warning: {sentence}", flush=True)


def _note(text: str, as_json: bool) -> None:
    """Something for the user of this process alone."""
    print(json.dumps({"note": text}) if as_json else text, flush=True)


def _interruptible() -> None:
    """Ctrl-C and SIGTERM raise KeyboardInterrupt, also where a shell has started this process with SIGINT
    ignored."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)


def _options(arguments: argparse.Namespace, name: str, job: Job | None) -> PartyOptions:
    study = load(arguments.study)
    if BACKENDS[study.backend].ideal:
        raise UsageError(
            f'backend = "{study.backend}" runs in one process, which sees everything; run it without --party.'
        )
    names = [party.name for party in study.parties]
    if name not in names:
        raise UsageError(
            f"--party {name} is not in {arguments.study}{nearest(name, names)}; its parties: {', '.join(names)}."
        )
    private = private_file.load(private_file_of_one(arguments.private, name))
    data = {name: Path(job.data)} if job and job.data else {}
    if not data:
        private_file.location(study, name, private)
    certs = None
    if job is None:
        certs = private_file.certificates(study, name, private)
        if certs is not None and arguments.insecure_key:
            certs = replace(certs, insecure_key=True)
    elif job.ca and job.cert and job.key:
        certs = CertificateFiles(Path(job.ca), Path(job.cert), Path(job.key))
    return PartyOptions(
        study=arguments.study,
        party=name,
        out=arguments.out or private.out or Path("out") / name,
        private={name: Path(arguments.private[0])} if arguments.private else {},
        certs=certs,
        one_machine=job is not None,
        allow_retry=arguments.allow_retry,
        resume=arguments.resume,
        data=data,
        ledger={name: private_file.ledger_settings(job.ledger, f"ledger of {name}", Path.cwd())}
        if job and job.ledger is not None
        else {},
        progress=progress_of(arguments),
        way_in=arguments.way_in,
        shared=Path(job.shared) if job and job.shared else None,
    )
