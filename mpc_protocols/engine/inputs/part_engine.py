"""What engines do alike whose shares of marginals are arrays that add up to them (`AdditiveMarginals`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.argmax import peel
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.engine.inputs.answer_exchange import AnswerExchange
from mpc_protocols.engine.inputs.marginals import AdditiveMarginals
from mpc_protocols.engine.inputs.sourced_engine import R, SourcedEngine
from mpc_protocols.engine.interface import Turns
from mpc_protocols.functionality import Handle
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.answers import DealerLayout
from mpc_protocols.public.rounded_answers import AnnouncedAnswers, RoundedAnswers
from mpc_protocols.public.state import PublicState

G = TypeVar("G", bound=Turns)
"""A backend's gates."""
D = TypeVar("D")
"""What sums of distances come as."""


@dataclass
class PartL1Sums(ABC, Generic[G, R, D]):
    """See `engine.interface.L1Sums`. Groups take turns, so that memory does not grow with the candidates' cells.

    c is subtracted from the leader's part, and cells with c = 0 need no sign: local sums.
    """

    _gates: G
    _marginals: AdditiveMarginals
    _state: PublicState
    _answers: AnswerExchange
    _planes: int
    _ring: UInt
    signs: int = 0
    _forms: dict[str, None] = field(default_factory=dict)

    @property
    def form(self) -> str:
        """The forms of adders that were taken; "sums" where no cell needed a sign."""
        return "+".join(self._forms) or "sums"

    def exchange(self) -> None:
        """See `L1Sums`."""
        self._answers.begin()

    def compute(self) -> R:
        """See `L1Sums`."""
        sums: Elements = np.zeros(self._answers.candidates, np.uint32)
        distances: list[tuple[slice, D]] = []
        for layout, answers in self._answers:
            cells, compared = self._cells(layout), answers.nonzero
            sums[layout.candidates] += layout.sums(0, np.where(compared, np.uint32(0), cells), np.uint32)
            lengths = layout.sums(0, compared.astype(np.int64), np.int64)
            differences = cells[compared]
            if not len(differences):
                continue
            if self._answers.leads:
                differences -= answers.cells[compared]
            self.signs += len(differences)
            distances.append((layout.candidates, self._distances(differences, lengths)))
        return self._total(sums, distances)

    @abstractmethod
    def _distances(self, differences: Elements, lengths: NDArray[np.int64]) -> D:
        """The sums of |x| over consecutive segments, some empty: of this party's parts of x, modulo 2^32."""

    @abstractmethod
    def _total(self, sums: Elements, distances: Sequence[tuple[slice, D]]) -> R:
        """This party's parts of some sums, and distances of some consecutive candidates, together, in the step's ring."""

    def _cells(self, layout: DealerLayout) -> Elements:
        """This party's part of all cells of a group, in dealt order."""
        return layout.by_dealer(
            self._marginals.marginal(self._state, cells.handle)[cells.start : cells.stop]
            for cells in layout.ranges
        )


class PartEngine(SourcedEngine[Elements, R], Generic[G, R]):
    """An engine's part about marginals, their distances, and picks. sums: how distances are computed."""

    dealers = 1
    sums: ClassVar[Callable[..., PartL1Sums[Any, Any, Any]]]
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
    ) -> PartL1Sums[G, R, Any]:
        """See `Engine`."""
        exchange = AnswerExchange(self.wire, self.gates, self._leader, announced, rounded)
        return self.sums(self.gates, self._marginals, state, exchange, planes, ring)

    def picks(self, keys: R, plan: SelectionPlan) -> list[int]:
        """See `Engine`."""
        gates: Any = self.gates
        return peel(gates, cast(Any, keys), plan.candidates, plan.contenders)
