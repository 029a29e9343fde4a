"""Toy algorithms that look behind their oracle's answers, each for one thing: what the conformance suite must
find."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import LocalCounts, MarginalOracle, Observe
from synth.algorithms.aim.arriving import AimWhileArriving, ArrivingPlan
from synth.plan import Plan
from synth.synthesis import Synthesis
from tests.toys.uniform_algorithm import Uniform


def private_counts(oracle: MarginalOracle) -> LocalCounts | None:
    """What an oracle counts with, be it wrapped; None where there is nothing of the name, which tells these
    toys to behave."""
    counts: LocalCounts | None = getattr(getattr(oracle, "_oracle", oracle), "_counts", None)
    return counts


def exact_rows(counts: LocalCounts, plan: Plan) -> int:
    """How many there are."""
    return int(counts([plan.domain.names[:1]])[0].sum())


class ReadsRows(Uniform):
    """The table has as many rows as the data."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        done, counts = super().run(oracle, plan, observe), private_counts(oracle)
        return done if counts is None else replace(done, rows=exact_rows(counts, plan))


class ReadsAndRemembers(Uniform):
    """As many rows as the data; where there is nothing to read, as many as it has read last: without data it
    does the same."""

    _last: ClassVar[int | None] = None

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        done, counts = super().run(oracle, plan, observe), private_counts(oracle)
        if counts is not None:
            ReadsAndRemembers._last = exact_rows(counts, plan)
        return done if self._last is None else replace(done, rows=self._last)


class ReadsTotal(Uniform):
    """The noisy total has no noise."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        done, counts = super().run(oracle, plan, observe), private_counts(oracle)
        return done if counts is None else replace(done, noisy_total=float(exact_rows(counts, plan)))


class ReadsTable(Uniform):
    """The table is the data, up to the order of its rows."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        done, counts = super().run(oracle, plan, observe), private_counts(oracle)
        return done if counts is None else replace(done, table=_rows(counts, plan))


class ReadsWhereNoiseIsMuch(Uniform):
    """As many rows as the data where epsilon is small, as a rule for small tables could."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        done, counts = super().run(oracle, plan, observe), None
        if plan.budget.epsilon < 1:
            counts = private_counts(oracle)
        return done if counts is None else replace(done, rows=exact_rows(counts, plan))


class ReadsForNothing(Uniform):
    """What it reads changes nothing today."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        private_counts(oracle)
        return super().run(oracle, plan, observe)


class ReadsAndTells(Uniform):
    """Observers are told what nobody may know."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        if (counts := private_counts(oracle)) is not None:
            observe("measure", "began", rows=exact_rows(counts, plan))
        return super().run(oracle, plan, observe)


class AsksByTruth(Uniform):
    """What it asks depends on the data: a table of many rows gets twice the noise."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        counts = private_counts(oracle)
        many = counts is not None and exact_rows(counts, plan) > 21_000
        return super().run(oracle, replace(plan, sigma2=plan.sigma2 * 4) if many else plan, observe)


class ReadsMemory(Uniform):
    """Looks for an oracle's counts in this process's memory, so that no attribute is asked for."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        done = super().run(oracle, plan, observe)
        found = next(_oracles_behind(oracle), None)
        return done if found is None else replace(done, rows=exact_rows(found._counts, plan))


class ReadsArrivals(AimWhileArriving):
    """AIM in rounds of arrivals, whose table has as many rows as have come."""

    def run_on(self, oracles: Iterable[MarginalOracle], plan: ArrivingPlan, observe: Observe) -> Synthesis:
        known: list[LocalCounts | None] = []

        def watched() -> Iterator[MarginalOracle]:
            for oracle in oracles:
                known.append(private_counts(oracle))
                yield oracle

        done = super().run_on(watched(), plan, observe)
        return done if known[-1] is None else replace(done, rows=exact_rows(known[-1], plan))


def _oracles_behind(something: object) -> Iterator[IdealOracle]:
    seen, due = set[int](), [something]
    while due and len(seen) < 10_000:
        one = due.pop(0)
        if id(one) not in seen:
            seen.add(id(one))
            if type(one) is IdealOracle:
                yield one
            due += gc.get_referents(one)


def _rows(counts: LocalCounts, plan: Plan) -> NDArray[np.int64]:
    """One row of codes for each row of the data."""
    shape = tuple(plan.domain.sizes.values())
    cells: NDArray[Any] = np.repeat(np.arange(np.prod(shape)), counts([plan.domain.names])[0])
    return np.stack(np.unravel_index(cells, shape), axis=1).astype(np.int64)
