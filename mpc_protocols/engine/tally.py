"""Rounds and bytes of a protocol: one logical clock per party, kept just as the wire keeps it.

Cost functions replay the message pattern of their protocols on a `Tally`, whatever the backend: what travels
in the same step is one round, and the rounds of a run are the longest chain of messages, not a sum. Nothing
here is secret: every argument is a size that the messages show anyway.

    tally = Tally.of(parties=5)
    tally.step([(0, 1, 120), (2, 1, 120)])      messages that are all sent before any of them is received
    tally.rounds, tally.sent                    the longest chain; payload bytes sent by each party
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

AGREEMENT = 32
"""Bytes of a public transcript's hash."""


@dataclass
class Tally:
    """Clocks, bytes and messages of the parties: those that compute, then the contributors. proofs: batches
    proved by all."""

    clocks: list[int]
    sent: list[int]
    messages: list[int]
    proofs: int = 0

    @classmethod
    def of(cls, parties: int = 3) -> Tally:
        """A tally of nothing yet."""
        return cls([0] * parties, [0] * parties, [0] * parties)

    @property
    def rounds(self) -> int:
        """The longest chain of messages so far."""
        return max(self.clocks)

    def step(self, transfers: Sequence[tuple[int, int, int]]) -> None:
        """Messages (sender, receiver, bytes) that are all sent before any of them is received; empty ones do
        not travel."""
        self.arrive(self.leave(transfers))

    def leave(self, transfers: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
        """The sending half of a step; returns receivers and the rounds in which the messages travel."""
        for sender, _, size in transfers:
            self.sent[sender] += size
            self.messages[sender] += size > 0
        return [(receiver, self.clocks[sender] + 1) for sender, receiver, size in transfers if size]

    def arrive(self, travelling: Sequence[tuple[int, int]]) -> None:
        """The receiving half of a step."""
        for receiver, clock in travelling:
            self.clocks[receiver] = max(self.clocks[receiver], clock)
