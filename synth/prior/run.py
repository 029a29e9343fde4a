"""A run that may begin from a prior: what an algorithm's own run is derived from, beside `synth.run.Run`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from synth.mrf.fit import TOLERANCE
from synth.run import Run
from synth.synthesis import Synthesis

if TYPE_CHECKING:
    from synth.prior.inheritance import Inheritance


class Heir(Run):
    """A run whose model follows what it inherits. inheritance: None of a run that begins from nothing.
    inherited_mb: of the model when only that was in it."""

    inheritance: Inheritance | None = None
    inherited_mb: float = 0.0

    @property
    def is_inheriting(self) -> bool:
        """Whether the model follows dependences of a prior."""
        return self.inheritance is not None and self.inheritance.is_followed

    def judge(self) -> None:
        """Take note of what has been measured, and follow the prior as far as that allows."""
        if self.inheritance is not None:
            self.inheritance.judge(self.measurements)
            self.inherited = self.inheritance.measurements

    def refit(self, number: int, iterations: int, tolerance: float = TOLERANCE) -> None:
        """As `Run.refit`, with what is inherited."""
        self.judge()
        super().refit(number, iterations, tolerance)

    def synthesis(self) -> Synthesis:
        """As `Run.synthesis`; with how the prior fared."""
        found = super().synthesis()
        return found if self.inheritance is None else replace(found, prior=self.inheritance.verdict)
