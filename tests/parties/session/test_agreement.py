"""What a party may say before any data move: what can be read can be sent on, all else ends the start with a
sentence."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Literal

import pytest

from mpc_protocols.errors import ProtocolAborted
from parties.session.admission.agreement import MAX_NESTED, Agreement
from parties.session.admission.config import Peer, SessionConfig
from parties.session.transport.frames import BadFrame, Kind

NAMES = ("north", "south", "lake")


def agreement(me: str, said: list[bytes] | None = None) -> Agreement:
    roles: tuple[Literal["compute", "contribute"], ...] = ("compute", "compute", "contribute")
    peers = tuple(
        Peer(name, "127.0.0.1", 7101 + number, role)
        for number, (name, role) in enumerate(zip(NAMES, roles, strict=True))
    )
    config = SessionConfig(me, peers, bytes(32), 1, insecure_loopback=True, facts={"rows": 0})
    told = [] if said is None else said
    return Agreement(config, lambda peer, kind, payload: told.append(payload))


def hello(name: str) -> bytes:
    said: list[bytes] = []
    agreement(name, said).greet(0)
    return said[0]


def test_lists_in_lists_are_refused_or_can_be_sent_on() -> None:
    """However deep: Python reads what it cannot write a level deeper."""
    plain = hello("south").replace(b'{"rows":0}', b'{"rows":%s}')
    taken = []
    for depth in range(sys.getrecursionlimit()):
        north = agreement("north")
        north.on_frame(2, Kind.HELLO, hello("lake"))
        try:
            north.on_frame(1, Kind.HELLO, plain % (b"[" * depth + b"0" + b"]" * depth))
        except BadFrame:
            continue
        taken.append(depth)
        assert json.loads(north._confirmation())["south"]["facts"]
    assert taken == list(range(MAX_NESTED))


def test_a_confirmation_that_nobody_can_read_ends_the_start() -> None:
    """A contributor believes what all computing parties confirm alike, and no more of it than can be read."""

    async def start() -> None:
        lake = agreement("lake")
        for number, name in enumerate(NAMES[:2]):
            lake.on_frame(number, Kind.HELLO, hello(name))
            lake.on_frame(number, Kind.CONFIRM, b"\xff")
        await lake.run(None)

    with pytest.raises(ProtocolAborted, match="confirm a session that cannot be read"):
        asyncio.run(start())
