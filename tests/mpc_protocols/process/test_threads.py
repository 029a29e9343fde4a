"""What is computed aside: its result, its error, and that nothing outlives its context."""

from __future__ import annotations

import threading

import pytest

from mpc_protocols.process.threads import Aside


def test_what_was_computed_aside_is_told_as_often_as_asked() -> None:
    going_on = threading.Event()
    aside = Aside(lambda: (going_on.wait(60), threading.current_thread().name))
    going_on.set()  # this thread went on
    assert aside.join() == aside.join() == (True, f"{threading.current_thread().name}-aside")


def test_what_it_raises_is_raised_to_who_joins() -> None:
    def fail() -> None:
        raise LookupError("aside")

    aside = Aside(fail)
    for _ in range(2):
        with pytest.raises(LookupError, match="aside"):
            aside.join()
    with pytest.raises(LookupError, match="aside"), Aside(fail):
        pass


def test_a_context_ends_with_its_thread_and_keeps_the_first_error() -> None:
    ended, going_on = list[str](), threading.Event()

    def slowly() -> None:
        going_on.wait(60)
        ended.append("aside")
        raise LookupError("aside")

    with pytest.raises(ValueError, match="first"), Aside(slowly):
        going_on.set()
        raise ValueError("first")
    assert ended == ["aside"]
