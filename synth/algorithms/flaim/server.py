"""The rounds of FLAIM: invite a cohort, let it choose, open sums of what enough clients chose, fit
(`docs/design/flaim.md` 2-3).

    0   registration, where the variant has it: everybody's one-way marginals
    t   invite those who have not taken part as often as they may; open the sum of their noisy sizes
        one-way marginals of the cohort, if the variant asks for them in this round
        choices: which candidates at least `group` clients chose; counts of these; or a public marginal for all
        fit all sums so far; rake onto the registered one-way marginals

A sum over clients that seem to hold N rows enters the fit as that of all N^ rows seen so far: values times N^
/ N, variance times its square. Everything the rounds decide by is released or public; a client that leaves
between its choice and its counts is left out of both (`Cohorts.popular` again, over those who stayed), and
stays charged. Private data is seen through `Cohorts` alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, Cohorts, Observe, unobserved
from synth.algorithms.flaim.opened import Opened
from synth.algorithms.flaim.plan import FlaimPlan
from synth.algorithms.flaim.questions import Asked, question_of
from synth.mrf import Measurement, Model, SizeEstimator, fit
from synth.mrf.raking import rake
from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS, root
from synth.synthesis import Measured


@dataclass(frozen=True)
class Arrivals:
    """Who is there in one round. left: of those, who leaves after choosing."""

    clients: tuple[int, ...]
    left: tuple[int, ...] = ()


@dataclass
class NoisySum:
    """A marginal summed over clients: values with noise of parameter sigma2, and the noisy number of their
    rows."""

    clique: Clique
    values: NDArray[np.int64]
    sigma2: Fraction
    rows: int

    @classmethod
    def of(cls, measured: Measured) -> NoisySum:
        """What was measured of some clients."""
        assert measured.rows is not None
        return cls(measured.clique, measured.values, measured.sigma2, measured.rows)

    def add(self, other: NoisySum) -> None:
        """Add the sum over other clients."""
        self.values, self.sigma2 = self.values + other.values, self.sigma2 + other.sigma2
        self.rows += other.rows


@dataclass(frozen=True)
class Federated:
    """What the rounds gave. rows: noisy, of all who took part. chosen: what was opened of each round's list."""

    model: Model
    rows: int
    chosen: tuple[tuple[Clique, ...], ...]


@dataclass
class Server:
    """One run of a plan."""

    plan: FlaimPlan
    cohorts: Cohorts
    session: bytes
    observe: Observe = unobserved
    opened: Opened = field(init=False)
    _times_taken: dict[int, int] = field(default_factory=dict)
    _sums: list[NoisySum] = field(default_factory=list)
    _exposed: dict[Clique, NDArray[np.int64]] = field(default_factory=dict)
    _registered: list[Measurement] = field(default_factory=list)
    _rows: int = 0
    _rounds: int = 0
    _model: Model | None = None

    def __post_init__(self) -> None:
        self.opened = Opened(self.plan)

    def run(self, rounds: Sequence[Arrivals]) -> Federated | None:
        """Ask whoever arrives, in as many of these rounds as the plan has; None if nobody ever was asked for
        anything.

        Raises what `Cohorts` raises.
        """
        rounds = rounds[: self.plan.config.rounds]
        self._rounds = len(rounds)
        if self.plan.registration_sigma2 and len(self.cohorts.clients) >= self.plan.config.group:
            self._register()
        chosen = []
        for number, arrivals in enumerate(rounds, 1):
            chosen.append(self._round(number, arrivals))
        if self._model is None:
            return None
        self._refit(FINAL_ITERATIONS)
        return Federated(self._model, self._rows, tuple(chosen))

    def _register(self) -> None:
        plan, everybody = self.plan, tuple(self.cohorts.clients)
        measured = self._columns(Asked("register", 0), everybody, plan.registration_sigma2)
        self._registered = [
            Measurement(of.clique, of.values.astype(np.float64), float(of.sigma2)) for of in measured
        ]
        self._model = fit(plan.domain.sizes, self._registered, iterations=ROUND_ITERATIONS)

    def _round(self, number: int, arrivals: Arrivals) -> tuple[Clique, ...]:
        plan, group = self.plan, self.plan.config.group
        cohort = tuple(k for k in arrivals.clients if self._times_taken.get(k, 0) < plan.participations)
        if len(cohort) < group:
            return ()
        rows = self._invite(number, cohort)
        if rows > 0 or not plan.size_sigma2:
            self._ask_columns(number, cohort, rows)
        if self._model is None or rows <= 0:
            return ()
        stayed = tuple(k for k in cohort if k not in arrivals.left)
        chosen = self._choices(number, cohort, stayed, rows) if plan.variant.chooses else ()
        if plan.variant.draws:
            chosen = self._publicly_drawn(number, stayed)
        self._refit(ROUND_ITERATIONS)
        self.observe(
            "fit",
            "raised",
            round=number,
            rounds=self._rounds,
            cohort=len(cohort),
            chosen=[list(q) for q in chosen],
        )
        return chosen

    def _invite(self, number: int, cohort: Sequence[int]) -> int:
        """The cohort's noisy rows."""
        new = [k for k in cohort if k not in self._times_taken]
        for k in cohort:
            self._times_taken[k] = self._times_taken.get(k, 0) + 1
        asked = Asked("size", number)
        question = question_of(self.plan, asked)
        revealed = self.cohorts.reveal(question, cohort, self.plan.size_event(new, list(cohort)))
        self.opened.add(question.content, revealed)
        [rows] = revealed.tolist()
        if new:
            self._rows += int(rows) if len(new) == len(cohort) else round(rows * len(new) / len(cohort))
        return int(rows)

    def _ask_columns(self, number: int, cohort: Sequence[int], rows: int) -> None:
        variant = self.plan.variant
        first = not self._sums and variant.starts_with_columns
        if not (first or variant.columns):
            return
        sums = [NoisySum.of(of) for of in self._columns(Asked("columns", number), cohort, self.plan.sigma2)]
        if not self.plan.size_sigma2:
            self._rows += sums[0].rows
        self._sums += sums
        self._refit(ROUND_ITERATIONS)

    def _columns(self, asked: Asked, clients: Sequence[int], sigma2: Fraction) -> tuple[Measured, ...]:
        return self._sum(asked, clients, sigma2, self.plan.one_way)

    def _sum(
        self, asked: Asked, clients: Sequence[int], sigma2: Fraction, cliques: Sequence[Clique]
    ) -> tuple[Measured, ...]:
        question = question_of(self.plan, asked)
        answer = self.cohorts.sum(question, clients, sigma2, cliques=cliques)
        self.observe(
            "measure",
            "summed",
            round=asked.round,
            clients=len(clients),
            marginals=len(cliques),
            cells=question.length,
            sigma=root(sigma2),
        )
        return self.opened.add(question.content, answer)

    def _choices(
        self, number: int, cohort: Sequence[int], stayed: Sequence[int], rows: int
    ) -> tuple[Clique, ...]:
        plan, group = self.plan, self.plan.config.group
        candidates = self._candidates(number, rows)
        if not candidates or self._model is None:
            return ()
        exposes, references = plan.variant.exposes, b""
        if exposes is not None:
            references = exposes.references(plan, self.cohorts, candidates, self._exposed)
        asked = Asked("choose", number, candidates, rows, self._model.to_bytes(), references)
        question = question_of(plan, asked)
        event = plan.choice_event(list(cohort), len(candidates))
        listed = self.cohorts.popular(question, cohort, group, event)
        if len(stayed) < len(cohort) and listed:
            enough = len(stayed) >= group
            listed = self.cohorts.popular(question, stayed, group, event, listed) if enough else ()
        chosen = self._together(number, [candidates[q] for q in listed])
        self.observe("select", "voted", round=number, candidates=len(candidates), cohort=len(cohort))
        if chosen:
            for of in self._sum(Asked("counts", number, chosen), stayed, plan.sigma2, chosen):
                self._keep(NoisySum.of(of))
        return chosen

    def _publicly_drawn(self, number: int, clients: Sequence[int]) -> tuple[Clique, ...]:
        """A marginal that a public seed draws: that of the session and the round."""
        candidates = self._candidates(number, self._rows)
        if not candidates or len(clients) < self.plan.config.group:
            return ()
        seed = hashlib.sha256(b"cosynth drawn marginal\0" + number.to_bytes(8, "big") + self.session).digest()
        clique = candidates[int.from_bytes(seed, "big") % len(candidates)]
        for of in self._sum(Asked("drawn", number, (clique,)), clients, self.plan.sigma2, (clique,)):
            self._keep(NoisySum.of(of))
        return (clique,)

    def _candidates(self, number: int, rows: int) -> tuple[Clique, ...]:
        """Those worth their noise that keep the model within this round's share of max_model_mb."""
        size, limit = self._size(), self._limit_mb(number)
        return tuple(
            clique
            for clique in self.plan.worth_noise(rows)
            if (grown := size.with_clique(clique)) <= limit or grown == size.mb
        )

    def _together(self, number: int, chosen: Sequence[Clique]) -> tuple[Clique, ...]:
        """Of these, in order, those that keep it so beside the ones before."""
        size, limit, kept = self._size(), self._limit_mb(number), list[Clique]()
        mb = size.mb
        for clique in chosen:
            grown = size.with_cliques([*kept, clique])
            if grown <= limit or grown == mb:
                kept.append(clique)
                mb = grown
        return tuple(kept)

    def _size(self) -> SizeEstimator:
        """Of the model of all that was measured."""
        measured = {of.clique for of in self._sums} | {of.clique for of in self._registered}
        return SizeEstimator(self.plan.domain.sizes, measured)

    def _limit_mb(self, number: int) -> float:
        return self.plan.config.max_model_mb * number / self._rounds

    def _keep(self, new: NoisySum) -> None:
        """Add sums over different clients; where clients take part twice they stay apart."""
        for kept in self._sums:
            if self.plan.participations == 1 and kept.clique == new.clique and len(new.clique) > 1:
                kept.add(new)
                return
        self._sums.append(new)

    def _refit(self, iterations: int) -> None:
        """Fit to all sums so far, as those of all rows."""
        measured, rows = list[Measurement](), max(1, self._rows)
        if self._registered:
            rows = max(1, round(np.mean([column.values.sum() for column in self._registered])))
        for of in self._sums:
            if of.rows > 0:
                factor = rows / of.rows
                measured.append(
                    Measurement(
                        of.clique, of.values.astype(np.float64) * factor, float(of.sigma2) * factor**2
                    )
                )
        if self._registered:
            kept = [m for m in measured if len(m.clique) > 1]
            if kept:
                fitted = fit(
                    self.plan.domain.sizes,
                    [*self._registered, *kept],
                    total=rows,
                    warm_start=self._model,
                    iterations=iterations,
                )
                self._model = rake(fitted, self._registered)
        elif measured:
            self._model = fit(
                self.plan.domain.sizes, measured, total=rows, warm_start=self._model, iterations=iterations
            )
