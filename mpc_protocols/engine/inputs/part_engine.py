"""What engines do alike whose shares of marginals are arrays that add up to them (`AdditiveMarginals`).

c is subtracted from the leader's part of a cell; cells with c = 0 need no sign: local sums.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.bitwise.argmax import peel
from mpc_protocols.engine.bitwise.bitslice import Elements, UInt
from mpc_protocols.engine.inputs.answer_exchange import AnswerExchange
from mpc_protocols.engine.inputs.grouped_sums import CellsOf, G, GroupedL1Sums, R
from mpc_protocols.engine.inputs.sourced_engine import SourcedEngine
from mpc_protocols.mechanisms.selection import SelectionPlan
from mpc_protocols.public.answers import Answers

D = TypeVar("D")
"""What sums of distances come as."""


class PartL1Sums(GroupedL1Sums[G, Elements, R], Generic[G, R, D]):
    """See `engine.interface.L1Sums`."""

    def compute(self) -> R:
        """See `L1Sums`."""
        sums: Elements = np.zeros(self._answers.candidates, np.uint32)
        distances: list[tuple[slice, D]] = []
        for layout, answers in self._answers:
            cells, compared = layout.by_dealer(map(self._cells, layout.ranges)), answers.nonzero
            sums[layout.candidates] += layout.sums(0, np.where(compared, np.uint32(0), cells), np.uint32)
            lengths = layout.sums(0, compared.astype(np.int64), np.int64)
            if count := int(np.count_nonzero(compared)):
                self.signs += count
                distances.append((layout.candidates, self._compared(answers, cells, lengths)))
        return self._total(sums, distances)

    def _compared(self, answers: Answers, cells: Elements, lengths: NDArray[np.int64]) -> D:
        """The sums of |x - c| over the cells of a group whose c is not 0: so many of each candidate. cells:
        this party's parts of all."""
        differences = cells[answers.nonzero]
        if self._answers.leads:
            differences -= answers.cells[answers.nonzero]
        return self._distances(differences, lengths)

    @abstractmethod
    def _distances(self, differences: Elements, lengths: NDArray[np.int64]) -> D:
        """The sums of |x| over consecutive segments, some empty: of this party's parts of x, modulo 2^32."""

    @abstractmethod
    def _total(self, sums: Elements, distances: Sequence[tuple[slice, D]]) -> R:
        """This party's parts of some sums, and distances of some consecutive candidates, together, in the
        step's ring."""


class PartEngine(SourcedEngine[Elements, R], Generic[G, R]):
    """An engine's part about distances, and picks. sums: how distances are computed."""

    dealers = 1
    sums: ClassVar[type[PartL1Sums[Any, Any, Any]]]
    gates: G

    def _l1_sums(
        self, cells: CellsOf[Elements], exchange: AnswerExchange, planes: int, ring: UInt
    ) -> PartL1Sums[G, R, Any]:
        return self.sums(self.gates, cells, exchange, planes, ring)

    def picks(self, keys: R, plan: SelectionPlan) -> list[int]:
        """See `Engine`."""
        gates: Any = self.gates
        return peel(gates, cast(Any, keys), plan.candidates, plan.contenders)
