"""Toy backends that ask their guards after computing: before the result is held, or opened, or afterwards.
What the conformance suite must find."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.backend import Ideal
from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.replicated.semi_honest import Replicated
from mpc_protocols.functionality import Event, Guard, LocalCounts, MarginalOracle, Observe, StudyFacts
from mpc_protocols.public.history import NO_HISTORY, History, NoHistory
from mpc_protocols.wire import Wire

if TYPE_CHECKING:
    from mpc_protocols.backend import OracleData

When = Literal["before holding", "before opening", "afterwards"]


class Deferred(NoHistory, Guard):
    """A guard and a history in one: the guard that decides is asked when the history is told of the result."""

    def __init__(self, guard: Guard, history: History, when: When) -> None:
        self._guard, self._history, self._when = guard, history, when
        self._due: list[tuple[Event, bytes]] = []

    def authorise(self, event: Event, inputs: bytes) -> None:
        """Later."""
        self._due.append((event, inputs))

    def hold(self, number: int, inputs: bytes, shares: Callable[[], bytes]) -> None:
        self._ask(self._when == "before holding")
        self._history.hold(number, inputs, shares)

    def agreed(self, number: int) -> None:
        self._ask(self._when == "before opening")
        self._history.agreed(number)

    def learn(self, number: int, inputs: bytes, values: NDArray[np.int64]) -> None:
        self._history.learn(number, inputs, values)
        self._ask(True)

    def _ask(self, now: bool) -> None:
        while now and self._due:
            self._guard.authorise(*self._due.pop(0))


class LateInTheClear(Ideal):
    """`ideal` with late guards."""

    def __init__(self, when: When) -> None:
        self._when = when

    def oracle(
        self, facts: StudyFacts, counts: LocalCounts, guard: Guard, history: History = NO_HISTORY
    ) -> MarginalOracle:
        late = Deferred(guard, history, self._when)
        return IdealOracle(facts, counts, late, history=late)


class LateOnShares(Replicated):
    """`replicated` with late guards, at every party."""

    def __init__(self, when: When) -> None:
        super().__init__()
        self._when = when

    def lead(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: OracleData | None,
        guard: Guard,
        observe: Observe,
        history: History = NO_HISTORY,
    ) -> AbstractContextManager[MarginalOracle]:
        late = Deferred(guard, history, self._when)
        return super().lead(wire, facts, data, late, observe, late)

    def follow(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: OracleData | None,
        guard: Guard,
        observe: Observe,
        history: History = NO_HISTORY,
    ) -> list[NDArray[np.int64]]:
        late = Deferred(guard, history, self._when)
        return super().follow(wire, facts, data, late, observe, late)
