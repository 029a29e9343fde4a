"""How far apart the computing parties are, and what a round is therefore worth.

Most protocols have two forms: one with few bytes and many rounds, one with few rounds and more bytes. Which
is faster depends on the network, and all parties must choose alike. So the run begins with echoes: the leader
sends each of the others a token, which they send back, and waits for all; this tells nothing, since the others
may only begin. Then it sends TOKENS at once, takes the quickest time in which all have sent one back, and tells
all others half of it in microseconds: the delay of the way to the farthest, for whom a round waits. Every later
choice is a function of that public number and of public sizes (`BitGates.latency_bytes`), and the number is part
of what the parties compare before each release (`step`).

    rounds: 4 and 1 to tell; sent: by the leader 1 + TOKENS bytes and 4 to each other, by each other 1 + TOKENS

Threat model: a leader that lies about the delay makes the run slower, nothing else: both forms of every
protocol compute the same and show the same to everybody. Nothing private enters it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from mpc_protocols.engine.tally import Tally
from mpc_protocols.errors import ProtocolAborted
from mpc_protocols.wire import Wire

LATENCY_BYTES = 1 << 16
"""What a round is worth on one machine: choices between rounds and bytes count it as this many bytes sent by
each party."""
FAR = 2 * LATENCY_BYTES
"""What a round is worth from which on parties are far apart: delays of 5.5 ms."""
TOKENS = 4
"""That are on their way at once: the quickest counts, for what holds one up need not hold up all."""
MAX_DELAY_US = 10_000_000
"""Delays above ten seconds are not believed, and not needed: the choice is the same from much less on."""
BYTES_PER_US = 12
"""Bytes that a link of 100 Mbit/s carries in a microsecond: what a wait of that time could have done instead."""


def agree_on_delay(wire: Wire, leader: int) -> int:
    """One-way delay between the computing parties in microseconds, as the leader measured it; the same at all."""
    stream, peers = wire.fork("pace"), [party for party in range(wire.computing) if party != leader]
    if wire.me == leader:
        delay = _measure(stream, peers)
        for peer in peers:
            stream.send(peer, delay.to_bytes(4, "little"))
        return delay
    for _ in range(1 + TOKENS):
        stream.receive(leader, 1)
        stream.send(leader, b"\0")
    delay = int.from_bytes(stream.receive(leader, 4), "little")
    if delay > MAX_DELAY_US:
        raise ProtocolAborted(
            f"The leading party measured a delay of {delay} us, more than {MAX_DELAY_US}; stop the run."
        )
    return delay


def count_delay(tally: Tally, computing: int, leader: int) -> None:
    """The messages of `agree_on_delay`."""
    peers = [party for party in range(computing) if party != leader]
    for tokens in (1, TOKENS):
        tally.step([(leader, peer, 1) for peer in peers] * tokens)
        tally.step([(peer, leader, 1) for peer in peers] * tokens)
    tally.step([(leader, peer, 4) for peer in peers])


def latency_bytes_of(delay_us: int) -> int:
    """What a round is worth in bytes: that of one machine, and what fits into the wait."""
    return LATENCY_BYTES + BYTES_PER_US * delay_us


def _measure(stream: Wire, peers: Sequence[int]) -> int:
    _echoed(stream, peers, 1)
    return int(min(MAX_DELAY_US, _echoed(stream, peers, TOKENS) / 2 * 1e6))


def _echoed(stream: Wire, peers: Sequence[int], tokens: int) -> float:
    """The least seconds in which one of so many tokens came back from all peers."""
    sent = []
    for _ in range(tokens):
        sent.append(time.perf_counter())
        for peer in peers:
            stream.send(peer, b"\0")
    quickest = float("inf")
    for began in sent:
        for peer in peers:
            stream.receive(peer, 1)
        quickest = min(quickest, time.perf_counter() - began)
    return quickest
