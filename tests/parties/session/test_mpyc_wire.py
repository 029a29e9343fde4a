"""The wire beside MPyC keeps the promises of `mpc_protocols.wire`, over connections as MPyC's are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mpc_protocols.errors import PeerIdentity, PeerLost, ProtocolAborted, UsageError
from mpc_protocols.wire import Wire
from parties.session.mpyc_wire import MPyCWire, run_beside
from tests.patience import PATIENCE_S


class Exchanger:
    """MPyC's connection to one peer: messages under labels, futures for those to come (as its
    MessageExchanger)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, certificate: Any = None) -> None:
        self.loop, self.buffers, self.other, self.closing = loop, dict[int, Any](), self, False
        self.transport = self
        self.certificate = certificate
        self.sent: list[bytes] = []

    def send(self, label: int, payload: bytes) -> None:
        self.sent.append(bytes(payload))
        buffers = self.other.buffers
        if label in buffers:
            buffers.pop(label).set_result(bytes(payload))
        else:
            buffers[label] = bytes(payload)

    def receive(self, label: int) -> Any:
        message = self.buffers.pop(label, None)
        if message is None:
            message = self.buffers[label] = asyncio.Future(loop=self.loop)
        return message

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, name: str) -> Any:
        if name == "peername":
            return ("127.0.0.1", 7101)
        return None if self.certificate is None else SimpleNamespace(getpeercert=lambda: self.certificate)


class Runtime:
    """What of an MPyC runtime the adapter uses."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int) -> None:
        self.pid, self.threshold, self._loop = pid, 1, loop
        self.options = SimpleNamespace(no_prss=False)
        self.parties = [SimpleNamespace(protocol=Exchanger(loop)) for _ in range(3)]
        self._prss_keys = {
            pair: bytes([10 * pair[0] + pair[1]]) * 16 for pair in ((0, 1), (0, 2), (1, 2)) if pid in pair
        }


def beside(
    body: Callable[[MPyCWire], Any],
    patience_s: float = PATIENCE_S,
    before: Callable[[list[Runtime]], None] | None = None,
) -> list[Any]:
    """What the three bodies returned, or the errors they ended with."""

    return asyncio.run(abeside(body, patience_s, before))


async def abeside(
    body: Callable[[MPyCWire], Any], patience_s: float, before: Callable[[list[Runtime]], None] | None
) -> list[Any]:
    return await asyncio.gather(
        *(run_beside(runtime, body, patience_s) for runtime in await connected(before)),
        return_exceptions=True,
    )


async def connected(before: Callable[[list[Runtime]], None] | None) -> list[Runtime]:
    loop = asyncio.get_running_loop()
    runtimes = [Runtime(loop, pid) for pid in range(3)]
    for one in range(3):
        for other in range(one):
            ends = runtimes[one].parties[other].protocol, runtimes[other].parties[one].protocol
            ends[0].other, ends[1].other = ends[1], ends[0]
    if before is not None:
        before(runtimes)
    return runtimes


def test_messages_arrive_in_order_on_each_stream_and_rounds_are_the_longest_chain() -> None:
    def body(wire: Wire) -> Any:
        side = wire.fork("side")
        if wire.me == 0:
            for number in range(3):
                wire.send(1, bytes([number]))
                side.send(1, bytes([100 + number]))
        if wire.me == 1:
            told = [bytes(side.receive(0, 1)) for _ in range(3)]
            told += [bytes(wire.receive_up_to(0, 5)) for _ in range(3)]
            wire.send(2, b"".join(told))
            return told
        if wire.me == 2:
            return bytes(wire.receive(1, 6)), wire.traffic().rounds, wire.traffic().bytes_received
        return wire.traffic().bytes_sent

    assert beside(body) == [6, [b"d", b"e", b"f", b"\0", b"\1", b"\2"], (b"def\0\1\2", 2, 6)]


def test_keys_are_the_pairs_own_and_another_in_each_session() -> None:
    def body(wire: Wire) -> Any:
        return wire.session_id, {peer: wire.key(peer) for peer in range(3) if peer != wire.me}

    first, second = beside(body), beside(body)
    assert len({session for session, _ in first}) == 1 and first[0][0] != second[0][0]
    keys = [keys for _, keys in first]
    assert keys[0][1] == keys[1][0] and keys[0][2] == keys[2][0] and keys[1][2] == keys[2][1]
    assert len({keys[0][1], keys[0][2], keys[1][2], second[0][1][1]}) == 4


def test_a_key_with_oneself_and_a_stream_of_the_same_name_are_refused() -> None:
    def body(wire: Wire) -> str:
        with pytest.raises(ValueError, match="shares no key"):
            wire.key(wire.me)
        left, right = ((wire.me + step) % 3 for step in (1, 2))
        assert wire.set_key((wire.me, left)) == wire.set_key((left, wire.me)) == wire.key(left)
        for members in ((0, 1, 2), (wire.me,), (left, right), (wire.me, wire.me)):
            with pytest.raises(ValueError, match="no pair"):
                wire.set_key(members)
        wire.fork("a")
        with pytest.raises(ValueError, match="in use"):
            wire.fork("a")
        return "all"

    assert beside(body) == ["all"] * 3


@pytest.mark.parametrize("up_to", [False, True])
def test_a_message_of_another_size_aborts_at_its_receiver_and_ends_the_others(up_to: bool) -> None:
    def body(wire: Wire) -> None:
        if wire.me == 0:
            wire.send(1, b"12345")
        if wire.me == 1:
            wire.receive_up_to(0, 4) if up_to else wire.receive(0, 4)
        wire.receive((wire.me + 1) % 3, 1)

    errors = beside(body)
    assert [type(error) for error in errors] == [ProtocolAborted] * 3
    assert "5 bytes" in str(errors[1]) and "Party 1 stopped" in str(errors[0])


def test_who_waits_for_a_party_that_is_through_is_told() -> None:
    def body(wire: Wire) -> None:
        if wire.me == 1:
            wire.receive(0, 1)

    assert "finished its part" in str(beside(body)[1])


def test_silence_is_waited_for_with_patience_only() -> None:
    def body(wire: Wire) -> None:
        wire.receive((wire.me + 1) % 3, 1)

    silent = beside(body, patience_s=1.0)
    assert all(isinstance(error, PeerLost | ProtocolAborted) for error in silent)
    assert any("sent nothing" in str(error) for error in silent)


@pytest.mark.parametrize("broken", [False, True])
def test_a_peer_that_is_gone_is_named_and_ends_everybody(broken: bool) -> None:
    """MPyC forgets a connection that its peer closed, and keeps one that broke."""
    worlds: list[list[Runtime]] = []

    def body(wire: Wire) -> None:
        if wire.me == 1:
            for runtime in worlds[0]:
                for peer in range(3):
                    if 1 in (runtime.pid, peer) and broken:
                        runtime.parties[peer].protocol.closing = True
                    elif 1 in (runtime.pid, peer):
                        runtime.parties[peer].protocol = None
        wire.send((wire.me + 1) % 3, b"x")
        wire.receive((wire.me + 1) % 3, 1)

    errors = beside(body, before=worlds.append)
    assert [type(error) for error in errors] == [PeerLost] * 2 + [ProtocolAborted], errors
    assert "Party 1 has closed its connection" in str(errors[0]) and "Party 0 stopped" in str(errors[2])


def test_who_is_through_waits_for_nobody_that_is_gone() -> None:
    worlds: list[list[Runtime]] = []

    def body(wire: Wire) -> int:
        if wire.me == 1:
            for runtime in worlds[0]:
                for peer in range(3):
                    if 1 in (runtime.pid, peer):
                        runtime.parties[peer].protocol = None
            raise MemoryError
        return wire.me

    async def run() -> list[Any]:
        return await asyncio.wait_for(abeside(body, 1e6, worlds.append), PATIENCE_S)

    outcome = asyncio.run(run())
    assert outcome[0] == 0 and outcome[2] == 2 and isinstance(outcome[1], MemoryError)


def test_a_session_that_does_not_open_at_one_party_ends_at_all() -> None:
    def cut(runtimes: list[Runtime]) -> None:
        link = runtimes[1].parties[0].protocol
        whole = link.send
        link.send = lambda label, payload: whole(label, payload[:5])

    errors = beside(lambda wire: wire.receive((wire.me + 1) % 3, 1), before=cut)
    assert [type(error) for error in errors] == [ProtocolAborted] * 3, errors
    assert "another size" in str(errors[0]) and all("stopped" in str(error) for error in errors[1:])


def test_a_clock_beyond_all_rounds_is_an_error_of_its_sender() -> None:
    def wound(runtimes: list[Runtime]) -> None:
        link = runtimes[1].parties[0].protocol
        whole = link.send
        link.send = lambda label, payload: whole(label, b"\xff" * 4 if len(payload) == 4 else payload)

    def body(wire: Wire) -> None:
        for peer in range(3):
            if peer != wire.me:
                wire.send(peer, b"")
        for peer in (1, 0, 2):
            if peer != wire.me:
                wire.receive(peer, 0)
                wire.send(peer, b"")

    errors = beside(body, before=wound)
    assert isinstance(errors[0], ProtocolAborted) and "more rounds" in str(errors[0])


def test_a_cancelled_call_sends_nothing_more() -> None:
    begun, go_on, refused = threading.Event(), threading.Event(), threading.Event()

    def body(wire: Wire) -> None:
        if wire.me == 0:
            begun.set()
            go_on.wait(PATIENCE_S)
            try:
                wire.send(1, b"x")
            except ProtocolAborted:
                refused.set()
        else:
            wire.receive(0, 1)

    async def run() -> list[Any]:
        calls = [asyncio.ensure_future(run_beside(runtime, body, 60.0)) for runtime in await connected(None)]
        while not begun.is_set():
            await asyncio.sleep(0.001)
        calls[0].cancel()
        outcome = await asyncio.gather(*calls, return_exceptions=True)
        go_on.set()
        return outcome

    outcome = asyncio.run(run())
    assert isinstance(outcome[0], asyncio.CancelledError)
    assert all("Party 0 stopped" in str(error) for error in outcome[1:])
    assert refused.wait(PATIENCE_S)


def test_a_call_that_one_party_refuses_does_not_shift_its_later_calls() -> None:
    async def run() -> list[Any]:
        runtimes = await connected(None)
        runtimes[0].options.no_prss = True
        with pytest.raises(UsageError, match="no-prss"):
            run_beside(runtimes[0], lambda wire: None).close()
        runtimes[0].options.no_prss = False
        for runtime in runtimes[1:]:
            run_beside(runtime, lambda wire: None).close()
        return await asyncio.gather(
            *(run_beside(runtime, lambda wire: wire.session_id, 5.0) for runtime in runtimes)
        )

    assert len(set(asyncio.run(run()))) == 1


def test_a_certificate_must_name_the_party_that_the_connection_belongs_to() -> None:
    def named(runtimes: list[Runtime], wrong: bool) -> None:
        for runtime in runtimes:
            for peer in range(3):
                name = f"MPyC party {0 if wrong else peer}"
                runtime.parties[peer].protocol.certificate = {"subject": ((("commonName", name),),)}

    assert beside(lambda wire: wire.me, before=lambda runtimes: named(runtimes, False)) == [0, 1, 2]
    with pytest.raises(PeerIdentity, match="does not name it"):
        beside(lambda wire: wire.me, before=lambda runtimes: named(runtimes, True))


def test_what_travels_is_no_pickle_and_no_key() -> None:
    sent: list[bytes] = []

    def body(wire: Wire) -> None:
        wire.send((wire.me + 1) % 3, b"payload")
        wire.receive((wire.me - 1) % 3, 7)

    def listen(runtimes: list[Runtime]) -> None:
        for runtime in runtimes:
            for party in runtime.parties:
                party.protocol.sent = sent

    beside(body, before=listen)
    assert sum(payload.endswith(b"payload") for payload in sent) == 3
    keys = [bytes([number]) * 16 for number in (1, 2, 12)]
    assert not any(
        key in payload or payload.startswith(b"\x80")
        for key in keys
        for payload in sent
        if len(payload) != 32
    )
