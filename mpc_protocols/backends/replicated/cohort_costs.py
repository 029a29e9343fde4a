"""What cohorts of clients cost on replicated shares: every message of `replicated.cohorts`, replayed on a
tally.

The answers come from another version of the functionality, about presumed tables. The tests assert rounds and
bytes against the wire's counters, exactly. Nothing here is secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.blank import NOISE_S, SIGN_S
from mpc_protocols.backends.replicated.costs import WORD, agreement, gaussian_noise, opening, sharing, signs
from mpc_protocols.engine.bitwise.bitslice import words_for
from mpc_protocols.engine.inputs.contribution import SEED_BYTES
from mpc_protocols.engine.tally import Tally
from mpc_protocols.functionality import (
    POPULAR,
    REVEAL,
    SUM,
    USUAL_LEADER,
    Clique,
    Cohorts,
    CohortsDryRun,
    Event,
    Indices,
    Question,
)
from mpc_protocols.mechanisms.gaussian import sampler
from mpc_protocols.public.cohorts.steps import DIGEST_BYTES, END, CohortStep

COMPUTING = 3
CELL_BITS = 32


class ReplicatedCohortsDryRun(CohortsDryRun):
    """Three computing parties and further clients."""

    def __init__(self, answers: Cohorts, parties: int) -> None:
        """answers: of presumed tables. parties: all of them."""
        self._answers, self._tally = answers, Tally.of(parties)
        self._seconds = 0.0
        self._votes: tuple[bytes, int] = (b"", 0)

    @property
    def rounds(self) -> int:
        return self._tally.rounds

    @property
    def sent(self) -> Sequence[int]:
        return self._tally.sent

    @property
    def seconds(self) -> float:
        return self._seconds

    @property
    def clients(self) -> Sequence[int]:
        return self._answers.clients

    def sum(
        self,
        question: Question,
        clients: Sequence[int],
        sigma2: Fraction,
        cliques: Sequence[Clique] = (),
    ) -> NDArray[np.int64]:
        """See `Cohorts`."""
        self._ask(CohortStep(SUM, question, tuple(clients), sigma2=sigma2, cliques=tuple(cliques)))
        sharing(self._tally, question.length)
        gaussian_noise(self._tally, sampler(sigma2), question.length)
        opening(self._tally, question.length)
        self._seconds += NOISE_S * question.length
        return self._answers.sum(question, clients, sigma2, cliques)

    def popular(
        self, question: Question, clients: Indices, least: int, event: Event, among: Indices | None = None
    ) -> tuple[int, ...]:
        """See `Cohorts`."""
        fresh = question.content != self._votes[0]
        positions = None if among is None else tuple(among)
        self._ask(
            CohortStep(POPULAR, question, tuple(clients), fresh, least=least, among=positions, event=event)
        )
        if fresh:
            self._votes = question.content, len(clients)
            sharing(self._tally, len(clients) * question.length)
        compared = question.length if positions is None else len(positions)
        if compared:
            signs(self._tally, compared, CELL_BITS, "tree")
            opening(self._tally, words_for(compared), WORD)
        self._seconds += SIGN_S * compared
        return self._answers.popular(question, clients, least, event, among)

    def reveal(self, question: Question, clients: Sequence[int], event: Event) -> NDArray[np.int64]:
        """See `Cohorts`."""
        self._ask(CohortStep(REVEAL, question, tuple(clients), event=event))
        sharing(self._tally, question.length)
        opening(self._tally, question.length)
        return self._answers.reveal(question, clients, event)

    def close(self) -> None:
        """See `CohortsDryRun`."""
        self._tell(CohortStep(END, clients=tuple(self.clients)))

    def _ask(self, step: CohortStep) -> None:
        """A step is told, the three agree on it, and those who are asked send their vectors."""
        self._tell(step)
        agreement(self._tally)
        for client in step.clients if step.asked else ():
            if client >= COMPUTING:
                length = 4 * step.question.length + DIGEST_BYTES
                first, second = client % COMPUTING, (client + 1) % COMPUTING
                self._tally.step([(client, first, SEED_BYTES + DIGEST_BYTES), (client, second, length)])

    def _tell(self, step: CohortStep) -> None:
        size = len(step.to_bytes())
        computing = [party for party in range(COMPUTING) if party != USUAL_LEADER]
        asked = [client for client in step.clients if client >= COMPUTING] if step.asked else []
        self._tally.step([(USUAL_LEADER, party, size) for party in (*computing, *asked)])
