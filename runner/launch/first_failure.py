"""Which of several failures came first: one party's failure makes the others fail too, and only the cause is
worth telling.

Every process that fails leaves a report (exit code, sentence, time); a process that died without one was
killed. A lost peer (41), an abort (40) or an unreachable party (20) that names a party with a failure of its
own is a consequence of that. Times are CLOCK_MONOTONIC, one clock for all processes of a machine. Standard
library only.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mpc_protocols import errors
from mpc_protocols.errors import CosynthError

OF_A_PEER = frozenset(
    {errors.PeerUnreachable.exit_code, errors.ProtocolAborted.exit_code, errors.PeerLost.exit_code}
)
"""Codes that may merely tell of another party's failure."""


_STOPPED = re.compile(r"Party (\S+) stopped: ")
"""How a sentence begins that passes on why another party has stopped (`parties.session.ending`)."""


@dataclass(frozen=True)
class Report:
    """How one party's process ended: its exit code, one sentence, and when (monotonic seconds)."""

    party: str
    code: int
    sentence: str
    time: float
    seen: bool = False
    """True if the launcher saw it itself (killed, stopped): never a consequence of another party's end."""


def write_report(path: Path, report: Report) -> None:
    """Leave the process's report; the first one stands, later ones are consequences of it.

    Its watchdog and its main thread may both leave one, at the same time: each writes a file of its own.
    """
    partial = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
    try:
        partial.write_text(json.dumps(asdict(report)), encoding="utf-8")
        os.link(partial, path)
    except OSError:
        return
    finally:
        partial.unlink(missing_ok=True)


def read_report(path: Path) -> Report | None:
    """The report at `path`, None if the process left none."""
    try:
        return Report(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def interrupted(party: str) -> Report:
    """The report on a process that Ctrl-C ended."""
    return Report(party, errors.Interrupted.exit_code, f"Party {party} was interrupted.", time.monotonic())


def killed(party: str, number: int, log: Path | None) -> Report:
    """The report on a process that a signal ended."""
    name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
    hint = " (if nobody did that, the machine may be out of memory)" if number == signal.SIGKILL else ""
    place = f"; its last words are in {log}" if log else ""
    sentence = f"Party {party} was killed (signal {number}, {name}){hint}{place}; run again."
    return Report(party, errors.PeerLost.exit_code, sentence, time.monotonic(), seen=True)


def stopped(party: str, number: int, seconds: float, since: float) -> Report:
    """The report on a process that was stopped, not ended, and that the launcher killed."""
    sentence = (
        f"Party {party} was stopped (signal {number}) for {seconds:.0f} s and has been killed; run again."
    )
    return Report(party, errors.PeerLost.exit_code, sentence, since, seen=True)


def unexplained(party: str, code: int, place: Path | str) -> Report:
    """The report on a process that left none, as on a full disk: its code holds, unless it is none of a
    failure's."""
    if code not in {kind.exit_code for kind in CosynthError.__subclasses__()}:
        sentence = f"Party {party} ended with code {code} and no reason; its last words: {place}."
        return Report(party, CosynthError.exit_code, sentence, time.monotonic(), seen=True)
    cure = "look whether the system's temporary directory is full, and start again (with --resume where a run was under way)"
    sentence = f"Party {party} ended with code {code} and could not leave its reason; {cure}."
    return Report(party, code, sentence, time.monotonic())


def first_cause(reports: Sequence[Report]) -> Report | None:
    """The failure that the others follow from; None if nothing failed.

    The earliest failure of a party's own, if there is one. Else all tell of peers: of those that do not
    merely pass on, at first or third hand, what a party said that said it here too, the earliest that names
    no party which failed too, unless that one names it back; if nothing decides, the earliest.
    """
    failures = sorted((report for report in reports if report.code), key=lambda report: report.time)
    for report in failures:
        if _own_failure(report):
            return report
    # what a party was told by one that left a reason itself; a reason may name several parties without
    # blaming them
    told = {report.party: found.group(1) for report in failures if (found := _STOPPED.match(report.sentence))}
    reasons = {report.party for report in failures} - told.keys()
    failures = [
        report for report in failures if report.party in reasons or _source(report.party, told) not in reasons
    ]
    for report in failures:
        blamed = [other for other in failures if other.party != report.party and _names(report, other.party)]
        if all(_names(other, report.party) for other in blamed):
            return report
    return failures[0] if failures else None


def _source(party: str, told: Mapping[str, str]) -> str:
    """Who said first what the party passes on; somebody of a circle, if they only quote each other."""
    passed_by = set[str]()
    while party in told and party not in passed_by:
        passed_by.add(party)
        party = told[party]
    return party


def _own_failure(report: Report) -> bool:
    return report.seen or report.code not in OF_A_PEER


def _names(report: Report, party: str) -> bool:
    """Whether the sentence names the party, as a word of its own."""
    return re.search(rf"(?<![\w.-]){re.escape(party)}(?![\w-]|\.\w)", report.sentence) is not None


def as_error(report: Report) -> CosynthError:
    """The exception of the report's exit code."""
    for kind in CosynthError.__subclasses__():
        if kind.exit_code == report.code:
            return kind(report.sentence)
    return CosynthError(report.sentence)
