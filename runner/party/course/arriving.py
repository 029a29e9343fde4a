"""A run that selects while contributors arrive: in each round of arrivals an oracle about the rows that are
there by then.

    round t    agree on the round's list, which waits until the round is over; add up the parts; open an oracle on the sum; the
               leader's algorithm asks it, the others obey; close it

Who learns what, and who refuses what: as in `answers`. Each round has a session id and streams of its own,
and every party's account and journal go through all of them. What was opened in an earlier attempt is not
computed again (`docs/design/resume.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mpc_protocols.backend import BACKENDS, ClearBackend
from mpc_protocols.engine.prg import binding
from runner.contributors.closing import Closing, in_the_clear
from runner.party.course.answers import only_run
from runner.party.course.course import Course, Run
from runner.party.course.table import finish
from runner.party.synthesis import facts_of, sample, synthesize
from synth.budget.accounting import Accountant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.functionality import Clique, Guard, LocalCounts, MarginalOracle, Observe, StudyFacts
    from mpc_protocols.public.history import History, Sharing
    from mpc_protocols.wire import Wire
    from runner.study import Study
    from synth.plan import Plan


class InRoundsOfArrivals(Course):
    """Of `[contributors] schedule = "arriving"`."""

    def take_part(self, run: Run) -> None:
        """See `Course`."""
        assert run.closing is not None and run.journal is not None  # all of its parties compute
        recorder = run.attempt.recorder(run.journal, only_run(run, run.closing), run.wire.check_valid)
        accountant = Accountant(run.plan.budget, record=recorder.record_all)
        rounds = _Rounds(run, run.closing)
        if run.collective.leads:

            def oracles() -> Iterator[MarginalOracle]:
                for wire, facts, data, history in rounds.enter():
                    with run.backend.lead(wire, facts, data, accountant, run.observe, history) as oracle:
                        yield oracle

            synthesis = synthesize(run.study, run.plan, oracles(), run.observe)
            release = sample(synthesis, run.plan, run.observe, run.limit, accountant.events)
            run.attempt.keep_release(release)
        else:
            opened: list[NDArray[np.int64]] = []
            for wire, facts, data, history in rounds.enter():
                opened += run.backend.follow(
                    wire, facts, data, accountant, self._observer(run, accountant), history
                )
            release = run.receive_told(opened, accountant, "authorised and opened")
        recorder.opened()
        run.journal.end(0)
        finish(replace(run, closing=rounds.closing), release, None)

    def _observer(self, run: Run, accountant: Any) -> Callable[..., None]:
        cap = float(run.plan.budget.rho_cap)

        def observe(phase: str, event: str, **fields: Any) -> None:
            """With what this party's own account comes to."""
            run.observe(phase, event, **fields, rho_spent=float(accountant.rho), rho=cap)

        return observe

    def closed(self, run: Run) -> Run:
        """The run with its last round's list, if all of them are fixed somewhere: of one whose release the
        leader holds."""
        assert run.closing is not None
        rounds = _Rounds(run, run.closing)
        rounds.agree_to_all()
        return replace(run, closing=rounds.closing)


def clear_oracles(
    study: Study,
    plan: Plan,
    closings: list[Closing],
    own: Sequence[LocalCounts],
    session: bytes,
    guard: Guard,
    history: History,
    observe: Observe,
) -> Iterator[MarginalOracle]:
    """The oracles of the rounds in one process, in the clear. IT PROTECTS NOTHING.

    closings: of the three parties, whose first list is agreed; replaced by those of the round that is under
    way. own: counts of tables of the parties' own.
    """
    backend, steps = BACKENDS[study.backend], _Later(history)
    assert isinstance(backend, ClearBackend)
    while True:
        layout, first = closings[0].collection.layout, closings[0]
        tables = [*own, layout.marginals(in_the_clear(closings))]
        facts = _facts(study, plan, len(own), first, session)
        yield backend.oracle(facts, added(tables), guard, steps.next_round())
        if first.round == first.collection.rounds:
            return
        closings[:] = [closing.next_round() for closing in closings]
        observe("agree", "arriving", round=closings[0].round)
        in_the_clear(closings)
        observe("agree", "closed", round=closings[0].round, bundles=len(closings[0].agreed.entries))


def added(tables: Sequence[LocalCounts]) -> LocalCounts:
    """The sums of all tables' counts."""

    def everybody(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        parts = [counts(cliques) for counts in tables]
        return [sum(cells[1:], cells[0].copy()) for cells in zip(*parts, strict=True)]

    return everybody


def _facts(study: Study, plan: Plan, custodians: int, closing: Closing, run: bytes) -> StudyFacts:
    """Of a round, whose session id is its own."""
    tables = custodians + len(closing.agreed.entries)
    session = binding(b"arrivals", run, closing.round.to_bytes(4, "big"))
    return facts_of(study, tables, session, plan)


@dataclass
class _Rounds:
    """closing: of the round that is under way."""

    run: Run
    closing: Closing
    history: _Later = field(init=False)

    def __post_init__(self) -> None:
        self.history = _Later(self.run.attempt.history)

    def enter(self) -> Iterator[tuple[Wire, StudyFacts, Any, History]]:
        """Of each round, once it is over: wire, facts, this party's data and history."""
        run, custodians = self.run, len(self.run.custodians)
        while True:
            closing = self.closing
            data = closing.collected(run.custodian.counts())
            facts = _facts(run.study, run.plan, custodians, closing, run.id)
            yield run.wire.fork(f"arrivals {closing.round}"), facts, data, self.history.next_round()
            if closing.round == closing.collection.rounds:
                return
            self._next()

    def agree_to_all(self) -> None:
        """Go through all lists, which are fixed."""
        while self.closing.round < self.closing.collection.rounds:
            self._next()

    def _next(self) -> None:
        run, closing = self.run, self.closing.next_round()
        run.observe("agree", "arriving", round=closing.round)
        closing.agree(run.wire.fork(f"inboxes {closing.round}"), run.id)
        run.observe("agree", "closed", round=closing.round, bundles=len(closing.agreed.entries))
        self.closing = closing


class _Later:
    """A run's history as one of its rounds sees it, which counts its own steps from 0."""

    def __init__(self, whole: History) -> None:
        self._whole, self._before, self._steps = whole, 0, 0

    def next_round(self) -> _Later:
        """For the next round."""
        self._before, self._steps = self._before + self._steps, 0
        return self

    def opened(self, number: int, inputs: bytes) -> NDArray[np.int64] | None:
        """See `History`."""
        known = self._whole.opened(self._before + number, inputs)
        if known is not None:  # nobody need tell what is known
            self._steps = max(self._steps, number + 1)
        return known

    def held(self, number: int, inputs: bytes) -> bytes | None:
        """See `History`."""
        return self._whole.held(self._before + number, inputs)

    def hold(self, number: int, inputs: bytes, shares: Callable[[], bytes]) -> None:
        """See `History`."""
        self._whole.hold(self._before + number, inputs, shares)

    def agreed(self, number: int) -> None:
        """See `History`."""
        self._whole.agreed(self._before + number)

    def learn(self, number: int, inputs: bytes, values: NDArray[np.int64]) -> None:
        """See `History`."""
        self._steps = max(self._steps, number + 1)
        self._whole.learn(self._before + number, inputs, values)

    def sharings(self) -> dict[bytes, Sharing]:
        """See `History`: bundles are not checked on shares."""
        return {}

    def keep_sharing(self, inputs: bytes, left_out: Sequence[int], rows: bytes) -> None:
        """See `History`."""
        self._whole.keep_sharing(inputs, left_out, rows)
