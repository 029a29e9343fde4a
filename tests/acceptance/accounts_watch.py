"""How far neighbours really move what a run in the clear asks: a watch on every question, for
`tests.acceptance.accounts`.

Each question of an oracle (and of FLAIM's clients) is answered a second time about tables with one privacy
unit more, fewer or replaced. What that costs is computed by textbook formulas from the numbers that moved,
the noise that was used and nothing that the build charges: |M - M'|^2 / (2 sigma^2) for noise, and (the range
of u - u' in units of the noise)^2 / 8 for a pick. The sum over the run, for the neighbour that it costs most,
must not exceed what the run says that it has spent.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import Guard, Level, StudyFacts
from mpc_protocols.mechanisms.selection import SelectionPlan, plan_selection
from synth.algorithms.flaim import client as flaim
from synth.algorithms.flaim.questions import parse
from synth.algorithms.flaim.scores import choose
from synth.research.vertigan import coins, critic

Row = dict[str, int]
Change = list[tuple[Row, int]]
"""Rows with their sign: what a neighbour has more (+1) or less (-1)."""
NEIGHBOURS = 24


@dataclass
class Watch:
    """rho: of each neighbour, over all questions so far. worst: the largest share of its charge that one
    question has used, by kind. noises: (kind, sigma^2, how many cells) as they were used."""

    seed: int = 0
    rho: list[float] = field(default_factory=lambda: [0.0] * NEIGHBOURS)
    worst: dict[str, float] = field(default_factory=dict)
    noises: list[tuple[str, Fraction]] = field(default_factory=list)
    clipped: float = 0.0
    _changes: dict[tuple[tuple[str, int], ...], list[Change]] = field(default_factory=dict)

    def changes(self, facts: StudyFacts) -> list[Change]:
        """Neighbours, the same for all questions of a run."""
        key = tuple(facts.sizes.items())
        if key not in self._changes:
            rng = np.random.default_rng(self.seed)

            def rows(number: int, same: bool) -> list[Row]:
                drawn = [
                    {name: int(rng.integers(size)) for name, size in facts.sizes.items()}
                    for _ in range(number)
                ]
                return [drawn[0]] * number if same else drawn

            found: list[Change] = []
            for at in range(NEIGHBOURS):
                same, sign = at % 3 != 0, 1 if at % 2 else -1
                change = [(row, sign) for row in rows(facts.unit_rows, same)]
                if facts.adjacency == "replace":
                    change += [(row, -sign) for row in rows(facts.unit_rows, same)]
                found.append(change)
            self._changes[key] = found
        return self._changes[key]

    def add(self, kind: str, costs: Sequence[float], charged: float) -> None:
        """One question: its cost for each neighbour, and what is charged."""
        for at, cost in enumerate(costs):
            self.rho[at] += cost
        self.worst[kind] = max(self.worst.get(kind, 0.0), max(costs) / charged if charged else math.inf)


def moved(
    change: Change, clique: Sequence[str], sizes: dict[str, int], levels: dict[str, Level]
) -> NDArray[np.int64]:
    """The marginal of a change."""
    shape = [levels[name].size if name in levels else sizes[name] for name in clique]
    found = np.zeros(math.prod(shape), np.int64)
    for row, sign in change:
        at = [levels[name].bins[row[levels[name].column]] if name in levels else row[name] for name in clique]
        found[int(np.ravel_multi_index(at, shape))] += sign
    return found


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Watch all runs in the clear of this process."""
    with ExitStack() as patches:
        for target, name, made in (
            (IdealOracle, "prepare", _prepare),
            (IdealOracle, "measure", _measure),
            (IdealOracle, "total", _total),
            (IdealOracle, "distances", _distances),
            (IdealOracle, "_pick", _pick),
            (flaim.Client, "__call__", _client),
            (coins.Coins, "noise", _noise),
            (critic.Critic, "group_sum", _group_sum),
        ):
            patches.enter_context(patch.object(target, name, made(watch, getattr(target, name))))
        yield


def _prepare(watch: Watch, real: Callable[..., Any]) -> Callable[..., Any]:
    def prepare(self: Any, cliques: Any, levels: Sequence[Level] = ()) -> Any:
        known = self.__dict__.setdefault("watched_levels", {})
        known.update({level.name: level for level in levels})
        return real(self, cliques, levels)

    return prepare


def _of_handle(self: Any, handle: int, change: Change) -> NDArray[np.int64]:
    derivation = self._state.derivation(handle)
    source = moved(change, derivation.source, dict(self.facts.sizes), self.__dict__.get("watched_levels", {}))
    return np.asarray(derivation.apply(source))


def _measure(watch: Watch, real: Callable[..., Any]) -> Callable[..., Any]:
    def measure(self: Any, handles: Any, sigma2: Any) -> Any:
        variances = [sigma2] * len(handles) if isinstance(sigma2, int | Fraction) else list(sigma2)
        costs = [
            sum(
                float((_of_handle(self, handle, change) ** 2).sum()) / (2 * float(variance))
                for handle, variance in zip(handles, variances, strict=True)
            )
            for change in watch.changes(self.facts)
        ]
        watch.noises += [("measure", Fraction(variance)) for variance in variances]
        return _charged(watch, self, "measure", costs, lambda: real(self, handles, sigma2))

    return measure


def _total(watch: Watch, real: Callable[..., Any]) -> Callable[..., Any]:
    def total(self: Any, sigma2: Fraction) -> Any:
        changes = watch.changes(self.facts)
        costs = [sum(sign for _, sign in change) ** 2 / (2 * float(sigma2)) for change in changes]
        watch.noises.append(("total", Fraction(sigma2)))
        return _charged(watch, self, "total", costs, lambda: real(self, sigma2))

    return total


def _distances(watch: Watch, real: Callable[..., Any]) -> Callable[..., Any]:
    def distances(self: Any, handles: Any, answers: Any, sigma2: Fraction) -> Any:
        kept: list[tuple[int, Any]] = []
        plain = self._l1_sums

        def l1_sums(candidates: int, rounded: Any) -> list[int]:
            kept.append((candidates, rounded))
            return list(plain(candidates, rounded))

        with patch.object(self, "_l1_sums", l1_sums):
            found = _charged(watch, self, "", None, lambda: real(self, handles, answers, sigma2))
        [(candidates, rounded)] = kept
        base = np.array(plain(candidates, rounded))
        costs = [
            float(
                ((np.array(_elsewhere(self, change, lambda: plain(candidates, rounded))) - base) ** 2).sum()
            )
            / (2 * float(sigma2))
            for change in watch.changes(self.facts)
        ]
        watch.noises.append(("distances", Fraction(sigma2)))
        watch.add("distances", costs, _last(self))
        return found

    return distances


def _elsewhere(self: Any, change: Change, ask: Callable[[], Any]) -> Any:
    """The answer about a neighbour."""
    real = self._marginal
    with patch.object(self, "_marginal", lambda handle: real(handle) + _of_handle(self, handle, change)):
        return ask()


def _pick(watch: Watch, real: Callable[..., Any]) -> Callable[..., Any]:
    def pick(self: Any, plan: SelectionPlan, rounded: Any) -> Any:
        base = np.array(self._scores(plan, rounded))
        costs = []
        for change in watch.changes(self.facts):
            shift = np.array(_elsewhere(self, change, lambda: self._scores(plan, rounded))) - base
            costs.append(plan.picks * (float(shift.max() - shift.min()) / (64 << plan.a)) ** 2 / 8)
        watch.add("select", costs, plan.picks * float(plan.event.rho))
        return real(self, plan, rounded)

    return pick


def _charged(watch: Watch, self: Any, kind: str, costs: list[float] | None, ask: Callable[[], Any]) -> Any:
    """Ask, and compare with what the guard was shown meanwhile."""
    shown: list[float] = []
    guard = self._guard
    real = guard.authorise

    class Shown(Guard):
        def authorise(self, event: Any, inputs: bytes) -> None:
            shown.append(float(event.rho))
            real(event, inputs)

    self._guard = Shown()
    try:
        answer = ask()
    finally:
        self._guard = guard
    self.__dict__["watched_last"] = sum(shown)
    if costs is not None:
        watch.add(kind, costs, sum(shown))
    return answer


def _last(self: Any) -> float:
    return float(self.__dict__["watched_last"])


def _client(watch: Watch, real: Callable[..., Any]) -> Callable[..., Any]:
    """A client of FLAIM: its answer about its own table, and about neighbours of it, as it stands before the
    question."""

    def call(self: Any, question: Any) -> Any:
        plan, kind = self._plan, parse(question.content).kind
        facts = StudyFacts(plan.domain.sizes, plan.charges.adjacency, plan.charges.unit_rows, 1 << 20, b"")
        before = {name: copy.copy(value) for name, value in vars(self).items()}
        asked: list[Any] = []

        def chosen(scores: Any, weights: Any, penalties: Any, epsilon: Any, **more: Any) -> int:
            asked.append((scores, weights, penalties, epsilon, more))
            return int(choose(scores, weights, penalties, epsilon, **more))

        with patch.object(flaim, "choose", chosen):
            answer = real(self, question)
        size = self._size
        costs, charged = [], float(self.charged - before["charged"])
        for change in watch.changes(facts):
            other = copy.copy(self)
            vars(other).update({name: copy.copy(value) for name, value in before.items()})
            other._counts = lambda cliques, change=change: [
                own + moved(change, clique, dict(plan.domain.sizes), {})
                for own, clique in zip(self._counts(cliques), cliques, strict=True)
            ]
            other._size = size
            if kind == "size":
                rows = sum(sign for _, sign in change)
                first = before["_size"] is None and plan.size_sigma2
                costs.append(rows**2 / (2 * float(plan.size_sigma2)) if first else 0.0)
            elif kind == "choose":
                with patch.object(flaim, "choose", chosen):
                    real(other, question)
                costs.append(_range(asked[0], asked.pop()) ** 2 / 8)
            else:
                sigma2 = plan.registration_sigma2 if kind == "register" else plan.sigma2
                shift = real(other, question) - answer
                costs.append(float((shift**2).sum()) / (2 * float(sigma2)))
        if charged or any(costs):
            watch.add(f"flaim {kind}", costs, charged)
        return answer

    return call


def _range(first: Any, second: Any) -> float:
    """By how much the log odds of two candidates can differ between two lists of scores."""
    scores, weights, penalties, epsilon, more = first
    lowest, highest = more["lowest"], more["highest"]
    raised = [penalty + lowest for penalty in penalties]
    plan = plan_selection(weights, raised, epsilon, [0] * len(scores), highest + lowest, more["factor"])
    assert list(second[1]) == list(weights) and list(second[2]) == list(penalties)
    shift = [plan.weights[q] * (second[0][q] - scores[q]) for q in plan.contenders]
    return (max(shift) - min(shift)) / (64 << plan.a)


def _noise(watch: Watch, real: Callable[..., Any]) -> Callable[..., Any]:
    def noise(self: Any, sigma2: Fraction, count: int) -> Any:
        watch.noises.append((f"own noise of {count}", Fraction(sigma2)))
        return real(self, sigma2, count)

    return noise


def _group_sum(watch: Watch, real: Callable[..., Any]) -> Callable[..., Any]:
    """A critic's clipped sum with one row fewer: how far it moves, in units of the clip."""

    def group_sum(self: Any, real_: Any, fake: Any, mix: Any, taken: Any, clip: float) -> Any:
        found = real(self, real_, fake, mix, taken, clip)
        for at in np.argwhere(taken)[:3]:
            fewer = taken.copy()
            fewer[tuple(at)] = False
            shift = found - real(self, real_, fake, mix, fewer, clip)
            watch.clipped = max(watch.clipped, float(np.linalg.norm(shift)) / clip)
        return found

    return group_sum
