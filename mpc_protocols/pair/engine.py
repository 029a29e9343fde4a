"""One computing party of the two-party engine (`engine.interface.Engine`).

    shares        additive modulo 2^32: everybody's counts or two owners' tables (`marginals`)
    distances     c subtracted from the leader's share, cells with c = 0 by local sums, the others by `l1_distance`
    noise         the shared draws over `gates`; on a fork of the link with transfers of its own when made beside the scores
    arg max       all pairs at once, opened by `zero_test`; of many candidates in groups (`argmax`)

Who learns what: both parties the releases, the model's answers, and sizes. Threat model: semi-honest, the two parties do not
collude; recipients and contributors may collude with either. Assumptions: `ot_extension`, `base_ot`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.argmax import peel
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt, words_for
from mpc_protocols.engine.bitwise.packing import pack, unpack
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.inputs.part_engine import PartEngine, PartL1Sums
from mpc_protocols.engine.prg import own_key
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.pair.circuits.argmax import argmax
from mpc_protocols.pair.circuits.conversion import lift
from mpc_protocols.pair.circuits.gates import PairGates
from mpc_protocols.pair.circuits.l1_distance import l1_sums
from mpc_protocols.pair.circuits.sign import score_adder
from mpc_protocols.pair.link import Link
from mpc_protocols.pair.marginals import Counted, CountedMarginals, JoinedMarginals
from mpc_protocols.pair.shares import Shares
from mpc_protocols.pair.transfers.random_ot import Transfers
from mpc_protocols.partition import VerticalData
from mpc_protocols.public.answers import Answers, DealerLayout
from mpc_protocols.wire import Wire

DEALERS = 1


class PairL1Sums(PartL1Sums[PairGates, Shares]):
    """See `engine.interface.L1Sums`."""

    def compute(self) -> Shares:
        sums = np.zeros(self._answers.candidates, np.uint32)
        forms = dict[str, None]()
        for layout, answers in self._answers:
            sums[layout.candidates] += self._distances(layout, answers, forms)
        self.form = "+".join(forms) or "sums"
        return Shares(sums if self._ring is np.uint32 else lift(self._gates.transfers, sums, self._ring))

    def _distances(self, layout: DealerLayout, answers: Answers, forms: dict[str, None]) -> Elements:
        """Shares of the sums of a group's candidates."""
        cells = self._cells(layout)
        compared = answers.nonzero
        total: Elements = layout.sums(0, np.where(compared, np.uint32(0), cells), np.uint32)
        lengths = layout.sums(0, compared.astype(np.int64), np.int64)
        count = int(lengths.sum())
        if not count:
            return total
        known = cells[compared]
        if self._answers.leads:
            known -= answers.cells[compared]
        adder = score_adder(self._planes, words_for(count), self._gates.link.latency_bytes)
        self.signs += count
        forms[adder] = None
        return total + l1_sums(self._gates.transfers, known, lengths, self._planes, adder)


class PairEngine(PartEngine[PairGates, Shares]):
    """Shares, arithmetic and openings of party 0 or 1."""

    dealers = DEALERS
    sums = PairL1Sums

    def __init__(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        counted: Counted = CountedMarginals,
        start: Callable[[Link], Transfers] = Transfers.start,
    ) -> None:
        """data: this party's own; None if it only computes. counted: how contributors' counts come in, where columns are not
        split. Begins with the base transfers, 3 rounds. start: how they come.

        Raises `StudyInvalid` (number of parties, other owners than the two), `DataRefused`, `ProtocolAborted`.
        """
        self.wire, self._leader = wire, facts.leader
        link = Link(wire)
        transfers = start(link)
        secret = own_key(wire)
        self.gates = PairGates(transfers, secret)
        self.beside = PairGates(transfers.fork(link.fork("noise")), secret)
        self._marginals: AdditiveMarginals = (
            JoinedMarginals(transfers, facts, data)
            if isinstance(data, VerticalData)
            else counted(transfers, facts, data)
        )

    def numbers(self, shares: Elements) -> Shares:
        return Shares(shares)

    def set_latency(self, latency_bytes: int) -> None:
        self.gates.link.latency_bytes = self.beside.link.latency_bytes = latency_bytes

    def differing(self, value: bytes) -> int | None:
        return self.gates.link.differing(value)

    def keys(self, sums: Shares, weights: Sequence[int], biases: Sequence[int], ring: UInt) -> Shares:
        modulus = 1 << 8 * np.dtype(ring).itemsize
        factors, offsets = (
            np.array([value % modulus for value in values], ring)
            for values in (weights, [-bias for bias in biases])
        )
        return self.gates.add_public(Shares(sums.values * factors), offsets)

    def pack(self, numbers: Shares) -> bytes:
        return pack([numbers.values])

    def unpack(self, packed: bytes) -> Shares:
        return Shares(*unpack(packed))

    def largest(self, keys: Shares) -> int:
        return argmax(self.gates, keys)

    def picks(self, keys: Shares, plan: SelectionPlan) -> list[int]:
        return peel(self.gates, keys, plan.candidates, plan.contenders)

    def reveal(self, numbers: Shares) -> NDArray[np.int64]:
        opened = numbers.values + self.gates.link.exchange(numbers.values)
        signed: NDArray[np.int64] = opened.view(f"i{opened.dtype.itemsize}").astype(np.int64)
        return signed
