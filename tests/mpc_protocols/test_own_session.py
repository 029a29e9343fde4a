"""A session of its own goes with everything that is made of it: what two of them draw masks from is never
one."""

from __future__ import annotations

import numpy as np

from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.in_memory.memory_wire import run_parties
from mpc_protocols.toolkit.own_session import OwnSession
from mpc_protocols.wire import Wire


def test_forks_of_two_sessions_on_one_wire_draw_other_masks() -> None:
    def masks(wire: Wire) -> tuple[set[bytes], set[bytes]]:
        sessions, drawn = set(), set()
        for name in ("first", "second"):
            own = OwnSession(wire, name)
            for end in (own, own.fork("part"), own.fork("other").fork("part")):
                assert end.session_id == own.session_id != wire.session_id
                trio = Trio(end, "the same")
                sessions.add(end.session_id)
                drawn.add(trio.own_mask(4, np.uint64, trio.operation()).tobytes())
        return sessions, drawn

    for sessions, drawn in run_parties([masks] * 3):
        assert len(sessions) == 2 and len(drawn) == 2


def test_forks_carry_messages_of_their_own_and_the_party_s_keys() -> None:
    def talk(wire: Wire) -> bytes:
        own = OwnSession(wire, "first")
        side = own.fork("side")
        assert side.key((wire.me + 1) % 3) == wire.key((wire.me + 1) % 3)
        side.send((wire.me + 1) % 3, b"side")
        own.send((wire.me + 1) % 3, b"main")
        return bytes(own.receive((wire.me - 1) % 3, 4)) + bytes(side.receive((wire.me - 1) % 3, 4))

    assert run_parties([talk] * 3) == [b"mainside"] * 3
