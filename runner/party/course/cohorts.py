"""A run whose custodians choose by themselves what they answer (`synth.algorithm.CohortRounds`): each party's
part.

Every custodian is a client, also one that computes; all are there from beginning to end. The leader asks, the
two others that compute obey; each of the three keeps the accounts of all clients, and every client its own,
on disk before anything leaves it. Who learns what: `docs/design/flaim.md` 3. A party that is lost ends the
run; what was begun stays charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from runner.party.course.course import Course, Run
from runner.party.course.table import finish
from runner.party.synthesis import sample
from runner.results.release import clients_of

if TYPE_CHECKING:
    from mpc_protocols.functionality import Answered, Event, LocalCounts
    from parties.budget.journal import Journal
    from runner.results.release import Release
    from synth.algorithm import CohortGuard, CohortRounds


class InCohorts(Course):
    """Of an algorithm whose `cohorts` says how clients are asked."""

    def __init__(self, rounds: CohortRounds[Any]) -> None:
        self._rounds = rounds

    def take_part(self, run: Run) -> None:
        """See `Course`."""
        names = [party.name for party in run.study.numbered]
        clients = [names.index(name) for name in run.custodians]
        plan = self._rounds.fitted(run.plan, len(clients), run.study.privacy.max_rows)
        counts = run.custodian.counts()
        if run.journal is not None:
            release = self._compute(run, plan, sorted(clients), counts, run.journal)
        else:
            release = self._answer(run, plan, counts)
        finish(run, release, joined=None)

    def _compute(
        self, run: Run, plan: Any, clients: Sequence[int], counts: LocalCounts | None, journal: Journal
    ) -> Release:
        """A computing party's part: the leader asks, the others obey; all of them answer, if they have data."""
        me = run.wire.me

        def begin(releases: Sequence[tuple[Event, int]]) -> None:
            run.custodian.begin_all(
                [(event, number) for event, number in releases if me in clients_of(event)]
            )

        recorder = run.attempt.recorder(journal, begin, run.wire.check_valid)
        guard = self._rounds.accounts(plan, clients, recorder.record)
        own = None if counts is None else self._rounds.client(plan, counts, run.id)
        parts = run.backend.cohort_parts()
        if run.collective.leads:
            with parts.lead(run.wire, own, clients, guard) as cohorts:
                synthesis = self._rounds.conduct(cohorts, plan, run.id, run.observe)
            release = sample(synthesis, plan, run.observe, run.limit, guard.events)
        else:
            answered = parts.follow(run.wire, own, clients, guard, run.study.leader_number)
            run.meter.mark("measure")
            release = run.receive()
            if not self._tells(plan, release, answered, guard):
                raise _untrue(run)
        recorder.opened()
        journal.end(0)
        return release

    def _answer(self, run: Run, plan: Any, counts: LocalCounts | None) -> Release:
        """The part of a client that does not compute."""
        if counts is None:
            raise StudyInvalid(f"{run.study.path}: party {run.name} neither computes nor has data.")
        me = run.wire.me
        guard = self._rounds.accounts(plan, [me], _own_record(run))
        run.backend.cohort_parts().answer(
            run.wire, self._rounds.client(plan, counts, run.id), run.study.leader_number, guard
        )
        run.meter.mark("measure")
        release = run.receive()
        if [e for e in release.events if me in clients_of(e)] != [
            e for e in guard.events if me in clients_of(e)
        ]:
            raise _untrue(run)
        return release

    def _tells(self, plan: Any, release: Release, answered: Sequence[Answered], guard: CohortGuard) -> bool:
        """Whether the release holds just what this party has opened and authorised."""
        opened = self._rounds.opened(plan, answered)
        return (
            list(release.events) == guard.events
            and list(release.selections) == list(opened.selections)
            and len(release.measurements) == len(opened.measurements)
            and all(
                (own.clique, own.sigma2, own.round, own.rows)
                == (told.clique, told.sigma2, told.round, told.rows)
                and np.array_equal(own.values, told.values)
                for own, told in zip(opened.measurements, release.measurements, strict=True)
            )
        )


def _own_record(run: Run) -> Any:
    def record(event: Event, inputs: bytes) -> None:
        if run.wire.me in clients_of(event):
            run.custodian.begin(event)

    return record


def _untrue(run: Run) -> ProtocolAborted:
    return ProtocolAborted(
        f"Party {run.study.leader.name} reports other releases than this party has taken part in; do not use its result."
    )
