"""Rounds, messages and bytes of whole steps of the oracle on Shamir shares, as functions of public sizes (`costs`).

run = StepCosts(computing=5, contributors=2)      the measured delay is counted from the beginning
run.prepare(step=120, request=120, blocks=[50_000])
run.select(...); run.measure(...); run.end(...)
run.tally.rounds, run.tally.sent
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.inputs.check.costs import CheckSizes
from mpc_protocols.engine.inputs.check.seed import COIN_BYTES
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.latency import LATENCY_BYTES, count_delay
from mpc_protocols.engine.tally import AGREEMENT, Tally, beside_noise, side_by_side
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


class StepCosts:
    """Bytes and rounds of a run so far."""

    def __init__(
        self, computing: int, contributors: int = 0, latency_bytes: int = LATENCY_BYTES, leader: int = 1
    ) -> None:
        """latency_bytes: what a round is worth in the run."""
        self.tally = Tally.of(computing + contributors)
        self._leader, self._computing = leader, computing
        self._others = [peer for peer in range(computing) if peer != leader]
        self._main = ShamirCosts(self.tally, computing, latency_bytes)
        self._beside = ShamirCosts(self.tally, computing, latency_bytes)
        count_delay(self.tally, computing, leader)

    def prepare(self, step: int, request: int, blocks: Sequence[int], plan: TablesPlan | None = None) -> None:
        """`LeadingOracle.prepare`, encoded in `step` bytes.

        request: bytes in which contributors are told (0: nothing new). blocks: cells of each message of counts. plan: of tables
        over several owners.
        """
        self._announce(step, request)
        self._agree()
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
        """`LeadingOracle.select`. generated: rows of noise made for it. lists: of several picks, how many candidates each had.
        expected: a sampler, and how many rows of its noise are made beside the picks."""
        self._announce(step)
        if len(plan.contenders) == 1:
            self._agree()
            self._agree()
            return
        self._answers(groups[0])
        self._agree()
        masks: list[Masks] = []

        def scores() -> None:
            masks.append(self._l1_sums(groups, plan.sign_bits, len(plan.contenders)))
            if plan.ring_bits == 64:
                self._main.planes_of(len(plan.contenders), masks.pop(), 32, held=True)
                masks.append(((1 << 32) - 1,))

        if generated:
            side_by_side((self._main, scores), (self._beside, lambda: self._beside.gumbel_noise(generated)))
        else:
            scores()
        self._pick(plan, masks[0], lists, expected)

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
        sampler: Sampler,
        plan: TablesPlan | None = None,
        check: CheckSizes | None = None,
    ) -> None:
        """`LeadingOracle.total` where nothing is shared yet; what is shared for it as for `prepare`."""
        self._announce(step, request)
        self._agree()
        self._input(blocks, plan, check)
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
        self._agree()
        masks = self._l1_sums(groups, planes, candidates)
        self._reveal([(sampler, candidates)], generated, masks)

    def end(self, step: int) -> None:
        """`LeadingOracle.close`."""
        self._announce(step, step)
        self._agree()

    def _announce(self, step: int, request: int = 0) -> None:
        contributors = range(self._computing, len(self.tally.clocks))
        self.tally.step(
            [
                *((self._leader, peer, step) for peer in self._others),
                *((self._leader, q, request) for q in contributors),
            ]
        )

    def _agree(self) -> None:
        self._main.all(AGREEMENT)

    def _input(self, blocks: Sequence[int], plan: TablesPlan | None, check: CheckSizes | None = None) -> None:
        if blocks:
            self._counts(blocks)
        if check is not None:
            self.input_check(check)
        if plan is not None:
            run(self._main, plan)

    def input_check(self, check: CheckSizes) -> None:
        """`InputCheck.inconsistent`."""
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

    def _answers(self, group: Group) -> None:
        self._main.tally.step([(self._leader, peer, group.answers) for peer in self._others])

    def _l1_sums(self, groups: Sequence[Group], planes: int, candidates: int) -> Masks:
        masks: Masks = ()
        for number, group in enumerate(groups):
            if number:
                self._answers(group)
            if group.lengths.any():
                masks += self._main.l1_sums(group.lengths, planes)
        return masks

    def _pick(
        self,
        plan: SelectionPlan,
        masks: Masks,
        lists: Sequence[int],
        expected: tuple[Sampler, int] | None,
    ) -> None:
        bits, count = plan.ring_bits, len(plan.contenders)
        ring: UInt = np.uint32 if bits == 32 else np.uint64
        shifts = shifts_of(np.array([plan.weights[q] % (1 << bits) for q in plan.contenders], ring))
        offsets = np.array([-plan.biases[q] % (1 << bits) for q in plan.contenders], ring)
        self._main.planes_of(
            count, scaled_masks(masks, shifts, bits), bits, held=bits == 32, public=public_mask(offsets)
        )
        self._agree()
        whole = (1 << bits) - 1
        noisy = (whole, *gumbel_masks(plan.a, bits))

        def picked() -> None:
            if lists:
                self._main.peel(len(lists), count, lists, noisy, bits)
                return
            low = public_mask(np.array([(gumbel.LOW << plan.a) % (1 << bits)], ring))
            self._main.planes_of(count, noisy, bits, public=low)
            self._main.argmax_rows(count, (whole,), bits)

        beside_noise((self._main, picked), self._beside, expected)

    def _reveal(
        self, samplers: Sequence[tuple[Sampler, int]], generated: int | None, sums: Masks = ()
    ) -> None:
        cells = sum(count for _, count in samplers)
        if len(samplers) > 1:
            self._main.gaussian_noises(samplers)
            masks = gaussian_masks_of(samplers)
        else:
            if generated != 0:
                self._main.gaussian_noise(samplers[0][0], cells if generated is None else generated)
            masks = gaussian_masks(samplers[0][0])
        self._agree()
        self._main.reveal(cells, sums + masks)
