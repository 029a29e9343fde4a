"""Strangers who never pause or never end do not stop a start; a connection to oneself; a confirmation that is
none."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any, NoReturn

import pytest

from mpc_protocols.errors import CosynthError, ProtocolAborted
from parties.session import Peer, SessionConfig
from parties.session.admission.agreement import Agreement
from parties.session.admission.connect import Connector
from parties.session.admission.identity import Identity
from parties.session.admission.preflight import _MAX_DOUBTS, _Preflight
from parties.session.transport.frames import Kind
from parties.session.transport.sockets import SelfConnected, close_gently, reason

MANY = 1000
"""Steps that are ready at once: far more than a loop that gives way takes before another task has its turn."""


def config(me: str, *roles: str, port: int = 7101) -> SessionConfig:
    names = ("north", "south", "hill", "lake")
    parties = tuple(
        Peer(name, "127.0.0.1", port + number, role)  # type: ignore[arg-type]
        for number, (name, role) in enumerate(zip(names, roles, strict=False))
    )
    return SessionConfig(me, parties, bytes(32), 1, insecure_loopback=True)


def unexpected(*arguments: object) -> NoReturn:
    raise AssertionError(arguments)


def connector(of: SessionConfig, failed: Any = unexpected) -> Connector:
    return Connector(Identity(of, b""), unexpected, failed, unexpected)


class Ready:
    """Does at once what a loop would wait for, MANY times at most; `turns` counts how often another task went
    on meanwhile."""

    def __init__(self) -> None:
        self.calls = self.turns = 0

    async def beside(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)

    async def accept(self, server: socket.socket) -> tuple[socket.socket, tuple[str, int]]:
        self.calls += 1
        if self.calls > MANY:
            raise asyncio.CancelledError
        return socket.socket(), ("10.9.0.1", 1)

    async def receive(self, sock: socket.socket, size: int) -> bytes:
        self.calls += 1
        return b"x" * size if self.calls <= MANY else b""


def test_a_flood_of_connections_leaves_turns_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def flooded() -> Ready:
        ready = Ready()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "sock_accept", ready.accept)
        other = asyncio.ensure_future(ready.beside())
        with socket.socket() as server:
            accepting = connector(config("north", "compute", "compute"))
            await asyncio.gather(accepting._accept(server), return_exceptions=True)
            accepting.close()
        other.cancel()
        return ready

    ready = asyncio.run(flooded())
    assert ready.calls > MANY and ready.turns >= MANY


def test_who_is_refused_and_sends_on_without_a_pause_leaves_turns_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def flooded() -> Ready:
        ready = Ready()
        monkeypatch.setattr(asyncio.get_running_loop(), "sock_recv", ready.receive)
        other = asyncio.ensure_future(ready.beside())
        mine, others = socket.socketpair()
        with others:
            await close_gently(mine)
        other.cancel()
        return ready

    ready = asyncio.run(flooded())
    assert ready.turns >= min(ready.calls, MANY) > 1


def test_a_connection_to_oneself_is_nobody_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may give a dialling socket the very port that it dials, where nobody listens yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    class FromThere(socket.socket):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.bind(("127.0.0.1", port))

    dialling = config("south", "compute", "compute", port=port)

    async def dial() -> None:
        monkeypatch.setattr(socket, "socket", FromThere)
        await connector(dialling)._attempt(dialling.numbered[0])

    with pytest.raises(SelfConnected) as caught:
        asyncio.run(dial())
    assert not isinstance(caught.value, CosynthError) and reason(caught.value) == "nobody listens there"


def test_a_check_tells_of_so_many_strangers_and_no_more() -> None:
    loop = asyncio.new_event_loop()
    try:
        check = _Preflight(loop, config("north", "compute", "compute"), 0.0)
        for claim in range(MANY):
            check._doubted(ProtocolAborted(f"Somebody said {claim}."), None, "10.9.0.1")
        assert check._news.qsize() == _MAX_DOUBTS
    finally:
        loop.close()


@pytest.mark.parametrize("told", [1, {}, {"facts": None}])
def test_an_announcement_that_is_none_ends_the_start(told: object) -> None:
    """What a computing party says of a contributor that this contributor never meets."""
    hill = config("hill", "compute", "compute", "contribute", "contribute")
    agreement = Agreement(hill, lambda peer, kind, payload: None)
    common = {"study": bytes(32).hex(), "version": "1", "role": "compute", "facts": {}, "nonce": "00" * 32}
    hellos: dict[str, object] = {name: {**common, "name": name} for name in ("north", "south")}
    for number, name in enumerate(("north", "south")):
        agreement.on_frame(number, Kind.HELLO, json.dumps(hellos[name]).encode())
    hellos["hill"] = {key: value for key, value in common.items() if key != "nonce"}
    hellos["hill"] |= {"name": "hill", "role": "contribute"}  # type: ignore[operator]
    for number in range(2):
        agreement.on_frame(number, Kind.CONFIRM, json.dumps({**hellos, "lake": told}).encode())
    with pytest.raises(ProtocolAborted, match="no announcement of party lake"):
        asyncio.run(agreement.run(None))
