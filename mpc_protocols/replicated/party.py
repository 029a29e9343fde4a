"""One computing party's part in every step of the oracle: agree, authorise, compute, open.

The three computing parties run the same methods in the same order with the same public steps; only P1, who leads, brings the
model's answers. For each step:

    begin        the public state derives plan and event from the step's bytes alone, alike everywhere
    answers      select only: P1 sends c of the first group of cells to P0 and P2 (of the cells that the receiver deals for only
                 which are zero), which check it against the hash in the step (`answers`); of later groups when their turn comes
    authorise    this party's own guard: accountant, journal on disk (at P0 and P2 while the answers are on their way). It refuses
                 by raising, and then nothing opens anywhere
    agree        32 bytes from each party to each other: the running hash of the public transcript. Sent after authorising, so
                 whoever passes knows that all three have authorised the same step
    compute      noise, from the stock or made beside the scores (`ahead`), scores on shares, then the opening: an index, or
                 noisy counts. Scores take GROUP cells at a time (`thirds`): memory stays flat in cells; up to GROUP cells the
                 rounds do not depend on them, and each further group costs the rounds of its signs and one

Threat model: semi-honest, at most one of the three computing parties corrupted; contributors semi-honest; assumption `prg`.
Each computing party learns the selected positions, the noisy counts and the model's answers (public). Marginals, noise, scores,
keys and comparisons stay shared. Signs hold because their bounds are public integers: |M - c| <= n' < 2^(k-1) with c checked
against n' by both who use it (P1 made it), n' from `mechanisms.bounds`; sums below 2^32 are asserted here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.argmax import argmax
from mpc_protocols.engine.bitslice import Elements
from mpc_protocols.engine.interleave import beside
from mpc_protocols.engine.latency import agree_on_delay, round_worth
from mpc_protocols.engine.noise_pool import GAUSSIAN_ROWS, GUMBEL_ROWS, Stock
from mpc_protocols.engine.prg import binding
from mpc_protocols.engine.sampling import (
    gaussian_adder,
    gaussian_noise,
    gumbel_adder,
    gumbel_noise,
    release_bits,
)
from mpc_protocols.errors import ProtocolAborted, StudyInvalid
from mpc_protocols.functionality import Clique, Guard, Handle, LocalCounts, Setting
from mpc_protocols.mechanisms.measurement import MeasurePlan
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.partition import VerticalData
from mpc_protocols.public.answers import Answers, Span
from mpc_protocols.public.rounded_answers import RoundedAnswers
from mpc_protocols.public.state import EndStep, MeasureStep, PrepareStep, PublicState, SelectStep, TotalStep
from mpc_protocols.replicated.inputs.marginals import MarginalSource, SharedMarginals
from mpc_protocols.replicated.scores import answer_codec as encoding
from mpc_protocols.replicated.scores.bit_cache import SharedBits
from mpc_protocols.replicated.scores.l1_distance import add_absolute, score_adder
from mpc_protocols.replicated.sharing.conversion import lift
from mpc_protocols.replicated.sharing.ring import (
    RingShare,
    add_public,
    centred,
    concatenate,
    open_ring,
    reshare,
)
from mpc_protocols.replicated.sharing.trio import Trio, UInt
from mpc_protocols.wire import Wire

LEADER = 1
Observe = Callable[..., None]


def silent(phase: str, event: str, **fields: object) -> None:
    """Observes nothing."""


def _source(trio: Trio, setting: Setting, counts: LocalCounts | VerticalData | None) -> MarginalSource:
    """Where shares of marginals come from. What vertical data needs, a fifth of this package, is imported for such data only."""
    if isinstance(counts, VerticalData):
        from mpc_protocols.replicated.vertical.source import VerticalMarginals

        return VerticalMarginals(trio, setting, counts)
    return SharedMarginals(trio, setting, counts)


class ComputingParty:
    """State and protocol code of P0, P1 or P2 in one run."""

    def __init__(
        self,
        wire: Wire,
        setting: Setting,
        counts: LocalCounts | VerticalData | None,
        guard: Guard,
        observe: Observe | None,
        ahead: bool = True,
    ) -> None:
        """counts: this party's own data: its counts or None if it only computes; `VerticalData` where columns are split. ahead:
        whether noise is made ahead, alike at all parties.

        Raises `StudyInvalid` (setting, number of parties), `DataRefused` (vertical rows that do not fit).
        """
        self.wire = wire
        self.setting = setting
        self.state = PublicState(setting)
        self._trio = Trio(wire)
        self._noise = self._trio.fork("noise")
        self._delay = agree_on_delay(wire)
        self._trio.round_bytes = self._noise.round_bytes = round_worth(self._delay)
        self._guard = guard
        self._observe = observe or silent
        self._marginals = _source(self._trio, setting, counts)
        self._gumbel, self._gaussian = (
            Stock(GUMBEL_ROWS if ahead else 0),
            Stock(GAUSSIAN_ROWS if ahead else 0),
        )
        self._bits = SharedBits(self._trio)
        self._observe("agree", "paced", delay_us=self._delay, round_bytes=self.round_bytes)

    @property
    def round_bytes(self) -> int:
        """What a round is worth in this run (`pace`)."""
        return self._trio.round_bytes

    def prepare(self, step: PrepareStep) -> list[Handle]:
        """Share what the step needs; releases nothing. 1 round of 4 bytes a cell after the agreement and the contributions."""
        inputs = self.state.begin(step)
        fresh = self.state.to_share(step)
        self._agree(inputs)
        if fresh:
            self._share(fresh, inputs)
        return self.state.prepare(step)

    def select(self, step: SelectStep, rounded: RoundedAnswers | None) -> int:
        """Position in the step's handles of the selected candidate; `rounded` at P1 only: the kept candidates' answers."""
        inputs = self.state.begin(step)
        plan = self.state.plan_select(step)
        self._check_sums(step, plan)
        if self.wire.me != LEADER:  # the record is written while the answers travel
            self._guard.authorise(plan.event, inputs)
        answers = (
            [self._exchange_answers(step, 0, rounded)] if len(plan.kept) > 1 else []
        )  # of the first group
        if self.wire.me == LEADER:
            self._guard.authorise(plan.event, inputs)
        self._agree(inputs)
        winner, made, signs, adders = 0, 0, 0, dict[str, None]()
        if answers:
            dtype: UInt = np.uint32 if plan.ring_bits == 32 else np.uint64
            kind = (plan.a, plan.ring_bits)
            made = self._gumbel.lacks(kind, len(plan.kept))

            def scores() -> RingShare:
                nonlocal signs
                parts: Elements = np.zeros(len(plan.kept), np.uint32)
                for group, cut in enumerate(self.state.cuts(step)):
                    known = self._exchange_answers(step, group, rounded) if group else answers.pop()
                    compared = self._add_distances(plan, known, parts[cut.candidates])
                    adders[
                        score_adder(compared, plan.sign_bits, self.round_bytes) if any(compared) else "sums"
                    ] = None
                    signs += sum(compared)
                sums = reshare(self._trio, parts)
                return sums if dtype is np.uint32 else lift(self._trio, sums)

            def noise() -> RingShare:
                source = release_bits(self._noise, self._release(step.number, "select", inputs))
                return gumbel_noise(self._noise, source, made, plan.a, dtype)

            sums, fresh = beside(self._trio, scores, self._noise, noise) if made else (scores(), None)
            keys = _weighted(self._trio, sums, plan) + self._gumbel.take(kind, len(plan.kept), fresh)
            winner = argmax(self._trio, keys)
        position = plan.kept[winner]
        self.state.learn_selection(step, position)
        self._observe(
            "select",
            "selected",
            step=step.number,
            position=position,
            candidates=len(step.handles),
            kept=len(plan.kept),
            cells=sum(cut.size for cut in self.state.cuts(step)),
            signs=signs,
            scores="+".join(adders) or "sums",
            noise=gumbel_adder(made, self.round_bytes) if made else "ahead",
        )
        return position

    def measure(self, step: MeasureStep) -> list[NDArray[np.int64]]:
        """The step's marginals with noise, opened to the three computing parties."""
        inputs = self.state.begin(step)
        plan = self.state.plan_measure(step)
        shares = [self._marginals.marginal(self.state, handle) for handle in step.handles]
        opened, noise = self._release_counts(plan, step.number, "measure", inputs, concatenate(shares))
        noisy = np.split(opened, np.cumsum([len(share) for share in shares])[:-1])
        self.state.learn_counts(step, noisy)
        self._observe(
            "measure", "opened", step=step.number, marginals=len(noisy), cells=len(opened), noise=noise
        )
        return noisy

    def total(self, step: TotalStep) -> int:
        """The number of rows with noise, opened to the three computing parties."""
        inputs = self.state.begin(step)
        plan = self.state.plan_total(step)
        rows = self._marginals.rows()
        if rows is None:
            self._agree(inputs)
            self._share([self.smallest()], inputs)
            rows = self._marginals.rows()
            assert rows is not None
        opened, noise = self._release_counts(plan, step.number, "total", inputs, rows)
        value = int(opened[0])
        self.state.learn_total(step, value)
        self._observe("measure", "opened", step=step.number, marginals=0, cells=1, noise=noise)
        return value

    def end(self, step: EndStep) -> None:
        """Compare the whole public transcript one last time."""
        self._agree(self.state.begin(step))

    def smallest(self) -> Clique:
        """The column with the fewest values: what `total` shares when nothing else is."""
        return (min(self.setting.sizes, key=lambda column: self.setting.sizes[column]),)

    def shares_rows_first(self) -> bool:
        """Nothing is shared yet, so that `total` begins by sharing `smallest()`; contributors must be told."""
        return self._marginals.rows() is None

    def _share(self, cliques: Sequence[Clique], inputs: bytes) -> None:
        cells = self._marginals.share(cliques, inputs)
        self._observe(
            "input", "shared", marginals=len(cliques), cells=cells, contributors=len(self.wire.contributors)
        )

    def _agree(self, digest: bytes) -> None:
        """Raise `ProtocolAborted` unless both others hold the same 32 bytes, the same delay and the same partition."""
        other = self._trio.differing(
            binding(digest, self._delay.to_bytes(4, "little"), self._marginals.public)
        )
        if other is not None:
            raise ProtocolAborted(
                f"Party {other} has seen other public inputs than this party; check that versions agree."
            )

    def _release(self, number: int, mechanism: str, inputs: bytes) -> bytes:
        """What the noise is bound to that a release makes, for itself and ahead (`ahead`, `mechanisms.md` 4)."""
        return binding(
            self.wire.session_id,
            number.to_bytes(8, "big"),
            mechanism.encode(),
            inputs,
            self._marginals.sharing,
        )

    def _exchange_answers(self, step: SelectStep, group: int, rounded: RoundedAnswers | None) -> Answers:
        """c of a group at all three, but for the cells that P0 or P2 deals for."""
        if self.wire.me == LEADER:
            if rounded is None:
                raise ValueError("the leading party must bring the model's answers")
            answers = rounded[group]
            for peer, encoded in zip((0, 2), encoding.encode(answers, (0, 2)), strict=True):
                self.wire.send(peer, encoded)
            self._trio.turn()
            return answers
        self._trio.turn()
        cut = self.state.cuts(step)[group]
        received = self.wire.receive_up_to(LEADER, encoding.encoded_limit(cut))
        answers = encoding.decode(received, cut, self.wire.me)
        self.state.check_answers(step, group, answers)
        return answers

    def _check_sums(self, step: SelectStep, plan: SelectionPlan) -> None:
        """sum |M - c| <= n' + sum c must be below 2^32: from public numbers, before anything is computed."""
        largest = plan.row_bound + max(step.answer_sums[q] for q in plan.kept)
        if largest >= 1 << 32 or plan.row_bound >= 1 << plan.sign_bits - 1:
            raise StudyInvalid(
                f"scores of up to {largest} do not fit integers of 32 bits; lower max_rows in the study"
            )

    def _add_distances(self, plan: SelectionPlan, answers: Answers, parts: Elements) -> list[int]:
        """Add this party's part of sum |M - c| over a group to its candidates' `parts`, modulo 2^32: zero answers by local sums,
        the others through the sign protocol. Returns how many cells of each third took part in that."""
        thirds, others = self._bits.thirds(self._span, answers, plan.sign_bits)
        parts += others
        add_absolute(self._trio, thirds, plan.sign_bits, None, parts)
        return [len(third.known) for third in thirds]

    def _span(self, span: Span) -> RingShare:
        return self._marginals.marginal(self.state, span.handle)[span.start : span.stop]

    def _release_counts(
        self, plan: MeasurePlan, number: int, mechanism: str, inputs: bytes, shares: RingShare
    ) -> tuple[NDArray[np.int64], str]:
        """Authorise, agree, add the plan's noise, open; read as signed integers (`mechanisms.md` 3.4). Also the noise's form."""
        self._guard.authorise(plan.event, inputs)
        self._agree(inputs)
        made, fresh = self._gaussian.lacks(plan.sampler.digest, len(shares)), None
        if made:
            source = release_bits(self._trio, self._release(number, mechanism, inputs))
            fresh = gaussian_noise(self._trio, source, plan.sampler, made, np.uint32)
        noise = self._gaussian.take(plan.sampler.digest, len(shares), fresh)
        form = gaussian_adder(plan.sampler, made, self.round_bytes) if made else "ahead"
        return centred(open_ring(self._trio, shares + noise)), form


def _weighted(trio: Trio, sums: RingShare, plan: SelectionPlan) -> RingShare:
    """w' * sum - bias of the kept candidates, in the ring of the keys."""
    modulus = 1 << plan.ring_bits
    weights: NDArray[Any] = np.array([plan.weights[q] for q in plan.kept], np.int64)
    biases: NDArray[Any] = np.array([-plan.biases[q] % modulus for q in plan.kept], np.uint64)
    return add_public(trio, sums.scaled(weights), biases)
