"""What the L1 distances of a step are computed from, in every engine: gates, marginals' cells, the model's
answers in groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from mpc_protocols.engine.bitwise.bitslice import UInt
from mpc_protocols.engine.inputs.answer_exchange import AnswerExchange
from mpc_protocols.engine.inputs.marginals import S
from mpc_protocols.public.answers import CellRange

G = TypeVar("G")
"""A backend's gates."""
R = TypeVar("R")
"""What a step computes with."""
CellsOf = Callable[[CellRange], S]
"""This party's share of a range of cells."""


class GroupedL1Sums(ABC, Generic[G, S, R]):
    """See `engine.interface.L1Sums`. Groups take turns, so that memory does not grow with the candidates'
    cells."""

    def __init__(self, gates: G, cells: CellsOf[S], answers: AnswerExchange, planes: int, ring: UInt) -> None:
        """planes: bits of a cell's difference. ring: of the sums."""
        self._gates, self._cells, self._answers, self._planes, self._ring = (
            gates,
            cells,
            answers,
            planes,
            ring,
        )
        self._forms: dict[str, None] = {}
        self.signs = 0

    @property
    def form(self) -> str:
        """The forms of adders that were taken; "sums" where no cell needed a sign."""
        return "+".join(self._forms) or "sums"

    def exchange(self) -> None:
        """See `L1Sums`."""
        self._answers.begin()

    @abstractmethod
    def compute(self) -> R:
        """See `L1Sums`."""
