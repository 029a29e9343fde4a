"""The marginals that two parties hold in additive shares modulo 2^32, and those that are sums of them (`engine.marginals`).

Parties 0 and 1 begin with their own counts. Every other custodian, the dealer among them, splits its counts: a fresh
seed of 16 bytes to one of the two, counts minus the seed's stream to the other, in turn by the custodian's number
(`engine.contribution`). The dealer holds no share of anything: its zeros stand for them.

Threat model: no two of the three computing parties collude; contributors may with any. Assumption: AES-CTR (`engine.prg`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.additive.link import DEALER
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.contribution import checked, ranges, receive_masked, send_masked
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.wire import Wire


def receiver_of(custodian: int) -> int:
    """The party that gets the masked counts of a custodian; the other one gets the seed."""
    return custodian % 2


def send_counts(
    wire: Wire,
    facts: StudyFacts,
    counts: LocalCounts | None,
    cliques: Sequence[Clique],
    levels: Sequence[Level],
) -> None:
    """At a custodian that holds no shares: seed and masked counts. Raises `DataRefused` before anything is sent."""
    receiver = receiver_of(wire.me)
    send_masked(wire, facts, counts, cliques, levels, [1 - receiver], receiver)


class SharedMarginals(AdditiveMarginals):
    """One computing party's shares of marginals; zeros at the dealer."""

    def __init__(self, wire: Wire, facts: StudyFacts, counts: LocalCounts | None) -> None:
        """counts: this party's own data, None if it only computes."""
        super().__init__(wire.session_id, apart=checked(wire, facts))
        self._wire, self._facts, self._counts = wire, facts, counts

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, Elements]:
        """1 round."""
        wire, facts = self._wire, self._facts.with_levels(levels)
        if wire.me == DEALER:
            send_counts(wire, self._facts, self._counts, cliques, levels)
            return {clique: self._nothing(facts.cells(clique)) for clique in cliques}
        senders = [DEALER, *wire.contributors]
        masked = [peer for peer in senders if receiver_of(peer) == wire.me]
        seeds = [peer for peer in senders if peer not in masked]
        blocks = receive_masked(
            wire, self._facts, self._counts, cliques, levels, seeds, masked, self._contributors
        )
        return {
            clique: cells[..., place] for block, cells in blocks for clique, place in ranges(facts, block)
        }
