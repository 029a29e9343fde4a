"""The suites notice what is wrong: versions with one defect each fail the check that is about it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.errors import BudgetRefused
from mpc_protocols.functionality import MarginalOracle, Observe, StudyFacts
from mpc_protocols.in_memory.presumed import DryRun, PresumedRun
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec
from mpc_protocols.psu.two_owners.cost import Cost
from mpc_protocols.wire import Wire
from runner.review.conformance import (
    Check,
    NonconformingError,
    check_algorithm,
    check_alignment,
    check_arriving,
    check_oracle,
)
from synth.algorithms.aim.config import AimConfig
from synth.plan import Plan
from synth.synthesis import Synthesis
from tests.toys import careless_backends as careless
from tests.toys import careless_laws as laws
from tests.toys.giving_up import GivesUp
from tests.toys.late_guards import LateInTheClear, LateOnShares, When
from tests.toys.open_method import Open
from tests.toys.overgrown import LetsGo, Overgrown
from tests.toys.plain_backend import Plain, PlainDryRun, PlainOracle
from tests.toys.reading_algorithms import (
    AsksByTruth,
    ReadsAndRemembers,
    ReadsAndTells,
    ReadsArrivals,
    ReadsForNothing,
    ReadsMemory,
    ReadsRows,
    ReadsTable,
    ReadsTotal,
    ReadsWhereNoiseIsMuch,
)
from tests.toys.uniform_algorithm import Uniform


def failing(checks: Sequence[Check], about: str) -> str:
    """What the one check with these words in its name says; it must fail."""
    [check] = [check for check in checks if about in check.name]
    with pytest.raises(NonconformingError) as raised:
        check()
    assert str(raised.value).startswith(str(check))
    return str(raised.value)


class Hasty(PlainOracle):
    """Opens without waiting for the others' guards: it reads what they say when it needs their next counts."""

    def _agree(self, inputs: bytes) -> None:
        self._unread = [*getattr(self, "_unread", []), *self._followers]

    def _receive(self, peer: int, size: int) -> bytes:
        while peer in self._unread:
            self._unread.remove(peer)
            super()._receive(peer, 32)
        return super()._receive(peer, size)


class Forgetful(PlainOracle):
    """Does not add what the last party brings."""

    def _receive(self, peer: int, size: int) -> bytes:
        received = super()._receive(peer, size)
        return bytes(size) if peer == self._others[-1] > self._followers[-1] else received


class Silent(PlainOracle):
    """Adds no noise."""

    def measure(
        self, handles: Sequence[int], sigma2: Fraction | Sequence[Fraction]
    ) -> list[NDArray[np.int64]]:
        super().measure(handles, sigma2)
        return [self._marginal(handle) for handle in handles]


class Trusting(PlainOracle):
    """Does not look at what the others have seen."""

    def _check_agreement(self, peer: int, theirs: bytes, inputs: bytes) -> None:
        return


def plain(oracle: type[PlainOracle]) -> Plain:
    """The toy backend with another leader."""

    class Defective(Plain):
        def lead(
            self, wire: Any, facts: StudyFacts, data: Any, guard: Any, observe: Any, history: Any = None
        ) -> Any:
            return oracle(wire, facts, data, guard)

    return Defective()


class Cheap(Plain):
    """A cost model that forgets the end of the run."""

    def dry_run(self, run: PresumedRun) -> DryRun:
        class NoEnd(PlainDryRun):
            def close(self) -> None:
                return

        return NoEnd(run)


@pytest.mark.parametrize(
    ("oracle", "about", "words"),
    [
        (Hasty, "party 0 refuses a measurement", "no answer to a question that a guard refused"),
        (Forgetful, "by ideal (2 computing, 2 contributing)", "the answer must be"),
        (Silent, "noise is there", "fresh noise"),
        (Trusting, "another study", "nothing was raised"),
    ],
)
def test_a_defective_backend(oracle: type[PlainOracle], about: str, words: str) -> None:
    assert words in failing(check_oracle(plain(oracle)), about)


BEYOND = "noise has its law beyond every batch"
FRESH, LAW, ORDER = "noise is there, and fresh", "noise of every size", "no guard is asked after"
PICKS = "selections have their law"


@pytest.mark.parametrize(
    ("oracle", "about", "words"),
    [
        (careless.SeededOracle, FRESH, "fresh noise, in each run"),
        (careless.SessionOracle, FRESH, "fresh noise, in each run"),
        (careless.SeededPicksOracle, FRESH, "noise of selections"),
        (careless.SeededTotalOracle, FRESH, "noise of totals"),
        (careless.LargeExactOracle, LAW, "no noise: shared marginal of 257 cells."),
        (careless.SmallExactOracle, LAW, "marginal of 1 cells"),
        (careless.DerivedExactOracle, LAW, "no noise: derived marginal of "),
        (careless.BatchExactOracle, LAW, "cells, in a batch."),
        (
            careless.LargeNarrowOracle,
            LAW,
            "0.25 times the variance that was asked for: shared marginal of 1025",
        ),
        (careless.TailExactOracle, LAW, "draws in a row may occur twice"),
        (careless.LateExactOracle, BEYOND, "no noise: cells 3,"),
        (careless.LastBatchExactOracle, BEYOND, "no noise: cells 262,"),
        (careless.RepeatingOracle, LAW, "draws in a row may occur twice"),
        (careless.FewDistancesOracle, LAW, "no noise: 12 distances."),
        (laws.EvenOracle, LAW, "noise that is always even"),
        (laws.OneSidedOracle, LAW, "noise that is never below 0"),
        (laws.UniformOracle, LAW, "noise that is bounded"),
        (laws.MirroredOracle, LAW, "noise whose neighbours sum up to 0"),
        (laws.BalancedOracle, LAW, "noise that sums up to 0"),
        (laws.SharedOracle, LAW, "the same noise twice: "),
        (laws.RememberingOracle, LAW, "asked again"),
        (laws.WideExactOracle, LAW, "at sigma^2 = 40000"),
        (laws.NarrowExactOracle, LAW, "at sigma^2 = 4"),
        (laws.AlikeDistancesOracle, LAW, "one draw for all: "),
        (laws.ReplaceExactOracle, "noise under the other promise", "fresh noise, in each run"),
        (laws.BestOracle, PICKS, "there is no noise in them"),
        (laws.UnevenBestOracle, PICKS, "there is no noise in them"),
        (laws.QuietPicksOracle, PICKS, "half of the noise in them"),
    ],
)
def test_a_backend_with_careless_noise(oracle: type[careless.IdealOracle], about: str, words: str) -> None:
    assert words in failing(check_oracle(careless.Careless(oracle)), about)


@pytest.mark.parametrize(
    ("when", "words"),
    [("before holding", "before noise of a total is drawn"), ("afterwards", "was held by party 0 before")],
)
def test_a_guard_that_is_asked_late_in_the_clear(when: When, words: str) -> None:
    assert words in failing(check_oracle(LateInTheClear(when)), ORDER)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("before holding", "bytes of a measure of 2000 cells before its guard was asked"),
        ("before opening", "was held by party 0 before"),
        ("afterwards", "was held by party 0 before"),
    ],
)
def test_a_guard_that_is_asked_late_on_shares(when: When, words: str) -> None:
    assert words in failing(check_oracle(LateOnShares(when)), ORDER)


def test_a_cost_model_that_forgets_something() -> None:
    assert "count the bytes" in failing(check_oracle(Cheap()), "byte and round (2 computing, 0")


class Muddled(Open):
    """The second owner's rows are the other way round."""

    def between(self, wire: Wire, *asked: Any) -> Alignment:
        done = super().between(wire, *asked)
        return done if wire.me == 0 else replace(done, rows=done.n_rows - 1 - done.rows)


class Understated(Open):
    """A cost model without the comparison at the end."""

    def cost(self, spec: AlignmentSpec, first: int, second: int, union: int) -> Cost:
        total = Cost()
        total.stream((first, second), 96)
        return total


@pytest.mark.parametrize(
    ("method", "about", "words"),
    [
        (Muddled, "every overlap", "must get different rows"),
        (Understated, "rows and costs", "the forecast must be the bytes"),
    ],
)
def test_a_defective_alignment(method: type[Open], about: str, words: str) -> None:
    checks = [
        check
        for check in check_alignment(method())
        if "rows and costs" not in check.name or "of 2" in check.name
    ]
    assert words in failing(checks, about)


def test_an_alignment_that_takes_any_list() -> None:
    class Careless(Open):
        def between(
            self, wire: Wire, entries: Sequence[bytes], spec: AlignmentSpec, *asked: Any
        ) -> Alignment:
            return super().between(wire, entries, replace(spec, max_size=100), *asked)

    assert "nothing was raised" in failing(check_alignment(Careless()), "longer than the study")


class Lavish(Uniform):
    """Asks once more when the budget is spent."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        done = super().run(oracle, plan, observe)
        oracle.total(Fraction(1000) * plan.sigma2)
        return done


class Peeking(Uniform):
    """Measures what its plan does not name, with what it saves on the total."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        oracle.prepare([plan.workload.cliques[0]])
        return super().run(oracle, plan, observe)


class Moody(Uniform):
    """Another plan every time."""

    def plan(self, *study: Any, **promise: Any) -> Plan:
        return replace(super().plan(*study, **promise), rounds=(0, next(self._count)))

    _count = itertools.count()


class Stubborn(Uniform):
    """Goes on after a refusal."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        try:
            return super().run(oracle, plan, observe)
        except BudgetRefused:
            return super().run(oracle, plan, observe)


class Chatty(Uniform):
    """Tells observers what is no JSON."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        observe("measure", "began", noise=plan.sigma2)
        return super().run(oracle, plan, observe)


class Whimsical(Uniform):
    """Asks with other noise every time."""

    def run(self, oracle: MarginalOracle, plan: Plan, observe: Observe) -> Synthesis:
        return super().run(oracle, replace(plan, sigma2=plan.sigma2 * (2 + next(self._count))), observe)

    _count = itertools.count()


@pytest.mark.parametrize(
    ("algorithm", "about", "words"),
    [
        (Lavish, "within its budget (no row)", "would spend"),
        (Peeking, "within its budget (add-remove, unit of 1)", "is neither"),
        (Moody, "the plan is the same at every party (no row)", "must be equal"),
        (Stubborn, "a refused question", "must raise BudgetRefused"),
        (Chatty, "within its budget (one row)", "must be JSON"),
        (Whimsical, "asks the same", "must ask the same"),
    ],
)
def test_a_defective_algorithm(algorithm: type[Uniform], about: str, words: str) -> None:
    assert words in failing(check_algorithm(algorithm()), about)


READS = "reads nothing of an oracle but its answers ("
SAME = "whatever rows are behind them ("
USUAL, ONE, FEW = "20,000", SAME + "one row", "columns that tell nothing"


@pytest.mark.parametrize(
    ("algorithm", "about", "words"),
    [
        *(
            (algorithm, READS + USUAL, "has read ")
            for algorithm in (
                ReadsRows,
                ReadsAndRemembers,
                ReadsTotal,
                ReadsTable,
                ReadsForNothing,
                ReadsAndTells,
                AsksByTruth,
            )
        ),
        (ReadsRows, SAME + USUAL, "behind the same answers, rows came out differently"),
        (ReadsWhereNoiseIsMuch, READS + FEW, "has read "),
        (ReadsWhereNoiseIsMuch, SAME + FEW, "behind the same answers, rows came out differently"),
        (ReadsRows, ONE, "behind the same answers, rows came out differently"),
        (ReadsAndRemembers, SAME + USUAL, "behind the same answers, rows came out differently"),
        (ReadsMemory, SAME + USUAL, "behind the same answers, rows came out differently"),
        (ReadsTotal, SAME + USUAL, "behind the same answers, noisy_total came out differently"),
        (ReadsTable, SAME + USUAL, "behind the same answers, table came out differently"),
        (ReadsAndTells, SAME + USUAL, "what observers are told"),
        (AsksByTruth, SAME + USUAL, "must ask the same, whatever rows"),
    ],
)
def test_an_algorithm_that_looks_behind_the_answers(algorithm: type[Uniform], about: str, words: str) -> None:
    assert words in failing(check_algorithm(algorithm()), about)


@pytest.mark.parametrize(
    ("about", "words"),
    [(READS + USUAL, "has read "), (SAME + USUAL, "behind the same answers, rows came out differently")],
)
def test_an_algorithm_that_looks_behind_the_answers_while_contributors_arrive(about: str, words: str) -> None:
    arriving = ReadsArrivals(rounds=3, again=True)
    assert words in failing(check_arriving(arriving, AimConfig(rounds=3)), about)


def test_an_algorithm_that_looks_at_noise_alone() -> None:
    assert "noise alone says nothing" in failing(check_algorithm(GivesUp()), "not by noise alone")


@pytest.mark.parametrize("toy", [Overgrown(), LetsGo()], ids=["to the end", "for a while"])
def test_an_algorithm_whose_model_outgrows_its_limit(toy: Overgrown) -> None:
    assert "a run must not ask for" in failing(check_algorithm(toy), "its model stays within max_model_mb")
