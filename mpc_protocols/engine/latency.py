"""How far apart the computing parties are, and what a round is therefore worth.

Most protocols have two forms: one with few bytes and many rounds, one with few rounds and more bytes. Which
is faster depends on the network, and all parties must choose alike. So the run begins with a token that goes
around a ring, from the leader to the others in their order and back. The leader takes the quickest lap but
the first (in which it waits for the others to begin), and tells all others the mean delay of a hop in
microseconds. Every later choice is a function of that public number and of public sizes
(`BitGates.latency_bytes`), and the number is part of what the parties compare before each release (`step`).

    rounds: one a hop and 1 to tell; sent: a byte a hop, then 4 bytes

Threat model: a leader that lies about the delay makes the run slower, nothing else: both forms of every
protocol compute the same and show the same to everybody. Nothing private enters it.
"""

from __future__ import annotations

import time

from mpc_protocols.engine.tally import Tally
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.wire import Wire

LATENCY_BYTES = 1 << 16
"""What a round is worth on one machine: choices between rounds and bytes count it as this many bytes sent by
each party."""
LAPS = 3
MAX_DELAY_US = 10_000_000
"""Delays above ten seconds are not believed, and not needed: the choice is the same from much less on."""
BYTES_PER_US = 12
"""Bytes that a link of 100 Mbit/s carries in a microsecond: what a wait of that time could have done instead."""


def ring_of(computing: int, leader: int) -> list[int]:
    """The order in which the token goes around, the leader first."""
    return [leader, *(party for party in range(computing) if party != leader)]


def agree_on_delay(wire: Wire, leader: int) -> int:
    """Mean one-way delay between the computing parties in microseconds, as the leader measured it; the same
    at all."""
    stream, ring = wire.fork("pace"), ring_of(wire.computing, leader)
    place = ring.index(wire.me)
    before, after = ring[place - 1], ring[(place + 1) % len(ring)]
    if wire.me == leader:
        delay = _measure(stream, before, after, len(ring))
        for peer in ring[1:]:
            stream.send(peer, delay.to_bytes(4, "little"))
        return delay
    for _ in range(LAPS):
        stream.receive(before, 1)
        stream.send(after, b"\0")
    delay = int.from_bytes(stream.receive(leader, 4), "little")
    if delay > MAX_DELAY_US:
        raise ProtocolAborted(
            f"The leading party measured a delay of {delay} us, more than {MAX_DELAY_US}; stop the run."
        )
    return delay


def count_delay(tally: Tally, computing: int, leader: int) -> None:
    """The messages of `agree_on_delay`."""
    ring = ring_of(computing, leader)
    for _ in range(LAPS):
        for place, party in enumerate(ring):
            tally.step([(party, ring[(place + 1) % computing], 1)])
    tally.step([(leader, peer, 4) for peer in ring[1:]])


def latency_bytes_of(delay_us: int) -> int:
    """What a round is worth in bytes: that of one machine, and what fits into the wait."""
    return LATENCY_BYTES + BYTES_PER_US * delay_us


def _measure(stream: Wire, before: int, after: int, hops: int) -> int:
    quickest = float(MAX_DELAY_US)
    for lap in range(LAPS):
        begin = time.perf_counter()
        stream.send(after, b"\0")
        stream.receive(before, 1)
        if lap:
            quickest = min(quickest, (time.perf_counter() - begin) / hops * 1e6)
    return int(quickest)
