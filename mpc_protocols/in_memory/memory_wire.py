"""The wire in memory: every party a thread of this process, every stream a queue. Tests and simulation only.

All shares of all parties live in one process, so this protects nobody; it exists to run the very protocol
code of a deployment against plaintext, to count rounds and bytes, and to look at every message (the tap).

It keeps the promises of `mpc_protocols/wire.py`: messages are numbered per stream and direction, sizes are checked by the
receiver, rounds are the longest chain of messages (a Lamport clock per party, carried by every message and
raised by its receipt), contributors share no key and have links to the computing parties only. Parties that
end or fail make every pending and later `receive` from them raise, as the session does, so a test never hangs
on a dead peer.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from mpc_protocols.engine.blank import BlankBytes
from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.process.stillness import LOOKS, Stillness
from mpc_protocols.wire import Traffic, Wire

T = TypeVar("T")
PATIENCE_S = 500.0
"""How long a message is waited for: it ends what hangs, and decides nothing else, on however busy a machine."""


class Stuck(ProtocolAborted):
    """Nothing came, nor would it: in a deployment parties would wait for ever."""


@dataclass(frozen=True)
class Frame:
    """One message as the tap sees it; `clock` is the number of the round it travels in."""

    stream: str
    sender: int
    receiver: int
    clock: int
    payload: bytes


@dataclass(frozen=True)
class _End:
    """Last entry of a channel: its sender ended (or everything stopped), and what a receiver is told."""

    error: type[ProtocolAborted] | type[PeerLost]
    sentence: str


class _Party:
    """Counters of one party, shared by all its streams."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lock = threading.Lock()
        self.clock = 0
        self.bytes_sent = 0
        self.bytes_received = 0
        self.messages_sent = 0
        self.proofs = 0


class MemoryNetwork:
    """The parties of one simulated run: their pairwise keys, channels and counters."""

    def __init__(
        self,
        parties: int,
        computing: int = 3,
        *,
        session_id: bytes | None = None,
        tap: Callable[[Frame], None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`parties` in all, of which the first `computing` compute. A `receive` aborts that waits while no
        thread of this process has computed for patience_s, or all of them ten times as long (`stillness`).

        session_id: 32 bytes, by default fresh; a fixed one (with fixed keys, see `share_keys`) repeats a
        run's randomness.
        """
        if not 1 <= computing <= parties:
            raise ValueError(f"A network of {parties} parties cannot have {computing} computing ones.")
        self.parties = parties
        self.computing = computing
        self.session_id = secrets.token_bytes(32) if session_id is None else session_id
        self.tap = tap
        self.patience_s = patience_s
        self._keys = {frozenset((i, j)): secrets.token_bytes(32) for i in range(computing) for j in range(i)}
        size = computing - (computing - 1) // 2
        self._set_keys = {
            members: secrets.token_bytes(32) for members in combinations(range(computing), size)
        }
        self._members = [_Party(number) for number in range(parties)]
        self._channels: dict[tuple[str, int, int], queue.SimpleQueue[tuple[int, bytes] | _End]] = {}
        self._ended: dict[int, _End] = {}
        self._lock = threading.Lock()

    def share_keys(self, other: MemoryNetwork) -> None:
        """Take over the pairwise keys of another network: a second attempt of the same parties."""
        self._keys, self._set_keys = dict(other._keys), dict(other._set_keys)

    def wire(self, number: int) -> MemoryWire:
        """The end of party `number`."""
        return MemoryWire(self, self._members[number], "")

    def key(self, i: int, j: int) -> bytes:
        """The key of computing parties i and j."""
        if i == j or max(i, j) >= self.computing:
            raise ValueError(f"Parties {i} and {j} share no key: only two different computing parties do.")
        return self._keys[frozenset((i, j))]

    def set_key(self, members: tuple[int, ...]) -> bytes:
        """The key of a set of computing parties, all but the largest minority."""
        if members not in self._set_keys:
            raise ValueError(f"Parties {members} are no set that shares a key.")
        return self._set_keys[members]

    def channel(self, stream: str, sender: int, receiver: int) -> queue.SimpleQueue[tuple[int, bytes] | _End]:
        """The queue of one direction of one stream."""
        if (
            sender == receiver
            or min(sender, receiver) >= self.computing
            or not 0 <= max(sender, receiver) < self.parties
        ):
            raise ValueError(f"There is no link from party {sender} to party {receiver}.")
        name = (stream, sender, receiver)
        with self._lock:
            channel = self._channels.get(name)
            if channel is None:
                channel = self._channels[name] = queue.SimpleQueue()
                if sender in self._ended:
                    channel.put(self._ended[sender])
        return channel

    def end(self, number: int, failure: BaseException | None) -> None:
        """Party `number` stopped: its receivers get what it sent before, then an error."""
        if failure is None:
            end = _End(PeerLost, f"Party {number} has ended; no message of it is left to receive.")
        else:
            end = _End(
                ProtocolAborted,
                f"Party {number} stopped: {type(failure).__name__}, perhaps because of another party.",
            )
        with self._lock:
            self._ended[number] = end
            for (_, sender, _), channel in self._channels.items():
                if sender == number:
                    channel.put(end)

    def traffic(self, number: int) -> Traffic:
        """Counters of one party."""
        party = self._members[number]
        with party.lock:
            return Traffic(
                party.bytes_sent, party.bytes_received, party.messages_sent, party.clock, party.proofs
            )

    def run(self, functions: Sequence[Callable[[Wire], T]]) -> list[T]:
        """Run function i as party i, each in a thread; results in order, or the exception that was raised
        first."""
        if len(functions) != self.parties:
            raise ValueError(f"{len(functions)} functions were given for {self.parties} parties.")
        results: dict[int, T] = {}
        failures: list[BaseException] = []

        def body(number: int) -> None:
            failure: BaseException | None = None
            try:
                results[number] = functions[number](self.wire(number))
            except BaseException as error:  # recorded and raised again in the caller's thread
                failure = error
                failures.append(error)
            finally:
                self.end(number, failure)

        threads = [
            threading.Thread(target=body, args=(number,), name=f"party-{number}")
            for number in range(self.parties)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return [results[number] for number in range(self.parties)]


class MemoryWire:
    """One party's end; implements `wire.Wire`."""

    def __init__(self, network: MemoryNetwork, party: _Party, stream: str) -> None:
        self._network = network
        self._party = party
        self._stream = stream
        self._forked: set[str] = set()
        self.me, self.computing, self.session_id = party.number, network.computing, network.session_id
        self.contributors = range(network.computing, network.parties)

    def key(self, peer: int) -> bytes:
        return self._network.key(self.me, peer)

    def set_key(self, members: Sequence[int]) -> bytes:
        if self.me not in members:
            raise ValueError(f"Party {self.me} is none of {tuple(members)}, who share a key.")
        return self._network.set_key(tuple(members))

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        channel = self._network.channel(self._stream, self.me, peer)
        copied = payload if isinstance(payload, BlankBytes) else bytes(payload)
        with self._party.lock:
            clock = self._party.clock + 1
            self._party.bytes_sent += len(copied)
            self._party.messages_sent += 1
        if self._network.tap is not None:
            self._network.tap(Frame(self._stream, self.me, peer, clock, copied))
        channel.put((clock, copied))

    def receive(self, peer: int, size: int) -> memoryview:
        payload = self._take(peer)
        if len(payload) != size:
            raise ProtocolAborted(f"Party {peer} sent {len(payload)} bytes where {size} were due.")
        return _as_received(payload)

    def receive_up_to(self, peer: int, limit: int) -> memoryview:
        payload = self._take(peer)
        if len(payload) > limit:
            raise ProtocolAborted(
                f"Party {peer} sent {len(payload)} bytes where at most {limit} are allowed."
            )
        return _as_received(payload)

    def fork(self, name: str) -> MemoryWire:
        return MemoryWire(self._network, self._party, self._named(name))

    def _named(self, name: str) -> str:
        """The stream of a fork."""
        if name in self._forked:
            raise ValueError(f"Stream name {name!r} is in use already.")
        self._forked.add(name)
        return f"{self._stream}/{name}"

    def count_proof(self) -> None:
        with self._party.lock:
            self._party.proofs += 1

    def traffic(self) -> Traffic:
        return self._network.traffic(self.me)

    def _take(self, peer: int) -> bytes:
        channel = self._network.channel(self._stream, peer, self.me)
        entry = self._next(channel, peer)
        if isinstance(entry, _End):
            channel.put(entry)  # every later receive raises as well
            raise entry.error(entry.sentence)
        clock, payload = entry
        with self._party.lock:
            self._party.clock = max(self._party.clock, clock)
            self._party.bytes_received += len(payload)
        return payload

    def _next(
        self, channel: queue.SimpleQueue[tuple[int, bytes] | _End], peer: int
    ) -> tuple[int, bytes] | _End:
        """What comes next. Raises `Stuck`."""
        with suppress(queue.Empty):
            return channel.get(timeout=self._network.patience_s / LOOKS)  # most come before a clock is read
        stillness = Stillness(self._network.patience_s)
        while True:
            with suppress(queue.Empty):
                return channel.get(timeout=stillness.look_after_s)
            if (verdict := stillness.verdict()) is not None:
                raise Stuck(f"Party {peer} sent nothing, {verdict}; stuck.")


def _as_received(payload: bytes) -> memoryview:
    """A message as its receiver gets it; one of which only the size is known stays as it is."""
    return payload if isinstance(payload, BlankBytes) else memoryview(payload)  # type: ignore[return-value]


def run_parties(
    functions: Sequence[Callable[[Wire], T]],
    computing: int = 3,
    *,
    session_id: bytes | None = None,
    tap: Callable[[Frame], None] | None = None,
    patience_s: float = PATIENCE_S,
) -> list[T]:
    """Run one function per party on a fresh network: the first `computing` compute, the rest contribute.

    Returns the results in the parties' order; raises the exception that was raised first, after all have
    stopped.
    """
    network = MemoryNetwork(len(functions), computing, session_id=session_id, tap=tap, patience_s=patience_s)
    return network.run(functions)
