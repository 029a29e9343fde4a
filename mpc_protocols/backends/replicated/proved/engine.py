"""The replicated engine with proofs (`engine.interface.Engine`): the same oracle, against one party that
deviates.

    shares        every custodian's counts for themselves (`inputs`), or owners' columns, multiplied (`vertical`); the bits of
                  their sums are dealt and proved (`addends`)
    distances     in bits (`scores`)                 noise      the shared draws over `gates`, in bits
    openings      after all products so far are proved (`gates.verify`), with a hash from the second holder
    noise ahead   made and proved while the leader computes by itself (`settle`)

Shares of a result are not kept on disk: what an interrupted run had not proved must not be opened by the next
one.

Threat model: one of the three computing parties deviates as it likes. Who learns what: what is opened, and
sizes. What an abort tells, and what is not covered: `docs/design/malicious.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.marginals import MarginalSource
from mpc_protocols.backends.replicated.proof.coins import toss
from mpc_protocols.backends.replicated.proved.addends import AddendCache
from mpc_protocols.backends.replicated.proved.addition import (
    add_up,
    carry_saved,
    compared_in_parts,
)
from mpc_protocols.backends.replicated.proved.conversion import in_ring
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.inputs import CustodiansMarginals
from mpc_protocols.backends.replicated.proved.numbers import SummedNumbers
from mpc_protocols.backends.replicated.proved.scores import ProvedL1Sums
from mpc_protocols.backends.replicated.proved.vertical.source import ProvedVerticalMarginals
from mpc_protocols.backends.replicated.sharing.ring import RingShare, add_public, centred
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.agreement import Confirm
from mpc_protocols.engine.bitwise.argmax import argmax_rows, peel
from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.inputs.answer_exchange import AnswerExchange
from mpc_protocols.engine.inputs.grouped_sums import CellsOf
from mpc_protocols.engine.inputs.sourced_engine import SourcedEngine
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import UsageError
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire

DEALERS = 1
"""P0 deals the bits of every cell, so answers stand in one order."""


class ProvedEngine(SourcedEngine[RingShare, SummedNumbers]):
    """P0, P1 or P2."""

    dealers = DEALERS
    proves = True

    def __init__(self, wire: Wire, facts: StudyFacts, counts: LocalCounts | VerticalData | None) -> None:
        """counts: this party's own data or None if it only computes; where columns are split, `VerticalData`.

        Raises `StudyInvalid` (number of parties), `DataRefused` (vertical rows that do not fit).
        """
        self.wire = wire
        self._leader, self._session = facts.leader, facts.session
        self._trio = Trio(wire)
        self.beside = ProvedGates(self._trio.fork("noise"))
        self.gates = ProvedGates(self._trio, self.beside)
        self._marginals = self._source(facts, counts)
        self._addends = AddendCache()

    def _source(self, facts: StudyFacts, counts: LocalCounts | VerticalData | None) -> MarginalSource:
        """Where shares of marginals come from. What vertical data needs is imported for such data only."""
        if isinstance(counts, VerticalData):
            return ProvedVerticalMarginals(self.gates, facts, counts)
        return CustodiansMarginals(self._trio, facts, counts)

    def leave_out(self, contributor: int) -> None:
        super().leave_out(contributor)
        self._addends = AddendCache()

    def numbers(self, shares: RingShare) -> SummedNumbers:
        return SummedNumbers.of(shares)

    def settle(self) -> None:
        self.beside.verify()

    def announce(self, value: bytes) -> Confirm:
        theirs = super().announce(value)

        def confirm() -> int | None:
            other = theirs()
            if other is None:
                self.gates.agreed = self.beside.agreed = binding(self.gates.agreed, value)
            return other

        return confirm

    def seed(self, held: bytes) -> bytes:
        """Raises `ProtocolAborted` also where a party would hold another one than the others."""
        return toss(self._trio, binding(b"seed", self.gates.agreed, held))

    def _l1_sums(
        self, cells: CellsOf[RingShare], exchange: AnswerExchange, planes: int, ring: UInt
    ) -> ProvedL1Sums:
        return ProvedL1Sums(self.gates, cells, exchange, planes, ring, self._addends)

    def keys(
        self, sums: SummedNumbers, weights: Sequence[int], biases: Sequence[int], ring: UInt
    ) -> SummedNumbers:
        modulus = 1 << 8 * np.dtype(ring).itemsize
        negative: NDArray[np.uint64] = np.array([-bias % modulus for bias in biases], np.uint64)
        return sums.scaled(np.array(weights, np.int64)).plus_public(negative)

    def pack(self, numbers: SummedNumbers) -> bytes:
        """Raises `UsageError`."""
        raise UsageError(
            "A run that proves its products keeps no shares for another run; start it without --resume."
        )

    def unpack(self, packed: bytes) -> SummedNumbers:
        """Raises `UsageError`."""
        raise UsageError(
            "A run that proves its products goes on from no earlier one; start it without --resume."
        )

    def largest(self, keys: SummedNumbers) -> int:
        if len(keys) == 1:
            return 0
        return int(argmax_rows(self.gates, self._comparable(keys.reshape(1, -1)))[0])

    def picks(self, keys: SummedNumbers, plan: SelectionPlan) -> list[int]:
        return self._peeled(keys, plan.candidates, plan.contenders)

    def _peeled(
        self,
        keys: SummedNumbers,
        candidates: Callable[[Sequence[int]], Sequence[int]],
        members: Sequence[int],
    ) -> list[int]:
        return peel(self.gates, self._comparable(keys), candidates, members)

    def _comparable(self, keys: SummedNumbers) -> SummedNumbers:
        """Rows of keys as all pairs of each row are compared: added up, or but for their last carries."""
        rows, count = keys.shape
        flat, planes = keys.reshape(rows * count), 8 * np.dtype(keys.ring).itemsize
        pairs = rows * (count * (count - 1) // 2)
        form = (
            carry_saved
            if compared_in_parts(rows * count, pairs, planes, self.gates.latency_bytes)
            else add_up
        )
        return form(self.gates, flat).reshape(rows, count)

    def for_counts(self, gates: Any, noise: SummedNumbers) -> SummedNumbers:
        """Proved here, so that a measurement that takes it proves nothing (`conversion`)."""
        return SummedNumbers.of(in_ring(gates, noise))

    def reveal(self, numbers: SummedNumbers) -> NDArray[np.int64]:
        """Ring shares as they are; what is bits besides is added up and proved first."""
        if numbers.summands or numbers.share is None:
            total = add_up(self.gates, numbers).single()
            self.gates.verify()
            return centred(self.gates.opened(total.own, total.next))
        share = add_public(self._trio, numbers.share, numbers.public)
        self.gates.verify()
        return centred(self.gates.opened(share.own, share.next, np.add))
