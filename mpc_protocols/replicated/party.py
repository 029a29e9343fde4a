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
from mpc_protocols.functionality import Clique, Guard, Handle, Level, LocalCounts, Setting
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.partition import VerticalData
from mpc_protocols.public.answers import Answers, CellRange, DealerLayout
from mpc_protocols.public.rounded_answers import AnnouncedAnswers, AnswerChecker, RoundedAnswers
from mpc_protocols.public.state import (
    Begun,
    BegunDistances,
    BegunEnd,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
    BegunTotal,
    PublicState,
)
from mpc_protocols.replicated.inputs.marginals import MarginalSource, SharedMarginals
from mpc_protocols.replicated.scores import answer_codec as encoding
from mpc_protocols.replicated.scores.bit_cache import BitShareCache
from mpc_protocols.replicated.scores.dealer import DEALERS
from mpc_protocols.replicated.scores.l1_distance import add_l1_sums, score_adder
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
        self.state = PublicState(setting, DEALERS)
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
        self._bits = BitShareCache(self._trio)
        self._observe("agree", "paced", delay_us=self._delay, round_bytes=self.round_bytes)

    @property
    def round_bytes(self) -> int:
        """What a round is worth in this run (`pace`)."""
        return self._trio.round_bytes

    def run(self, begun: Begun) -> list[NDArray[np.int64]]:
        """A step as a follower: the noisy counts that it opened."""
        if isinstance(begun, BegunPrepare):
            self.prepare(begun)
        elif isinstance(begun, BegunSelect):
            self.select(begun, None)
        elif isinstance(begun, BegunMeasure):
            return self.measure(begun)
        elif isinstance(begun, BegunDistances):
            self.distances(begun, None)
        elif isinstance(begun, BegunTotal):
            self.total(begun)
        else:
            self.end(begun)
        return []

    def prepare(self, begun: BegunPrepare) -> list[Handle]:
        """Share what the step needs; releases nothing. 1 round of 4 bytes a cell after the agreement and the contributions."""
        self._agree(begun.inputs)
        if begun.fresh:
            self._share(begun.fresh, begun.levels, begun.inputs)
        return list(begun.handles)

    def select(self, begun: BegunSelect, rounded: RoundedAnswers | None) -> list[int]:
        """Positions of the selected candidates in the step's handles. rounded: at the leader only, the answers."""
        plan = begun.plan
        if plan.picks != 1:
            raise StudyInvalid("This backend selects one candidate at a time.")
        self._check_sums(begun.answers, plan.sign_bits)
        checker = begun.answers.checker()
        if self.wire.me != LEADER:  # the record is written while the answers travel
            self._guard.authorise(plan.event, begun.inputs)
        answers = (
            [self._exchange_answers(checker, begun.groups, 0, rounded)] if len(plan.kept) > 1 else []
        )  # of the first group
        if self.wire.me == LEADER:
            self._guard.authorise(plan.event, begun.inputs)
        self._agree(begun.inputs)
        winner, made, signs, adders = 0, 0, 0, dict[str, None]()
        if answers:
            dtype: UInt = np.uint32 if plan.ring_bits == 32 else np.uint64
            kind = (plan.a, plan.ring_bits)
            made = self._gumbel.lacks(kind, len(plan.kept))

            def scores() -> RingShare:
                nonlocal signs
                parts: Elements = np.zeros(len(plan.kept), np.uint32)
                for group, layout in enumerate(begun.groups):
                    known = (
                        self._exchange_answers(checker, begun.groups, group, rounded)
                        if group
                        else answers.pop()
                    )
                    compared = self._add_distances(plan.sign_bits, known, parts[layout.candidates])
                    adders[
                        score_adder(compared, plan.sign_bits, self.round_bytes) if any(compared) else "sums"
                    ] = None
                    signs += sum(compared)
                sums = reshare(self._trio, parts)
                return sums if dtype is np.uint32 else lift(self._trio, sums)

            def noise() -> RingShare:
                source = release_bits(self._noise, self._release(begun.step.number, "select", begun.inputs))
                return gumbel_noise(self._noise, source, made, plan.a, dtype)

            sums, fresh = beside(self._trio, scores, self._noise, noise) if made else (scores(), None)
            keys = _weighted(self._trio, sums, plan) + self._gumbel.take(kind, len(plan.kept), fresh)
            winner = argmax(self._trio, keys)
        position = plan.kept[winner]
        self.state.learn_selection(begun, [position])
        self._observe(
            "select",
            "selected",
            step=begun.step.number,
            position=position,
            candidates=len(begun.step.handles),
            kept=len(plan.kept),
            cells=sum(layout.size for layout in begun.groups),
            signs=signs,
            scores="+".join(adders) or "sums",
            noise=gumbel_adder(made, self.round_bytes) if made else "ahead",
        )
        return [position]

    def measure(self, begun: BegunMeasure) -> list[NDArray[np.int64]]:
        """The step's marginals with noise, opened to the three computing parties."""
        if len({noise.digest for noise in begun.plan.samplers}) > 1:
            raise StudyInvalid("This backend measures with one variance a step.")
        shares = [self._marginals.marginal(self.state, handle) for handle in begun.step.handles]
        opened, noise = self._release_counts(begun, "measure", concatenate(shares))
        noisy = np.split(opened, np.cumsum(begun.cells)[:-1])
        self.state.learn_counts(begun, noisy)
        self._observe(
            "measure", "opened", step=begun.step.number, marginals=len(noisy), cells=len(opened), noise=noise
        )
        return noisy

    def distances(self, begun: BegunDistances, rounded: RoundedAnswers | None) -> NDArray[np.int64]:
        """Not offered yet."""
        raise StudyInvalid("This backend does not answer distances.")

    def total(self, begun: BegunTotal) -> int:
        """The number of rows with noise, opened to the three computing parties."""
        rows = self._marginals.rows()
        if rows is None:
            self._agree(begun.inputs)
            self._share([self.smallest()], (), begun.inputs)
            rows = self._marginals.rows()
            assert rows is not None
        opened, noise = self._release_counts(begun, "total", rows)
        value = int(opened[0])
        self.state.learn_total(begun, value)
        self._observe("measure", "opened", step=begun.step.number, marginals=0, cells=1, noise=noise)
        return value

    def end(self, begun: BegunEnd) -> None:
        """Compare the whole public transcript one last time."""
        self._agree(begun.inputs)

    def smallest(self) -> Clique:
        """The column with the fewest values: what `total` shares when nothing else is."""
        return (min(self.setting.sizes, key=lambda column: self.setting.sizes[column]),)

    def shares_rows_first(self) -> bool:
        """Nothing is shared yet, so that `total` begins by sharing `smallest()`; contributors must be told."""
        return self._marginals.rows() is None

    def _share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> None:
        cells = self._marginals.share(cliques, levels, inputs)
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

    def _exchange_answers(
        self,
        checker: AnswerChecker,
        groups: Sequence[DealerLayout],
        group: int,
        rounded: RoundedAnswers | None,
    ) -> Answers:
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
        received = self.wire.receive_up_to(LEADER, encoding.encoded_limit(groups[group]))
        answers = encoding.decode(received, groups[group], self.wire.me)
        checker.check(group, answers)
        return answers

    def _check_sums(self, answers: AnnouncedAnswers, planes: int) -> None:
        """sum |M - c| <= n' + sum c must be below 2^32: from public numbers, before anything is computed."""
        largest = answers.row_bound + max(answers.sums)
        if largest >= 1 << 32 or answers.row_bound >= 1 << planes - 1:
            raise StudyInvalid(
                f"Scores of up to {largest} do not fit integers of 32 bits; lower max_rows in the study."
            )

    def _add_distances(self, planes: int, answers: Answers, parts: Elements) -> list[int]:
        """Add this party's part of sum |M - c| over a group to its candidates' `parts`, modulo 2^32: zero answers by local sums,
        the others through the sign protocol. Returns how many cells of each dealer took part in that."""
        compared, others = self._bits.compared(self._cells, answers, planes)
        parts += others
        add_l1_sums(self._trio, compared, planes, None, parts)
        return [len(cells.known) for cells in compared]

    def _cells(self, cells: CellRange) -> RingShare:
        return self._marginals.marginal(self.state, cells.handle)[cells.start : cells.stop]

    def _release_counts(
        self, begun: BegunMeasure | BegunTotal, mechanism: str, shares: RingShare
    ) -> tuple[NDArray[np.int64], str]:
        """Authorise, agree, add the plan's noise, open; read as signed integers (`mechanisms.md` 3.4). Also the noise's form."""
        sampler = begun.plan.samplers[0]
        self._guard.authorise(begun.plan.event, begun.inputs)
        self._agree(begun.inputs)
        made, fresh = self._gaussian.lacks(sampler.digest, len(shares)), None
        if made:
            source = release_bits(self._trio, self._release(begun.step.number, mechanism, begun.inputs))
            fresh = gaussian_noise(self._trio, source, sampler, made, np.uint32)
        noise = self._gaussian.take(sampler.digest, len(shares), fresh)
        form = gaussian_adder(sampler, made, self.round_bytes) if made else "ahead"
        return centred(open_ring(self._trio, shares + noise)), form


def _weighted(trio: Trio, sums: RingShare, plan: SelectionPlan) -> RingShare:
    """w' * sum - bias of the kept candidates, in the ring of the keys."""
    modulus = 1 << plan.ring_bits
    weights: NDArray[Any] = np.array([plan.weights[q] for q in plan.kept], np.int64)
    biases: NDArray[Any] = np.array([-plan.biases[q] % modulus for q in plan.kept], np.uint64)
    return add_public(trio, sums.scaled(weights), biases)
