"""The marginals that some computing parties, the holders, keep additively modulo 2^32, and those that are
sums of them.

A holder's part begins with its own counts. Every other custodian, computing or not, splits its counts among
all holders: a fresh seed of 16 bytes to each but one, and to that one, in turn by the custodian's number,

    counts - the streams of all seeds, modulo 2^32        4 bytes a cell

so that whoever misses a part sees uniform bytes (`contribution`). A computing party that is no holder keeps
zeros.

Threat model: the backend's, in which the holders do not all collude; contributors may with any. Assumption:
AES-CTR (`prg`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.contribution import checked, ranges, receive_masked, send_masked
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.wire import Wire


@dataclass(frozen=True)
class Split:
    """How counts are split: among parties 0 .. holders - 1. first: who gets the masked counts of a custodian
    numbered 0."""

    holders: int
    first: int = 0

    def masked_to(self, custodian: int) -> int:
        """The holder that gets the masked counts of a custodian that is none."""
        return (custodian + self.first) % self.holders

    def seeds_to(self, custodian: int) -> list[int]:
        """The holders that get a seed of it: all others."""
        return [holder for holder in range(self.holders) if holder != self.masked_to(custodian)]

    def send(
        self,
        wire: Wire,
        facts: StudyFacts,
        counts: LocalCounts | None,
        cliques: Sequence[Clique],
        levels: Sequence[Level],
    ) -> None:
        """At a custodian that is no holder: seeds and masked counts. Raises `DataRefused` before anything is
        sent."""
        receiver = self.masked_to(wire.me)
        send_masked(wire, facts, counts, cliques, levels, self.seeds_to(wire.me), receiver)


class HeldMarginals(AdditiveMarginals):
    """Marginals of all custodians' rows together (horizontal): one computing party's parts, zeros at one that
    is no holder."""

    def __init__(self, wire: Wire, facts: StudyFacts, counts: LocalCounts | None, split: Split) -> None:
        """counts: this party's own data, None if it only computes."""
        super().__init__(wire.session_id, apart=checked(wire, facts))
        self._wire, self._facts, self._counts, self._split = wire, facts, counts, split

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, Elements]:
        """1 round."""
        wire, split, facts = self._wire, self._split, self._facts.with_levels(levels)
        if wire.me >= split.holders:
            split.send(wire, self._facts, self._counts, cliques, levels)
            return {clique: self._nothing(facts.cells(clique)) for clique in cliques}
        senders = [*range(split.holders, wire.computing), *wire.contributors]
        masked = [peer for peer in senders if split.masked_to(peer) == wire.me]
        seeds = [peer for peer in senders if peer not in masked]
        blocks = receive_masked(
            wire, self._facts, self._counts, cliques, levels, seeds, masked, self._contributors
        )
        return {
            clique: cells[..., place] for block, cells in blocks for clique, place in ranges(facts, block)
        }
