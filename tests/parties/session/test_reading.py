"""Who reads: the thread that waits, the loop when none does; nobody is forgotten when they change."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from parties.session.transport.inbox import Inbox, Message
from parties.session.transport.reading import PAUSE_S, Reading
from tests.patience import PATIENCE_S


class Line:
    """A link whose messages are single bytes: the number of the inbox each belongs to. Notes who read it."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.boxes = [Inbox(), Inbox()]
        self.readers: list[int] = []

    def read(self) -> bool:
        try:
            taken = self.ours.recv(1 << 16)
        except BlockingIOError:
            return False
        self.readers.append(threading.get_ident())
        for number in taken:
            self.boxes[number].ready.put(Message(memoryview(bytes([number])), 0, 0, 0))
        return False


@contextmanager
def running() -> Iterator[tuple[Reading, Line, int]]:
    """A reading party of one line, its loop in a thread of its own; yields that thread's number, too."""
    loop, line, made = asyncio.new_event_loop(), Line(), []
    up = threading.Event()

    def serve() -> None:
        made.append(Reading(loop))
        made[0].add(line.ours.fileno(), line)
        loop.call_soon(up.set)
        loop.run_forever()
        made[0].remove(line.ours.fileno())
        made[0].close()

    thread = threading.Thread(target=serve)
    thread.start()
    assert up.wait(PATIENCE_S) and thread.ident is not None
    try:
        yield made[0], line, thread.ident
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()
        line.ours.close()
        line.theirs.close()
    assert not thread.is_alive()


def later(seconds: float, act: Callable[[], object]) -> None:
    """Act while this thread waits."""
    threading.Timer(seconds, act).start()


def test_a_thread_that_waits_reads_for_itself_and_the_loop_when_none_does() -> None:
    with running() as (reading, line, loop):
        for _ in range(3):
            later(0.02, lambda: line.theirs.send(b"\0"))
            message = reading.wait(line.boxes[0])
            assert message is not None and bytes(message.payload) == b"\0"
        assert line.readers == [threading.get_ident()] * 3
        time.sleep(10 * PAUSE_S)
        line.theirs.send(b"\0")  # nobody waits
        assert line.boxes[0].ready.get(timeout=PATIENCE_S) is not None
        assert line.readers[3:] == [loop]


@pytest.mark.parametrize("by_loop", [False, True])
def test_two_threads_may_wait_whatever_comes_first(by_loop: bool) -> None:
    """Whose message comes last is served even if the other, who read for both, has gone to compute."""
    with running() as (reading, line, loop):
        if by_loop:
            reading.leave_to_loop()
        for order in (b"\0\1", b"\1\0") * 5:
            got: list[Message | None] = []
            threads = [
                threading.Thread(target=lambda box, to: to.append(reading.wait(box)), args=(box, got))
                for box in line.boxes
            ]
            for thread in threads:
                thread.start()
            for number in order:
                time.sleep(0.003)
                line.theirs.send(bytes([number]))
            for thread in threads:
                thread.join(PATIENCE_S)
            assert sorted(bytes(message.payload) for message in got if message) == [b"\0", b"\1"]
        assert not by_loop or set(line.readers) == {loop}


@pytest.mark.parametrize("waiting", [True, False])
def test_waking_reaches_who_waits_and_keeps_nobody_busy(
    monkeypatch: pytest.MonkeyPatch, waiting: bool
) -> None:
    looks, look = 0, Reading._read

    def counted(self: Reading, timeout: float | None) -> None:
        nonlocal looks
        looks += 1
        look(self, timeout)

    monkeypatch.setattr(Reading, "_read", counted)
    with running() as (reading, line, _):

        def end() -> None:
            line.boxes[0].ready.put(None)
            reading.wake()

        if waiting:
            later(0.05, end)
        else:
            end()
        assert reading.wait(line.boxes[0]) is None
        before = looks
        time.sleep(0.2)
        assert looks - before < 100  # who is kept busy looks thousands of times


def test_sockets_that_a_thread_takes_as_the_loop_watches_again_are_watched_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread becomes the reader right after the loop has put the sockets back: one watch goes on, not two."""
    with running() as (reading, line, loop):
        errors: list[object] = []
        reading._loop.call_soon_threadsafe(
            reading._loop.set_exception_handler, lambda _, context: errors.append(context)
        )
        role, chances = reading._reader, [0]
        watches: list[float] = []

        class Role:
            """The lock; after the loop has put the sockets back, a thread takes them before the loop goes on."""

            def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
                return role.acquire(blocking, timeout)

            def release(self) -> None:
                opened = reading._loop_watches
                role.release()
                if opened and threading.get_ident() == loop and chances[0] < 3 and watches:
                    line.boxes[0].ready.put(Message(memoryview(b"\0"), 0, 0, 0))
                    other = threading.Thread(target=reading.wait, args=(line.boxes[0],))
                    other.start()
                    other.join()
                    chances[0] += 1

        watch = reading._watch

        def counted() -> None:
            watches.append(time.monotonic())
            watch()

        monkeypatch.setattr(reading, "_reader", Role())
        monkeypatch.setattr(reading, "_watch", counted)
        later(0.01, lambda: line.theirs.send(b"\0"))
        assert reading.wait(line.boxes[0]) is not None
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and not (chances[0] == 3 and reading._loop_watches):
            time.sleep(PAUSE_S)
        assert chances[0] == 3 and reading._loop_watches and not errors
        quiet = len(watches)
        time.sleep(0.1)
        assert len(watches) == quiet


def test_what_is_told_keeps_its_order() -> None:
    """What the loop finds out after a thread did is told after it, even before the loop has come to the
    first."""
    with running() as (reading, _, loop):
        told: list[tuple[int, int]] = []
        done = threading.Event()

        def note(number: int) -> None:
            told.append((number, threading.get_ident()))
            if number == 3:
                done.set()

        def in_loop() -> None:
            other = threading.Thread(target=lambda: [reading.call_in_loop(note, number) for number in (0, 1)])  # type: ignore[func-returns-value]
            other.start()
            other.join()  # told while the loop is here
            reading.call_in_loop(note, 2)
            reading.call_in_loop(note, 3)

        reading.call_in_loop(in_loop)
        assert done.wait(PATIENCE_S)
        assert told == [(number, loop) for number in range(4)]


def test_a_thread_that_still_waits_does_not_keep_the_session_from_ending() -> None:
    """A body that returns while another of its threads waits: the thread is left behind, as any that computes
    is."""
    with running() as (reading, line, _):
        threading.Thread(target=reading.wait, args=(line.boxes[1],), daemon=True).start()
        time.sleep(0.05)
        assert reading._reader.locked()
