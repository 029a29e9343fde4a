"""Opening the links: who listens, who dials, and the handshake up to a verified identity (DESIGN 3).

Computing parties listen, on one address each; of two parties the later in wire order dials the earlier, so contributors
only dial and never meet one another. Dialling goes on until the session's deadline: parties are started by people.

Threat model: whoever reaches the port. A connection that does not speak this protocol is dropped and logged, a few at a
time, each with a deadline; one that claims to be a party and fails to prove it ends the start with a sentence at both
sides (an honest mistake is far likelier than an attack, and an attacker on the network could stop the start anyway).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from mpc_protocols.errors import CosynthError, PeerIdentity
from parties.session.admission import identity
from parties.session.admission.config import Peer
from parties.session.admission.handshake import (
    compare,
    not_in_study,
    prove,
    read_greeting,
    secure,
)
from parties.session.admission.identity import Greeting, Identity
from parties.session.transport.channel import Channel, Closed
from parties.session.transport.sockets import (
    BACKLOG,
    NotOurs,
    OtherPurpose,
    listen,
    part,
    reason,
    resolve,
    tune,
)

log = logging.getLogger("cosynth.session")

HANDSHAKE_S = 10.0


class Connector:
    """Opens this party's links and hands each, verified, to `linked(number, channel)`; `failed(error, party)` ends the start.

    met: parties with which it came to a link or a refusal; `progress` is set whenever one is added.
    """

    def __init__(
        self,
        own: Identity,
        linked: Callable[[int, Channel], None],
        failed: Callable[[CosynthError, int], None],
    ) -> None:
        self._own, self._config = own, own.config
        self._linked, self._failed = linked, failed
        self._numbers = {peer.name: number for number, peer in enumerate(self._config.numbered)}
        self._done: set[int] = set()
        self.closed = False
        self.met: set[int] = set()
        self.progress = asyncio.Event()
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
        """Stop listening and dialling. Does nothing the second time."""
        self.closed = True
        for task in tuple(self._tasks):
            task.cancel()
        if self._server is not None:
            self._server.close()
            self._server = None

    def again(self, number: int) -> None:
        """Forget that a party was met: it may come again, or is dialled again."""
        self._done.discard(number)
        if number in self._config.dials and not self.closed:
            self._spawn(self._dial(number))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _part(self, sock: socket.socket) -> None:
        """Close a refused connection so that the peer still reads why; `parting` must be awaited before the loop ends."""
        self.parting.add(asyncio.ensure_future(part(sock)))

    def _establish(self, number: int, channel: Channel) -> None:
        self._done.add(number)
        self._linked(number, channel)
        self._meet(number)

    def _refuse(self, error: CosynthError, number: int) -> None:
        self._failed(error, number)
        self._meet(number)

    def _meet(self, number: int) -> None:
        self.met.add(number)
        self.progress.set()

    # The side that listens.

    async def _accept(self, server: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        strangers = asyncio.Semaphore(BACKLOG)
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
        kept, number = False, self._config.number
        try:
            tune(sock)
            async with asyncio.timeout(HANDSHAKE_S):
                theirs = await read_greeting(sock, self._own.magic)
                number = self._numbers.get(theirs.name, number)
                channel = await self._answer(sock, theirs, number)
            self._establish(number, channel)
            kept = True
        except OtherPurpose:
            with suppress(OSError):  # it is to know why nothing follows
                await asyncio.get_running_loop().sock_sendall(sock, self._own.greeting().pack())
            await part(sock)
        except (NotOurs, Closed, TimeoutError, OSError) as error:
            log.info("dropped a connection from %s: %s", address, type(error).__name__)
        except CosynthError as error:
            self._part(sock)
            kept = True
            self._refuse(error, number)
        finally:
            strangers.release()
            if not kept:
                sock.close()

    async def _answer(self, sock: socket.socket, theirs: Greeting, number: int) -> Channel:
        expected = number in self._config.peers and number not in self._config.dials
        if number in self._done:
            raise NotOurs
        verdict = identity.GO_ON if expected else identity.NOT_IN_STUDY
        await asyncio.get_running_loop().sock_sendall(sock, self._own.greeting(verdict).pack())
        compare(self._config, theirs)
        if not expected:
            raise not_in_study(theirs.called, self._config.me)
        prove(self._own, theirs)
        return await secure(self._own, sock, self._config.numbered[number], theirs.certificate, server=True)

    # The side that dials.

    async def _dial(self, number: int) -> None:
        peer = self._config.numbered[number]
        pause = 0.02
        while True:
            try:
                channel = await self._attempt(peer)
            except (NotOurs, Closed, TimeoutError, OSError) as error:
                self.reasons[number] = reason(error)
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, 0.5)
            except CosynthError as error:
                self._refuse(error, number)
                return
            else:
                self._establish(number, channel)
                return

    async def _attempt(self, peer: Peer) -> Channel:
        family, target = await resolve(peer.host, peer.port)
        sock = socket.socket(family, socket.SOCK_STREAM)
        kept = False
        try:
            tune(sock)
            async with asyncio.timeout(HANDSHAKE_S):
                loop = asyncio.get_running_loop()
                await loop.sock_connect(sock, target)
                await loop.sock_sendall(sock, self._own.greeting().pack())
                theirs = await read_greeting(sock, self._own.magic)
                compare(self._config, theirs)
                if theirs.name != peer.name:
                    raise PeerIdentity(f"At {peer.address} party {theirs.called} answers, not {peer.name}.")
                if theirs.verdict == identity.NOT_IN_STUDY:
                    raise not_in_study(self._config.me, peer.name)
                prove(self._own, theirs)
                channel = await secure(self._own, sock, peer, theirs.certificate, server=False)
            kept = True
            return channel
        except CosynthError:
            self._part(sock)
            kept = True
            raise
        finally:
            if not kept:
                sock.close()
