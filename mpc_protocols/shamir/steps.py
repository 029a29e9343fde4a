"""Rounds, messages and bytes of whole steps of the oracle on Shamir shares, as functions of public sizes (`costs`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.inputs.check.costs import CheckSizes
from mpc_protocols.engine.inputs.check.seed import COIN_BYTES
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.engine.step_costs import EngineStepCosts, FreshInputs
from mpc_protocols.engine.tally import Tally
from mpc_protocols.mechanisms import gumbel
from mpc_protocols.mechanisms.gaussian import Sampler
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.shamir.circuits.gates import public_mask
from mpc_protocols.shamir.costs import Masks, ShamirCosts, gaussian_masks, gaussian_masks_of, gumbel_masks
from mpc_protocols.shamir.marginals import receiver_of
from mpc_protocols.shamir.sharing.numbers import scaled_masks, shifts_of
from mpc_protocols.shamir.vertical.costs import run
from mpc_protocols.shamir.vertical.plan import TablesPlan

ELEMENT = 4


@dataclass(frozen=True, eq=False)
class Group:
    """A group of a selection. answers: bytes of its answers encoded (`answer_codec`). lengths: of each of its candidates, the
    number of cells whose answer is not 0."""

    answers: int
    lengths: NDArray[np.int64]


class StepCosts(EngineStepCosts[Group, TablesPlan, Masks]):
    """Bytes and rounds of a run so far. Sums leave masks behind, under which they are opened."""

    _main: ShamirCosts
    _beside: ShamirCosts

    def __init__(
        self, computing: int, contributors: int = 0, latency_bytes: int = LATENCY_BYTES, leader: int = 1
    ) -> None:
        """latency_bytes: what a round is worth in the run."""
        tally = Tally.of(computing + contributors)
        main, beside = (ShamirCosts(tally, computing, latency_bytes) for _ in range(2))
        super().__init__(main, beside, computing, leader)

    def _all(self, size: int) -> None:
        self._main.all(size)

    def _input(self, inputs: FreshInputs[TablesPlan]) -> None:
        if inputs.blocks:
            self._counts(inputs.blocks)
        if inputs.tables is not None:
            run(self._main, inputs.tables)

    def input_check(self, check: CheckSizes) -> None:
        self._agree()
        self._main.all(COIN_BYTES)
        for numbers, public in check.batches:
            self._main.negative(numbers, public)
        self._main.zero_rows(check.contributors, 1)

    def _counts(self, blocks: Sequence[int]) -> None:
        holders = self._main.holders
        messages = []
        for custodian in range(holders, len(self.tally.clocks)):
            receiver = receiver_of(custodian, holders - 1)
            messages += [(custodian, peer, SEED_BYTES) for peer in range(holders) if peer != receiver]
            messages += [(custodian, receiver, ELEMENT * cells) for cells in blocks]
        self.tally.step(messages)

    def _group_sums(self, group: Group, planes: int) -> Masks:
        return self._main.l1_sums(group.lengths, planes) if group.lengths.any() else ()

    def _widened(self, candidates: int, sums: Sequence[Masks]) -> Sequence[Masks]:
        self._main.planes_of(candidates, sum(sums, ()), 32, held=True)
        return [((1 << 32) - 1,)]

    def _gumbel_noise(self, plan: SelectionPlan, rows: int) -> None:
        self._beside.gumbel_noise(rows)

    def _keys(self, plan: SelectionPlan, sums: Sequence[Masks]) -> None:
        bits, count = plan.ring_bits, len(plan.contenders)
        ring = _ring(bits)
        shifts = shifts_of(np.array([plan.weights[q] % (1 << bits) for q in plan.contenders], ring))
        offsets = np.array([-plan.biases[q] % (1 << bits) for q in plan.contenders], ring)
        masks = scaled_masks(sum(sums, ()), shifts, bits)
        self._main.planes_of(count, masks, bits, held=bits == 32, public=public_mask(offsets))

    def _picks(self, plan: SelectionPlan, lists: Sequence[int]) -> None:
        bits, count = plan.ring_bits, len(plan.contenders)
        whole = (1 << bits) - 1
        noisy = (whole, *gumbel_masks(plan.a, bits))
        if lists:
            self._main.peel(len(lists), count, lists, noisy, bits)
            return
        low = public_mask(np.array([(gumbel.LOW << plan.a) % (1 << bits)], _ring(bits)))
        self._main.planes_of(count, noisy, bits, public=low)
        self._main.argmax_rows(count, (whole,), bits)

    def _opening(self, samplers: Sequence[tuple[Sampler, int]], sums: Sequence[Masks]) -> None:
        masks = gaussian_masks_of(samplers) if len(samplers) > 1 else gaussian_masks(samplers[0][0])
        self._main.reveal(sum(cells for _, cells in samplers), sum(sums, ()) + masks)


def _ring(bits: int) -> UInt:
    return np.uint32 if bits == 32 else np.uint64
