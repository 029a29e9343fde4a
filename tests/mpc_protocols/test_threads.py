"""Threads of a party: one that cannot begin is no reason to wait."""

from __future__ import annotations

import threading

import pytest

from mpc_protocols import threads


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
