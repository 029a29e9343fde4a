"""Rounds, messages and bytes of whole steps of the oracle of two parties and a dealer, as functions of public sizes (`costs`).

run = StepCosts(contributors=2)      the measured delay is counted from the beginning
run.prepare(step=120, request=120, blocks=[50_000])
run.select(...); run.measure(...); run.end(...)
run.tally.rounds, run.tally.sent
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpc_protocols.additive.costs import AdditiveCosts
from mpc_protocols.additive.link import DEALER
from mpc_protocols.additive.marginals import receiver_of
from mpc_protocols.additive.vertical.costs import count_tables
from mpc_protocols.additive.vertical.plan import TablesPlan
from mpc_protocols.engine.inputs.check.costs import CheckSizes
from mpc_protocols.engine.inputs.check.protocol import CHECKS
from mpc_protocols.engine.inputs.check.seed import COIN_BYTES
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.latency import LATENCY_BYTES, count_delay
from mpc_protocols.engine.tally import AGREEMENT, Tally, beside_noise, side_by_side
from mpc_protocols.functionality import USUAL_LEADER
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan

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
        computing = DEALER + 1
        self.tally = Tally.of(computing + contributors)
        self._leader = leader
        self._others = [peer for peer in range(computing) if peer != leader]
        self._main = AdditiveCosts(self.tally, latency_bytes)
        self._beside = AdditiveCosts(self.tally, latency_bytes)
        count_delay(self.tally, computing, leader)

    def prepare(self, step: int, request: int, blocks: Sequence[int], plan: TablesPlan | None = None) -> None:
        """`LeadingOracle.prepare`, encoded in `step` bytes.

        blocks: cells of each message of counts (empty: nothing new); contributors are told in `request` bytes. plan: of two
        owners' tables, where columns are split.
        """
        self._announce(step, request if blocks else 0)
        self._main.all(AGREEMENT)
        self._input(blocks, plan)

    def select(
        self,
        step: int,
        groups: Sequence[Group],
        plan: SelectionPlan,
        generated: int,
        lists: Sequence[int] = (),
        expected: tuple[Sampler, int] | None = None,
    ) -> None:
        """`LeadingOracle.select`. generated: rows of noise made for it. lists: of several picks, how many candidates each
        had. expected: a sampler, and how many rows of its noise are made beside the picks."""
        candidates, element = len(plan.contenders), plan.ring_bits // 8
        self._announce(step)
        if candidates == 1:
            self._main.all(AGREEMENT)
            self._main.all(AGREEMENT)
            return
        self._answers(groups[0])
        self._main.all(AGREEMENT)

        def scores() -> None:
            self._l1_sums(groups, plan.sign_bits)
            if element == 8:
                self._main.widened(candidates)

        if generated:
            side_by_side(
                (self._main, scores),
                (self._beside, lambda: self._beside.gumbel_noise(generated, plan.a, element)),
            )
        else:
            scores()
        self._main.all(AGREEMENT)

        def picked() -> None:
            if lists:
                self._main.peel(len(lists), candidates, lists, element)
            else:
                self._main.argmax_rows(candidates, element)

        beside_noise((self._main, picked), self._beside, expected)

    def measure(
        self, step: int, samplers: Sequence[tuple[Sampler, int]], generated: int | None = None
    ) -> None:
        """`LeadingOracle.measure` of the cells of each sampler, or `total` (one cell) once something is shared."""
        self._announce(step)
        if generated != 0:
            self._main.all(AGREEMENT)
        self._reveal(samplers, generated)

    def total_first(
        self,
        step: int,
        request: int,
        blocks: Sequence[int],
        sampler: Sampler,
        plan: TablesPlan | None = None,
        check: CheckSizes | None = None,
    ) -> None:
        """`LeadingOracle.total` where nothing is shared yet; what is shared for it as for `prepare`."""
        self._announce(step, request)
        self._main.all(AGREEMENT)
        self._input(blocks, plan)
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
        """`LeadingOracle.distances`; arguments as for `select` and `measure`. planes: bits of a difference."""
        self._announce(step)
        self._answers(groups[0])
        self._main.all(AGREEMENT)
        self._l1_sums(groups, planes)
        self._reveal([(sampler, candidates)], generated)

    def end(self, step: int) -> None:
        """`LeadingOracle.close`."""
        self._announce(step, step)
        self._main.all(AGREEMENT)

    def _announce(self, step: int, request: int = 0) -> None:
        contributors = range(DEALER + 1, len(self.tally.clocks))
        self.tally.step(
            [
                *((self._leader, peer, step) for peer in self._others),
                *((self._leader, q, request) for q in contributors),
            ]
        )

    def _input(self, blocks: Sequence[int], plan: TablesPlan | None) -> None:
        if plan is not None:
            count_tables(self._main, plan)
        messages = []
        for custodian in range(DEALER, len(self.tally.clocks)) if blocks else ():
            receiver = receiver_of(custodian)
            messages.append((custodian, 1 - receiver, SEED_BYTES))
            messages += [(custodian, receiver, ELEMENT * cells) for cells in blocks]
        self.tally.step(messages)

    def input_check(self, check: CheckSizes) -> None:
        """`InputCheck.inconsistent`."""
        self._main.all(AGREEMENT)
        self._main.all(COIN_BYTES)
        for numbers, _ in check.batches:
            self._main.signs(numbers, 32)
        self._main.zero_rows(CHECKS, check.contributors)

    def _answers(self, group: Group) -> None:
        self._main.tally.step([(self._leader, peer, group.answers) for peer in self._others])

    def _l1_sums(self, groups: Sequence[Group], planes: int) -> None:
        for number, group in enumerate(groups):
            if number:
                self._answers(group)
            if group.compared_cells:
                self._main.l1_sums(group.compared_cells, planes)

    def _reveal(self, samplers: Sequence[tuple[Sampler, int]], generated: int | None) -> None:
        cells = sum(count for _, count in samplers)
        if len(samplers) > 1:
            self._main.gaussian_noises(samplers)
        elif generated != 0:
            self._main.gaussian_noise(samplers[0][0], cells if generated is None else generated)
        self._main.all(AGREEMENT)
        self._main.reveal(cells)
