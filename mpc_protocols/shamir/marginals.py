"""The marginals that t + 1 holders keep additively modulo 2^32, and those that are sums of them (`engine.marginals`).

A holder's part begins with its own counts. Every other custodian, computing or not, splits its counts among all
holders: a fresh seed of 16 bytes to t of them, and to one, in turn by the custodian's number,

    counts - the streams of all seeds, modulo 2^32        4 bytes a cell

so that any t parties miss a part, which is uniform to them (`engine.contribution`).

Threat model: semi-honest; at most t of the computing parties together, and any contributors. Assumption: AES-CTR (`engine.prg`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.contribution import checked, ranges, receive_masked, send_masked
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.shamir.circuits.gates import holders
from mpc_protocols.shamir.sharing.field import threshold_of
from mpc_protocols.wire import Wire


def receiver_of(custodian: int, threshold: int) -> int:
    """The holder that gets the masked counts of a custodian; all other holders get a seed."""
    return custodian % (threshold + 1)


def send_counts(
    wire: Wire,
    facts: StudyFacts,
    counts: LocalCounts | None,
    cliques: Sequence[Clique],
    levels: Sequence[Level],
) -> None:
    """At a custodian that is no holder: seeds and masked counts. Raises `DataRefused` before anything is sent."""
    threshold = threshold_of(wire.computing)
    receiver = receiver_of(wire.me, threshold)
    others = [holder for holder in holders(threshold) if holder != receiver]
    send_masked(wire, facts, counts, cliques, levels, others, receiver)


class HeldMarginals(AdditiveMarginals):
    """One computing party's parts of marginals; zeros at a party that is no holder."""

    def __init__(self, wire: Wire, facts: StudyFacts, counts: LocalCounts | None) -> None:
        """counts: this party's own data, None if it only computes."""
        super().__init__(wire.session_id, apart=checked(wire, facts))
        self._wire, self._facts, self._counts = wire, facts, counts

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, Elements]:
        """1 round."""
        wire, facts = self._wire, self._facts.with_levels(levels)
        threshold = threshold_of(wire.computing)
        if wire.me not in holders(threshold):
            send_counts(wire, self._facts, self._counts, cliques, levels)
            return {clique: self._nothing(facts.cells(clique)) for clique in cliques}
        senders = [*range(threshold + 1, wire.computing), *wire.contributors]
        masked = [peer for peer in senders if receiver_of(peer, threshold) == wire.me]
        seeds = [peer for peer in senders if peer not in masked]
        blocks = receive_masked(
            wire, self._facts, self._counts, cliques, levels, seeds, masked, self._contributors
        )
        return {
            clique: cells[..., place] for block, cells in blocks for clique, place in ranges(facts, block)
        }
