"""The wire's contract between three real processes: order, streams, windows, counters, buffers, tap."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from mpc_protocols.in_memory.memory_wire import run_parties
from parties.session.transport.frames import QUEUED, UNREAD_SOFT, WINDOW
from tests.parties.session import jobs
from tests.trio import Trio


def test_sending_before_receiving_never_locks(trio: Trio) -> None:
    """50 MiB in one message and in many, both directions of all three links, nobody reading before all is
    sent."""
    assert trio.run(jobs.swap, 50 << 20, 1) == [True] * 3
    assert trio.run(jobs.swap, 1 << 20, 50) == [True] * 3
    assert trio.run(jobs.swap, 2, 2000) == [True] * 3


def test_a_sender_that_runs_ahead_is_held_back(trio: Trio) -> None:
    ahead, _, _ = trio.run(jobs.run_ahead, 4 << 20, 60)
    bound = (
        WINDOW + UNREAD_SOFT + QUEUED + (8 << 20)
    )  # under way, at the receiver, at the sender, a message each
    assert 8 << 20 <= ahead <= bound < 240 << 20


def test_counters(trio: Trio) -> None:
    """Shouting is one round, each step of the chain one more; bytes are payload bytes; as the wire in memory
    counts."""
    for length in (1, 4):
        results = trio.run(jobs.chain, length)
        for result in results:
            assert result["sent"] == result["received"] == 20 + 100 * length
            assert result["messages"] == 2 + length
        # the last messages that parties 1, 2 and 0 receive are steps 3 length - 2, - 1 and 0 after the shout
        assert [result["rounds"] for result in results] == [1 + 3 * length, 3 * length - 1, 3 * length]
        assert results == run_parties([lambda wire, n=length: jobs.chain(wire, n)] * 3)  # type: ignore[misc]


def test_streams_do_not_mix(trio: Trio) -> None:
    assert trio.run(jobs.beside, 200) == [True] * 3


def test_every_kind_of_buffer(trio: Trio) -> None:
    expected = [b"", b"bytes", b"array", b"view", np.arange(8, dtype=np.uint32).tobytes(), b"\x01"]
    assert trio.run(jobs.buffers) == [expected] * 3


def test_mistakes_of_the_caller(trio: Trio) -> None:
    for told in trio.run(jobs.misuse):
        assert len(told) == 5
        assert "in use" in told[0] and "no link" in told[1] and "shares no key" in told[2]


def test_the_tap_sees_every_message_at_both_ends(tmp_path: Path) -> None:
    tapping = Trio(tmp_path, tap=True)
    try:
        seen = tapping.run(jobs.tapped)
    finally:
        tapping.close()
    for me in range(3):
        following, previous = (me + 1) % 3, (me + 2) % 3
        stream = "/job 0/counts"
        assert seen[me] == [
            ("sent", following, stream, 0, bytes([me, 0])),
            ("received", previous, stream, 0, bytes([previous, 0])),
            ("sent", following, stream, 1, bytes([me, 1])),
            ("received", previous, stream, 1, bytes([previous, 1])),
        ]


def test_session_ids_are_fresh(trio: Trio, trio_and_two: Trio) -> None:
    first, second = trio.run(jobs.greet)[0], trio_and_two.run(jobs.greet)[0]
    assert first["session"] != second["session"]
    assert hashlib.sha256(first["session"]).digest() != first["session"]
