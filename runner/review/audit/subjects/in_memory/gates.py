"""The gates of a backend in a run in memory: parties that run a script of their own on shared bits, and what
each is sent.

What a protocol does with marginals is made of gates (`mpc_protocols.engine.interface`). Here they are run
alone, on bits that nobody knows, so that what a party receives for ONE gate can be held against all that it
knows and against the secret itself. All backends over an engine are looked at without new code; one that runs
on none cannot be.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.bitslice import to_planes, words_for
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.in_memory.memory_wire import MemoryWire
from runner.review.audit.subjects.in_memory.arena import Arena, Coins

RELEASE = bytes(range(32))
PRODUCT, SUM, LESS = "an AND", "bits made numbers", "a comparison"
LESS_PLANES = 8
"""Bits of the numbers that are compared."""


@dataclass(frozen=True)
class Message:
    """One message: in which phase of the sender's script, from whom, to whom."""

    phase: str
    sender: int
    receiver: int
    payload: bytes


@dataclass
class GateRun:
    """What a run of the script left. x, y: the secret operands, words; number: the planes of the numbers that
    are compared.

    parts: of each party, its shares of x and y, one array of words for each part. results: of each party, its
    parts of what the phase of this name came to. messages: of each phase.
    """

    x: NDArray[np.uint64]
    y: NDArray[np.uint64]
    left: NDArray[np.uint64]
    right: NDArray[np.uint64]
    parts: dict[int, list[NDArray[np.uint64]]] = field(default_factory=dict)
    results: dict[tuple[int, str], list[NDArray[np.uint64]]] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)


class _Script:
    """What every computing party does as soon as it has its engine."""

    def __init__(self, cells: int, repetitions: int) -> None:
        self.cells, self.repetitions = cells, repetitions
        self.phases: dict[int, str] = {}
        self.parts: dict[int, list[NDArray[np.uint64]]] = {}
        self.results: dict[tuple[int, str], list[NDArray[np.uint64]]] = {}
        self.opened: list[NDArray[np.int64]] = []
        self.messages: list[Message] = []
        self._lock = threading.Lock()

    def run(self, engine: Any) -> None:
        """ANDs of the same operands again and again, a sum, a comparison; in the end the operands are opened."""
        me, gates = engine.wire.me, engine.gates
        words = words_for(self.cells)
        source = gates.release_bits(RELEASE)
        x, y = source((1, words)), source((1, words))
        left, right = source((LESS_PLANES, words)), source((LESS_PLANES, words))
        self.parts[me] = [part[0].copy() for bits in (x, y) for part in bits.parts]
        for number in range(self.repetitions):
            self.phases[me] = f"{PRODUCT}, {number}"
            self._keep(me, gates.and_bits(x, y)[0])
        weights = [1 << bit for bit in range(LESS_PLANES)]
        for number in range(2):
            self.phases[me] = f"{SUM}, {number}"
            gates.weighted_sum(x, (1,), self.cells, np.uint32)
        self.phases[me] = "numbers"
        numbers = [gates.weighted_sum(bits, weights, self.cells, np.uint32) for bits in (left, right)]
        for number in range(2):
            self.phases[me] = f"{LESS}, {number}"
            self._keep(me, gates.less(*numbers))
        self.phases[me] = "opening"
        secrets = [gates.weighted_sum(bits, (1,), self.cells, np.uint32) for bits in (x, y)]
        opened = [engine.reveal(each) for each in (*secrets, *numbers)]
        self.phases[me] = ""
        if me == 0:
            self.opened = opened

    def _keep(self, me: int, bits: Any) -> None:
        self.results[me, self.phases[me]] = [part.copy() for part in bits.parts]

    def sent(self, sender: int, receiver: int, payload: bytes) -> None:
        """Note a message under what its sender is at."""
        with self._lock:
            self.messages.append(Message(self.phases.get(sender, ""), sender, receiver, payload))


def run_gates(arena: Arena, tables: Any, coins: Coins | None, cells: int, repetitions: int) -> GateRun | None:
    """Run the script in a backend; None if it runs on no engine. cells: a multiple of 64."""
    script = _Script(cells, repetitions)
    begin, send = ComputingParty.__init__, MemoryWire.send

    def began(party: Any, engine: Any, *given: Any, **named: Any) -> None:
        begin(party, engine, *given, **named)
        script.run(engine)

    def noted(wire: MemoryWire, peer: int, payload: Any) -> None:
        script.sent(wire.me, peer, bytes(payload))
        send(wire, peer, payload)

    with mock.patch.object(ComputingParty, "__init__", began), mock.patch.object(MemoryWire, "send", noted):
        arena.run(lambda oracle: None, tables, coins)
    if not script.opened:
        return None
    planes = [
        to_planes(each.astype(np.uint32), bits)
        for each, bits in zip(script.opened, (1, 1, LESS_PLANES, LESS_PLANES), strict=True)
    ]
    return GateRun(
        planes[0][0], planes[1][0], planes[2], planes[3], script.parts, script.results, script.messages
    )
