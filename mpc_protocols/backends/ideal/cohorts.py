"""Cohorts in the clear, in one process: THEY PROTECT NOTHING. For tests, simulations and baselines."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, Cohorts, Event, Guard, Indices, LocalVector, Question
from mpc_protocols.mechanisms.gaussian import sample
from mpc_protocols.public.cohorts.public import CohortState, checked


class IdealCohorts(Cohorts):
    """Answers with exactly the distribution that a secure version has; everybody's vectors lie in this
    process's memory."""

    def __init__(
        self,
        vectors: Mapping[int, LocalVector],
        guard: Guard,
        session: bytes,
        randomness: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """vectors: of each client, by its number. session: public id of the run. randomness: another one for
        simulations only."""
        self._vectors, self._randomness = dict(vectors), randomness
        self._state = CohortState(session, guard)
        self._votes: dict[int, NDArray[np.int64]] = {}

    @property
    def clients(self) -> Sequence[int]:
        return tuple(self._vectors)

    @property
    def transcript(self) -> bytes:
        """Hash of all that is public so far."""
        return self._state.transcript

    def sum(
        self, question: Question, clients: Sequence[int], sigma2: Fraction, cliques: Sequence[Clique] = ()
    ) -> NDArray[np.int64]:
        """See `Cohorts`."""
        plan = self._state.begin_sum(self.clients, question, clients, sigma2, cliques)
        noise = sample(plan.samplers[0], question.length, self._randomness)
        noisy: NDArray[np.int64] = np.sum(self._asked(question, clients), axis=0) + noise
        self._state.opened(noisy)
        return noisy

    def popular(
        self, question: Question, clients: Indices, least: int, event: Event, among: Indices | None = None
    ) -> tuple[int, ...]:
        """See `Cohorts`."""
        fresh, positions = self._state.begin_popular(self.clients, question, clients, least, event, among)
        if fresh:
            self._votes = dict(zip(clients, self._asked(question, clients), strict=True))
        votes = np.sum([self._votes[client] for client in clients], axis=0)
        found = tuple(q for q in positions if votes[q] >= least)
        self._state.opened(np.array(found, np.int64))
        return found

    def reveal(self, question: Question, clients: Sequence[int], event: Event) -> NDArray[np.int64]:
        """See `Cohorts`."""
        self._state.begin_reveal(self.clients, question, clients, event)
        total: NDArray[np.int64] = np.sum(self._asked(question, clients), axis=0)
        self._state.opened(total)
        return total

    def _asked(self, question: Question, clients: Sequence[int]) -> list[NDArray[np.int64]]:
        return [checked(question, self._vectors[client](question), client) for client in clients]
