"""The in-memory wire keeps the promises of `mpc_protocols.wire`: order, sizes, clocks, ends, no link between
contributors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import accumulate

import pytest

from mpc_protocols.errors import PeerLost, ProtocolAborted
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork, run_parties
from mpc_protocols.process.stillness import LOOKS, Stillness
from mpc_protocols.wire import Wire


def test_messages_arrive_in_order_per_stream() -> None:
    def party(wire: Wire) -> list[bytes]:
        side = wire.fork("side")
        if wire.me == 0:
            for n in range(3):
                wire.send(1, bytes([n]))
                side.send(1, bytes([100 + n]))
            return []
        if wire.me == 1:
            late = [bytes(side.receive(0, 1)) for _ in range(3)]
            return late + [bytes(wire.receive_up_to(0, 5)) for _ in range(3)]
        return []

    assert run_parties([party] * 3)[1] == [b"d", b"e", b"f", b"\0", b"\1", b"\2"]


def test_a_name_is_forked_once() -> None:
    """As of a session's wire: two streams of one name would mix their messages."""
    wire = MemoryNetwork(3).wire(0)
    wire.fork("side").fork("side")
    with pytest.raises(ValueError, match="in use already"):
        wire.fork("side")


def test_payload_is_copied() -> None:
    def sender(wire: Wire) -> bytes:
        payload = bytearray(b"before")
        wire.send(1, payload)
        payload[:] = b"after!"
        return b""

    def receiver(wire: Wire) -> bytes:
        return bytes(wire.receive(0, 6))

    assert run_parties([sender, receiver], computing=2)[1] == b"before"


def test_rounds_are_the_longest_chain() -> None:
    """0 -> 1 -> 2 -> 0 is three rounds at party 0; messages of one step are one round however many there are."""
    network = MemoryNetwork(3)

    def party(wire: Wire) -> int:
        for peer in range(3):
            if peer != wire.me:
                wire.send(peer, b"step")
        for peer in range(3):
            if peer != wire.me:
                wire.receive(peer, 4)
        after_step = wire.traffic().rounds
        if wire.me:
            wire.receive(wire.me - 1, 1)
        wire.send((wire.me + 1) % 3, b"x")
        if not wire.me:
            wire.receive(2, 1)
        return after_step

    assert network.run([party] * 3) == [1, 1, 1]
    assert [network.traffic(i).rounds for i in range(3)] == [4, 2, 3]
    assert [network.traffic(i).bytes_sent for i in range(3)] == [9, 9, 9]
    assert [network.traffic(i).bytes_received for i in range(3)] == [9, 9, 9]
    assert network.traffic(0).messages_sent == 3


@pytest.mark.parametrize("sent", [b"", b"1234", b"123456"])
def test_wrong_sizes_abort(sent: bytes) -> None:
    def sender(wire: Wire) -> None:
        wire.send(1, sent)

    def exact(wire: Wire) -> None:
        wire.receive(0, 5)

    def limited(wire: Wire) -> None:
        wire.receive_up_to(0, 5)

    with pytest.raises(ProtocolAborted, match="Party 0"):
        run_parties([sender, exact], computing=2)
    if len(sent) > 5:
        with pytest.raises(ProtocolAborted, match="at most 5"):
            run_parties([sender, limited], computing=2)
    else:
        run_parties([sender, limited], computing=2)


def test_first_failure_reaches_the_caller_and_stops_everybody() -> None:
    class Culprit(Exception):
        pass

    seen: list[type[BaseException]] = []

    def fails(wire: Wire) -> None:
        raise Culprit

    def waits(wire: Wire) -> None:
        for _ in range(2):  # every receive raises, not only the first
            try:
                wire.receive(0, 1)
            except ProtocolAborted as error:
                seen.append(type(error))
        wire.fork("opened later").receive(0, 1)

    with pytest.raises(Culprit):
        run_parties([fails, waits, waits])
    assert seen == [ProtocolAborted] * 4


def test_a_party_that_ended_is_lost_after_its_last_message() -> None:
    def leaves(wire: Wire) -> None:
        wire.send(1, b"bye")

    def waits(wire: Wire) -> None:
        assert bytes(wire.receive(0, 3)) == b"bye"
        wire.receive(0, 1)

    with pytest.raises(PeerLost, match="Party 0 has ended"):
        run_parties([leaves, waits], computing=2)


def test_silence_ends_by_itself() -> None:
    def waits(wire: Wire) -> None:
        wire.receive(1 - wire.me, 1)

    with pytest.raises(ProtocolAborted, match="sent nothing"):
        run_parties([waits, waits], computing=2, patience_s=0.05)


def test_a_party_that_computes_is_waited_for() -> None:
    """For longer than the patience, on a machine where it is alone; however little it gets of a loaded one."""

    def computes(wire: Wire) -> None:
        while time.thread_time() < 0.6:
            pass
        wire.send(1, b"x")

    run_parties([computes, lambda wire: wire.receive(0, 1)], computing=2, patience_s=0.5)


def looks(spent: Sequence[float]) -> list[str | None]:
    """The verdicts where so much CPU time passes before each look."""
    passed = iter([0.0, *accumulate(spent)])
    stillness = Stillness(20.0, lambda: next(passed))
    return [stillness.verdict() for _ in spent]


def test_a_wait_ends_when_nobody_computes_or_for_too_long() -> None:
    still = [0.0001] * LOOKS
    assert looks(still) == [None] * (LOOKS - 1) + ["and nobody computes any more"]
    seldom = [0.0001] * (LOOKS - 2) + [0.05]
    assert looks(seldom * 100) == [None] * (100 * len(seldom))
    assert looks([1.0] * 201) == [None] * 200 + ["while 201 s were computed"]


def test_what_looking_costs_is_no_work() -> None:
    stillness = Stillness(2.0)
    verdicts = []
    for _ in range(LOOKS):
        until = time.thread_time() + 0.002  # twice what would be work between two looks
        while time.thread_time() < until:
            pass
        verdicts.append(stillness.verdict())
    assert verdicts == [None] * (LOOKS - 1) + ["and nobody computes any more"]


def test_contributors_have_no_key_and_no_link_to_one_another() -> None:
    def computing(wire: Wire) -> bytes:
        assert list(wire.contributors) == [3, 4]
        assert wire.key((wire.me + 1) % 3) != wire.key((wire.me + 2) % 3)
        with pytest.raises(ValueError, match="no key"):
            wire.key(3)
        return wire.key((wire.me + 1) % 3)

    def contributor(wire: Wire) -> bytes:
        with pytest.raises(ValueError, match="no key"):
            wire.key(0)
        with pytest.raises(ValueError, match="no link"):
            wire.send(7 - wire.me, b"x")
        return b""

    keys = run_parties([computing] * 3 + [contributor] * 2)
    assert len(set(keys[:3])) == 3


def test_tap_sees_every_frame_and_session_is_common() -> None:
    frames: list[Frame] = []

    def party(wire: Wire) -> bytes:
        wire.send(1 - wire.me, bytes([wire.me]) * 4)
        wire.receive(1 - wire.me, 4)
        return wire.session_id

    ids = run_parties([party, party], computing=2, tap=frames.append)
    assert ids[0] == ids[1] and len(ids[0]) == 32
    assert sorted((f.sender, f.receiver, f.clock, f.payload) for f in frames) == [
        (0, 1, 1, b"\0" * 4),
        (1, 0, 1, b"\1" * 4),
    ]
