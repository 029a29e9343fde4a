"""Public bytes that the computing parties compare while they go on (`docs/design/engine.md` 5).

    confirm = announce(stream, value)         32 bytes, or any, to each of the others
    with at_first_turn(gates, confirm): ...   theirs are received beside the first exchange of what follows

What follows must open nothing before its first exchange is over: a comparison, a product, noise. So an
agreement costs no round of its own, and whoever passes it knows as much as if it had waited: nothing is
received, still less opened, on the strength of what others have not announced.

    rounds: 1, that of the exchange beside; sent: the value to each other computing party

Threat model: a party that announces something else is found out by everybody to whom it does. What had been
sent before was masked by streams that are used once, whatever the others take for public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mpc_protocols.engine.by_shape import unnoted
from mpc_protocols.engine.interface import Turns
from mpc_protocols.wire import Wire

Confirm = Callable[[], int | None]
"""Receives what the others have announced: the number of a party that holds something else, None if all hold
the same."""


def announce(stream: Wire, value: bytes) -> Confirm:
    """Send public bytes to all others that compute. stream: on which nothing else travels. All compare as
    many bytes."""
    others = [peer for peer in range(stream.computing) if peer != stream.me]
    for peer in others:
        stream.send(peer, value)

    def confirm() -> int | None:
        for peer in others:  # one that differs may be heard of while the others send nothing more
            if bytes(stream.receive(peer, len(value))) != value:
                return peer
        return None

    return confirm


@contextmanager
def at_first_turn(gates: Turns, run: Callable[[], None]) -> Iterator[None]:
    """Run this between the sends and the receives of the first exchange of the block; at its end if there was
    none."""
    before, due = gates.turn, [run]

    def turn() -> None:
        if due:
            with unnoted():
                due.pop()()
        before()

    gates.turn = turn
    try:
        yield
    finally:
        gates.turn = before
    if due:
        run()
