"""What engines do alike whose shares of marginals are arrays that add up to them (`AdditiveMarginals`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.engine.inputs.answer_exchange import AnswerExchange
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.inputs.sourced_engine import R, SourcedEngine
from mpc_protocols.engine.interface import Turns
from mpc_protocols.functionality import Handle
from mpc_protocols.public.answers import DealerLayout
from mpc_protocols.public.rounded_answers import AnnouncedAnswers, RoundedAnswers
from mpc_protocols.public.state import PublicState

G = TypeVar("G", bound=Turns)
"""A backend's gates."""


@dataclass
class PartL1Sums(Generic[G, R]):
    """See `engine.interface.L1Sums`. Groups take turns, so that memory does not grow with the candidates' cells."""

    _gates: G
    _marginals: AdditiveMarginals
    _state: PublicState
    _answers: AnswerExchange
    _planes: int
    _ring: UInt
    signs: int = 0
    form: str = "sums"

    def exchange(self) -> None:
        """See `L1Sums`."""
        self._answers.begin()

    @abstractmethod
    def compute(self) -> R:
        """See `L1Sums`."""

    def _cells(self, layout: DealerLayout) -> Elements:
        """This party's part of all cells of a group, in dealt order."""
        return layout.by_dealer(
            self._marginals.marginal(self._state, cells.handle)[cells.start : cells.stop]
            for cells in layout.ranges
        )


class PartEngine(SourcedEngine[Elements, R], Generic[G, R]):
    """An engine's part about marginals and their distances. sums: how these are computed."""

    sums: ClassVar[Callable[..., PartL1Sums[Any, Any]]]
    gates: G
    _leader: int
    _marginals: AdditiveMarginals

    def marginals(self, state: PublicState, handles: Sequence[Handle]) -> R:
        """See `Engine`."""
        return self.numbers(np.concatenate([self._marginals.marginal(state, handle) for handle in handles]))

    def l1_sums(
        self,
        state: PublicState,
        announced: AnnouncedAnswers,
        planes: int,
        ring: UInt,
        rounded: RoundedAnswers | None,
    ) -> PartL1Sums[G, R]:
        """See `Engine`."""
        exchange = AnswerExchange(self.wire, self.gates, self._leader, announced, rounded)
        return self.sums(self.gates, self._marginals, state, exchange, planes, ring)
