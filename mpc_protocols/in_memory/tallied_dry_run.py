"""The ideal oracle on a presumed table, beside a tally of what every party would send: what all cost models
have in common.

`engine_dry_run` runs all parties' own code, `party_dry_run` the leader's. No private data, nothing released,
nothing charged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mpc_protocols.backends.ideal.dry_run import IdealDryRun
from mpc_protocols.functionality import Handle, LocalCounts, StudyFacts
from mpc_protocols.public.begun import Begun, BegunMeasure, BegunSelect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.engine.tally import Tally
    from mpc_protocols.public.rounded_answers import RoundedAnswers
    from mpc_protocols.public.state import PublicState


class TalliedDryRun(IdealDryRun):
    """Answers in the clear, of the same distribution. tally: clocks, bytes and messages so far."""

    def __init__(self, facts: StudyFacts, counts: LocalCounts, tally: Tally, dealers: int) -> None:
        """counts: marginals of the presumed table."""
        super().__init__(facts, counts, len(tally.clocks), dealers, self._watch)
        self.tally = tally
        self._marks: list[tuple[int, int]] = []
        self._selecting: tuple[BegunSelect, RoundedAnswers] | None = None

    @property
    def rounds(self) -> int:
        return self.tally.rounds

    @property
    def sent(self) -> Sequence[int]:
        return self.tally.sent

    @property
    def proofs(self) -> int:
        return self.tally.proofs

    @property
    def marks(self) -> Sequence[tuple[int, int]]:
        return self._marks

    def select(
        self,
        handles: Sequence[Handle],
        answers: Sequence[NDArray[np.float64]],
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        picked = super().select(handles, answers, weights, penalties, epsilon, picks, conflicts)
        assert self._selecting is not None
        self._count_select(*self._selecting, picked)
        return picked

    def _watch(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        if isinstance(begun, BegunSelect):
            assert rounded is not None
            self._selecting = begun, rounded  # counted when it is known what was picked
        else:
            self._count(begun, rounded)
        if isinstance(begun, BegunMeasure):
            self._marks.append((self.rounds, sum(self.sent)))

    @abstractmethod
    def _count(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        """What a step sends that is no selection."""

    @abstractmethod
    def _count_select(self, begun: BegunSelect, rounded: RoundedAnswers, picked: Sequence[int]) -> None:
        """What a selection sends in which these are picked."""


class Learned:
    """The ideal oracle's public state, which learns by itself what a step opens."""

    def __init__(self, state: PublicState) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def _nothing(self, *_: object) -> None:
        """What is opened here is blank."""

    learn_selection = learn_counts = learn_distances = learn_total = _nothing
