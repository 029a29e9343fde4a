"""The key of a run: made and proved by the leader, checked by all others (`key_proof`)."""

from __future__ import annotations

from dataclasses import dataclass

from mpc_protocols.backends.paillier import key_proof
from mpc_protocols.backends.paillier.keys import Encryption, PrivateKey, PublicKey
from mpc_protocols.backends.paillier.packing import key_bytes, proof_bytes
from mpc_protocols.wire import Wire


@dataclass(frozen=True)
class RunKeys:
    """How a run comes to its key, of so many bits. A dry run has one of another kind (`blank`)."""

    bits: int

    def made(self, session_id: bytes, owner: int) -> tuple[PrivateKey, bytes]:
        """At the leader: a fresh key and its proof."""
        key = PrivateKey.generate(self.bits)
        return key, key_proof.prove(key, session_id, owner)

    def received(self, wire: Wire, leader: int) -> Encryption:
        """Encryption under the key that the leader hands out and proves well made. Raises `ProtocolAborted`."""
        size = key_bytes(self.bits)
        received = wire.receive(leader, size + proof_bytes(self.bits))
        key = PublicKey.parse(received[:size], self.bits)
        key_proof.check(key, received[size:], wire.session_id, leader)
        return Encryption(key)
