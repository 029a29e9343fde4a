"""A `Wire` over the connections of a started MPyC program of three parties (`docs/howto/protocols.md` 5).

MPyC's program keeps its runtime; our protocols run beside it in a thread, and send raw bytes, which nobody
unpickles, over MPyC's connections, under labels that its own program counters meet with a chance of about
2^-64. Keys: of MPyC's pseudorandom secret sharing, which are the pairs' own with three parties, by HKDF with
a session id to which all three contribute.

What MPyC's channel protects and what not:

    without --ssl    nothing: whoever reads the network reads its keys too. Refused but between loopback addresses
    with --ssl       TLS with certificates of MPyC's CA. The listening party believes the number that a peer says; here the name
                     in its certificate, "MPyC party N", is compared with it
    keys             one of a pair draws them: its random numbers alone protect both
    bad peers        a message is checked once it is there: a peer can fill this party's memory; no heartbeats, and silence
                     ends a protocol only after `patience_s`; a peer that stops says so, without why

Threat model of what runs on it: semi-honest, at most one of the three.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import struct
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from mpc_protocols.errors import PeerIdentity, PeerLost, ProtocolAborted, UsageError
from mpc_protocols.process.threads import start_thread
from mpc_protocols.wire import Traffic
from parties.addresses import is_loopback
from parties.session.party import hkdf
from parties.session.transport.frames import MAX_MESSAGE

T = TypeVar("T")

PARTIES: Final = 3
_NONCE: Final = 32
_CLOCK = struct.Struct("<I")
_MAX_ROUNDS: Final = 1 << 31
"""More than any program has: a peer that counts further would make this party's own count overflow."""
_DONE, _STOPPED = b"\0", b"\1"
_LOOK_S: Final = 0.5
"""How often a party that waits looks whether the connection is still there."""

_calls: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


class _Runtime:
    """What all streams of one call share: MPyC's connections, counters, and who has stopped. Futures belong
    to MPyC's loop."""

    def __init__(self, mpc: Any, call: int, patience_s: float) -> None:
        self.mpc, self.patience_s = mpc, patience_s
        self.me: int = mpc.pid
        self.session_id = b""
        self.given_up = False
        self.keys: dict[int, bytes] = {}
        self.lock = threading.Lock()
        self.clock = self.bytes_sent = self.bytes_received = self.messages = self.proofs = 0
        self._call = call
        self.peers = [peer for peer in range(PARTIES) if peer != self.me]
        self.ends = {peer: self.future(peer, self.label("end", 0)) for peer in self.peers}

    def label(self, stream: str, number: int) -> int:
        """MPyC labels messages by 64-bit program counters; ours are hashes."""
        text = f"cosynth/{self._call}/{stream}/{number}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "little", signed=True)

    def connection(self, peer: int) -> Any:
        """MPyC's, or None if it is closed: MPyC forgets the one that a peer has closed, not the one that
        broke."""
        connection = self.mpc.parties[peer].protocol
        return None if connection is None or connection.transport.is_closing() else connection

    def post(self, peer: int, label: int, payload: bytes) -> None:
        """In MPyC's loop: send. To a peer that is gone nothing can be sent; whoever waits for it is told."""
        if connection := self.connection(peer):
            connection.send(label, payload)

    def future(self, peer: int, label: int) -> asyncio.Future[bytes]:
        """In MPyC's loop: the peer's message of this label. Raises `PeerLost` if it is not there and cannot
        come any more."""
        connection = self.mpc.parties[peer].protocol
        if connection is None:
            raise self.lost(peer)
        message = connection.receive(label)
        if isinstance(message, asyncio.Future):
            return message
        here: asyncio.Future[bytes] = self.mpc._loop.create_future()
        here.set_result(message)
        return here

    @staticmethod
    def lost(peer: int) -> PeerLost:
        """What is told of a peer whose connection is closed."""
        return PeerLost(f"Party {peer} has closed its connection with MPyC.")

    async def take(self, peer: int, label: int) -> bytes:
        """In MPyC's loop: the peer's message. Raises `ProtocolAborted`, `PeerLost`."""
        waiting, waited = self.future(peer, label), 0.0
        while not waiting.done():
            if self.connection(peer) is None:
                raise self.lost(peer)
            if any(end.done() and end.result() == _STOPPED for end in self.ends.values()):
                stopped = next(p for p, end in self.ends.items() if end.done() and end.result() == _STOPPED)
                raise ProtocolAborted(f"Party {stopped} stopped, perhaps because of another party.")
            if self.ends[peer].done():
                raise ProtocolAborted(
                    f"Party {peer} has finished its part while this party waits for a message of it."
                )
            if waited >= self.patience_s:
                raise PeerLost(f"Party {peer} sent nothing for {self.patience_s:g} s.")
            await asyncio.wait([waiting], timeout=_LOOK_S)
            waited += _LOOK_S
        return waiting.result()

    def check_awaited(self) -> None:
        """In the protocol's thread: raise `ProtocolAborted` where nobody waits for its result any more."""
        if self.given_up:
            raise ProtocolAborted(
                "This party's call was cancelled, and its protocol ended; await the call again."
            )

    async def agree_on_session(self) -> None:
        """Derive session and keys from what all three have drawn."""
        nonce = secrets.token_bytes(_NONCE)
        for peer in self.peers:
            self.post(peer, self.label("session", 0), nonce)
        nonces = {self.me: nonce}
        for peer in self.peers:
            nonces[peer] = await self.take(peer, self.label("session", 0))
            if len(nonces[peer]) != _NONCE:
                raise ProtocolAborted(f"Party {peer} opened the session with a message of another size.")
        together = b"".join(nonces[party] for party in range(PARTIES))
        self.session_id = hashlib.sha256(b"cosynth beside MPyC" + together).digest()
        prss: dict[tuple[int, ...], bytes] = self.mpc._prss_keys
        for peer in self.peers:
            pair = (min(self.me, peer), max(self.me, peer))
            self.keys[peer] = hkdf(bytes(prss[pair]), salt=self.session_id, info=b"cosynth beside MPyC")

    async def end(self, word: bytes) -> None:
        """Tell the others that this party is through; where all went well, wait for them: nothing of ours is
        left over."""
        for peer in self.peers:
            self.post(peer, self.label("end", 0), word)
        waited = 0.0
        while word == _DONE and waited < self.patience_s:
            missing = [end for peer, end in self.ends.items() if self.connection(peer) and not end.done()]
            if not missing:
                return
            await asyncio.wait(missing, timeout=_LOOK_S)
            waited += _LOOK_S


class MPyCWire:
    """One party's end; implements `mpc_protocols.wire.Wire`. Its blocking calls are for a thread other than
    MPyC's."""

    def __init__(self, runtime: _Runtime, stream: str = "") -> None:
        self._runtime, self._stream = runtime, stream
        self._sent: dict[int, int] = {}
        self._received: dict[int, int] = {}
        self._forked: set[str] = set()

    @property
    def me(self) -> int:
        return self._runtime.me

    @property
    def computing(self) -> int:
        return PARTIES

    @property
    def contributors(self) -> Sequence[int]:
        return ()

    @property
    def session_id(self) -> bytes:
        return self._runtime.session_id

    def key(self, peer: int) -> bytes:
        if peer not in self._runtime.keys:
            raise ValueError(f"Party {self.me} shares no key with party {peer}.")
        return self._runtime.keys[peer]

    def set_key(self, members: Sequence[int]) -> bytes:
        others = [member for member in members if member != self.me]
        if len(members) != 2 or len(others) != 1:
            raise ValueError(f"Parties {tuple(members)} are no pair that shares a key with party {self.me}.")
        return self.key(others[0])

    def send(self, peer: int, payload: bytes | bytearray | memoryview) -> None:
        runtime, view = self._runtime, memoryview(payload).cast("B")
        if len(view) > MAX_MESSAGE:
            raise ValueError(f"A message of {len(view)} bytes; at most {MAX_MESSAGE} are possible.")
        runtime.check_awaited()
        number = self._sent[peer] = self._sent.get(peer, 0) + 1
        with runtime.lock:
            clock = runtime.clock + 1
            runtime.bytes_sent += len(view)
            runtime.messages += 1
        message = _CLOCK.pack(clock) + bytes(view)
        runtime.mpc._loop.call_soon_threadsafe(
            runtime.post, peer, runtime.label(f"stream{self._stream}", number), message
        )

    def receive(self, peer: int, size: int) -> memoryview:
        payload = self._next(peer)
        if len(payload) != size:
            raise ProtocolAborted(f"Party {peer} sent {len(payload)} bytes where {size} were due.")
        return payload

    def receive_up_to(self, peer: int, limit: int) -> memoryview:
        payload = self._next(peer)
        if len(payload) > limit:
            raise ProtocolAborted(
                f"Party {peer} sent {len(payload)} bytes where at most {limit} are allowed."
            )
        return payload

    def fork(self, name: str) -> MPyCWire:
        if name in self._forked:
            raise ValueError(f"Stream name {name!r} is in use already.")
        self._forked.add(name)
        return MPyCWire(self._runtime, f"{self._stream}/{len(name)}:{name}")

    def count_proof(self) -> None:
        with self._runtime.lock:
            self._runtime.proofs += 1

    def traffic(self) -> Traffic:
        runtime = self._runtime
        with runtime.lock:
            return Traffic(
                runtime.bytes_sent, runtime.bytes_received, runtime.messages, runtime.clock, runtime.proofs
            )

    def _next(self, peer: int) -> memoryview:
        runtime = self._runtime
        runtime.check_awaited()
        number = self._received[peer] = self._received.get(peer, 0) + 1
        label = runtime.label(f"stream{self._stream}", number)
        message = asyncio.run_coroutine_threadsafe(runtime.take(peer, label), runtime.mpc._loop).result()
        if len(message) < _CLOCK.size:
            raise ProtocolAborted(f"Party {peer} sent a message without its clock.")
        [clock] = _CLOCK.unpack_from(message)
        if clock > _MAX_ROUNDS:
            raise ProtocolAborted(f"Party {peer} sent a message of more rounds than a program has.")
        with runtime.lock:
            runtime.clock = max(runtime.clock, clock)
            runtime.bytes_received += len(message) - _CLOCK.size
        return memoryview(message)[_CLOCK.size :]


def run_beside(mpc: Any, body: Callable[[MPyCWire], T], patience_s: float = 600.0) -> Coroutine[Any, Any, T]:
    """Run `body(wire)` in a thread beside a started MPyC program; to be awaited there, and called alike at
    all three parties.

    Raises `UsageError` (not three parties, not started, --no-prss), `PeerIdentity` (connections that protect
    nothing, certificates of others), then what `body` raised, `ProtocolAborted`, `PeerLost`.
    """
    call = _calls[mpc] = _calls.get(mpc, 0) + 1  # also of a call that is refused here and not at the others
    _check(mpc)

    async def run() -> T:
        runtime = _Runtime(mpc, call, patience_s)
        outcome: asyncio.Future[T] = mpc._loop.create_future()

        def work() -> None:
            value: T | None = None
            failure: BaseException | None = None
            try:
                value = body(MPyCWire(runtime))
            except BaseException as error:  # raised again in MPyC's thread
                failure = error
            with suppress(RuntimeError):  # the call was given up, and its loop is closed: nobody waits
                mpc._loop.call_soon_threadsafe(_settle, outcome, value, failure)

        try:
            await runtime.agree_on_session()
            start_thread(work, name="cosynth-beside-mpyc")
            value = await outcome
        except BaseException:
            runtime.given_up = True
            await runtime.end(_STOPPED)
            raise
        await runtime.end(_DONE)
        return value

    return run()


def _settle(outcome: asyncio.Future[Any], value: object, failure: BaseException | None) -> None:
    if outcome.done():
        return
    if failure is None:
        outcome.set_result(value)
    else:
        outcome.set_exception(failure)


def _check(mpc: Any) -> None:
    """Raise unless this is a started runtime of three parties whose connections protect what they carry."""
    if len(mpc.parties) != PARTIES or mpc.threshold != 1:
        raise UsageError(
            f"The protocols run beside MPyC programs of three parties with threshold 1, got {len(mpc.parties)} parties and "
            f"threshold {mpc.threshold}; start it with -M3."
        )
    if mpc.options.no_prss:
        raise UsageError(
            "The protocols take their keys from MPyC's pseudorandom secret sharing; start it without --no-prss."
        )
    for peer in range(PARTIES):
        if peer == mpc.pid:
            continue
        transport = getattr(mpc.parties[peer].protocol, "transport", None)
        if transport is None or transport.is_closing():
            raise UsageError("The MPyC runtime is not connected; await mpc.start() before the protocols.")
        tls = transport.get_extra_info("ssl_object")
        if tls is None:
            host = str((transport.get_extra_info("peername") or ("",))[0])
            if not is_loopback(host.removeprefix("::ffff:")):
                raise PeerIdentity(
                    f"Party {peer} is connected with MPyC without TLS, and its keys travelled in clear; start MPyC with --ssl."
                )
        elif f"MPyC party {peer}" not in _names(tls.getpeercert()):
            raise PeerIdentity(
                f"Party {peer} of the MPyC program showed a certificate that does not name it: MPyC party {peer} is needed."
            )


def _names(certificate: Any) -> set[str]:
    """DNS names and common names of what `ssl` says of a verified certificate."""
    names = {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
    return names | {
        value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"
    }
