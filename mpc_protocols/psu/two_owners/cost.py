"""What an alignment costs, as a function of public sizes: exponentiations, messages, bytes and rounds of each
party.

Each protocol's `cost` replays its message pattern on a `Cost`: one clock per party, raised by every message
received, just as the wire counts; blocks of lists in the exchange's own order (`exchange.turns`). `plan`
predicts with it and the tests assert it, exactly, against the wire's and the group's counters.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import zip_longest

from mpc_protocols.psu.two_owners.exchange import blocks, turns

POWER_S, GENERATED_S, HASHED_S = 49e-6, 16e-6, 17e-6
"""Seconds of one core per exponentiation, exponentiation of the generator and hash to the group in
ristretto255 (measured)."""


def block_count(count: int) -> int:
    """Messages of a list of `count` entries."""
    return len(blocks(count))


@dataclass
class Cost:
    """Counters of the owners 0 and 1 and, if it takes part, the helper 2."""

    powers: list[int] = field(default_factory=lambda: [0, 0, 0])
    generated: list[int] = field(default_factory=lambda: [0, 0, 0])
    hashes: list[int] = field(default_factory=lambda: [0, 0, 0])
    sent: list[int] = field(default_factory=lambda: [0, 0, 0])
    messages: list[int] = field(default_factory=lambda: [0, 0, 0])
    clocks: list[int] = field(default_factory=lambda: [0, 0, 0])
    _under_way: dict[tuple[int, int], deque[int]] = field(default_factory=dict, repr=False)

    @property
    def rounds(self) -> int:
        """The longest chain of messages."""
        return max(self.clocks)

    @property
    def bytes(self) -> int:
        """Bytes sent by all parties."""
        return sum(self.sent)

    def seconds(self, party: int, cores: int = 1) -> float:
        """Computing time of a party: its operations in ristretto255, which are all that matters."""
        return (
            self.powers[party] * POWER_S + self.generated[party] * GENERATED_S + self.hashes[party] * HASHED_S
        ) / cores

    def send(self, sender: int, receiver: int, size: int) -> None:
        """A message leaves."""
        self.sent[sender] += size
        self.messages[sender] += 1
        self._under_way.setdefault((sender, receiver), deque()).append(self.clocks[sender] + 1)

    def receive(self, receiver: int, sender: int) -> None:
        """The oldest message under way arrives."""
        self.clocks[receiver] = max(self.clocks[receiver], self._under_way[sender, receiver].popleft())

    def swap(self, size: int) -> None:
        """`Exchange.swap`."""
        self.stream((1, 1), size)

    def agree(self) -> None:
        """`Exchange.agree`."""
        self.swap(32)
        self.swap(2 * 32)

    def stream(self, counts: tuple[int, int], width: int | tuple[int, int], trailer: int = 0) -> None:
        """`Exchange.stream` of counts[i] entries from owner i, of one width or of width[i]."""
        widths = (width, width) if isinstance(width, int) else width
        for of_both in zip_longest(turns(*counts), turns(*reversed(counts)), fillvalue=(None, None)):
            for i, (part, _) in enumerate(of_both):
                if part is not None:
                    self.send(i, 1 - i, (part.stop - part.start) * widths[i] + trailer)
            for i, (_, part) in enumerate(of_both):
                if part is not None:
                    self.receive(i, 1 - i)
