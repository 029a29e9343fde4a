"""Rounds, messages and bytes of whole steps of the oracle between two parties, as functions of public sizes (`costs`).

Base transfers are counted from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.inputs.check.costs import CheckSizes
from mpc_protocols.engine.inputs.check.protocol import CHECKS
from mpc_protocols.engine.inputs.check.seed import COIN_BYTES
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.step_costs import EngineStepCosts, FreshInputs, Group
from mpc_protocols.engine.tally import Tally
from mpc_protocols.functionality import USUAL_LEADER
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.pair.circuits.sign import score_adder
from mpc_protocols.pair.costs import PairCosts
from mpc_protocols.pair.vertical.contingency import TableShape

ELEMENT = 4


@dataclass(frozen=True)
class OwnersTables:
    """Tables over two owners' columns. lifted: how many of their cells are (`two_owners`)."""

    shapes: Sequence[TableShape]
    lifted: int


class StepCosts(EngineStepCosts[Group, OwnersTables, None]):
    """Bytes and rounds of a run so far."""

    _main: PairCosts
    _beside: PairCosts

    def __init__(
        self, contributors: int = 0, latency_bytes: int = LATENCY_BYTES, leader: int = USUAL_LEADER
    ) -> None:
        """latency_bytes: what a round is worth in the run."""
        tally = Tally.of(2 + contributors)
        main, beside = (PairCosts(tally, latency_bytes) for _ in range(2))
        super().__init__(main, beside, 2, leader)

    def _start(self) -> None:
        self._main.start()

    def _all(self, size: int) -> None:
        self._main.both(size)

    def _input(self, inputs: FreshInputs[OwnersTables]) -> None:
        for q in range(2, len(self.tally.clocks)):
            if inputs.blocks:
                self.tally.step([(q, q % 2, SEED_BYTES)])
            for cells in inputs.blocks:
                self.tally.step([(q, (q + 1) % 2, ELEMENT * cells)])
        if inputs.tables is not None:
            for shape in inputs.tables.shapes:
                self._main.table(shape)
            if lifted := inputs.tables.lifted:
                self._main.lift(lifted, 2, 4, self._adder(17, lifted))

    def input_check(self, check: CheckSizes) -> None:
        self._agree()
        self._main.both(COIN_BYTES)
        for numbers, _ in check.batches:
            self._main.carry(31, numbers, self._adder(32, numbers))
        self._main.zero_cells(CHECKS, check.contributors)

    def _group_sums(self, group: Group, planes: int) -> None:
        if cells := group.compared_cells:
            self._main.l1_sums(cells, planes, self._adder(planes, cells))

    def _widened(self, candidates: int, sums: Sequence[None]) -> Sequence[None]:
        self._main.lift(candidates)
        return sums

    def _gumbel_noise(self, plan: SelectionPlan, rows: int) -> None:
        self._beside.gumbel_noise(rows, plan.a, plan.ring_bits // 8)

    def _picks(self, plan: SelectionPlan, lists: Sequence[int]) -> None:
        candidates, element = len(plan.contenders), plan.ring_bits // 8
        if lists:
            self._main.peel(len(lists), candidates, lists, element)
        else:
            self._main.argmax(candidates, element)

    def _opening(self, samplers: Sequence[tuple[Sampler, int]], sums: Sequence[None]) -> None:
        self._main.opening(ELEMENT * sum(cells for _, cells in samplers))

    def _adder(self, planes: int, cells: int) -> Adder:
        return score_adder(planes, words_for(cells), self._main.latency_bytes)
