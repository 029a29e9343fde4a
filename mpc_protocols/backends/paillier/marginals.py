"""The marginals of all custodians' rows, of whom those that do not compute send ciphertexts (`contribution`).

With the first message of a run the leader hands its public key to all others, over links that authenticate
it, and a proof that it is well made (`key_proof`), which each of them checks. A key serves one run. Where
nobody contributes there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpc_protocols.backends.paillier.contribution import (
    Sharing,
    add_encrypted,
    decrypt_masked,
    own_cells,
    send_encrypted,
)
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.engine.bitwise.bitslice import Elements
from mpc_protocols.engine.inputs.contribution import ranges
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.prg import binding
from mpc_protocols.functionality import Clique, Level, LocalCounts, StudyFacts
from mpc_protocols.wire import Wire

if TYPE_CHECKING:
    from mpc_protocols.backends.paillier.keys import Encryption, PrivateKey
    from mpc_protocols.backends.paillier.run_keys import RunKeys


class EncryptedMarginals(AdditiveMarginals):
    """One computing party's shares: the key holder's, which leads, or the aggregator's."""

    def __init__(
        self, transfers: Transfers, facts: StudyFacts, counts: LocalCounts | None, keys: RunKeys
    ) -> None:
        """counts: this party's own data, None if it only computes. Raises `ProtocolAborted` (no public key of
        so many bits, no proof)."""
        self._transfers, self._facts, self._counts = transfers, facts, counts
        self._number = 0
        wire = transfers.link.wire
        self._key: PrivateKey | None = None
        self._encryption: Encryption | None = None
        public = b""
        if wire.contributors and wire.me == facts.leader:
            self._key, proof = keys.made(wire.session_id, wire.me)
            public = self._key.public.to_bytes()
            for peer in (transfers.link.peer, *wire.contributors):
                wire.send(peer, public + proof)
        elif wire.contributors:
            self._encryption = keys.received(wire, facts.leader)
            public = self._encryption.key.to_bytes()
        super().__init__(wire.session_id, binding(b"paillier", public))

    def _input(
        self, cliques: Sequence[Clique], levels: Sequence[Level], inputs: bytes
    ) -> dict[Clique, Elements]:
        cells = own_cells(self._facts, self._counts, cliques, levels)
        self._number += 1
        sharing = Sharing(self._transfers.link.wire.session_id, self._facts, self._number, cliques, levels)
        if self._key is not None:
            cells += decrypt_masked(self._transfers, sharing, self._key)
        elif self._encryption is not None:
            cells += add_encrypted(self._transfers, sharing, self._encryption)
        return {clique: cells[place] for clique, place in ranges(self._facts.with_levels(levels), cliques)}


class Contributor:
    """A custodian that does not compute: it takes the key, and sends ciphertexts of what it is asked for."""

    def __init__(self, wire: Wire, facts: StudyFacts, counts: LocalCounts, keys: RunKeys) -> None:
        """Raises `ProtocolAborted` (no public key of so many bits, or no proof)."""
        self._wire, self._facts, self._counts = wire, facts, counts
        self._encryption = keys.received(wire, facts.leader)
        self._number = 0

    def send(self, cliques: Sequence[Clique], levels: Sequence[Level]) -> None:
        """Send this custodian's counts. Raises `DataRefused` before anything is sent."""
        cells = own_cells(self._facts, self._counts, cliques, levels)
        self._number += 1
        sharing = Sharing(self._wire.session_id, self._facts, self._number, cliques, levels)
        send_encrypted(self._wire, 1 - self._facts.leader, sharing, self._encryption, cells)
