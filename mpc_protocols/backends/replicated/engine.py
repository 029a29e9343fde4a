"""Replicated sharing as an engine of the oracle (`mpc_protocols.engine.interface`): three parties, honest
majority.

Threat model: semi-honest, at most one of the three computing parties corrupted; contributors semi-honest;
assumption `prg`. Nothing is learned by what this file does but through `largest` and `reveal`. Costs:
`costs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.bundles.collected import CollectedCounts
from mpc_protocols.backends.replicated.gates import TrioGates, argmax, pick_several
from mpc_protocols.backends.replicated.marginals import CollectedMarginals, MarginalSource, SharedMarginals
from mpc_protocols.backends.replicated.scores import answer_codec
from mpc_protocols.backends.replicated.scores.bit_cache import BitShareCache
from mpc_protocols.backends.replicated.scores.dealer import DEALERS
from mpc_protocols.backends.replicated.scores.l1_distance import add_l1_sums, score_adder
from mpc_protocols.backends.replicated.sharing.conversion import lift
from mpc_protocols.backends.replicated.sharing.ring import (
    Parts,
    RingShare,
    add_public,
    centred,
    open_ring,
    replicated,
    reshare,
)
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.engine.bitwise.packing import pack, unpack
from mpc_protocols.engine.inputs.answer_exchange import AnswerExchange
from mpc_protocols.engine.inputs.grouped_sums import CellsOf, GroupedL1Sums
from mpc_protocols.engine.inputs.sourced_engine import SourcedEngine
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.answers import Answers, DealerLayout
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire


def _source(
    trio: Trio, facts: StudyFacts, counts: LocalCounts | CollectedCounts | VerticalData | None
) -> MarginalSource:
    """Where shares of marginals come from. What vertical data needs, a fifth of this package, is imported for
    such data only."""
    if isinstance(counts, CollectedCounts):
        return CollectedMarginals(trio, facts, counts)
    if isinstance(counts, VerticalData):
        from mpc_protocols.backends.replicated.vertical.source import VerticalMarginals

        return VerticalMarginals(trio, facts, counts)
    return SharedMarginals(trio, facts, counts)


class _Exchange(AnswerExchange):
    """The model's answers at all three parties, but for the cells that a follower deals for."""

    def _encode(self, answers: Answers, followers: Sequence[int]) -> list[bytes]:
        return answer_codec.encode(answers, followers)

    def _limit(self, layout: DealerLayout) -> int:
        return answer_codec.encoded_limit(layout)

    def _decode(self, payload: bytes | memoryview, layout: DealerLayout) -> Answers:
        return answer_codec.decode(payload, layout, self._wire.me)


class ReplicatedEngine(SourcedEngine[RingShare, Parts]):
    """P0, P1 or P2."""

    dealers = DEALERS
    picks_in_groups = True
    exchange = _Exchange

    def __init__(
        self, wire: Wire, facts: StudyFacts, counts: LocalCounts | CollectedCounts | VerticalData | None
    ) -> None:
        """counts: this party's own data: its counts or None if it only computes; `CollectedCounts` where
        bundles were collected, `VerticalData` where columns are split.

        Raises `StudyInvalid` (number of parties), `DataRefused` (vertical rows that do not fit).
        """
        self.wire = wire
        self._leader, self._session = facts.leader, facts.session
        # A run may have several oracles on its wire, one after the other (rounds of arrivals): each has a
        # session of its own.
        self._trio = Trio(wire, facts.session.hex())
        self.gates = TrioGates(self._trio)
        self.beside = TrioGates(self._trio.fork("noise"))
        self._marginals = _source(self._trio, facts, counts)
        self._bits = BitShareCache(self._trio)

    def numbers(self, shares: RingShare) -> RingShare:
        return shares

    def leave_out(self, contributor: int) -> None:
        super().leave_out(contributor)
        self._bits = BitShareCache(self._trio)

    def _l1_sums(
        self, cells: CellsOf[RingShare], exchange: AnswerExchange, planes: int, ring: UInt
    ) -> ReplicatedL1Sums:
        return ReplicatedL1Sums(self.gates, cells, exchange, planes, ring, self._bits)

    def keys(self, sums: Parts, weights: Sequence[int], biases: Sequence[int], ring: UInt) -> Parts:
        modulus = 1 << 8 * np.dtype(ring).itemsize
        factors: NDArray[Any] = np.array(weights, np.int64)
        negative: NDArray[Any] = np.array([-bias % modulus for bias in biases], np.uint64)
        return add_public(self._trio, sums.scaled(factors), negative)

    def pack(self, numbers: Parts) -> bytes:
        return pack([numbers.own, numbers.next] if isinstance(numbers, RingShare) else [numbers.own])

    def unpack(self, packed: bytes) -> Parts:
        own, *following = unpack(packed)
        return RingShare(own, *following) if following else Parts(own)

    def largest(self, keys: Parts) -> int:
        return argmax(self.gates, keys)

    def picks(self, keys: Parts, plan: SelectionPlan) -> list[int]:
        return pick_several(self.gates, keys, plan)

    def reveal(self, numbers: Parts) -> NDArray[np.int64]:
        return centred(open_ring(self._trio, replicated(self._trio, numbers)))


class ReplicatedL1Sums(GroupedL1Sums[TrioGates, RingShare, Parts]):
    """The L1 distances of one step: zero answers by local sums, the others through the sign protocol
    (`scores.l1_distance`)."""

    def __init__(
        self,
        gates: TrioGates,
        cells: CellsOf[RingShare],
        answers: AnswerExchange,
        planes: int,
        ring: UInt,
        bits: BitShareCache,
    ) -> None:
        super().__init__(gates, cells, answers, planes, ring)
        self._trio, self._bits = gates.trio, bits

    def compute(self) -> Parts:
        parts: Elements = np.zeros(self._answers.candidates, np.uint32)
        for layout, answers in self._answers:
            self._add(answers, parts[layout.candidates])
        return Parts(parts) if self._ring is np.uint32 else lift(self._trio, reshare(self._trio, parts))

    def _add(self, answers: Answers, parts: Elements) -> None:
        """Add this party's part of sum |M - c| over a group to its candidates' `parts`, modulo 2^32."""
        cells, others = self._bits.dealer_cells(self._cells, answers, self._planes)
        parts += others
        add_l1_sums(self._trio, cells, self._planes, None, parts)
        signs = [len(part.addend) for part in cells]
        form = (
            score_adder(signs, self._planes, self._trio.latency_bytes, self._bits.quads)
            if any(signs)
            else "sums"
        )
        self._forms[form] = None
        self.signs += sum(signs)
