"""Opening the links: who listens, who dials, and the handshake up to a verified identity
(`docs/design/session.md` 1, 3).

Computing parties listen, on one address each; of two parties the later in wire order dials the earlier, so
contributors only dial and never meet one another. Dialling goes on until the session's deadline: parties are
started by people.

Threat model: whoever reaches the port. The side that listens ends nothing for what TLS has not proved: a
connection that does not speak this protocol, claims to be a party and does not prove it, or comes with
another study's greeting is dropped and logged; the last reason for each name is kept, and told if that party
has not come when the time is over. The side that dials does end the start if another answers at the address
that the study names than the party, for there it is a mistake or an attack on the way, which could stop the
start anyway; a disturbed connection is dialled again.
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
from parties.session.admission.handshake import compare, not_in_study, prove, read_greeting, secure
from parties.session.admission.identity import Greeting, Identity
from parties.session.admission.strangers import Stranger, Strangers
from parties.session.transport.channel import Channel, Closed
from parties.session.transport.sockets import (
    NotOurs,
    OtherPurpose,
    SelfConnected,
    addresses,
    close_gently,
    listen,
    reason,
    resolve,
    tune,
)

log = logging.getLogger("cosynth.session")

HANDSHAKE_S = 10.0
GREETING_S = 3.0
"""How long a connection may take to say who it claims to be."""


class Connector:
    """Opens this party's links and hands each, verified, to `linked(number, channel)`; `failed(error, party)`
    ends the start.

    `doubted(error, party, host)`: somebody at this address claimed to be this party (None: one that is not
    expected here) and did not prove it. met: parties with which it came to a link or a refusal; `progress` is
    set whenever one is added. reasons: by party, why it has not come so far.
    """

    def __init__(
        self,
        own: Identity,
        linked: Callable[[int, Channel], None],
        failed: Callable[[CosynthError, int], None],
        doubted: Callable[[CosynthError, int | None, str], None],
    ) -> None:
        self._own, self._config = own, own.config
        self._linked, self._failed, self._doubted = linked, failed, doubted
        self._numbers = {peer.name: number for number, peer in enumerate(self._config.numbered)}
        self._done: set[int] = set()
        self.closed = False
        self.met: set[int] = set()
        self.progress = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: socket.socket | None = None
        self._named: set[str] = set()
        self._strangers = Strangers(self._named)
        self.reasons: dict[int, str] = {}
        self.parting: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen and begin to dial; returns at once. Raises `PeerUnreachable` if the address cannot be
        listened on."""
        if self._config.own.role == "compute":
            self._server = await listen(self._config)
            self._spawn(self._accept(self._server))
            for number in set(self._config.peers) - set(self._config.dials):
                self._spawn(self._know(self._config.numbered[number]))
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

    def _close_gently(self, sock: socket.socket) -> None:
        """Close a refused connection so that the peer still reads why; `parting` must be awaited before the
        loop ends."""
        self.parting.add(asyncio.ensure_future(close_gently(sock)))

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

    async def _know(self, peer: Peer) -> None:
        """Learn from which addresses a party comes."""
        with suppress(OSError):
            self._named |= await addresses(peer.host)

    async def _accept(self, server: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(server)
            except OSError:  # the connection was gone before it was accepted, or no descriptor is left
                self._strangers.end_one()
                await asyncio.sleep(0.05)
                continue
            stranger = self._strangers.admit(sock, address[0])
            stranger.task = asyncio.ensure_future(self._serve(stranger))
            self._tasks.add(stranger.task)
            stranger.task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(0)  # `sock_accept` does not give way while connections are waiting

    async def _serve(self, stranger: Stranger) -> None:
        """From an accepted connection to a link; nothing that a stranger does ends more than its own
        connection."""
        sock, linked, number = stranger.sock, False, None
        try:
            tune(sock)
            async with asyncio.timeout(HANDSHAKE_S):
                async with asyncio.timeout(GREETING_S):
                    theirs = await read_greeting(sock, self._own.magic)
                number = self._expected(theirs.name)
                found = await self._answer(stranger, theirs, number)
            self._establish(*found)
            linked = True
        except OtherPurpose:
            with suppress(OSError):  # it is to know why nothing follows
                await asyncio.get_running_loop().sock_sendall(sock, self._own.greeting().pack())
            await close_gently(sock)
        except (NotOurs, Closed, TimeoutError, OSError) as error:
            self._strangers.dropped(stranger.host, reason(error))
        except CosynthError as error:
            self._strangers.dropped(stranger.host, error.sentence)
            self._doubt(error, number, stranger.host)
            if self._own.doubt and number is not None:  # it has been told all that there is to tell
                self._meet(number)
            await close_gently(sock)
        finally:
            self._strangers.leave(stranger)
            if not linked:
                sock.close()

    def _expected(self, name: str) -> int | None:
        """The number of the party of this name, if it is to come here."""
        number = self._numbers.get(name, self._config.number)
        return number if number in self._config.peers and number not in self._config.dials else None

    async def _answer(self, stranger: Stranger, theirs: Greeting, number: int | None) -> tuple[int, Channel]:
        if number in self._done:
            raise NotOurs
        verdict = identity.NOT_IN_STUDY if number is None else identity.GO_ON
        await asyncio.get_running_loop().sock_sendall(stranger.sock, self._own.greeting(verdict).pack())
        compare(self._config, theirs)
        if number is None:
            raise not_in_study(theirs.called, self._config.me)
        prove(self._own, theirs)
        stranger.greeted = True
        peer = self._config.numbered[number]
        channel = await secure(self._own, stranger.sock, peer, theirs.certificate, server=True)
        if number in self._done:  # it has come by another connection meanwhile
            raise NotOurs
        return number, channel

    def _doubt(self, error: CosynthError, number: int | None, host: str) -> None:
        if number is not None and number not in self._done:
            self.reasons[number] = (
                f"somebody at {host} said to be it, and was refused: {error.sentence.rstrip('.')}"
            )
        self._doubted(error, number, host)

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
                if sock.getsockname() == sock.getpeername():
                    raise SelfConnected
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
            self._close_gently(sock)
            kept = True
            raise
        finally:
            if not kept:
                sock.close()
