"""Checks of selections: candidates are picked in the law of the exponential mechanism, not by score alone,
nor by chance alone.

Candidate q has the score u_q = w_q d_q, d_q the L1 distance of its marginal from the answer. With noise of
the scale that epsilon asks for, several picks are in the order of a Plackett-Luce law
(`docs/design/mechanisms.md` 1):

    P(q is next) = exp(f l_q) / sum of exp(f l_p) over what is left        l_q = epsilon u_q / (2 s max w)

with f = 1; s is how many rows a unit has. Alternatives are other f: that many times less noise, none at all,
nothing else. Weights are rounded to one part in 4,096 and epsilon by less than one in a hundred, so R_k is a
martingale but for that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mpc_protocols.backend import Backend
from mpc_protocols.functionality import MarginalOracle
from runner.review.audit.subjects.in_memory.arena import counter
from runner.review.conformance.checks import expect
from runner.review.conformance.guards import Recorder
from runner.review.conformance.oracle.law import FALSE_ALARM, MISSED
from runner.review.conformance.oracle.runs import (
    ROWS,
    Data,
    Parties,
    facts_of,
    rows_of,
    run_backend,
    together,
)

CANDIDATES, PICKS, STEP = 12, 6, 2
"""l_q is 0, 1/2, 1, .."""
WEIGHTS = (1, 2)
"""In turns: distances are then not in the order of scores."""
WORDS = {
    math.inf: "no noise",
    4.0: "a quarter of the noise",
    2.0: "half of the noise",
    0.5: "twice the noise",
    0.0: "nothing but noise",
}


@dataclass
class _Alternative:
    factor: float
    log_ratio: float = 0.0

    def see(self, order: Sequence[int], logits: Sequence[float]) -> None:
        self.log_ratio += _log_chance(order, logits, self.factor) - _log_chance(order, logits, 1.0)


def _log_chance(order: Sequence[int], logits: Sequence[float], factor: float) -> float:
    """Of these picks, in this order."""
    left, total = dict(enumerate(logits)), 0.0
    for q in order:
        if factor == math.inf:
            if left[q] < max(left.values()):
                return -math.inf
        else:
            most = max(left.values())
            total += factor * (left[q] - most)
            total -= math.log(sum(math.exp(factor * (each - most)) for each in left.values()))
        del left[q]
    return total


def have_their_law(backend: Backend, parties: Parties) -> None:
    """Errors: as `law`, but for rounding."""
    sizes = {f"x{number}": 2 for number in range(CANDIDATES)}
    rng = np.random.default_rng(3)
    data: list[Data] = [
        counter(np.stack([rng.integers(0, 2, rows) for _ in sizes], axis=1), sizes)
        for rows in rows_of(ROWS, parties)
    ]
    truth, facts = together(data)([(name,) for name in sizes]), facts_of(backend, parties, sizes)
    weights = [WEIGHTS[q % len(WEIGHTS)] for q in range(CANDIDATES)]
    places = np.random.default_rng(1).permutation(CANDIDATES).tolist()
    scores = [STEP * place for place in places]
    answers = [
        np.array(cells, np.float64) + np.array([score / weight, 0.0])
        for cells, score, weight in zip(truth, scores, weights, strict=True)
    ]
    guards = [Recorder() for _ in range(parties.computing)]

    def body(oracle: MarginalOracle) -> None:
        handles = oracle.prepare([(name,) for name in sizes])
        oracle.total(Fraction(100))  # which bounds answers
        alternatives = [_Alternative(factor) for factor in WORDS]
        while any(each.log_ratio > math.log(MISSED) for each in alternatives):
            asked = [Fraction(weight) for weight in weights]
            order = oracle.select(handles, answers, asked, [Fraction(0)] * CANDIDATES, Fraction(1), PICKS)
            epsilon = math.sqrt(8 * guards[0].events[-1].rho)  # as it was charged
            logits = [epsilon * score / (2 * max(weights)) for score in scores]
            for each in alternatives:
                each.see(order, logits)
                expect(
                    each.log_ratio < math.log(len(alternatives) / FALSE_ALARM),
                    f"selections must have the law that was asked for, and there is {WORDS[each.factor]} in them.",
                )

    run_backend(backend, body, data, parties, facts, guards)
