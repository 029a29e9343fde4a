"""Rounds, messages and bytes of whole steps of the oracle between two parties, as functions of public sizes (`costs`).

run = StepCosts(contributors=2)      base transfers and the measured delay are counted from the beginning
run.prepare(step=120, request=120, blocks=[50_000])
run.select(...); run.measure(...); run.end(...)
run.tally.rounds, run.tally.sent
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.inputs.check.costs import CheckSizes
from mpc_protocols.engine.inputs.check.protocol import CHECKS
from mpc_protocols.engine.inputs.check.seed import COIN_BYTES
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.latency import LATENCY_BYTES, count_delay
from mpc_protocols.engine.tally import AGREEMENT, Tally, beside_noise, side_by_side
from mpc_protocols.functionality import USUAL_LEADER
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.pair.circuits.sign import score_adder
from mpc_protocols.pair.costs import PairCosts
from mpc_protocols.pair.vertical.contingency import TableShape

ELEMENT = 4


@dataclass(frozen=True)
class Group:
    """A group of a selection. answers: their bytes, encoded (`answer_codec`). compared_cells: with an answer other than 0."""

    answers: int
    compared_cells: int


class StepCosts:
    """Bytes and rounds of a run so far."""

    def __init__(
        self, contributors: int = 0, latency_bytes: int = LATENCY_BYTES, leader: int = USUAL_LEADER
    ) -> None:
        """latency_bytes: what a round is worth in the run."""
        self.tally = Tally.of(2 + contributors)
        self._leader, self._other = leader, 1 - leader
        self._main = PairCosts(self.tally, latency_bytes)
        self._beside = PairCosts(self.tally, latency_bytes)
        self._start()
        count_delay(self.tally, 2, leader)

    def prepare(
        self,
        step: int,
        request: int,
        blocks: Sequence[int],
        tables: Sequence[TableShape] = (),
        lifted: int = 0,
    ) -> None:
        """`LeadingOracle.prepare`, encoded in `step` bytes.

        blocks: cells of each message of counts (horizontal; empty: nothing new); contributors are told in `request` bytes.
        tables, lifted: of two owners' columns, the tables and how many of their cells are lifted (`two_owners`).
        """
        self._announce(step, request if blocks else 0)
        self._agree()
        self._input(blocks, tables, lifted)

    def select(
        self,
        step: int,
        groups: Sequence[Group],
        candidates: int,
        a: int,
        planes: int,
        ring_bits: int = 32,
        generated: int | None = None,
        lists: Sequence[int] = (),
        expected: tuple[Sampler, int] | None = None,
    ) -> None:
        """`LeadingOracle.select` with `candidates` kept; arguments as for `replicated.step_costs.select`."""
        self._announce(step)
        if candidates == 1:
            self._agree()
            self._agree()
            return
        element = ring_bits // 8
        self._answers(groups[0])
        self._agree()

        def scores() -> None:
            self._l1_sums(groups, planes)
            if ring_bits == 64:
                self._main.lift(candidates)

        picks = max(1, len(lists))
        generated = picks * candidates if generated is None else generated
        if generated:
            side_by_side(
                (self._main, scores), (self._beside, lambda: self._beside.gumbel_noise(generated, a, element))
            )
        else:
            scores()
        self._agree()

        def picked() -> None:
            if lists:
                self._main.peel(picks, candidates, lists, element)
            else:
                self._main.argmax(candidates, element)

        beside_noise((self._main, picked), self._beside, expected)

    def measure(
        self, step: int, samplers: Sequence[tuple[Sampler, int]], generated: int | None = None
    ) -> None:
        """`LeadingOracle.measure` of the cells of each sampler, or `total` (one cell) once something is shared."""
        self._announce(step)
        if generated != 0:
            self._agree()
        self._reveal(samplers, generated)

    def total_first(
        self,
        step: int,
        request: int,
        blocks: Sequence[int],
        tables: Sequence[TableShape],
        lifted: int,
        sampler: Sampler,
        check: CheckSizes | None = None,
    ) -> None:
        """`LeadingOracle.total` where nothing is shared yet; what is shared for it as for `prepare`."""
        self._announce(step, request)
        self._agree()
        self._input(blocks, tables, lifted)
        if check is not None:
            self.input_check(check)
        self._reveal([(sampler, 1)], None)

    def distances(
        self,
        step: int,
        groups: Sequence[Group],
        sampler: Sampler,
        candidates: int,
        planes: int,
        generated: int | None = None,
    ) -> None:
        """`LeadingOracle.distances`; arguments as for `select` and `measure`."""
        self._announce(step)
        self._answers(groups[0])
        self._agree()
        self._l1_sums(groups, planes)
        self._reveal([(sampler, candidates)], generated)

    def end(self, step: int) -> None:
        """`LeadingOracle.close`."""
        self._announce(step, step)
        self._agree()

    def _start(self) -> None:
        self._main.start()

    def _announce(self, step: int, request: int = 0) -> None:
        contributors = range(2, len(self.tally.clocks))
        self.tally.step(
            [(self._leader, self._other, step), *((self._leader, q, request) for q in contributors)]
        )

    def _agree(self) -> None:
        self._main.both(AGREEMENT)

    def _input(self, blocks: Sequence[int], tables: Sequence[TableShape], lifted: int) -> None:
        for q in range(2, len(self.tally.clocks)):
            if blocks:
                self.tally.step([(q, q % 2, SEED_BYTES)])
            for cells in blocks:
                self.tally.step([(q, (q + 1) % 2, ELEMENT * cells)])
        for shape in tables:
            self._main.table(shape)
        if lifted:
            adder = score_adder(17, words_for(lifted), self._main.latency_bytes)
            self._main.lift(lifted, 2, 4, adder)

    def input_check(self, check: CheckSizes) -> None:
        """`InputCheck.inconsistent`."""
        self._agree()
        self._main.both(COIN_BYTES)
        for numbers, _ in check.batches:
            self._main.carry(31, numbers, score_adder(32, words_for(numbers), self._main.latency_bytes))
        self._main.zero_cells(CHECKS, check.contributors)

    def _answers(self, group: Group) -> None:
        self._main.tally.step([(self._leader, self._other, group.answers)])

    def _l1_sums(self, groups: Sequence[Group], planes: int) -> None:
        for number, group in enumerate(groups):
            if number:
                self._answers(group)
            if group.compared_cells:
                adder = score_adder(planes, words_for(group.compared_cells), self._main.latency_bytes)
                self._main.l1_sums(group.compared_cells, planes, adder)

    def _reveal(self, samplers: Sequence[tuple[Sampler, int]], generated: int | None) -> None:
        cells = sum(count for _, count in samplers)
        if len(samplers) > 1:
            self._main.gaussian_noises(samplers)
        elif generated != 0:
            self._main.gaussian_noise(samplers[0][0], cells if generated is None else generated)
        self._agree()
        self._main.opening(ELEMENT * cells)
