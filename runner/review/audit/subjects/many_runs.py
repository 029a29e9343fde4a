"""A whole run again and again on two tables that differ in one row: how much each release speaks for the
table with the row.

The attacker knows both tables and everything public, so that a release's likelihood ratio is computable (Nasr
et al. 2023, with the study's own code in place of a training): of noisy counts and distances it is that of
Gaussian noise, of a selection that of the exponential mechanism. Nobody who has less than both tables can
tell them apart better by these releases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, Level, MarginalOracle, unobserved
from mpc_protocols.public.cliques import counts_at_levels
from runner.party.synthesis import facts_of, plan_of, synthesize
from runner.review.audit.subjects.in_memory.arena import SESSION, Codes, clear, counter
from runner.review.audit.subjects.subject import Subject
from runner.study import Study
from synth.budget import accounting
from synth.plan import Plan


@dataclass(frozen=True)
class Pair:
    """Two tables of codes over a study's columns, the second with the target's row besides; and a loud
    budget."""

    study: Study
    plan: Plan
    without: Codes
    beside: Codes

    @classmethod
    def of(cls, subject: Subject, mu: float) -> Pair:
        """The subject's rows, and a target of the rarest value of each column. mu: of all that a run spends."""
        study = subject.study
        epsilon = accounting.epsilon_of(Fraction(mu) ** 2 / 2, study.privacy.delta)
        loud = replace(study, privacy=replace(study.privacy, epsilon=Fraction(epsilon)))
        target = [
            _rarest(subject.rows[:, place], size) for place, size in enumerate(study.domain.sizes.values())
        ]
        return cls(loud, plan_of(loud), subject.rows, np.concatenate([subject.rows, np.array([target])]))


def _rarest(column: NDArray[np.int64], size: int) -> int:
    return int(np.argmin(np.bincount(column, minlength=size)))


def score(subject: Subject, pair: Pair, with_target: bool) -> tuple[float, float]:
    """Run once; how much what was released speaks for the table with the target (log likelihood ratio), and
    the rho charged."""
    rows, heard = pair.beside if with_target else pair.without, _Listener(pair)

    def script(oracle: MarginalOracle) -> None:
        heard.listen(oracle)
        synthesize(pair.study, pair.plan, oracle, unobserved)

    facts = facts_of(pair.study, len(pair.study.parties), SESSION)
    _, events = clear(subject.clear, facts, [rows], script)
    return heard.ratio, float(sum((event.rho for event in events), Fraction(0)))


class _Listener:
    """Adds up the log likelihood ratios of what an oracle answers."""

    def __init__(self, pair: Pair) -> None:
        self.ratio = 0.0
        sizes = pair.study.domain.sizes
        self._counts = [counter(rows, sizes) for rows in (pair.without, pair.beside)]
        self._levels: dict[str, Level] = {}
        self._known: dict[Clique, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def _counts_without_and_with(
        self, oracle: Any, clique: Clique
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The clique's exact counts without and with the target."""
        if clique not in self._known:
            levels = [self._levels[name] for name in clique if name in self._levels]
            without, beside = (
                counts_at_levels(counts, oracle.facts, levels)([clique])[0] for counts in self._counts
            )
            self._known[clique] = without, beside
        return self._known[clique]

    def listen(self, oracle: MarginalOracle) -> None:
        """Hear all that this oracle answers from now on."""
        heard: Mapping[str, Callable[..., None]] = {
            "prepare": self._prepared,
            "measure": self._measured,
            "total": self._total,
            "distances": self._distances,
            "select": self._selected,
        }
        for name, hear in heard.items():
            setattr(oracle, name, _telling(oracle, getattr(oracle, name), hear))

    def _gaussian(self, found: Any, both: tuple[Any, Any], sigma2: Fraction) -> None:
        found, without, beside = (np.asarray(each, np.float64) for each in (found, *both))
        self.ratio += float(((found - without) ** 2 - (found - beside) ** 2).sum()) / (2 * float(sigma2))

    def _prepared(self, oracle: Any, found: Any, cliques: Any, levels: Sequence[Level] = ()) -> None:
        self._levels |= {level.name: level for level in levels}

    def _measured(self, oracle: Any, found: Any, handles: Any, sigma2: Fraction | Sequence[Fraction]) -> None:
        each = [sigma2] * len(handles) if isinstance(sigma2, Fraction) else list(sigma2)
        for handle, cells, variance in zip(handles, found, each, strict=True):
            self._gaussian(
                cells, self._counts_without_and_with(oracle, oracle.state.cliques[handle]), variance
            )

    def _total(self, oracle: Any, found: Any, sigma2: Any) -> None:
        clique = next(iter(self._known), (next(iter(oracle.facts.sizes)),))
        without, beside = self._counts_without_and_with(oracle, clique)
        self._gaussian(found, (without.sum(), beside.sum()), sigma2)

    def _distances(self, oracle: Any, found: Any, handles: Any, answers: Any, sigma2: Any) -> None:
        for handle, answer, value in zip(handles, answers, found, strict=True):
            without, beside = self._counts_without_and_with(oracle, oracle.state.cliques[handle])
            self._gaussian(value, (np.abs(without - answer).sum(), np.abs(beside - answer).sum()), sigma2)

    def _selected(
        self,
        oracle: Any,
        found: Any,
        handles: Any,
        answers: Any,
        weights: Sequence[Fraction],
        penalties: Sequence[Fraction],
        epsilon: Fraction,
        picks: int = 1,
        conflicts: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Each pick is an exponential mechanism among the candidates that the earlier ones leave."""
        scores = np.zeros((2, len(handles)))
        for place, (handle, answer) in enumerate(zip(handles, answers, strict=True)):
            for side, cells in enumerate(self._counts_without_and_with(oracle, oracle.state.cliques[handle])):
                distance = float(np.abs(cells - answer).sum())
                scores[side, place] = float(weights[place]) * (distance - float(penalties[place]))
        scores *= float(epsilon) / (2 * float(max(weights)))
        left = set(range(len(handles)))
        for pick in found:
            places = sorted(left)
            logs = [scores[side, pick] - np.logaddexp.reduce(scores[side, places]) for side in range(2)]
            self.ratio += logs[1] - logs[0]
            left -= {pick, *(q for p, q in conflicts if p == pick), *(p for p, q in conflicts if q == pick)}


def _telling(oracle: Any, plain: Callable[..., Any], hear: Callable[..., None]) -> Callable[..., Any]:
    def asked(*given: Any, **named: Any) -> Any:
        found = plain(*given, **named)
        hear(oracle, found, *given, **named)
        return found

    return asked
