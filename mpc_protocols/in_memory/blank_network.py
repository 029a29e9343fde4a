"""The wire in memory as a dry run has it: messages have a size and no content, and are noted where they may
be repeated."""

from __future__ import annotations

from mpc_protocols.engine.blank import BlankBytes
from mpc_protocols.engine.by_shape import note
from mpc_protocols.engine.tally import Tally
from mpc_protocols.in_memory.memory_wire import MemoryNetwork, MemoryWire


class BlankNetwork(MemoryNetwork):
    """Keys without content: streams of them are blank."""

    def key(self, i: int, j: int) -> bytes:
        return BlankBytes(len(super().key(i, j)))

    def set_key(self, members: tuple[int, ...]) -> bytes:
        return BlankBytes(len(super().set_key(members)))

    def wire(self, number: int) -> BlankWire:
        return BlankWire(self, self._members[number], "")

    def tally(self) -> Tally:
        """What all parties have sent so far."""
        of = [self.traffic(party) for party in range(self.parties)]
        return Tally(
            [party.rounds for party in of],
            [party.bytes_sent for party in of],
            [party.messages_sent for party in of],
            max((party.proofs for party in of), default=0),
        )


class BlankWire(MemoryWire):
    """Notes what is sent and received (`engine.by_shape`)."""

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        super().send(peer, payload)
        note(lambda _: self.send(peer, payload))

    def fork(self, name: str) -> BlankWire:
        return BlankWire(self._network, self._party, self._named(name))

    def _take(self, peer: int) -> bytes:
        payload = super()._take(peer)
        note(lambda _: self._take(peer))
        return payload
