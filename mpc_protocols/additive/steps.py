"""Rounds, messages and bytes of whole steps of the oracle of two parties and a dealer, as functions of public sizes (`costs`)."""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.additive.costs import AdditiveCosts
from mpc_protocols.additive.link import DEALER
from mpc_protocols.additive.marginals import receiver_of
from mpc_protocols.additive.vertical.costs import count_tables
from mpc_protocols.additive.vertical.plan import TablesPlan
from mpc_protocols.engine.inputs.check.costs import CheckSizes
from mpc_protocols.engine.inputs.check.protocol import CHECKS
from mpc_protocols.engine.inputs.check.seed import COIN_BYTES
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.step_costs import EngineStepCosts, FreshInputs, Group
from mpc_protocols.engine.tally import AGREEMENT, Tally
from mpc_protocols.functionality import USUAL_LEADER
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan

ELEMENT = 4


class StepCosts(EngineStepCosts[Group, TablesPlan, None]):
    """Bytes and rounds of a run so far."""

    _main: AdditiveCosts
    _beside: AdditiveCosts

    def __init__(
        self, contributors: int = 0, latency_bytes: int = LATENCY_BYTES, leader: int = USUAL_LEADER
    ) -> None:
        """latency_bytes: what a round is worth in the run."""
        tally = Tally.of(DEALER + 1 + contributors)
        main, beside = (AdditiveCosts(tally, latency_bytes) for _ in range(2))
        super().__init__(main, beside, DEALER + 1, leader)

    def _all(self, size: int) -> None:
        self._main.all(size)

    def _input(self, inputs: FreshInputs[TablesPlan]) -> None:
        if inputs.tables is not None:
            count_tables(self._main, inputs.tables)
        messages = []
        for custodian in range(DEALER, len(self.tally.clocks)) if inputs.blocks else ():
            receiver = receiver_of(custodian)
            messages.append((custodian, 1 - receiver, SEED_BYTES))
            messages += [(custodian, receiver, ELEMENT * cells) for cells in inputs.blocks]
        self.tally.step(messages)

    def input_check(self, check: CheckSizes) -> None:
        self._main.all(AGREEMENT)
        self._main.all(COIN_BYTES)
        for numbers, _ in check.batches:
            self._main.signs(numbers, 32)
        self._main.zero_rows(CHECKS, check.contributors)

    def _group_sums(self, group: Group, planes: int) -> None:
        if group.compared_cells:
            self._main.l1_sums(group.compared_cells, planes)

    def _widened(self, candidates: int, sums: Sequence[None]) -> Sequence[None]:
        self._main.widened(candidates)
        return sums

    def _gumbel_noise(self, plan: SelectionPlan, rows: int) -> None:
        self._beside.gumbel_noise(rows, plan.a, plan.ring_bits // 8)

    def _picks(self, plan: SelectionPlan, lists: Sequence[int]) -> None:
        candidates, element = len(plan.contenders), plan.ring_bits // 8
        if lists:
            self._main.peel(len(lists), candidates, lists, element)
        else:
            self._main.argmax_rows(candidates, element)

    def _opening(self, samplers: Sequence[tuple[Sampler, int]], sums: Sequence[None]) -> None:
        self._main.reveal(sum(cells for _, cells in samplers))
