"""A run in which an algorithm's questions are answered: by the backend's oracle, or by what the owners report
once.

The leader runs the synthesizer, the other computing parties obey its steps, contributors' data goes out
masked. Who learns what: computing parties see the opened index and noisy counts of each step, contributors
the release; all of it is what the study's (epsilon, delta) covers. Each computing party refuses a step that
the budget does not allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mpc_protocols.backends.bundles.collected import CollectedCounts
from mpc_protocols.errors import BadInput, ProtocolAborted, StudyInvalid
from mpc_protocols.process.threads import Aside
from runner.contributors.closing import Closing
from runner.party.alignment import join
from runner.party.course import agreed_table
from runner.party.course.agreed_table import confirmed
from runner.party.course.course import Course, Run
from runner.party.course.table import finish
from runner.party.preparation import prepare_end
from runner.party.synthesis import draft, exchange_of, sample, synthesize
from runner.results.release import parse
from synth.budget.accounting import Accountant

if TYPE_CHECKING:
    from mpc_protocols.backend import OracleData
    from mpc_protocols.functionality import Event, LocalCounts
    from mpc_protocols.vertical.partition import VerticalData
    from parties.budget.journal import Journal
    from runner.results.release import Release


class Answers(Course):
    """Most algorithms' (`Algorithm.run`, `Algorithm.reporting`)."""

    def take_part(self, run: Run) -> None:
        """See `Course`."""
        data: OracleData | None = run.custodian.counts()
        if run.closing is not None:
            data = run.closing.collected(run.custodian.counts())
        if run.owned is not None:
            data = run.join(run.owned, join)
        release = _contribute(run, data) if run.journal is None else _compute(run, data, run.journal)
        finish(run, release, run.owned)


def _compute(run: Run, data: OracleData | None, journal: Journal) -> Release:
    """A computing party's part: the leader runs the synthesizer, the others obey; returns the release."""
    # a study with [contributors] has a backend that takes these
    data = cast("LocalCounts | VerticalData | None", data)
    begin: Callable[[Sequence[tuple[Event, int]]], None] = run.custodian.begin_all
    if run.closing is not None:
        begin = only_run(run, run.closing)
    recorder = run.attempt.recorder(journal, begin, run.wire.check_valid)
    accountant = Accountant(run.plan.budget, record=recorder.record_all)
    history = run.attempt.history
    exchange = exchange_of(run.study, run.plan)
    inputs = _Inputs(run)
    if run.collective.leads:
        with (
            inputs.named(),
            run.backend.lead(run.wire, run.facts, data, accountant, inputs.observe, history)
            if exchange is None
            else exchange.lead(run.wire, run.facts, data, accountant) as answers,
        ):
            Aside(lambda: prepare_end(run.plan, run.limit))  # what it cannot do is done when it is due
            synthesis = synthesize(run.study, run.plan, answers, run.observe)
        left_out = tuple(inputs.left_out)
        if run.backend.malicious:
            fixed = replace(draft(synthesis, run.plan, accountant.events), left_out=left_out)
            release = agreed_table.agree(run, fixed, min(synthesis.rows, run.limit), lambda _: None)
        else:
            release = sample(synthesis, run.plan, run.observe, run.limit, accountant.events)
            release = replace(release, left_out=left_out)
        run.attempt.keep_release(release)
    else:
        cap = float(run.plan.budget.rho_cap)

        def observe(phase: str, event: str, **fields: Any) -> None:
            """With what this party's own account comes to."""
            inputs.observe(phase, event, **fields, rho_spent=float(accountant.rho), rho=cap)

        with inputs.named():
            opened = (
                run.backend.follow(run.wire, run.facts, data, accountant, observe, history)
                if exchange is None
                else exchange.follow(run.wire, run.facts, data, accountant)
            )

        def check(told: Release) -> None:
            run.check_told(told, opened, accountant, "authorised and opened")
            inputs.check(told)

        if run.backend.malicious:
            agreed = agreed_table.agree(run, None, 0, check)
            release = agreed_table.compare(run, agreed, run.receive_payload())
        else:
            release = run.receive()
            check(release)
    recorder.opened()
    journal.end(0)
    return release


class _Inputs:
    """What becomes of contributors whose counts turn out to be those of no table: the engine knows numbers,
    people names."""

    def __init__(self, run: Run) -> None:
        self._run, self._names = run, [party.name for party in run.study.numbered]
        self.left_out: list[str] = []

    def observe(self, phase: str, event: str, **fields: Any) -> None:
        """An event of the engine's."""
        if event == "left_out":
            self.left_out.append(self._names[fields.pop("contributor")])
            fields["contributor"] = self.left_out[-1]
        self._run.observe(phase, event, **fields)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say whose counts end the run. Raises `BadInput`."""
        try:
            yield
        except BadInput as error:
            raise BadInput(error.contributors, error.max_rows, self._names) from None

    def check(self, release: Release) -> None:
        """Compare with what the leader says. Raises `ProtocolAborted`."""
        if list(release.left_out) != self.left_out:
            raise ProtocolAborted(
                f"Party {self._run.study.leader.name} reports that other parties' counts were left out than were; do not use its "
                "result."
            )


def only_run(run: Run, closing: Closing) -> Callable[[Sequence[tuple[Event, int]]], None]:
    """The custodian's `begin_all`, once this run is on record as the only one on the bundles."""

    def begin(releases: Sequence[tuple[Event, int]]) -> None:
        closing.begin(run.id)
        run.custodian.begin_all(releases)

    return begin


def _contribute(run: Run, data: OracleData | None) -> Release:
    """A contributor's part: its data goes out masked, the release comes in."""
    if data is None or isinstance(data, CollectedCounts):
        raise StudyInvalid(f"{run.study.path}: party {run.name} neither computes nor has data.")
    (exchange_of(run.study, run.plan) or run.backend).contribute(run.wire, run.facts, data)
    run.meter.mark("input")
    payload = run.receive_payload()
    release = parse(payload, run.study.domain, run.limit, run.study.leader.name)
    if run.backend.malicious:
        confirmed(run, payload)
    run.custodian.begin_all([(event, number) for number, event in enumerate(release.events, start=1)])
    return release
