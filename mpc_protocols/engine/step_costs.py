"""Rounds, messages and bytes of whole steps of an oracle over an engine: what all backends that count so have in common.

A backend's `StepCosts` says what its own protocols send for inputs, scores, picks and openings; who agrees on what, and which
noise is made beside what, is said here. The measured delay is counted from the beginning.

    run.prepare(step=120, inputs=FreshInputs(request=120, blocks=[50_000]))
    run.select(...); run.measure(...); run.end(...)
    run.tally.rounds, run.tally.sent
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mpc_protocols.engine.inputs.answer_codec import encode
from mpc_protocols.engine.inputs.check.costs import CheckSizes
from mpc_protocols.engine.latency import count_delay
from mpc_protocols.engine.tally import AGREEMENT, ReplayingNoise, beside_noise, side_by_side
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.rounded_answers import RoundedAnswers


class Answered(Protocol):
    """A group of a selection."""

    @property
    def answers(self) -> int:
        """Bytes of its answers, encoded (`answer_codec`)."""


@dataclass(frozen=True)
class Group:
    """A group of a selection. answers: their bytes, encoded (`answer_codec`). compared_cells: with an answer other than 0."""

    answers: int
    compared_cells: int

    @classmethod
    def of(cls, rounded: RoundedAnswers) -> list[Group]:
        """All groups of a selection."""
        return [cls(len(encode(answers)), int(answers.nonzero.sum())) for answers in rounded]


P = TypeVar("P")
"""What is known of tables over several owners' columns."""
G = TypeVar("G", bound=Answered)
S = TypeVar("S")
"""What a group's sums leave behind on which later messages depend; None if nothing."""


@dataclass(frozen=True)
class FreshInputs(Generic[P]):
    """What a step shares. request: bytes in which contributors are told. blocks: cells of each message of counts (empty: nothing
    new). tables: over several owners' columns, where they are split."""

    request: int = 0
    blocks: Sequence[int] = ()
    tables: P | None = None


class Costs(ReplayingNoise, Protocol):
    """A backend's costs of single protocols, on the run's tally."""

    def gaussian_noises(self, samplers: Sequence[tuple[Sampler, int]]) -> None: ...


class EngineStepCosts(ABC, Generic[G, P, S]):
    """Bytes and rounds of a run so far."""

    _main: Costs
    _beside: Costs

    def __init__(self, main: Costs, beside: Costs, computing: int, leader: int) -> None:
        """main, beside: of nothing yet, on one tally, for what is replayed and for what is replayed beside it."""
        self.tally = main.tally
        self._main, self._beside = main, beside
        self._computing, self._leader = computing, leader
        self._others = [peer for peer in range(computing) if peer != leader]
        self._start()
        count_delay(self.tally, computing, leader)

    # -- steps -------------------------------------------------------------------------------------------------------------

    def prepare(self, step: int, inputs: FreshInputs[P]) -> None:
        """`LeadingOracle.prepare`, encoded in `step` bytes."""
        self._announce(step, inputs.request)
        self._agree()
        self._input(inputs)

    def select(
        self,
        step: int,
        groups: Sequence[G],
        plan: SelectionPlan,
        generated: int,
        lists: Sequence[int] = (),
        expected: tuple[Sampler, int] | None = None,
    ) -> None:
        """`LeadingOracle.select`. generated: rows of noise made for it. lists: of several picks, how many candidates each had.
        expected: a sampler, and how many rows of its noise are made beside the picks."""
        self._announce(step)
        if len(plan.contenders) == 1:
            self._agree()
            self._agree()
            return
        self._answers(groups[0])
        self._agree()
        sums: list[S] = []

        def scores() -> None:
            sums.extend(self._l1_sums(groups, plan.sign_bits))
            if plan.ring_bits == 64:
                sums[:] = self._widened(len(plan.contenders), sums)

        if generated:
            side_by_side((self._main, scores), (self._beside, lambda: self._gumbel_noise(plan, generated)))
        else:
            scores()
        self._keys(plan, sums)
        self._agree()
        beside_noise((self._main, lambda: self._picks(plan, lists)), self._beside, expected)

    def measure(
        self, step: int, samplers: Sequence[tuple[Sampler, int]], generated: int | None = None
    ) -> None:
        """`LeadingOracle.measure` of the cells of each sampler, or `total` (one cell) once something is shared."""
        self._announce(step)
        if generated != 0:
            self._agree()
        self._reveal(samplers, generated)

    def total_first(
        self, step: int, inputs: FreshInputs[P], sampler: Sampler, check: CheckSizes | None = None
    ) -> None:
        """`LeadingOracle.total` where nothing is shared yet; what is shared for it as for `prepare`."""
        self._announce(step, inputs.request)
        self._agree()
        self._input(inputs)
        if check is not None:
            self.input_check(check)
        self._reveal([(sampler, 1)], None)

    def distances(
        self,
        step: int,
        groups: Sequence[G],
        sampler: Sampler,
        candidates: int,
        planes: int,
        generated: int | None = None,
    ) -> None:
        """`LeadingOracle.distances`; arguments as for `select` and `measure`. planes: bits of a difference."""
        self._announce(step)
        self._answers(groups[0])
        self._agree()
        sums = self._l1_sums(groups, planes)
        self._reveal([(sampler, candidates)], generated, sums)

    def end(self, step: int) -> None:
        """`LeadingOracle.close`."""
        self._announce(step, step)
        self._agree()

    # -- what a backend says -----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Before the first step, and before the delay is measured."""
        return

    @abstractmethod
    def _all(self, size: int) -> None:
        """Every computing party sends so many bytes to every other one."""

    @abstractmethod
    def _input(self, inputs: FreshInputs[P]) -> None:
        """Counts, or owners' columns and their tables."""

    @abstractmethod
    def input_check(self, check: CheckSizes) -> None:
        """`InputCheck.inconsistent`."""

    @abstractmethod
    def _group_sums(self, group: G, planes: int) -> S:
        """`L1Sums.compute` of a group whose answers are there."""

    @abstractmethod
    def _widened(self, candidates: int, sums: Sequence[S]) -> Sequence[S]:
        """Scores modulo 2^64 of those modulo 2^32."""

    @abstractmethod
    def _gumbel_noise(self, plan: SelectionPlan, rows: int) -> None:
        """Noise of so many keys, beside the scores."""

    def _keys(self, plan: SelectionPlan, sums: Sequence[S]) -> None:
        """`Engine.keys`."""
        return

    @abstractmethod
    def _picks(self, plan: SelectionPlan, lists: Sequence[int]) -> None:
        """`Engine.largest`, or of lists `Engine.picks`."""

    @abstractmethod
    def _opening(self, samplers: Sequence[tuple[Sampler, int]], sums: Sequence[S]) -> None:
        """`Engine.reveal` of all cells with their noise. sums: where distances are opened."""

    # -- what is alike -----------------------------------------------------------------------------------------------------

    def _announce(self, step: int, request: int = 0) -> None:
        contributors = range(self._computing, len(self.tally.clocks))
        self.tally.step(
            [
                *((self._leader, peer, step) for peer in self._others),
                *((self._leader, q, request) for q in contributors),
            ]
        )

    def _agree(self) -> None:
        self._all(AGREEMENT)

    def _answers(self, group: G) -> None:
        self._main.tally.step([(self._leader, peer, group.answers) for peer in self._others])

    def _l1_sums(self, groups: Sequence[G], planes: int) -> list[S]:
        sums = []
        for number, group in enumerate(groups):
            if number:
                self._answers(group)
            sums.append(self._group_sums(group, planes))
        return sums

    def _reveal(
        self, samplers: Sequence[tuple[Sampler, int]], generated: int | None, sums: Sequence[S] = ()
    ) -> None:
        if len(samplers) > 1:
            self._main.gaussian_noises(samplers)
        elif generated != 0:
            [(sampler, cells)] = samplers
            self._main.gaussian_noise(sampler, cells if generated is None else generated)
        self._agree()
        self._opening(samplers, sums)
