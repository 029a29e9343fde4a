"""What a run costs whose contributors send ciphertexts: that of `pair`, with other messages where counts come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpc_protocols.engine.step_costs import FreshInputs
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.paillier.packing import HEADER_BYTES, Packing, key_bytes, proof_bytes
from mpc_protocols.pair.circuits.sign import chunks
from mpc_protocols.pair.dry_run import PairDryRun
from mpc_protocols.pair.steps import OwnersTables, StepCosts

if TYPE_CHECKING:
    from mpc_protocols.partition import Partition

DECRYPT_S, CARRY_S, KEY_S = 12e-3, 2e-7, 2.0
"""CPU seconds of the key holder, which has most to do, at 3,072 bits: for a ciphertext, for a cell, for the key and its proof."""


class EncryptedStepCosts(StepCosts):
    """Steps whose input is ciphertexts: `blocks` are the cells of each message of them."""

    def __init__(self, contributors: int, leader: int, key_bits: int) -> None:
        self._key_bytes = key_bytes(key_bits)
        self._start_bytes = self._key_bytes + proof_bytes(key_bits) if contributors else 0
        self.slots = 1
        """Of a plaintext of the next sharing."""
        super().__init__(contributors, leader=leader)

    def _start(self) -> None:
        super()._start()
        others = [peer for peer in range(len(self.tally.clocks)) if peer != self._leader]
        self.tally.step([(self._leader, peer, self._start_bytes) for peer in others])

    def _input(self, inputs: FreshInputs[OwnersTables]) -> None:
        super()._input(replace(inputs, blocks=()))
        contributors = range(2, len(self.tally.clocks))
        if not contributors or not inputs.blocks:
            return
        [aggregator] = self._others
        self.tally.step([(q, aggregator, HEADER_BYTES) for q in contributors])
        for cells in inputs.blocks:
            size = 2 * self._key_bytes * -(-cells // self.slots)
            self.tally.step([(q, aggregator, size) for q in contributors])
            self.tally.step([(aggregator, self._leader, size)])
        for cells in chunks(sum(inputs.blocks)):
            self._main.products((self._leader, aggregator), cells)


class PaillierDryRun(PairDryRun):
    """Two computing parties and `contributors` others."""

    def __init__(
        self,
        facts: StudyFacts,
        counts: LocalCounts,
        contributors: int,
        key_bits: int,
        split: Partition | None = None,
    ) -> None:
        """counts: marginals of the presumed table. key_bits: of the key that a run makes. split: as for `PairDryRun`."""
        self._encrypted = EncryptedStepCosts(contributors, facts.leader, key_bits)
        super().__init__(facts, counts, contributors, split, self._encrypted)
        self._key_bits, self._contributors, self._sharings = key_bits, contributors, 0
        self._seconds += KEY_S if contributors else 0

    def _inputs(
        self, fresh: Sequence[Clique], levels: Sequence[Level]
    ) -> tuple[int, FreshInputs[OwnersTables]]:
        total, inputs = super()._inputs(fresh, levels)
        if not self._contributors or not inputs.blocks:
            return total, inputs
        self._sharings += 1
        packing = Packing.of(self._key_bits, len(fresh), self._sharings)
        self._encrypted.slots = packing.slots
        messages = [place.stop - place.start for place in packing.messages(total)]
        self._seconds += sum(map(packing.count, messages)) * DECRYPT_S + total * CARRY_S
        return total, replace(inputs, blocks=messages)
