"""The handshake of one connection: greetings in the clear, then TLS 1.3 with both identities verified
(`docs/design/session.md` 3).

Who learns what: the greetings show names and certificates to the network; see `identity` for why and for the
threat model.
"""

from __future__ import annotations

import asyncio
import socket
import ssl

from mpc_protocols.errors import PeerIdentity, StudiesDiffer
from parties.session.admission import identity
from parties.session.admission.config import Peer, SessionConfig
from parties.session.admission.identity import GREETING, Greeting, Identity
from parties.session.transport import frames
from parties.session.transport.channel import Channel, Closed, PlainChannel, TlsChannel
from parties.session.transport.sockets import NotOurs, OtherPurpose, exactly


async def read_greeting(sock: socket.socket, expected: bytes) -> Greeting:
    """The other side's greeting; raises `NotOurs` if it is none, `OtherPurpose` if it does not begin as
    `expected`."""
    magic, protocol, protected, verdict, named, certified = GREETING.unpack(
        await exactly(sock, GREETING.size)
    )
    if (
        magic not in (identity.RUN, identity.PREFLIGHT)
        or named > 64
        or certified > identity.MAX_CERTIFICATE
        or protected > 1
    ):
        raise NotOurs
    rest = await exactly(sock, named + certified)
    if magic != expected:
        raise OtherPurpose(
            "a run answers there, no check" if magic == identity.RUN else "a check answers there, no run"
        )
    try:
        name = rest[:named].decode()
    except UnicodeDecodeError:
        raise NotOurs from None
    if not name.isprintable():
        raise NotOurs
    return Greeting(protocol, bool(protected), verdict, name, rest[named:], magic)


def compare(config: SessionConfig, theirs: Greeting) -> None:
    """Same format of the link, same kind of protection; raises `StudiesDiffer`."""
    if theirs.protocol != frames.PROTOCOL:
        raise StudiesDiffer(
            f"Party {theirs.called} speaks version {theirs.protocol} of the link's format, party "
            f"{config.me} version {frames.PROTOCOL}; install releases of one protocol version everywhere."
        )
    if theirs.protected == config.insecure_loopback:
        modes = ("mutual", "insecure-loopback")
        raise StudiesDiffer(
            f"Party {theirs.called} uses tls = '{modes[not theirs.protected]}', party {config.me} "
            f"'{modes[config.insecure_loopback]}'; give all parties the same study."
        )


def prove(own: Identity, theirs: Greeting) -> None:
    """Whether either side has said that it cannot prove who it is. Raises `PeerIdentity`."""
    if own.doubt:
        raise PeerIdentity(own.doubt)
    if theirs.verdict == identity.UNPROVEN:
        raise PeerIdentity(
            f"Party {theirs.called} says that its own certificate or key is not in order, so it cannot take part; "
            f"`check --party {theirs.called}` there names what is wrong."
        )


async def secure(own: Identity, sock: socket.socket, peer: Peer, shown: bytes, server: bool) -> Channel:
    """The protected channel to `peer`, which showed this certificate. Raises `PeerIdentity`; the peer is told
    first."""
    if own.config.insecure_loopback:
        return PlainChannel(sock)
    context = own.context(peer, shown, server)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=server)
    try:
        await _handshake(sock, tls, incoming, outgoing)
    except ssl.SSLError as error:
        if not own.pinned(peer, shown):
            raise PeerIdentity(
                f"The certificate of party {peer.name} does not have the fingerprint that the study "
                f"gives for it."
            ) from None
        identity.explain(own.config, peer, shown, error)
    channel = TlsChannel(sock, tls, incoming, outgoing)
    try:
        own.verify(peer, shown, tls)
    except PeerIdentity as error:
        channel.put(frames.abort(error.exit_code, own.config.numbered.index(peer)))
        channel.flush()
        raise
    return channel


async def _handshake(
    sock: socket.socket, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
) -> None:
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


def not_in_study(name: str, at: str) -> StudiesDiffer:
    """One side's study does not have the other as a party that connects to it."""
    return StudiesDiffer(
        f"The studies differ: in the study of party {at} no party {name} is to connect to it; "
        f"give all parties the same file."
    )
