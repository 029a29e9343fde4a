"""What a run with proofs costs: the ideal oracle on a presumed table, beside the leading party's own code (`counted`).

No private data, nothing released, nothing charged. Answers are the ideal ones; what is picked follows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from mpc_protocols.backend import AllowAll
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.engine.tally import Tally
from mpc_protocols.functionality import Handle, LocalCounts, StudyFacts
from mpc_protocols.ideal.dry_run import IdealDryRun
from mpc_protocols.public.begun import (
    Begun,
    BegunDistances,
    BegunMeasure,
    BegunPrepare,
    BegunSelect,
    BegunTotal,
)
from mpc_protocols.public.steps import EndStep, PrepareStep
from mpc_protocols.replicated import step_costs
from mpc_protocols.replicated.proved.counted import LEADER, CountedEngine
from mpc_protocols.replicated.proved.engine import DEALERS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpc_protocols.public.rounded_answers import RoundedAnswers
    from mpc_protocols.public.state import PublicState

PRODUCT_BYTES = 2
"""Of a product until it is proved: X, Y and shares of them in three roles, and once more as rows of a proof."""
PRODUCT_S = 13e-9
"""CPU seconds of a party for a product and its proof, while others run on the same machine."""


class ProvedDryRun(IdealDryRun):
    """Three computing parties and `contributors` others."""

    def __init__(self, facts: StudyFacts, counts: LocalCounts, contributors: int) -> None:
        """counts: marginals of the presumed table."""
        super().__init__(facts, counts, 3 + contributors, DEALERS, self._count)
        self._tally = Tally.of(3 + contributors)
        step_costs.agree_on_delay(self._tally)
        self._engine = CountedEngine(self._tally, facts, contributors)
        self._party = ComputingParty(self._engine, facts, AllowAll(), None, delay=0)
        self._party.state = cast(Any, _Learned(self._ideal.state))
        self._marks: list[tuple[int, int]] = []
        self._selecting: tuple[BegunSelect, RoundedAnswers] | None = None

    @property
    def rounds(self) -> int:
        return self._tally.rounds

    @property
    def sent(self) -> Sequence[int]:
        return self._tally.sent

    @property
    def marks(self) -> Sequence[tuple[int, int]]:
        return self._marks

    @property
    def input_checks(self) -> tuple[int, int]:
        rounds, sent = self._engine.check_cost
        return rounds, sent

    @property
    def beside_bytes(self) -> int:
        """Products that are proved together, and what every custodian has shared."""
        custodians = len(self._tally.clocks)
        return PRODUCT_BYTES * self._engine.counted_gates.most_unproved + 8 * custodians * self.shared_cells

    @property
    def seconds(self) -> float:
        gates = self._engine.counted_gates, self._engine.counted_beside
        return PRODUCT_S * sum(of.products for of in gates)

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
        self._engine.picked = picked
        self._party.select(*self._selecting)
        return picked

    def close(self) -> None:
        end = EndStep().to_bytes()
        contributors = self._party.wire.contributors
        step_costs.announce(self._tally, len(end), [(LEADER, q, len(end)) for q in contributors])
        self._engine.differing(bytes(32))

    def _count(self, begun: Begun, rounded: RoundedAnswers | None) -> None:
        """What a step sends; a selection is counted when it is known what is picked."""
        party, request = self._party, None
        if isinstance(begun, BegunPrepare) and begun.fresh:
            request = PrepareStep(begun.fresh, begun.levels)
        elif isinstance(begun, BegunTotal) and party.shares_rows_first(begun):
            request = PrepareStep((party.smallest(),), ())
        asked = [(LEADER, q, len(request.to_bytes())) for q in party.wire.contributors] if request else []
        step_costs.announce(self._tally, len(begun.step.to_bytes()), asked)
        if isinstance(begun, BegunSelect):
            assert rounded is not None
            self._selecting = begun, rounded
        elif isinstance(begun, BegunDistances):
            party.distances(begun, rounded)
        elif not isinstance(begun, BegunSelect):
            party.run(begun)
        if isinstance(begun, BegunMeasure):
            self._marks.append((self.rounds, sum(self.sent)))


class _Learned:
    """The ideal oracle's public state, which learns by itself what a step opens."""

    def __init__(self, state: PublicState) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def _nothing(self, *_: object) -> None:
        """What is opened here is zeros."""

    learn_selection = learn_counts = learn_distances = learn_total = _nothing
