"""What follows from a step once it has begun: one frozen object each, which is passed on
(`docs/design/engine.md` 5).

`PublicState.begin` makes them from public inputs alone, alike at every computing party. `inputs` is 32 bytes:
the value of the transcript with the step and its plan in it, to which noise nonces and the journal's entry
are bound. Whoever runs the step needs nothing else of the public state.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpc_protocols.functionality import Clique, Event, Handle, Level
    from mpc_protocols.mechanisms.gaussian import Sampler
    from mpc_protocols.mechanisms.measurement import MeasurePlan
    from mpc_protocols.mechanisms.selection import SelectionPlan
    from mpc_protocols.public.rounded_answers import AnnouncedAnswers
    from mpc_protocols.public.steps import (
        DistanceStep,
        EndStep,
        MeasureStep,
        PrepareStep,
        SelectStep,
        TotalStep,
    )


@dataclass(frozen=True)
class BegunPrepare:
    """handles: of the step's cliques. fresh: the cliques that must be shared for it; the others are sums of
    shared ones. levels: those that the fresh cliques name."""

    step: PrepareStep
    inputs: bytes
    handles: tuple[Handle, ...]
    fresh: tuple[Clique, ...]
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class BegunSelect:
    """answers: what was announced of the answers of the candidates kept. expected: the noise that the
    measurement of what is picked will take, and at most so many draws of it; None if that is not known."""

    step: SelectStep
    inputs: bytes
    plan: SelectionPlan
    answers: AnnouncedAnswers
    expected: tuple[Sampler, int] | None

    def authorisations(self) -> list[tuple[Event, bytes]]:
        """The event of each pick with the hash of its inputs: different ones, for each is a release of its
        own."""
        return [(event, self.pick_inputs(number)) for number, event in enumerate(self.plan.events)]

    def pick_inputs(self, number: int) -> bytes:
        """The hash of a pick's public inputs; what the earlier picks were is a function of them and of the
        noise."""
        return (
            self.inputs if number == 0 else hashlib.sha256(self.inputs + number.to_bytes(8, "big")).digest()
        )


@dataclass(frozen=True)
class BegunMeasure:
    """cells: of each handle's marginal. plan.samplers: the noise of each. promised: by the selection before:
    nobody sends it. expected: the noise of the measurement after the next selection, and about how many draws of it that
    takes at most; several if it may be one of several; none if that is not known."""

    step: MeasureStep
    inputs: bytes
    plan: MeasurePlan
    cells: tuple[int, ...]
    promised: bool
    expected: tuple[tuple[Sampler, int], ...] = ()


@dataclass(frozen=True)
class BegunDistances:
    """answers: as of a selection that keeps every candidate."""

    step: DistanceStep
    inputs: bytes
    plan: MeasurePlan
    answers: AnnouncedAnswers


@dataclass(frozen=True)
class BegunTotal:
    """The number of rows."""

    step: TotalStep
    inputs: bytes
    plan: MeasurePlan


@dataclass(frozen=True)
class BegunEnd:
    """Nothing follows."""

    step: EndStep
    inputs: bytes


Begun = BegunPrepare | BegunSelect | BegunMeasure | BegunDistances | BegunTotal | BegunEnd
