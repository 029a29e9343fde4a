"""One computing party of the two-party engine: `engine.parts` over oblivious transfers.

    distances     by `kept_cells`, which asks for a cell once; of very many cells by `l1_distance`
    arg max       all pairs at once, opened by `zero_test`; of many candidates in groups (`argmax`)

Who learns what: both parties the releases, the model's answers, and sizes. Threat model: semi-honest, the two
parties do not collude; recipients and contributors may collude with either. Assumptions: `ot_extension`,
`base_ot`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.pair.circuits.argmax import argmax, picks_demand
from mpc_protocols.backends.pair.circuits.gates import PairGates
from mpc_protocols.backends.pair.circuits.kept_cells import KeptCells
from mpc_protocols.backends.pair.circuits.l1_distance import l1_sums
from mpc_protocols.backends.pair.circuits.sign import score_adder
from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.marginals import Counted, JoinedMarginals, counted
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.adders import Adder
from mpc_protocols.engine.bitwise.bitslice import Elements, words_for
from mpc_protocols.engine.parts.engine import ArrayEngine, ArrayL1Sums
from mpc_protocols.engine.prg import own_key
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.answers import Answers
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire


class PairL1Sums(ArrayL1Sums[PairGates]):
    """See `engine.interface.L1Sums`."""

    def _compared(self, answers: Answers, cells: Elements, lengths: NDArray[np.int64]) -> Elements:
        if not self._gates.kept.takes(answers.layout):
            return super()._compared(answers, cells, lengths)
        adder = self._adder(int(lengths.sum()))
        leads = self._answers.leads
        return self._gates.kept.l1_sums(answers, cells, lengths, self._planes, adder, leads)

    def _adder(self, cells: int) -> Adder:
        adder = score_adder(self._planes, words_for(cells), self._gates.link.latency_bytes)
        self._forms[adder] = None
        return adder

    def _distances(self, differences: Elements, lengths: NDArray[np.int64]) -> Elements:
        adder = self._adder(len(differences))
        return l1_sums(self._gates.transfers, differences, lengths, self._planes, adder)


class PairEngine(ArrayEngine[PairGates]):
    """Shares, arithmetic and openings of party 0 or 1."""

    sums = PairL1Sums
    noise_bytes = (2100, 900)

    def __init__(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        counted: Counted = counted,
        start: Callable[[Link], Transfers] = Transfers.start,
    ) -> None:
        """data: this party's own; None if it only computes. counted: how contributors' counts come in, where
        columns are not split. Begins with the base transfers, 3 rounds. start: how they come.

        Raises `StudyInvalid` (number of parties, other owners than the two), `DataRefused`,
        `ProtocolAborted`.
        """
        link = Link(wire)
        transfers = start(link)
        secret = own_key(wire)
        super().__init__(
            facts,
            PairGates(transfers, secret),
            PairGates(transfers.fork(link.fork("noise")), secret),
            JoinedMarginals(transfers, facts, data)
            if isinstance(data, VerticalData)
            else counted(transfers, facts, data),
        )

    def leave_out(self, contributor: int) -> None:
        """See `Engine`. Parts of cells are other numbers then."""
        super().leave_out(contributor)
        self.gates.kept = KeptCells(self.gates.transfers)

    def expect_picks(self, plan: SelectionPlan) -> None:
        demand = picks_demand(
            len(plan.contenders), plan.picks, plan.ring_bits // 8, self.gates.link.latency_bytes
        )
        self.gates.transfers.foresee(demand)

    def largest(self, keys: Elements) -> int:
        return argmax(self.gates, keys)
