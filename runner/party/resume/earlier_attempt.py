"""What an interrupted run has left in a party's directory: its state and, of a computing party, its journal,
checked against one another (`docs/design/resume.md`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import BudgetRefused, DataRefused, OutOfResources, UsageError
from parties.budget.journal import read
from parties.budget.open_run import as_recorded
from parties.budget.run_state import RunState, latest
from runner.results.outdir import RUN, state
from runner.study import Study, digest
from runner.version import VERSION

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event
    from parties.budget.journal import Journal, Record

_BEGUN = 2
"""Lines of a journal whose run has begun."""
_START = "start anew with --replace; what the run has spent stays in the ledger"


def journal_path(out: Path, run: bytes) -> Path:
    """Of a computing party's journal."""
    return out / f"journal-{run.hex()[:16]}.jsonl"


def cannot_resume(study: Study) -> str:
    """The sentence for a study whose runs leave no history: by its backend, or because owners would report
    anew."""
    if study.descriptor.resumes:
        return (
            f'A run of algorithm = "{study.algorithm}" as configured cannot go on where it was interrupted: custodians would '
            f"report once more, with fresh noise; {_START}."
        )
    if study.descriptor.malicious:
        return (
            f'A run with security = "{study.security}" cannot go on where it was interrupted: what had not been proved must not '
            f"be opened by another run; {_START}."
        )
    return f"The {study.backend} backend cannot go on with an interrupted run; {_START}."


def state_digest(study: Study) -> bytes:
    """What a state is bound to: the study and the software, not the certificates, which the session checks."""
    return digest(study, "")


@dataclass
class EarlierAttempt:
    """state: locked by this process. journal: of a computing party that had one. finished: its results are in
    place."""

    state: RunState
    journal: Record | None
    finished: bool

    @property
    def ended(self) -> bool:
        """Whether the leader is known here to have handed out the run's results, so that nothing of it is
        computed any more."""
        return self.finished or (self.journal is not None and self.journal.code == 0)

    @classmethod
    def find(cls, out: Path, study: Study, party: str, journalled: bool = True) -> EarlierAttempt | None:
        """What there is in a directory; None if nothing. journalled: whether a party that computes keeps a
        journal beside its state. Raises `UsageError` for what cannot be gone on with."""
        held, path = state(out), latest(out)
        if path is None:
            if held == "interrupted":
                raise UsageError(
                    f"{out} holds a run that had begun to release, but not the state that --resume needs; {_START}."
                )
            return None
        found = RunState.reopen(path, state_digest(study), party)
        try:
            record = _journal(journal_path(out, found.run), found) if journalled else None
            finished = found.finished or (held == "finished" and _is_of(out, found.run))
            if finished and not found.finished:  # it died when its results were in place: no shares stay
                with suppress(OSError, BudgetRefused, OutOfResources):
                    found.finish(VERSION)
                    found = RunState.reopen(path, state_digest(study), party)
            return cls(found, record, finished)
        except BaseException:
            found.close()
            raise


def _journal(path: Path, found: RunState) -> Record | None:
    """The journal beside a state; None if there is none. Raises `UsageError` unless they belong together."""
    nothing = not found.marks and not found.results
    if not path.exists():
        if nothing or found.finished:
            return None
        raise UsageError(
            f"The journal {path} of the interrupted run is gone, so it cannot be resumed; {_START}."
        )
    try:
        record = read(path)
    except DataRefused as error:
        if nothing and path.read_bytes().count(b"\n") < _BEGUN:  # the run died while it was made
            path.unlink()
            return None
        raise UsageError(error.sentence) from None
    if (record.header.session, record.header.party) != (found.run, found.party):
        raise UsageError(f"The journal {path} is of another run than the state {found.path}; {_START}.")
    if not found.finished:
        found.check_marks(record.marks)
    return record


def _is_of(out: Path, run: bytes) -> bool:
    try:
        facts = json.loads((out / RUN).read_text(encoding="utf-8"))
        return isinstance(facts, dict) and facts.get("session") == run.hex()
    except (OSError, ValueError, RecursionError):
        return False


class Recorder:
    """What the accountant does before a release: a look at whether the others may still have one, then
    journal, then ledger.

    What an earlier attempt put on record is not put there again: it was opened nowhere, or its one result is
    what is opened now.
    """

    def __init__(
        self,
        journal: Journal,
        known: Record | None,
        begin: Callable[[Sequence[tuple[Event, int]]], None],
        admit: Callable[[], None],
    ) -> None:
        """begin, admit: as `Attempt.recorder`'s."""
        self._journal, self._begin, self._admit = journal, begin, admit
        self._known = () if known is None else known.releases
        self._last = range(0)
        """Numbers of the releases that were recorded together, the last time."""

    def record(self, event: Event, inputs: bytes) -> None:
        """Make one release durable: as `record_all`."""
        self.record_all([(event, inputs)])

    def record_all(self, releases: Sequence[tuple[Event, bytes]]) -> None:
        """Make the releases of a step durable: one wait for the journal's disk, then one for the ledger's. Raises
        `BudgetRefused` if one is another than was on record under its number, and what `admit` raises."""
        self._admit()
        self.opened()
        numbers = range(self._last.stop or 1, (self._last.stop or 1) + len(releases))
        for number, (event, inputs) in zip(numbers, releases, strict=True):
            if number > len(self._known):
                break
            known = self._known[number - 1]
            if (known.event, known.inputs) != (as_recorded(event), inputs):
                raise BudgetRefused(
                    f"Release {number} was authorised for other public inputs before the run was interrupted: to make it "
                    "anew would be charged once more, for which the study's budget has no room; start anew with --replace."
                )
        self._journal.events(releases[max(0, len(self._known) + 1 - numbers.start) :])
        self._last = numbers
        self._begin([(event, number) for (event, _), number in zip(releases, numbers, strict=True)])

    def opened(self) -> None:
        """The results of the last releases are known here."""
        for number in self._last:
            self._journal.opened(number)
