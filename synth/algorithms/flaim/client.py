"""A client of a FLAIM study: one custodian's answers, and what its own records have been charged
(`docs/design/flaim.md` 2).

Nothing is believed but the plan: noise and epsilon are the plan's, the number of participations is counted
here, and a question is answered once, in its order: size, then columns or a drawn marginal, then a choice,
then counts. The client's noisy size is drawn once and stays; its choices and its size are private before they
leave. Counts leave exact, for `Cohorts`, which add noise nobody knows.

Randomness comes from the operating system; another source is for simulations and tests.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.errors import BudgetRefused, ProtocolAborted
from mpc_protocols.functionality import Clique, LocalCounts, Question
from mpc_protocols.mechanisms.gaussian import sample, sampler
from mpc_protocols.mechanisms.rounding import theta_of
from synth.algorithms.flaim.plan import FlaimPlan
from synth.algorithms.flaim.questions import Asked, parse, question_of
from synth.algorithms.flaim.scores import (
    Counts,
    Randomness,
    against_columns,
    choose,
    distances,
    lcm_of,
    scaled_to,
)
from synth.mrf import Model


class Client:
    """Answers questions about one table (`LocalVector`)."""

    def __init__(
        self,
        plan: FlaimPlan,
        counts: LocalCounts,
        session: bytes,
        randomness: Randomness = secrets.token_bytes,
    ) -> None:
        """counts: of the client's own table. session: public id of the run."""
        self._plan, self._counts, self._session = plan, counts, session
        self._randomness = randomness
        self._round = 0
        self._asked: set[str] = set()
        self._registered = False
        self._columns = False
        self._size: int | None = None
        self._choice: Clique | None = None
        self.participations = 0
        self.charged = Fraction(0)
        """zCDP that the client's records have been charged."""

    def __call__(self, question: Question) -> NDArray[np.int64]:
        """Answer. Raises `BudgetRefused` (one participation too many), `ProtocolAborted` (a question out of
        order)."""
        asked = parse(question.content)
        unknown = {name for clique in asked.cliques for name in clique} - self._plan.domain.sizes.keys()
        repeated = len(set(asked.cliques)) < len(asked.cliques)
        if unknown or repeated or question.sensitivity2 != question_of(self._plan, asked).sensitivity2:
            raise ProtocolAborted("A client was asked a question that charges it too little; stop the run.")
        vector = getattr(self, f"_answer_{asked.kind}")(asked)
        if len(vector) != question.length:
            raise ProtocolAborted("A client was asked for a vector of another length than its question has.")
        return np.asarray(vector, dtype=np.int64)

    def _answer_register(self, asked: Asked) -> Counts:
        if self._registered or self._round or not self._plan.registration_sigma2:
            raise BudgetRefused("This client is registered already, or the study has no registration.")
        self._registered = True
        self.charged += len(self._plan.one_way) * self._plan.charges.measuring(self._plan.registration_sigma2)
        return np.concatenate(self._counts(self._plan.one_way))

    def _answer_size(self, asked: Asked) -> Counts:
        if self.participations >= self._plan.participations:
            raise BudgetRefused(
                f"This client has taken part {self.participations} times, as often as the study allows."
            )
        if asked.round <= self._round:
            raise ProtocolAborted("A client was invited to a round that is over.")
        self.participations += 1
        self._round, self._asked, self._choice = asked.round, set(), None
        return np.array([self._own_size()])

    def _answer_columns(self, asked: Asked) -> Counts:
        first = self._plan.variant.starts_with_columns and not self._columns
        self._in_turn(asked, "columns", first or self._plan.variant.columns)
        self._columns = True
        self.charged += len(self._plan.one_way) * self._plan.charges.measuring(self._plan.sigma2)
        return np.concatenate(self._counts(self._plan.one_way))

    def _answer_drawn(self, asked: Asked) -> Counts:
        self._in_turn(asked, "drawn", self._plan.variant.draws and len(asked.cliques) == 1)
        self.charged += self._plan.charges.measuring(self._plan.sigma2)
        return np.concatenate([*self._counts(asked.cliques), np.array([self._own_size()])])

    def _answer_choose(self, asked: Asked) -> Counts:
        allowed = self._plan.variant.chooses and bool(asked.cliques) and asked.rows > 0
        self._in_turn(asked, "choose", allowed and set(asked.cliques) <= self._plan.candidates.keys())
        self.charged += self._plan.charges.selecting(self._plan.epsilon)
        position = self._chosen(asked)
        self._choice = asked.cliques[position]
        vote = np.zeros(len(asked.cliques), np.int64)
        vote[position] = 1
        return vote

    def _answer_counts(self, asked: Asked) -> Counts:
        self._in_turn(asked, "counts", self._choice is not None)
        self.charged += self._plan.charges.measuring(self._plan.sigma2)
        parts, zero = [], np.zeros(1, np.int64)
        for clique in asked.cliques:
            if clique == self._choice:
                parts += [*self._counts([clique]), np.array([self._own_size()])]
            else:
                parts += [np.zeros(self._plan.candidates[clique], np.int64), zero]
        return np.concatenate(parts)

    def _answer_truth(self, asked: Asked) -> Counts:
        if self._plan.variant.private:
            raise ProtocolAborted(
                "A client was asked for true marginals by a study that protects them; stop the run."
            )
        return np.concatenate(self._counts(asked.cliques))

    def _in_turn(self, asked: Asked, kind: str, allowed: bool) -> None:
        if not allowed or asked.round != self._round or not self._round or kind in self._asked:
            raise ProtocolAborted(
                "A client was asked a question that the study does not ask now; stop the run."
            )
        self._asked.add(kind)

    def _own_size(self) -> int:
        """n^: drawn once."""
        if self._size is None:
            rows = int(self._counts([self._plan.one_way[0]])[0].sum())
            sigma2 = self._plan.size_sigma2
            if sigma2:
                rows += int(sample(sampler(sigma2), 1, self._randomness)[0])
                self.charged += self._plan.charges.counting(sigma2)
            else:
                rows = 0
            self._size = rows
        return self._size

    def _chosen(self, asked: Asked) -> int:
        plan, cliques, rows = self._plan, asked.cliques, max(self._own_size(), 0)
        skew, scale = plan.variant.skew, lcm_of(asked.cliques)
        reference = list(dict.fromkeys((*cliques, *(plan.one_way if skew == "columns" else ()))))
        theta = theta_of(self._session, asked.round)
        shares = _shares(asked.model, tuple(reference))
        answers = dict(zip(reference, scaled_to(shares, rows, theta, plan.max_rows), strict=True))
        counts = dict(zip(reference, self._counts(reference), strict=True))
        l1 = distances(counts, answers, reference)
        if plan.variant.exposes is not None:

            def as_own(shares: Sequence[NDArray[np.float64]]) -> list[Counts]:
                return scaled_to(shares, rows, theta, plan.max_rows)

            scores = plan.variant.exposes.scores(plan, asked, counts, l1, scale, as_own)
        elif skew == "columns":
            scores = against_columns(l1, cliques, scale)
        else:
            scores = [scale * l1[clique] for clique in cliques]
        most = scale * (plan.max_rows + rows + 2)
        return choose(
            scores,
            [Fraction(plan.workload.weights[clique]) for clique in cliques],
            [scale * plan.penalty(clique) * rows / asked.rows for clique in cliques],
            plan.epsilon,
            factor=scale * plan.factor,
            highest=most,
            lowest=0 if plan.variant.movement == 1 else most,
            randomness=self._randomness,
        )


@lru_cache(maxsize=2)
def _shares(archive: bytes, cliques: tuple[Clique, ...]) -> tuple[NDArray[np.float64], ...]:
    """The model's normalised marginals: public, the same for all clients of a round."""
    model = Model.from_bytes(archive)
    return tuple(marginal / model.total for marginal in model.marginals(cliques))
