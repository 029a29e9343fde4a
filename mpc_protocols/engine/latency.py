"""How far apart the three parties are, and what a round is therefore worth.

Most protocols have two forms: one with few bytes and many rounds, one with few rounds and more bytes. Which is faster
depends on the network, and all three parties must choose alike. So the run begins with a token that goes around the ring as a
multiplication's messages do, P1 -> P0 -> P2 -> P1; P1, who leads, takes the quickest lap but the first (in which it waits for
the others to begin), and tells both others the mean delay of a hop in microseconds. Every later choice is a function of that
public number and of public sizes (`Trio.round_bytes`), and the number is part of what the parties compare before each release
(`party`).

    rounds: 3 a lap and 1 to tell; sent: a byte a hop, then 4 bytes

Threat model: a leader that lies about the delay makes the run slower, nothing else: both forms of every protocol compute the
same and show the same to everybody. Nothing private enters it.
"""

from __future__ import annotations

import time

from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.replicated.sharing.trio import ROUND_BYTES
from mpc_protocols.wire import Wire

LAPS = 3
LONGEST_US = 10_000_000
"""Delays above ten seconds are not believed, and not needed: the choice is the same from much less on."""
BYTES_PER_US = 64
"""Bytes that a party computes and sends in a microsecond: what a wait of that time could have done instead."""
_LEADER = 1


def agree_on_delay(wire: Wire) -> int:
    """Mean one-way delay between the computing parties in microseconds, as the leader measured it; the same at all three."""
    stream = wire.fork("pace")
    if wire.me == _LEADER:
        delay = _measure(stream)
        for peer in (0, 2):
            stream.send(peer, delay.to_bytes(4, "little"))
        return delay
    before, after = (_LEADER, 2) if wire.me == 0 else (0, _LEADER)
    for _ in range(LAPS):
        stream.receive(before, 1)
        stream.send(after, b"\0")
    delay = int.from_bytes(stream.receive(_LEADER, 4), "little")
    if delay > LONGEST_US:
        raise ProtocolAborted(
            f"The leading party measured a delay of {delay} us, more than {LONGEST_US}; stop the run."
        )
    return delay


def round_worth(delay_us: int) -> int:
    """What a round is worth in bytes: that of one machine, and what fits into the wait."""
    return ROUND_BYTES + BYTES_PER_US * delay_us


def _measure(stream: Wire) -> int:
    quickest = float(LONGEST_US)
    for lap in range(LAPS):
        begin = time.perf_counter()
        stream.send(0, b"\0")
        stream.receive(2, 1)
        if lap:
            quickest = min(quickest, (time.perf_counter() - begin) / 3 * 1e6)
    return int(quickest)
