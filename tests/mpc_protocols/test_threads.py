"""Threads of a party: one that cannot begin is no reason to wait."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mpc_protocols.process import threads


def test_a_thread_is_given_what_it_needs_and_does_not_hold_up_the_end() -> None:
    found: list[tuple[int, str]] = []
    thread = threads.start_thread(
        lambda number: found.append((number, threading.current_thread().name)), 3, name="three"
    )
    thread.join()
    assert found == [(3, "three")] and thread.daemon


def test_one_that_does_not_begin_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where memory is out: the new thread dies before it says that it is there."""
    monkeypatch.setattr(threads, "START_S", 0.01)
    monkeypatch.setattr(threading, "_start_new_thread", lambda *given: None)
    with pytest.raises(MemoryError):
        threads.start_thread(print)


def test_a_pause_of_the_whole_process_is_no_thread_that_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it goes on, as after a SIGSTOP or a long import, the time to wait is over before the new thread
    has had a turn."""
    start, wait, kept = threading._start_new_thread, threading.Event.wait, list[Any]()  # type: ignore[attr-defined]
    monkeypatch.setattr(threading, "_start_new_thread", lambda *given: kept.append(given))

    def paused(event: threading.Event, timeout: float | None = None) -> bool:
        if not kept:
            return wait(event, timeout)
        start(*kept.pop())
        return False

    monkeypatch.setattr(threading.Event, "wait", paused)
    found: list[int] = []
    threads.start_thread(found.append, 3).join()
    assert found == [3]
