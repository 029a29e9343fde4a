"""The marginals of vertically split data as shares, against one computing party that deviates
(`docs/design/malicious.md` 3.3).

    an owner that computes      A_p = F(k_p), A_{p+1} = A - F(k_p) to p+1: one sender, one receiver, whatever comes IS the input
    a contributor               three components, each to the two parties that hold it, who compare (`sharing.copies`); to all
                                three what it was asked for
    entries, rows               0 or 1, one value of each column in each row that the owner holds, the same in all joints and
                                requests (of columns that are kept, `columns`): proved, or compared where it is linear
                                (`entries`, `conditions`)
    every product               proved (`proof.matrix_products`), before anything that depends on it is opened

So each row of an honest owner is in one cell of each marginal, once, whatever the others bring, and all
marginals are of the same rows: what the bounds on scores and counts rest on. Orders of the rows are not used,
and owners of a union bring no counts.

Threat model: one of the three computing parties deviates as it likes, together with any contributors that own
columns. Each party learns which tables are computed, and u; nothing is opened here but masked values
(`lift`). What a check says depends on the checked owner's input and on who deviates, on nothing else. Memory:
a range of fewer than 2^16 rows, what is kept, the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpc_protocols.backends.replicated.marginals import MarginalSource
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.vertical.columns import KeptColumns
from mpc_protocols.backends.replicated.proved.vertical.execution import RangeExecution
from mpc_protocols.backends.replicated.proved.vertical.inputs import Kept
from mpc_protocols.backends.replicated.proved.vertical.planner import schedule_of
from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.vertical.inputs import receive_streams
from mpc_protocols.backends.replicated.vertical.plan import Plan
from mpc_protocols.backends.replicated.vertical.source import RingPopulation
from mpc_protocols.engine.prg import binding
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.vertical.partition import Partition, VerticalData
from mpc_protocols.vertical.schedule import own_rows
from mpc_protocols.wire import Wire


class ProvedVerticalMarginals(RingPopulation):
    """One computing party's shares of the population's marginals."""

    def __init__(self, gates: ProvedGates, facts: StudyFacts, data: VerticalData) -> None:
        """data: this party's own rows, if it owns columns. Raises `DataRefused`, `StudyInvalid`."""
        super().__init__(gates.trio, agreed(data.partition))
        self._gates = gates
        rows = own_rows(data, facts, gates.trio.me)
        self._follow(schedule_of(data.partition, facts, gates.trio.wire.computing), rows, gates.trio.me)
        self._columns, self._kept = KeptColumns(), Kept()
        self._asked = self.public

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, RingShare]:
        self._asked = request(self._trio.wire, self._asked, cliques, levels)
        self._tables.clear()  # of earlier requests; of columns that were not kept an owner may bring other values now
        return super()._input(cliques, levels, inputs)

    def _counted(self, counts: LocalCounts | None) -> MarginalSource:
        raise AssertionError("Owners bring no counts besides their columns.")

    def _by_range(self, plan: Plan) -> Iterator[RingShare]:
        """Raises `ProtocolAborted`."""
        trio = self._trio
        for owner in plan.contributing():
            if bytes(trio.wire.receive(owner, DIGEST_BYTES)) != self._asked:
                raise ProtocolAborted(
                    f"Party {owner} was asked for other marginals than the computing parties share, or says so: it or the "
                    "leading party did not follow the protocol; stop the run."
                )
        streams, inputs = receive_streams(trio, plan.contributing()), self._columns.next(plan)
        for row_range in plan.row_ranges():
            yield RangeExecution(self._gates, plan, self._rows, streams, inputs, self._kept).cells(row_range)


def agreed(partition: Partition) -> bytes:
    """What all must have alike of the common table, before the first request."""
    return binding(b"vertical", partition.to_bytes())


def request(wire: Wire, before: bytes, cliques: Sequence[Clique], levels: Sequence[Level]) -> bytes:
    """Names what is asked of owners, with all that was asked before: how an owner's columns stand side by
    side, and what a level means, follow from every request so far, also from those in which it has no part.
    """
    return binding(b"request", wire.session_id, before, PrepareStep(tuple(cliques), tuple(levels)).to_bytes())
