"""Every custodian's counts as shares of their own, so that no party can change what another one has brought.

    a party p that computes    x_p = F(k_p), which p-1 derives, and x_{p+1} = counts - F(k_p), sent to p+1         4 bytes a cell
    a contributor              three components, each to the two parties that hold it: seeds of two of them, and the
                               third as it is; the two holders compare (`sharing.copies`)                      8 bytes a cell

Both honest parties together hold all three components of everybody's counts, in the first case because each
component comes from one sender to one receiver, in the second because what both of them hold was compared. So
what a cheat does with its own shares changes nobody's counts. If it could, by as little as a record, it would
learn from the check of these counts (`inputs.check`) whether an honest custodian has such a record.

A contributor says to everybody what it was asked for. A leading party that asks a contributor for other
marginals than it names to the computing parties is found out before the counts are used
(`docs/design/malicious.md` 3.2).

Cost: 1 round after the contributors' messages for each block of cells, and 1 to compare.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from mpc_protocols.backends.replicated.marginals import MarginalSource
from mpc_protocols.backends.replicated.sharing.copies import DIGEST_BYTES, Copy, same_copies
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.contribution import SEED_BYTES, local_cells, ranges
from mpc_protocols.engine.prg import CONTRIBUTION, KeyStream, binding, derive
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.public.cliques import blocks
from mpc_protocols.public.steps import PrepareStep
from mpc_protocols.wire import Wire


def explicit_component(wire: Wire, contributor: int) -> int:
    """The component of a contributor's counts that travels as it is; the two others are seeds."""
    return list(wire.contributors).index(contributor) % 3


def send_copies(
    wire: Wire, facts: StudyFacts, counts: LocalCounts, cliques: Sequence[Clique], levels: Sequence[Level]
) -> None:
    """At a contributor: components to the parties that hold them. Raises `DataRefused` before anything is
    sent."""
    cells = local_cells(facts, counts, cliques, levels)
    explicit = explicit_component(wire, wire.me)
    seeds = [secrets.token_bytes(SEED_BYTES) for _ in range(3)]
    for party in range(3):
        seeded = b"".join(seeds[j] for j in held(party) if j != explicit)
        wire.send(party, _request(wire, cliques, levels) + seeded)
    streams = [_stream(wire, seeds[j]) for j in range(3) if j != explicit]
    for number, block in enumerate(blocks(facts.with_levels(levels), cliques)):
        vector = np.concatenate(cells[block])
        for stream in streams:
            vector -= stream.draw(len(vector), np.uint32, number)
        for party in range(3):
            if explicit in held(party):
                wire.send(party, vector.view(np.uint8).data)


class CustodiansMarginals(MarginalSource):
    """Marginals of all custodians' rows together, each one's shared for itself."""

    def __init__(self, trio: Trio, facts: StudyFacts, counts: LocalCounts | None) -> None:
        """counts: this party's own data, None if it only computes. With `facts.inputs` everybody's shares are
        kept apart."""
        custodians = (*range(3), *trio.wire.contributors)
        super().__init__(trio, apart=() if facts.inputs is None else custodians)
        self._facts, self._counts = facts, counts

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, RingShare]:
        """Raises `ProtocolAborted` for contributors that told two parties different things, or were asked for
        something else."""
        trio, facts = self._trio, self._facts.with_levels(levels)
        cells = local_cells(self._facts, self._counts, cliques, levels)
        incoming = [_Incoming(trio, number, cliques, levels) for number in trio.wire.contributors]
        found: dict[Clique, RingShare] = {}
        for number, block in enumerate(blocks(facts, cliques)):
            shares = _of_computing(trio, np.concatenate(cells[block]))
            shares += [of.block(number, len(shares[0])) for of in incoming]
            together = self._rows(shares)
            found |= {clique: together[..., place] for clique, place in ranges(facts, cliques[block])}
        if incoming:
            same_copies(trio, [copy for of in incoming for copy in of.copies()])
        return found

    def _rows(self, shares: Sequence[RingShare]) -> RingShare:
        """What `Marginals` wants of a block: the sum of those that are not kept apart, then the others."""
        own, following = (np.stack(side) for side in zip(*((of.own, of.next) for of in shares), strict=True))
        if not self._contributors:
            return RingShare(*(side.sum(axis=0, dtype=np.uint32) for side in (own, following)))
        nothing = np.zeros((1, own.shape[1]), np.uint32)
        return RingShare(np.concatenate([nothing, own]), np.concatenate([nothing, following]))


class _Incoming:
    """What one contributor sends this party in answer to one request."""

    def __init__(
        self, trio: Trio, contributor: int, cliques: Sequence[Clique], levels: Sequence[Level]
    ) -> None:
        """Raises `ProtocolAborted`."""
        self._trio, self._contributor = trio, contributor
        self._explicit = explicit_component(trio.wire, contributor)
        seeded = [j for j in held(trio.me) if j != self._explicit]
        said = bytes(trio.wire.receive(contributor, DIGEST_BYTES + SEED_BYTES * len(seeded)))
        if said[:DIGEST_BYTES] != _request(trio.wire, cliques, levels):
            raise ProtocolAborted(
                f"Party {contributor} was asked for other marginals than the computing parties share, or says so: it or the "
                "leading party did not follow the protocol; stop the run."
            )
        self._seeds = {
            j: said[DIGEST_BYTES + SEED_BYTES * place :][:SEED_BYTES] for place, j in enumerate(seeded)
        }
        self._streams = {j: _stream(trio.wire, seed) for j, seed in self._seeds.items()}
        self._vectors: list[Elements] = []

    def block(self, number: int, cells: int) -> RingShare:
        """This party's share of the cells that travel together."""
        if self._explicit in held(self._trio.me):
            self._vectors.append(self._trio.receive(self._contributor, cells, np.uint32))
        parts = [
            self._vectors[-1] if j == self._explicit else self._streams[j].draw(cells, np.uint32, number)
            for j in held(self._trio.me)
        ]
        return RingShare(*parts)

    def copies(self) -> list[Copy]:
        """Both components, each with its other holder."""
        trio, found = self._trio, []
        for j, peer in zip(held(trio.me), (trio.left, trio.right), strict=True):
            content = (
                np.concatenate(self._vectors)
                if j == self._explicit
                else np.frombuffer(self._seeds[j], np.uint8)
            )
            found.append(Copy(self._contributor, peer, content))
        return found


def _of_computing(trio: Trio, values: Elements) -> list[RingShare]:
    """The three parties' own counts, by party, as `sharing.ring.share_own` shares their sum. 1 round."""
    operation = trio.operation()
    own = trio.own_mask(values.shape, np.uint32, operation)
    following = trio.next_mask(values.shape, np.uint32, operation)
    rest = values - own
    trio.send(trio.right, rest)
    trio.turn()
    received = trio.receive(trio.left, values.shape, np.uint32)
    nothing = np.zeros_like(values)
    by_party = {
        trio.me: RingShare(own, rest),
        trio.left: RingShare(received, nothing),
        trio.right: RingShare(nothing, following),
    }
    return [by_party[party] for party in range(3)]


def held(party: int) -> tuple[int, int]:
    """The components that a party holds."""
    return party, (party + 1) % 3


def _request(wire: Wire, cliques: Sequence[Clique], levels: Sequence[Level]) -> bytes:
    """Names what is asked of contributors."""
    return binding(b"request", wire.session_id, PrepareStep(tuple(cliques), tuple(levels)).to_bytes())


def _stream(wire: Wire, seed: bytes) -> KeyStream:
    return KeyStream(derive(seed, CONTRIBUTION, wire.session_id))
