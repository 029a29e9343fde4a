"""Sockets: addresses, listening on exactly one of them, and blocking calls that nobody waits for at the end
(`docs/design/session.md` 5)."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from mpc_protocols.errors import PeerUnreachable
from mpc_protocols.process.threads import start_thread
from parties.session.admission.config import SessionConfig
from parties.session.transport.channel import Closed

T = TypeVar("T")

BACKLOG = 512
"""Most connections that wait to be accepted."""

_PARTING_S = 2.0


class NotOurs(Exception):
    """The other end does not speak this protocol."""


class OtherPurpose(NotOurs):
    """The other end rehearses while this one runs, or the other way round; the text says it."""


class Disturbed(NotOurs):
    """The TLS handshake failed for another reason than a certificate: bytes were changed on the way; the text
    says which."""


class SelfConnected(NotOurs):
    """Nobody listens yet at a port of this machine, and the kernel gave the dialling socket that very port:
    what answers is this party's own greeting."""


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
            server.listen(BACKLOG)
        except BaseException:
            server.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PeerUnreachable(
                f"Party {config.me} cannot listen on {where}: the port is in use by another program; "
                f"stop that program or give the party another port."
            ) from None
        raise PeerUnreachable(
            f"Party {config.me} cannot listen on {where}: {reason(error)}; name an address of this machine with `listen` in "
            "the private file."
        ) from None
    return server


async def resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    """Family and address to connect to or bind; names are looked up in a thread nobody waits for at the end."""
    with suppress(socket.gaierror):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return found[0][0], found[0][4]
    found = await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return found[0][0], found[0][4]


async def addresses(host: str) -> set[str]:
    """All numeric addresses of a host, as `accept` writes them."""
    found = await in_thread(lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    return {str(entry[4][0]) for entry in found}


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a daemon thread: unlike the loop's executor it cannot hold up the end of the
    process."""
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

    start_thread(run)
    return await result


def tune(sock: socket.socket) -> None:
    """Non-blocking, and small messages leave at once."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def exactly(sock: socket.socket, size: int) -> bytes:
    """The next `size` bytes; raises `Closed`."""
    loop = asyncio.get_running_loop()
    parts = bytearray()
    while len(parts) < size:
        data = await loop.sock_recv(sock, size - len(parts))
        if not data:
            raise Closed("end of stream")
        parts += data
    return bytes(parts)


async def close_gently(sock: socket.socket) -> None:
    """Close so that the peer can still read the last bytes: say that nothing more comes, wait until it has
    closed too."""
    try:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_PARTING_S):
                sock.shutdown(socket.SHUT_WR)
                while await asyncio.get_running_loop().sock_recv(sock, 1 << 16):
                    await asyncio.sleep(0)  # else who sends on and on stops the loop and its clock
    finally:
        sock.close()


def reason(error: BaseException) -> str:
    """Why a connection did not come about, in words."""
    if isinstance(error, OtherPurpose | Disturbed):
        return str(error)
    if isinstance(error, SelfConnected):
        return "nobody listens there"
    if isinstance(error, NotOurs):
        return "what answers there is not a party of a study"
    if isinstance(error, Closed):
        return "it closed the connection"
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, socket.gaierror):
        return "its host name is not known"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return type(error).__name__
