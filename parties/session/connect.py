"""Opening the links: who listens, who dials, and the handshake up to a verified identity (DESIGN 3).

Computing parties listen, on one address each; of two parties the later in wire order dials the earlier, so contributors
only dial and never meet one another. Dialling goes on until the session's deadline: parties are started by people.

Threat model: whoever reaches the port. A connection that does not speak this protocol is dropped and logged, a few at a
time, each with a deadline; one that claims to be a party and fails to prove it ends the start with a sentence at both
sides (an honest mistake is far likelier than an attack, and an attacker on the network could stop the start anyway).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from mpc_protocols.errors import CosynthError, PeerIdentity, PeerUnreachable, StudiesDiffer
from parties.session import frames, identity
from parties.session.channel import Channel, Closed, PlainChannel, TlsChannel
from parties.session.config import Peer, SessionConfig
from parties.session.identity import GREETING, Greeting, Identity

log = logging.getLogger("cosynth.session")

T = TypeVar("T")

HANDSHAKE_S = 10.0
STRANGERS = 32
"""Most connections that have not yet proved who they are."""

_PARTING_S = 2.0


class _NotOurs(Exception):
    """The other end does not speak this protocol."""


class Connector:
    """Opens this party's links and hands each, verified, to `linked(number, channel)`; `failed(error)` ends the start."""

    def __init__(self, own: Identity, linked: Callable[[int, Channel], None], failed: Callable[[CosynthError], None]) -> None:
        self._own, self._config = own, own.config
        self._linked, self._failed = linked, failed
        self._numbers = {peer.name: number for number, peer in enumerate(self._config.numbered)}
        self._done: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: socket.socket | None = None
        self.reasons: dict[int, str] = {}
        self.parting: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen and begin to dial; returns at once. Raises `PeerUnreachable` if the address cannot be listened on."""
        if self._config.own.role == "compute":
            self._server = await listen(self._config)
            self._spawn(self._accept(self._server))
        for number in self._config.dials:
            self._spawn(self._dial(number))

    def close(self) -> None:
        """Stop listening and dialling."""
        for task in tuple(self._tasks):
            task.cancel()
        if self._server is not None:
            self._server.close()
            self._server = None

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _part(self, sock: socket.socket) -> None:
        """Close a refused connection so that the peer still reads why; `parting` must be awaited before the loop ends."""
        self.parting.add(asyncio.ensure_future(_part(sock)))

    def _establish(self, number: int, channel: Channel) -> None:
        self._done.add(number)
        self._linked(number, channel)

    # The side that listens.

    async def _accept(self, server: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        strangers = asyncio.Semaphore(STRANGERS)
        while True:
            await strangers.acquire()
            try:
                sock, address = await loop.sock_accept(server)
            except OSError:  # the connection was gone before it was accepted, or no descriptor is left
                strangers.release()
                await asyncio.sleep(0.05)
                continue
            self._spawn(self._serve(sock, f"{address[0]}:{address[1]}", strangers))

    async def _serve(self, sock: socket.socket, address: str, strangers: asyncio.Semaphore) -> None:
        kept = False
        try:
            _tune(sock)
            async with asyncio.timeout(HANDSHAKE_S):
                number, channel = await self._answer(sock)
            self._establish(number, channel)
            kept = True
        except (_NotOurs, Closed, TimeoutError, OSError) as error:
            log.info("dropped a connection from %s: %s", address, type(error).__name__)
        except CosynthError as error:
            self._part(sock)
            kept = True
            self._failed(error)
        finally:
            strangers.release()
            if not kept:
                sock.close()

    async def _answer(self, sock: socket.socket) -> tuple[int, Channel]:
        theirs = await _read_greeting(sock)
        number = self._numbers.get(theirs.name, -1)
        expected = number in self._config.peers and number not in self._config.dials
        if number in self._done:
            raise _NotOurs
        verdict = identity.GO_ON if expected else identity.NOT_IN_STUDY
        await asyncio.get_running_loop().sock_sendall(sock, self._own.greeting(verdict).pack())
        self._compare(theirs)
        if not expected:
            raise _not_in_study(theirs.name, self._config.me)
        return number, await self._secure(sock, self._config.numbered[number], theirs.certificate, server=True)

    # The side that dials.

    async def _dial(self, number: int) -> None:
        peer = self._config.numbered[number]
        pause = 0.02
        while True:
            try:
                channel = await self._attempt(peer)
            except (_NotOurs, Closed, TimeoutError, OSError) as error:
                self.reasons[number] = _reason(error)
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, 0.5)
            except CosynthError as error:
                self._failed(error)
                return
            else:
                self._establish(number, channel)
                return

    async def _attempt(self, peer: Peer) -> Channel:
        family, target = await resolve(peer.host, peer.port)
        sock = socket.socket(family, socket.SOCK_STREAM)
        kept = False
        try:
            _tune(sock)
            async with asyncio.timeout(HANDSHAKE_S):
                loop = asyncio.get_running_loop()
                await loop.sock_connect(sock, target)
                await loop.sock_sendall(sock, self._own.greeting().pack())
                theirs = await _read_greeting(sock)
                self._compare(theirs)
                if theirs.name != peer.name:
                    raise PeerIdentity(f"at {peer.address} party '{theirs.name}' answers, not '{peer.name}'.")
                if theirs.verdict != identity.GO_ON:
                    raise _not_in_study(self._config.me, peer.name)
                channel = await self._secure(sock, peer, theirs.certificate, server=False)
            kept = True
            return channel
        except CosynthError:
            self._part(sock)
            kept = True
            raise
        finally:
            if not kept:
                sock.close()

    # Both sides.

    def _compare(self, theirs: Greeting) -> None:
        if theirs.protocol != frames.PROTOCOL:
            raise StudiesDiffer(f"party '{theirs.name}' speaks version {theirs.protocol} of the protocol, party "
                                f"'{self._config.me}' version {frames.PROTOCOL}; install the same software everywhere.")
        if theirs.protected == self._config.insecure_loopback:
            modes = ("mutual", "insecure-loopback")
            raise StudiesDiffer(f"party '{theirs.name}' uses tls = '{modes[not theirs.protected]}', party '{self._config.me}' "
                                f"'{modes[self._config.insecure_loopback]}'; give all parties the same study.")

    async def _secure(self, sock: socket.socket, peer: Peer, shown: bytes, server: bool) -> Channel:
        if self._config.insecure_loopback:
            return PlainChannel(sock)
        context = self._own.context(peer, shown, server)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=server)
        try:
            await _handshake(sock, tls, incoming, outgoing)
        except ssl.SSLError as error:
            if not self._own.pinned(peer, shown):
                raise PeerIdentity(f"the certificate of party '{peer.name}' does not have the fingerprint that the study "
                                   f"gives for it.") from None
            identity.explain(self._config, peer, shown, error)
        channel = TlsChannel(sock, tls, incoming, outgoing)
        try:
            self._own.verify(peer, shown, tls)
        except PeerIdentity as error:
            channel.put(frames.abort(error.exit_code, self._numbers[peer.name]))
            channel.flush()
            raise
        return channel


async def listen(config: SessionConfig) -> socket.socket:
    """The listening socket of a computing party, on its one configured address."""
    host, port = config.listening
    where = f"{host}:{port}"
    try:
        family, target = await resolve(host, port)
        server = socket.socket(family, socket.SOCK_STREAM)
        try:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.setblocking(False)
            server.bind(target)
            server.listen(STRANGERS)
        except BaseException:
            server.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PeerUnreachable(f"party '{config.me}' cannot listen on {where}: the port is in use by another program; "
                                  f"stop that program or give the party another port.") from None
        raise PeerUnreachable(f"party '{config.me}' cannot listen on {where}: {_reason(error)}.") from None
    return server


async def resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    """Family and address to connect to or bind; names are looked up in a thread nobody waits for at the end."""
    with suppress(socket.gaierror):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return found[0][0], found[0][4]
    found = await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return found[0][0], found[0][4]


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a daemon thread: unlike the loop's executor it cannot hold up the end of the process."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def deliver(value: T | None, error: BaseException | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value, error = None, None
        try:
            value = work()
        except BaseException as caught:  # handed to the waiting task
            error = caught
        with suppress(RuntimeError):  # the loop has closed meanwhile
            loop.call_soon_threadsafe(deliver, value, error)

    threading.Thread(target=run, daemon=True).start()
    return await result


def _tune(sock: socket.socket) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def _handshake(sock: socket.socket, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            tls.do_handshake()
            return
        except ssl.SSLWantReadError:
            pass
        finally:
            if outgoing.pending:  # also the alert that tells the peer why
                await loop.sock_sendall(sock, outgoing.read())
        data = await loop.sock_recv(sock, 1 << 16)
        if not data:
            raise Closed("end of stream")
        incoming.write(data)


async def _read_greeting(sock: socket.socket) -> Greeting:
    magic, protocol, protected, verdict, named, certified = GREETING.unpack(await _exactly(sock, GREETING.size))
    if magic != identity.MAGIC or named > 64 or certified > identity.MAX_CERTIFICATE or protected > 1:
        raise _NotOurs
    rest = await _exactly(sock, named + certified)
    try:
        name = rest[:named].decode()
    except UnicodeDecodeError:
        raise _NotOurs from None
    if not name.isprintable():
        raise _NotOurs
    return Greeting(protocol, bool(protected), verdict, name, rest[named:])


async def _exactly(sock: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    parts = bytearray()
    while len(parts) < size:
        data = await loop.sock_recv(sock, size - len(parts))
        if not data:
            raise Closed("end of stream")
        parts += data
    return bytes(parts)


async def _part(sock: socket.socket) -> None:
    """Close so that the peer can still read the last bytes: say that nothing more comes, wait until it has closed too."""
    try:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_PARTING_S):
                sock.shutdown(socket.SHUT_WR)
                while await asyncio.get_running_loop().sock_recv(sock, 1 << 16):
                    pass
    finally:
        sock.close()


def _not_in_study(name: str, at: str) -> StudiesDiffer:
    return StudiesDiffer(f"the studies differ: in the study of party '{at}' no party '{name}' is to connect to it; "
                         f"give all parties the same file.")


def _reason(error: BaseException) -> str:
    if isinstance(error, _NotOurs):
        return "what answers there is not a party of a study"
    if isinstance(error, Closed):
        return "it closed the connection"
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return type(error).__name__
