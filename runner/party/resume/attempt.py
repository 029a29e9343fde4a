"""One attempt at a run: what this party holds of an interrupted one, what it agrees with the others to do
with it, and what it keeps so that a later attempt can go on (`docs/design/resume.md`).

    agree     from everybody's announced offers: the run's id, and whether it is a new one or goes on
    open      this attempt's entries in state and journal; the last result goes from who knows it to who lacks it
    history   what an engine asks before it makes a step anew
    keep_*    what the leader hands out, before it does
    finish    the results are in place: shares and results of this run go

A backend that keeps no history has neither state nor resumption here, and all of this but the journal is
empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.errors import BudgetRefused, OutOfResources, ProtocolAborted, UsageError
from mpc_protocols.public.history import NO_HISTORY
from parties.budget.journal import Header, Journal
from parties.budget.run_state import Opened, RunState, discard_others
from runner.party.resume.earlier_attempt import (
    EarlierAttempt,
    Recorder,
    cannot_resume,
    journal_path,
    state_digest,
)
from runner.party.resume.resumption import FACT, Continuation, Offer, continuation, offers_of
from runner.version import VERSION

if TYPE_CHECKING:
    from mpc_protocols.functionality import Event
    from mpc_protocols.public.history import History
    from parties.budget.journal import Record
    from parties.session import SessionWire
    from runner.party.options import PartyOptions
    from runner.results.release import Release
    from runner.study import Study

RESULT_LIMIT = 1 << 30
"""Bytes of one step's result."""


class Attempt:
    """This party's attempt at a run."""

    def __init__(
        self, options: PartyOptions, study: Study, name: str, earlier: EarlierAttempt | None
    ) -> None:
        """earlier: what an interrupted run has left here, if it is to be gone on with."""
        self._options, self._study, self._name = options, study, name
        self._earlier = earlier
        self._state: RunState | None = None
        self._going_on: Continuation | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the parties have agreed to go on with an interrupted run."""
        return self._going_on is not None

    @property
    def released(self) -> bool:
        """Whether nothing is left of the run but to hand out what the leader holds."""
        return self._going_on is not None and self._going_on.released

    @property
    def serves(self) -> bool:
        """Whether this party has its results already, and is here for the others."""
        return self._earlier is not None and self._earlier.finished

    @property
    def recorded(self) -> int:
        """How many releases this party's journal knows."""
        return 0 if self._known is None else len(self._known.releases)

    @property
    def history(self) -> History:
        """What the engine asks for what was opened and held before."""
        return self._state or NO_HISTORY

    @property
    def _known(self) -> Record | None:
        return None if self._earlier is None else self._earlier.journal

    def facts(self) -> dict[str, object]:
        """What this party announces of the run that it holds."""
        if self._earlier is None:
            return {}
        return {FACT: Offer.of(self._earlier.state, self._earlier.ended).to_facts()}

    def agree(self, wire: SessionWire, observe: Callable[..., None]) -> bytes:
        """The run's id; 32 bytes. Raises `ProtocolAborted`, `UsageError`."""
        names = [party.name for party in self._study.numbered]
        going_on = continuation(
            offers_of(wire.announcements), names[: wire.computing], self._study.leader.name
        )
        self._going_on = going_on
        if going_on is not None and not self._options.resume:
            raise UsageError(
                "The other parties go on with an interrupted run: start this one with --resume, too, if it took part in it, "
                "or have them start anew with --replace."
            )
        if self._earlier is not None and (going_on is None or going_on.run != self._earlier.state.run):
            raise UsageError(
                f"{self._options.out} holds a run that the computing parties do not resume; name the directory of the same run "
                "at all parties, or start anew with --replace."
            )
        if going_on is None:
            return wire.session_id
        if not self._study.resumes:
            raise UsageError(cannot_resume(self._study))
        observe("agree", "resumed", run=going_on.run.hex(), opened=going_on.opened)
        return going_on.run

    def open(self, wire: SessionWire, run: bytes, digest: bytes, computes: bool) -> Journal | None:
        """This attempt's entries in the state and in the journal; what the last one lacks is given by who has
        it.

        digest: of the study. Returns the journal of a party that computes something yet. Raises
        `ProtocolAborted`, `UsageError`.
        """
        path, header = journal_path(self._options.out, run), Header(digest, run, self._name, VERSION)
        if not self._study.resumes:
            return Journal(path, header) if computes else None
        if self._earlier is None:
            self._state = RunState.create(
                self._options.out, state_digest(self._study), run, self._name, VERSION
            )
        else:
            self._state = self._earlier.state
        if not self.serves:
            self._state.attempt(wire.session_id, self._going_on is not None and self._going_on.finish_held)
        self._complete(wire, self._state)
        if not computes:
            return None
        known = self._known
        if known is None:
            journal = Journal(path, header)
        elif known.code == 0:  # nothing follows: the leader holds what it hands out
            return None
        else:
            journal = Journal.reopen(path, known)
        self._state.note = journal.held
        return journal

    def _complete(self, wire: SessionWire, state: RunState) -> None:
        """Give the last result to those that lack it, or receive it."""
        going_on = self._going_on
        if going_on is None or going_on.giver is None:
            return
        number = {party.name: i for i, party in enumerate(self._study.numbered)}
        if self._name == going_on.giver:
            last = state.results[-1]
            for name in going_on.lacking:
                wire.fork(f"resume {name}").send(
                    number[name], last.inputs + last.values.astype("<i8").tobytes()
                )
        elif self._name in going_on.lacking:
            stream = wire.fork(f"resume {self._name}")
            payload = bytes(stream.receive_up_to(number[going_on.giver], RESULT_LIMIT))
            if len(payload) % 8 or len(payload) < 32:
                raise ProtocolAborted(
                    f"Party {going_on.giver} gave a result that cannot be read; nothing more is released."
                )
            given = Opened(payload[:32], np.frombuffer(payload[32:], "<i8").astype(np.int64))
            if given.digest(state.digests[-1]) != offers_of(wire.announcements)[going_on.giver].digest:
                raise ProtocolAborted(
                    f"Party {going_on.giver} gave another result than it announced; nothing more is released."
                )
            state.learn(len(state.results), given.inputs, given.values)

    def recorder(
        self,
        journal: Journal,
        begin: Callable[[Sequence[tuple[Event, int]]], None],
        admit: Callable[[], None],
    ) -> Recorder:
        """What the accountant does before a release. begin: of the ledger, events and the numbers of their
        releases. admit: raises if nothing may be released to the others any more."""
        return Recorder(journal, self._known, begin, admit)

    def check(self, release: Release, computes: bool) -> None:
        """Compare what the leader hands out of an interrupted run with this party's records. Raises
        `ProtocolAborted`."""
        state, known = self._state, self._known
        assert state is not None
        if (known is not None or (computes and not self.serves)) and not release.tells_recorded(
            [result.values for result in state.results],
            [] if known is None else [each.event for each in known.releases],
        ):
            raise ProtocolAborted(
                f"Party {self._study.leader.name} reports other releases than this party has on record; do not use its result."
            )

    @property
    def kept_release(self) -> bytes | None:
        """What the leader has kept to hand out."""
        return None if self._state is None else self._state.release

    def keep_release(self, release: Release) -> None:
        """Make durable, at the leader, what is handed out: no other attempt hands out anything else."""
        if self._state is not None:
            self._state.keep_release(release.to_bytes(self._study.domain))

    def counters(self, digest: bytes, made: Callable[[], dict[str, Any]]) -> Mapping[str, Any]:
        """Everybody's counters as the leader tells them: those of the first attempt that came so far, else
        `made()`, which are kept with the study's digest: the same in all reports, also in those that are
        written after a crash."""
        if self._state is None:
            return made()
        if self._state.counters is not None:
            earlier: Mapping[str, Any] = json.loads(self._state.counters)
            return earlier
        shared = made()
        self._state.keep_counters(json.dumps({**shared, "digest": digest.hex()}).encode())
        return shared

    def digest(self, shared: Mapping[str, Any], own: bytes) -> bytes:
        """The study's digest for run.json: of a run that was resumed, that of the attempt in which the
        counters were made, whose session may have had another CA. Raises `ProtocolAborted`."""
        if not self.goes_on:
            return own
        told = shared.get("digest", own.hex())
        try:
            if not isinstance(told, str) or len(bytes.fromhex(told)) != len(own):
                raise ValueError
        except ValueError:
            raise ProtocolAborted(
                f"Party {self._study.leader.name} sent a digest of the study that cannot be read; nothing was written."
            ) from None
        return bytes.fromhex(told)

    def finish(self, run: bytes) -> None:
        """The results are in place: what only a later attempt would have needed goes."""
        if self._state is not None:
            with suppress(OSError, BudgetRefused, OutOfResources):
                self._state.finish(VERSION)
                discard_others(self._options.out, run)
