"""One computing party's part in every step of the oracle, over any backend (`docs/design/engine.md` 5).

All computing parties run the same methods in the same order with the same public steps; only the leader
brings the model's answers. A step begins (`public.state`), its answers travel, this party's own guard
authorises every release of it, the parties agree on the transcript's hash, and only then is anything
computed. The noisy result is held as shares (`public.history`); when the parties have agreed that all hold
it, it is opened. Scores take a group of cells at a time (`public.answers`): memory stays flat in cells; up to
one group the rounds do not depend on them, and each further group costs the rounds of its signs and one.

Threat model and assumption: the backend's. Each computing party learns the selected positions, the noisy
values and the model's answers (public). Marginals, noise, scores, keys and comparisons stay shared. Signs
hold because their bounds are public integers: |M - c| <= n' < 2^(k-1) with c checked against n' by whoever
gets it (the leader made it), n' from `mechanisms.bounds`; sums below 2^32 are asserted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.agreement import at_first_turn
from mpc_protocols.engine.bitwise.bits import B
from mpc_protocols.engine.inputs.check.protocol import InputCheck
from mpc_protocols.engine.interface import Engine, L1Sums, N
from mpc_protocols.engine.latency import agree_on_delay, latency_bytes_of
from mpc_protocols.engine.noise.pools import NoisePools, ring_of
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import BadInput, ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Clique, Event, Guard, Level, Observe, StudyFacts, unobserved
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.measurement import by_sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.begun import (
    Begun,
    BegunDistances,
    BegunEnd,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
    BegunTotal,
)
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.public.rounded_answers import AnnouncedAnswers, RoundedAnswers
from mpc_protocols.public.state import PublicState


class ComputingParty(Generic[B, N]):
    """State and protocol code of one computing party in one run."""

    def __init__(
        self,
        engine: Engine[B, N],
        facts: StudyFacts,
        guard: Guard,
        observe: Observe | None,
        ahead: bool = True,
        history: History = NO_HISTORY,
        delay: int | None = None,
    ) -> None:
        """ahead: whether noise is made ahead, alike at all parties. history: what an earlier attempt at this
        run has opened, and where this one is recorded. delay: of a hop in microseconds; None: waits for the
        others, to learn how far away they are.

        Raises `StudyInvalid` (facts).
        """
        self.engine = engine
        self.wire = engine.wire
        self.facts = facts
        self.state = PublicState(facts, engine.dealers)
        self._delay = agree_on_delay(self.wire, facts.leader) if delay is None else delay
        self._guard, self._history = guard, history
        self._observe = observe or unobserved
        worth = latency_bytes_of(self._delay)
        self.noise = NoisePools(engine, self._release, worth, ahead)
        checks = facts.inputs and engine.source.apart
        self.input_check = InputCheck(engine, facts, history) if checks else None
        self.signs = 0
        """Of cells, computed so far."""
        self._sharings = history.sharings()
        self._rows_kept = bool(self._sharings)
        engine.set_latency(worth)
        self._observe("agree", "paced", delay_us=self._delay, round_bytes=self.latency_bytes)

    @property
    def leads(self) -> bool:
        """Whether this party runs the synthesizer."""
        return self.wire.me == self.facts.leader

    @property
    def latency_bytes(self) -> int:
        """What a round is worth in this run (`latency`)."""
        return self.engine.gates.latency_bytes

    def run(self, begun: Begun) -> list[NDArray[np.int64]]:
        """A step as a follower: the noisy marginals that it opened."""
        if isinstance(begun, BegunPrepare):
            self.prepare(begun)
        elif isinstance(begun, BegunSelect):
            self.select(begun, None)
        elif isinstance(begun, BegunMeasure):
            opened = self.measure(begun)
            self.noise.make_due(begun)
            return opened
        elif isinstance(begun, BegunDistances):
            self.distances(begun, None)
        elif isinstance(begun, BegunTotal):
            self.total(begun)
        else:
            self.end(begun)
        return []

    def prepare(self, begun: BegunPrepare) -> None:
        """Share what the step needs; releases nothing."""
        if begun.fresh:  # else nothing is sent, and the next step's agreement is about this one too
            self._agree(begun.inputs)
            self._share(begun.fresh, begun.levels, begun.inputs)

    def select(self, begun: BegunSelect, rounded: RoundedAnswers | None) -> list[int]:
        """Positions of the selected candidates in the step's handles. rounded: at the leader only, the
        answers."""
        plan, number, inputs = begun.plan, begun.step.number, begun.inputs
        if (known := self._history.opened(number, inputs)) is not None:
            self._authorise(begun.authorisations())
            return self._selected(begun, known.tolist())
        if (held := self._history.held(number, inputs)) is not None:
            self._authorise(begun.authorisations())
            with self._agreeing_to_open(number, inputs):
                picked = self._pick(plan, self.engine.unpack(held) if held else None)
            return self._selected(begun, picked)
        _check_sums(begun.answers, plan.sign_bits)
        sums = self.engine.l1_sums(self.state, begun.answers, plan.sign_bits, ring_of(plan), rounded)
        several = len(plan.contenders) > 1
        self._authorise(begun.authorisations(), sums.exchange if several else None)
        lacking = self.noise.key_shortfall(plan) if several and not self.noise.has_values(plan) else 0

        def compute() -> list[int]:
            with self._agreeing(inputs):
                noisy = self._noisy_keys(begun, sums) if several else None
            self._hold(number, inputs, noisy)
            with self._agreeing_to_open(number, inputs):
                return self._pick(plan, noisy)

        picked = self.noise.beside(begun, compute) if several and not lacking else compute()
        return self._selected(
            begun,
            picked,
            cells=sum(layout.size for layout in begun.answers.groups),
            signs=sums.signs,
            scores=sums.form,
            noise=self.noise.key_form(lacking),
        )

    def _noisy_keys(self, begun: BegunSelect, sums: L1Sums[N]) -> N:
        """The contenders' keys with noise, a row for each pick of several."""
        plan = begun.plan
        self.engine.expect_picks(plan)
        scores, noise = self.noise.of_keys(begun, sums.compute)
        weights, biases = ([of[q] for q in plan.contenders] for of in (plan.weights, plan.biases))
        keys = self.engine.keys(scores, weights, biases, ring_of(plan))
        self.signs += sums.signs
        return keys + (noise if plan.picks == 1 else noise.reshape(plan.picks, len(plan.contenders)))

    def _pick(self, plan: SelectionPlan, noisy: N | None) -> list[int]:
        """Open the picks. noisy: the keys with their noise; None where one candidate is kept."""
        if noisy is None:
            return [plan.contenders[0]]
        if plan.picks == 1:
            return [plan.contenders[self.engine.largest(noisy)]]
        return self.engine.picks(noisy, plan)

    def _selected(self, begun: BegunSelect, picked: list[int], **how: object) -> list[int]:
        """Record what was picked. how: of the computation, for observers; nothing if it was not made now."""
        self._history.learn(begun.step.number, begun.inputs, np.array(picked, np.int64))
        self.state.learn_selection(begun, picked)
        for position in picked:
            self._observe(
                "select",
                "selected",
                step=begun.step.number,
                position=position,
                candidates=len(begun.step.handles),
                kept=len(begun.plan.contenders),
                **(how or {"cells": 0, "signs": 0, "scores": "resumed", "noise": "resumed"}),
            )
        return picked

    def measure(self, begun: BegunMeasure) -> list[NDArray[np.int64]]:
        """The step's marginals with noise, opened to the computing parties."""
        samplers = by_sampler(begun.plan.samplers, begun.cells)
        opened, noise = self._release_counts(
            begun,
            "measure",
            samplers,
            lambda: self.engine.marginals(self.state, begun.step.handles),
            is_local=True,
            keys=begun.step.keys,
            expected=begun.expected,
        )
        noisy = np.split(opened, np.cumsum(begun.cells)[:-1])
        self.state.learn_counts(begun, noisy)
        self._observe(
            "measure", "opened", step=begun.step.number, marginals=len(noisy), cells=len(opened), noise=noise
        )
        return noisy

    def distances(self, begun: BegunDistances, rounded: RoundedAnswers | None) -> NDArray[np.int64]:
        """The L1 distances with noise, opened to the computing parties. rounded: as for `select`."""
        handles, planes = begun.step.handles, begun.answers.planes
        _check_sums(begun.answers, planes)
        sums = self.engine.l1_sums(self.state, begun.answers, planes, np.uint32, rounded)
        samplers = by_sampler(begun.plan.samplers, [1] * len(handles))
        values, noise = self._release_counts(begun, "distances", samplers, sums.compute, sums.exchange)
        self.signs += sums.signs
        self.state.learn_distances(begun, values)
        self._observe(
            "select", "opened", step=begun.step.number, marginals=len(handles), cells=len(values), noise=noise
        )
        return values

    def total(self, begun: BegunTotal) -> int:
        """The number of rows with noise, opened to the computing parties."""
        if not self._computes(begun):
            self._repeat(begun.inputs)
        samplers = by_sampler(begun.plan.samplers, [1])
        opened, noise = self._release_counts(
            begun,
            "total",
            samplers,
            lambda: self._rows(begun.inputs),
            is_local=self.engine.rows() is not None,
            keys=begun.step.keys,
        )
        value = int(opened[0])
        self.state.learn_total(begun, value)
        self._observe("measure", "opened", step=begun.step.number, marginals=0, cells=1, noise=noise)
        return value

    def end(self, begun: BegunEnd) -> None:
        """Compare the whole public transcript one last time."""
        self.noise.finish()
        self._agree(begun.inputs)

    def smallest(self) -> Clique:
        """The column with the fewest values: what `total` shares when nothing else is."""
        return (min(self.facts.sizes, key=lambda column: self.facts.sizes[column]),)

    def shares_rows_first(self, begun: BegunTotal) -> bool:
        """Whether this `total` shares `smallest()`, since nothing is shared yet; contributors must be told."""
        return self._computes(begun) and self.engine.rows() is None

    def _computes(self, begun: BegunTotal) -> bool:
        """Whether it is not on record."""
        number, inputs = begun.step.number, begun.inputs
        return self._history.opened(number, inputs) is None and self._history.held(number, inputs) is None

    def _rows(self, inputs: bytes) -> N:
        rows = self.engine.rows()
        if rows is None:
            self._share([self.smallest()], (), inputs)
            rows = self.engine.rows()
            assert rows is not None
        return rows

    def _share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> None:
        cells = self.engine.share(cliques, levels, inputs)
        self._observe(
            "input", "shared", marginals=len(cliques), cells=cells, contributors=len(self.wire.contributors)
        )
        if self.input_check is None:
            return
        known = self._repeat(inputs)
        found = self.input_check.inconsistent(cliques, levels)
        if known:
            # results rest on the counts of all but those that are left out before anything is computed
            later = {contributor for sharing in self._sharings.values() for contributor in sharing.left_out}
            if changed := [contributor for contributor in found if contributor not in later]:
                assert self.facts.inputs is not None
                raise BadInput(changed, self.facts.inputs.max_rows)
            return
        rows = b"" if self._rows_kept else self.input_check.rows
        self._rows_kept = True
        self._judge(found)
        self._history.keep_sharing(inputs, found, rows)

    def _repeat(self, inputs: bytes) -> bool:
        """Leave out whom an earlier attempt did after the sharing of this step; whether it is on record."""
        if (sharing := self._sharings.get(inputs)) is None:
            return False
        self._judge(sharing.left_out)
        return True

    def _judge(self, custodians: Sequence[int]) -> None:
        """End the run because of these custodians' inputs, or go on without them. One that computes is left
        out of nothing.

        Raises `BadInput`.
        """
        rule = self.facts.inputs
        assert rule is not None
        computing = any(custodian < self.wire.computing for custodian in custodians)
        if custodians and (computing or not rule.exclude):
            raise BadInput(custodians, rule.max_rows)
        for contributor in custodians:
            self.engine.leave_out(contributor)
            self.state.leave_out(contributor)
            self._observe("input", "left_out", contributor=contributor)

    def _authorise(
        self, events: Sequence[tuple[Event, bytes]], exchange: Callable[[], None] | None = None
    ) -> None:
        """Put events on record. A follower does it while the answers travel, the leader once it has sent
        them."""
        if exchange is not None and self.leads:
            exchange()
        self._guard.authorise_all(events)
        if exchange is not None and not self.leads:
            exchange()

    def _agree(self, digest: bytes) -> None:
        """Raise `ProtocolAborted` unless all others hold the same 32 bytes, the same delay and the same
        partition."""
        self._announced(digest)()

    def _announced(self, digest: bytes, then: Callable[[], None] | None = None) -> Callable[[], None]:
        """The half of `_agree` that sends; what is returned waits for the others. then: runs once all agree."""
        theirs = self.engine.announce(binding(digest, self._delay.to_bytes(4, "little"), self.engine.public))

        def confirm() -> None:
            if (other := theirs()) is not None:
                raise ProtocolAborted(
                    f"Party {other} has seen other public inputs than this party; check that versions agree."
                )
            if then is not None:
                then()

        return confirm

    def _held(self, number: int, inputs: bytes) -> Callable[[], None]:
        """Say that this party holds its shares of a result; what is returned waits until all others do."""
        return self._announced(binding(inputs, b"held"), lambda: self._history.agreed(number))

    def _agree_to_open(self, number: int, inputs: bytes) -> None:
        """Let nothing of a result leave before all others hold theirs: what one party opens, all can finish
        after a crash."""
        self._held(number, inputs)()

    @contextmanager
    def _agreeing(self, digest: bytes) -> Iterator[None]:
        """`_agree` beside the first exchange of the block, which opens nothing: what is sent before others have
        authorised the step is masked by streams that are used once. Where products are proved it comes before the
        block: nothing is computed there on what two parties may have been told differently.
        """
        all_agree = self._announced(digest)
        if self.engine.proves:
            all_agree()
            yield
        else:
            with at_first_turn(self.engine.gates, all_agree):
                yield

    @contextmanager
    def _agreeing_to_open(self, number: int, inputs: bytes) -> Iterator[None]:
        """`_agree_to_open` beside the first exchange of the block, which compares before it opens.

        Where products are proved there is nothing to agree on: all waited for each other on the same inputs before
        they computed, and nothing is held for another attempt.
        """
        if self.engine.proves:
            self._history.agreed(number)
            yield
        else:
            with at_first_turn(self.engine.gates, self._held(number, inputs)):
                yield

    def _release(self, number: int, mechanism: str, inputs: bytes) -> bytes:
        """What the noise is bound to that a release makes, for itself and ahead (`noise.pool`,
        `docs/design/mechanisms.md` 4)."""
        return binding(
            self.wire.session_id, number.to_bytes(8, "big"), mechanism.encode(), inputs, self.engine.sharing
        )

    def _release_counts(
        self,
        begun: BegunMeasure | BegunDistances | BegunTotal,
        mechanism: str,
        samplers: Sequence[tuple[Sampler, Sequence[int]]],
        compute: Callable[[], N],
        exchange: Callable[[], None] | None = None,
        is_local: bool = False,
        keys: int = 0,
        expected: Sequence[tuple[Sampler, int]] = (),
    ) -> tuple[NDArray[np.int64], str]:
        """Authorise, add noise and open; read as signed integers (`docs/design/mechanisms.md` 3.4). Also the
        noise's form.

        samplers: of consecutive numbers, each with the lengths of its runs. compute: the numbers; is_local:
        without a message. exchange: as for `_authorise`. keys: as in `MeasureStep`; expected: as in
        `BegunMeasure`. Where nothing at all is sent before the result is held, the agreement that all hold it is
        also the one that all have authorised it.
        """
        number, inputs = begun.step.number, begun.inputs
        opened, form = self._history.opened(number, inputs), "resumed"
        held = self._history.held(number, inputs) if opened is None else None
        again = opened is not None or held is not None
        self._authorise([(begun.plan.event, inputs)], None if again else exchange)
        if opened is None:
            agreed = held is None and not (is_local and self.noise.has_counts(samplers))
            if held is not None:
                noisy = self.engine.unpack(held)
            else:
                if agreed:
                    self._agree(inputs)
                numbers = compute()
                noise, form = self.noise.of_counts(samplers, number, mechanism, inputs, keys, expected)
                noisy = numbers + noise
                self._hold(number, inputs, noisy)
            opened = self._open(begun, noisy, agreed and self.engine.proves)
        due = sum(sum(lengths) for _, lengths in samplers)
        if opened.shape != (due,):  # another party may have given it
            raise ProtocolAborted(
                f"Step {number} is on record with {len(opened)} values, and it opens to {due}; start a new run."
            )
        self._history.learn(number, inputs, opened)
        return opened, form

    def _open(
        self, begun: BegunMeasure | BegunDistances | BegunTotal, noisy: N, agreed: bool
    ) -> NDArray[np.int64]:
        """Counts with noise, once all hold theirs. agreed: whether where products are proved, and so nothing is kept, all
        have agreed on this step already: once is enough."""
        number, inputs = begun.step.number, begun.inputs
        if agreed:
            self._history.agreed(number)
            return self.engine.reveal(noisy)
        all_hold = self._held(number, inputs)
        with self.noise.begun_beside(begun) as begin:
            begin()
            all_hold()
            return self.engine.reveal(noisy)

    def _hold(self, number: int, inputs: bytes, noisy: N | None) -> None:
        """Have this party's shares of a result on disk before the agreement that precedes its opening."""
        self._history.hold(number, inputs, lambda: b"" if noisy is None else self.engine.pack(noisy))


def _check_sums(answers: AnnouncedAnswers, planes: int) -> None:
    """sum |M - c| <= n' + sum c must be below 2^32: from public numbers, before anything is computed."""
    largest = answers.row_bound + max(answers.sums)
    if largest >= 1 << 32 or answers.row_bound >= 1 << planes - 1:
        raise StudyInvalid(
            f"Scores of up to {largest} do not fit integers of 32 bits; lower max_rows in the study."
        )
