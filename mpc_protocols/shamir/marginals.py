"""The marginals that t + 1 holders keep additively modulo 2^32, and those that are sums of them.

Only maximal cliques are shared (`PublicState`); every other marginal is a local sum of shared ones, made when it is first needed
and kept. A holder's part begins with its own counts. Every other custodian, computing or not, splits its counts among all
holders: a fresh seed of 16 bytes to t of them, and to one, in turn by the custodian's number,

    counts - the streams of all seeds, modulo 2^32        4 bytes a cell

so that any t parties miss a part, which is uniform to them. Sharing releases nothing; `sharing` names the input sharing: noise is
bound to it, so that data read again never meets the same noise.

Threat model: semi-honest; at most t of the computing parties together, and any contributors. Assumption: AES-CTR (`engine.prg`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from mpc_protocols.engine.bitslice import Elements
from mpc_protocols.engine.contribution import SEED_BYTES, blocks, local_cells
from mpc_protocols.engine.prg import CONTRIBUTION, KeyStream, binding, derive
from mpc_protocols.functionality import Clique, Handle, Level, LocalCounts, StudyFacts
from mpc_protocols.public.state import PublicState
from mpc_protocols.shamir.field import threshold_of
from mpc_protocols.shamir.gates import holders
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
    cells = local_cells(facts, counts, cliques, levels)
    threshold = threshold_of(wire.computing)
    receiver = receiver_of(wire.me, threshold)
    streams = []
    for holder in holders(threshold):
        if holder != receiver:
            seed = secrets.token_bytes(SEED_BYTES)
            wire.send(holder, seed)
            streams.append(_stream(wire, seed))
    for number, block in enumerate(blocks(facts.with_levels(levels), cliques)):
        vector = np.concatenate(cells[block])
        for stream in streams:
            vector -= stream.draw(len(vector), np.uint32, number)
        wire.send(receiver, vector.view(np.uint8).data)


class HeldMarginals:
    """One computing party's parts of marginals; zeros at a party that is no holder."""

    def __init__(self, wire: Wire, facts: StudyFacts, counts: LocalCounts | None) -> None:
        """counts: this party's own data, None if it only computes."""
        self._wire, self._setting, self._counts = wire, facts, counts
        self._holds = wire.me in holders(threshold_of(wire.computing))
        self._held: dict[Clique, Elements] = {}
        self._derived: dict[Handle, Elements] = {}
        self.sharing = binding(b"input sharing", wire.session_id)

    def share(self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes) -> int:
        """Input everybody's data for these cliques; returns the number of cells. `inputs` is the transcript that asked for it.

        levels: those that the cliques name. Raises `DataRefused` before anything is sent if the own data does not fit. 1 round.
        """
        facts = self._setting.with_levels(levels)
        if self._holds:
            self._receive(cliques, levels)
        else:
            send_counts(self._wire, self._setting, self._counts, cliques, levels)
            self._held |= {clique: np.zeros(facts.cells(clique), np.uint32) for clique in cliques}
        self.sharing = binding(b"input sharing", self.sharing, inputs)
        return sum(map(facts.cells, cliques))

    def marginal(self, state: PublicState, handle: Handle) -> Elements:
        """The own part of a handle's marginal, (cells,). Local."""
        if handle not in self._derived:
            derivation = state.derivation(handle)
            self._derived[handle] = derivation.apply(self._held[derivation.source])
        return self._derived[handle]

    def rows(self) -> Elements | None:
        """The own part of the number of rows, (1,): the sum of any shared marginal; None if nothing is shared yet."""
        part = next(iter(self._held.values()), None)
        return None if part is None else part.sum(dtype=part.dtype, keepdims=True)

    def _receive(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> None:
        wire, facts = self._wire, self._setting.with_levels(levels)
        cells = local_cells(self._setting, self._counts, cliques, levels)
        threshold = threshold_of(wire.computing)
        senders = [*range(threshold + 1, wire.computing), *wire.contributors]
        masked = [peer for peer in senders if receiver_of(peer, threshold) == wire.me]
        streams = [
            _stream(wire, bytes(wire.receive(peer, SEED_BYTES))) for peer in senders if peer not in masked
        ]
        for number, block in enumerate(blocks(facts, cliques)):
            vector = np.concatenate(cells[block])
            for stream in streams:
                vector += stream.draw(len(vector), np.uint32, number)
            for peer in masked:
                vector += np.frombuffer(wire.receive(peer, vector.nbytes), np.uint32)
            ends = np.cumsum([facts.cells(clique) for clique in cliques[block]])
            self._held |= dict(zip(cliques[block], np.split(vector, ends[:-1]), strict=True))


def _stream(wire: Wire, seed: bytes) -> KeyStream:
    return KeyStream(derive(seed, CONTRIBUTION, wire.session_id))
