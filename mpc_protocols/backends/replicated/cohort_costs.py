"""What cohorts of clients cost on replicated shares: all parties run `replicated.cohorts` in memory, on blank vectors
(`engine.blank`).

The answers come from another version of the functionality, about presumed tables. CPU seconds are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.blank import NOISE_S, SIGN_S
from mpc_protocols.backends.replicated.cohorts import ReplicatedCohorts, answer, follow
from mpc_protocols.engine.blank import blank
from mpc_protocols.functionality import (
    USUAL_LEADER,
    Asking,
    Clique,
    Cohorts,
    CohortsDryRun,
    Event,
    Indices,
    Question,
)
from mpc_protocols.in_memory.blank_network import BlankNetwork
from mpc_protocols.in_memory.engine_dry_run import PATIENCE_S
from mpc_protocols.in_memory.presumed import AllowAll
from mpc_protocols.process.threads import start_thread

COMPUTING = 3


class ReplicatedCohortsDryRun(CohortsDryRun):
    """Three computing parties and further clients."""

    def __init__(self, answers: Cohorts, parties: int) -> None:
        """answers: of presumed tables. parties: all of them."""
        self._answers, self._seconds = answers, 0.0
        self._network = BlankNetwork(parties, COMPUTING, patience_s=PATIENCE_S)
        holders, guard = answers.clients, _Admitting()

        def own(party: int) -> Callable[[Question], NDArray[np.int64]] | None:
            return (lambda question: blank(question.length, np.int64)) if party in holders else None

        def others(party: int) -> None:
            wire, vector = self._network.wire(party), own(party)
            try:
                if party < COMPUTING:
                    follow(wire, vector, holders, guard, USUAL_LEADER)
                elif vector is not None:
                    answer(wire, vector, USUAL_LEADER, guard)
            except BaseException as error:
                self._network.end(party, error)

        self._leading = ReplicatedCohorts(self._network.wire(USUAL_LEADER), own(USUAL_LEADER), holders, guard)
        self._others = [start_thread(others, of) for of in range(parties) if of != USUAL_LEADER]

    def __del__(self) -> None:
        self._network.end(USUAL_LEADER, None)  # whoever waits for a question ends

    @property
    def rounds(self) -> int:
        return max(self._network.traffic(party).rounds for party in range(self._network.parties))

    @property
    def sent(self) -> Sequence[int]:
        return [self._network.traffic(party).bytes_sent for party in range(self._network.parties)]

    @property
    def seconds(self) -> float:
        return self._seconds

    @property
    def clients(self) -> Sequence[int]:
        return self._answers.clients

    def sum(
        self, question: Question, clients: Sequence[int], sigma2: Fraction, cliques: Sequence[Clique] = ()
    ) -> NDArray[np.int64]:
        """See `Cohorts`."""
        self._leading.sum(question, clients, sigma2, cliques)
        self._seconds += NOISE_S * question.length
        return self._answers.sum(question, clients, sigma2, cliques)

    def popular(
        self, question: Question, clients: Indices, least: int, event: Event, among: Indices | None = None
    ) -> tuple[int, ...]:
        """See `Cohorts`."""
        self._leading.popular(question, clients, least, event, among)
        self._seconds += SIGN_S * (question.length if among is None else len(among))
        return self._answers.popular(question, clients, least, event, among)

    def reveal(self, question: Question, clients: Sequence[int], event: Event) -> NDArray[np.int64]:
        """See `Cohorts`."""
        self._leading.reveal(question, clients, event)
        return self._answers.reveal(question, clients, event)

    def close(self) -> None:
        """See `CohortsDryRun`."""
        self._leading.close()
        for thread in self._others:
            thread.join()


class _Admitting(AllowAll):
    """Of a party that obeys."""

    def admit(self, step: Asking) -> None:
        """Any step."""
