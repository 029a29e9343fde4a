"""Protocols whose messages follow from shapes: a dry run carries each out once, and repeats its messages from
then on.

    @by_shape(lambda gates, bits: bits.shape)
    def add_up(gates, bits): ...

Beside `Messages`, which a dry run gives to a party's gates, a call with a key that was met before sends as
many bytes to the same parties, receives from the same, gives way at the same points, and returns what the
first returned. Blank arrays cannot tell the difference (`blank`). In a run nothing of this happens. A
protocol that takes from a stock, as transfers do, is not one of these: what it sends depends on what is left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

Protocol = TypeVar("Protocol", bound=Callable[..., Any])
R = TypeVar("R")
Event = Callable[[Any], object]
"""A message, or a turn, of a party; called with its gates, it is repeated."""


class _Noting(threading.local):
    """The lists to which the events of this thread are added: of each protocol that is carried out, outermost
    first."""

    def __init__(self) -> None:
        self.lists: list[list[Event]] = []


_NOTING = _Noting()


def note(event: Event) -> None:
    """Add what this thread has just done to all protocols that it carries out for the first time."""
    for events in _NOTING.lists:
        events.append(event)


@contextmanager
def unnoted() -> Iterator[None]:
    """Keep what this thread does meanwhile out of the protocols that it carries out: it is no part of them."""
    lists, _NOTING.lists = _NOTING.lists, []
    try:
        yield
    finally:
        _NOTING.lists = lists


class Messages:
    """What a party's gates have done in a dry run, by function and key. repeats: whether that is all that
    decides."""

    def __init__(self, repeats: bool = True) -> None:
        self._repeats = repeats
        self._first: dict[Hashable, tuple[list[Event], Any]] = {}

    def of(self, gates: Any, key: Hashable, run: Callable[[], R]) -> R:
        """Carry a protocol out, or repeat its messages."""
        if not self._repeats:
            return run()
        if (first := self._first.get(key)) is None:
            with _noted(gates) as events:
                result = run()
            self._first[key] = events, result
            return result
        events, known = first
        for event in events:
            event(gates)
        return known  # type: ignore[no-any-return]


@contextmanager
def _noted(gates: Any) -> Iterator[list[Event]]:
    """The events of a protocol: messages, and turns."""
    events: list[Event] = []
    turn = gates.turn

    def noted() -> None:
        events.append(lambda of: of.turn())
        turn()

    gates.turn = noted
    _NOTING.lists.append(events)
    try:
        yield events
    finally:
        _NOTING.lists.pop()
        gates.turn = turn


def is_dry(gates: Any) -> bool:
    """Whether the gates are those of a dry run, to which places in an array are as good as any others."""
    return getattr(gates, "messages", None) is not None


def by_shape(key: Callable[..., Hashable]) -> Callable[[Protocol], Protocol]:
    """A protocol over gates, its first argument, whose messages follow from the key of its arguments and the
    party."""

    def of(protocol: Protocol) -> Protocol:
        @wraps(protocol)
        def run(gates: Any, *args: Any, **kwargs: Any) -> Any:
            messages: Messages | None = getattr(gates, "messages", None)
            if messages is None:
                return protocol(gates, *args, **kwargs)
            whole = protocol.__qualname__, gates.latency_bytes, key(gates, *args, **kwargs)
            return messages.of(gates, whole, lambda: protocol(gates, *args, **kwargs))

        return cast(Protocol, run)

    return of
