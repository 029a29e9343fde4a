"""What a check of inputs takes (`protocol`), as sizes: a backend's costs say what travels for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_protocols.engine.inputs.check.conditions import Conditions
from mpc_protocols.engine.inputs.check.protocol import batches
from mpc_protocols.functionality import Clique, Level, StudyFacts
from mpc_protocols.public.cliques import CliqueRegister


@dataclass(frozen=True)
class CheckSizes:
    """A check of so many contributors. batches: numbers whose signs are computed together, and the bits of
    what is added to them in public."""

    contributors: int
    batches: tuple[tuple[int, int], ...]

    @property
    def signs(self) -> int:
        """All numbers."""
        return sum(numbers for numbers, _ in self.batches)


class CheckModel:
    """The checks of a run, as `InputCheck` makes them."""

    def __init__(self, facts: StudyFacts, contributors: int) -> None:
        """contributors: none are left out."""
        self._rule = facts.inputs if contributors else None
        self._contributors, self._register = contributors, CliqueRegister(facts)
        self._agreed: list[Clique] = []

    def next(self, fresh: Sequence[Clique], levels: Sequence[Level]) -> CheckSizes | None:
        """The check of cliques that are shared now, None if there is none. Raises `StudyInvalid`."""
        if self._rule is None or not fresh:
            return None
        self._register.declare(levels)
        conditions = Conditions.of(self._register, self._agreed, fresh, self._rule.max_rows)
        self._agreed += fresh
        offsets = conditions.offsets
        sizes = []
        for batch in batches(self._contributors, conditions.size):
            added = [np.bitwise_or.reduce(offsets[place]) for _, place in batch]
            sizes.append(
                (sum(place.stop - place.start for _, place in batch), int(np.bitwise_or.reduce(added)))
            )
        return CheckSizes(self._contributors, tuple(sizes))
