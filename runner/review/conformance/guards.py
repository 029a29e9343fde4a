"""Guards that note what they are asked, and may refuse it: for suites and tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import Asking, Event, Guard


@dataclass
class Recorder(Guard):
    """Notes what it was asked and allows it, but for the event of number `refuse_from` (from 0) and all later
    ones.

    on_event: called with the event before it is allowed or refused.
    """

    refuse_from: int | None = None
    on_event: Callable[[Event], None] | None = None
    asked: list[tuple[Event, bytes]] = field(default_factory=list)
    """What it allowed."""
    refused: int = 0

    @property
    def events(self) -> list[Event]:
        """What it allowed, without the hash of the inputs."""
        return [event for event, _ in self.asked]

    @property
    def rho(self) -> Fraction:
        """What it allowed, in all."""
        return sum((event.rho for event in self.events), Fraction(0))

    def authorise(self, event: Event, inputs: bytes) -> None:
        if self.on_event is not None:
            self.on_event(event)
        if self.refuse_from is not None and len(self.asked) >= self.refuse_from:
            self.refused += 1
            raise BudgetRefused("The budget of this custodian is spent.")
        self.asked.append((event, inputs))


@dataclass
class StepRecorder(Recorder):
    """A guard of a party that obeys a leader: it notes every step and admits it."""

    steps: list[Asking] = field(default_factory=list)

    def admit(self, step: Asking) -> None:
        self.steps.append(step)


def refusing() -> StepRecorder:
    """A guard that refuses whatever it is asked."""
    return StepRecorder(refuse_from=0)
