"""A run that begins from a release or from public rows: what it inherits, and what it makes of a change."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from synth.algorithms.mosaic.algorithm import ALGORITHM
from synth.algorithms.mosaic.config import MosaicConfig
from synth.budget.accounting import Accountant
from synth.budget.reserved import NOTHING_RESERVED, Reserved
from synth.domain import Codes, Domain
from synth.judgement.metrics import marginal
from synth.mrf import Chains, Measurement, fit
from synth.prior import Known, Prior, PublicTable, Release, Verdict, known_of
from synth.prior.inheritance import Inheritance
from synth.synthesis import Measured, Synthesis
from synth.workload import Workload

Rows = NDArray[np.int64]
SIZES = {"a": 6, "b": 4, "c": 5, "d": 3}
DOMAIN = Domain(tuple(SIZES), tuple(Codes(size) for size in SIZES.values()))
PAIRS = Workload.from_spec({"degree": 2}, DOMAIN)


def rows_of(count: int, seed: int, turned: int = 0) -> Rows:
    """b, c and d follow a, mostly; turned: by how much c follows another value."""
    rng = np.random.default_rng(seed)
    a = rng.integers(6, size=count)
    noise = rng.random((3, count)) < 0.25
    b = np.where(noise[0], rng.integers(4, size=count), a % 4)
    c = np.where(noise[1], rng.integers(5, size=count), (a + turned) % 5)
    return np.column_stack([a, b, c, np.where(noise[2], rng.integers(3, size=count), a % 3)])


def release(
    rows: Rows,
    epsilon: float,
    seed: int,
    prior: Prior | None = None,
    config: MosaicConfig = MosaicConfig(),  # noqa: B008 - frozen
    reserved: Reserved = NOTHING_RESERVED,
) -> Synthesis:
    plan = ALGORITHM.plan(
        DOMAIN, PAIRS, config, epsilon=epsilon, delta=1e-6, adjacency="add-remove", reserved=reserved
    )
    rng = np.random.default_rng(seed)
    oracle = IdealOracle(
        StudyFacts(DOMAIN.sizes, "add-remove", 1, 1 << 20, rng.bytes(32)),
        lambda cliques: [marginal(rows, DOMAIN, clique) for clique in cliques],
        Accountant(plan.budget),
        rng.bytes,
    )
    return ALGORITHM.run(oracle, replace(plan, prior=prior), unobserved)


def prior_of(made: Synthesis) -> Release:
    known = () if made.prior is None else made.prior.known
    return Release(tuple(SIZES), made.model, known_of(made.measurements, made.model.total, known))


def error(made: Synthesis, rows: Rows) -> float:
    """Mean L1 distance of all pairs, as shares."""
    each = [
        made.model.marginal(c) / made.model.total - marginal(rows, DOMAIN, c) / len(rows)
        for c in PAIRS.cliques
    ]
    return float(np.mean([np.abs(of).sum() for of in each]))


@pytest.fixture(scope="module")
def earlier() -> Synthesis:
    return release(rows_of(4000, 1), 2.0, 1)


def test_a_prior_that_holds_makes_a_run_of_little_budget_better(earlier: Synthesis) -> None:
    rows = rows_of(4000, 2)
    alone, with_prior = release(rows, 0.15, 3), release(rows, 0.15, 3, prior_of(earlier))
    assert error(with_prior, rows) < 0.6 * error(alone, rows)
    verdict = with_prior.prior
    assert verdict is not None and not verdict.is_dropped and verdict.known


def test_relations_that_have_turned_cost_a_run_what_it_takes_to_see_them(earlier: Synthesis) -> None:
    """With so few columns a batch is a tenth of the budget, and the first one is spent on what the prior had
    wrong."""
    rows = rows_of(4000, 2, turned=2)
    alone, with_prior = (
        [error(release(rows, 1.0, seed, prior), rows) for seed in range(3)]
        for prior in (None, prior_of(earlier))
    )
    assert np.mean(with_prior) < 1.25 * np.mean(alone)


def test_first_counts_that_are_far_off_by_noise_do_not_hold_a_run_to_them(earlier: Synthesis) -> None:
    """500 rows at epsilon .1: no joint marginal is bought, and columns are measured twice, at first with noise as
    large as the rows. What is inherited was raked to the first counts, and is raked again to both; runs
    that keep to the first ones have .82."""
    rows = rows_of(500, 2)
    made = [release(rows, 0.1, seed, prior_of(earlier)) for seed in range(12)]
    assert sum(sum(m.columns == ("a",) for m in of.measurements) == 2 for of in made) >= 6
    assert np.mean([error(of, rows) for of in made]) < 0.5


def test_a_prior_of_other_people_is_dropped_and_nothing_of_it_is_left(earlier: Synthesis) -> None:
    rng = np.random.default_rng(5)
    rows = rows_of(8000, 6)
    for axis in range(4):
        rows[:, axis] = rng.permutation(rows[:, axis])
    made = release(rows, 3.0, 7, prior_of(earlier))
    assert made.prior is not None and made.prior.is_dropped and made.prior.known == ()
    assert error(made, rows) < 1.3 * error(release(rows, 3.0, 7), rows)


def test_a_prior_is_followed_from_joining_until_it_is_dropped(earlier: Synthesis) -> None:
    inheritance = Inheritance(prior_of(earlier), 4000.0, Chains(SIZES, {}), list(PAIRS.cliques))
    assert not inheritance.is_followed
    columns = {name: (earlier.model.marginal((name,)), 1.0) for name in SIZES}
    inheritance.join(columns, lambda clique, cells: clique, lambda clique: True)
    same = [_measured(earlier, clique) for clique in PAIRS.cliques]
    inheritance.judge(same)
    assert inheritance.is_followed and not inheritance.is_dropped
    inheritance.judge([replace(of, values=of.values[::-1].copy()) for of in same])
    assert inheritance.is_dropped and not inheritance.is_followed


def _measured(of: Synthesis, clique: tuple[str, ...]) -> Measured:
    return Measured(clique, Fraction(9), 1, np.rint(of.model.marginal(clique)).astype(np.int64))


def test_the_levels_of_what_is_inherited_are_told(earlier: Synthesis) -> None:
    """Followers refuse a model with levels that the release does not name."""
    coarse = prior_of(earlier)
    coarse = replace(coarse, marginals=tuple(replace(of, cells=min(of.cells, 9)) for of in coarse.marginals))
    made = release(rows_of(4000, 2), 0.05, 3, coarse)
    assert made.model.used_levels and set(made.model.used_levels) <= {level.name for level in made.levels}


def test_what_is_inherited_leaves_room_for_registered_questions(earlier: Synthesis) -> None:
    """120 cells for a, b and c, and no more."""
    config, reserved = (
        MosaicConfig(max_model_mb=150 * 8 / 2**20),
        Reserved((("a", "b", "c"),), Fraction(1, 5)),
    )
    made = release(rows_of(4000, 2), 1.0, 3, prior_of(earlier), config, reserved)
    assert ("a", "b", "c") in {m.clique for m in made.measurements}
    assert made.model.size_mb <= config.max_model_mb


def test_public_rows_are_a_prior_too() -> None:
    rows, codes = rows_of(4000, 2), rows_of(2000, 8)
    prior = PublicTable(tuple(SIZES), codes, SIZES)
    assert error(release(rows, 0.15, 3, prior), rows) < 0.6 * error(release(rows, 0.15, 3), rows)


def test_the_same_noise_gives_the_same_release(earlier: Synthesis) -> None:
    one, other = (release(rows_of(1000, 2), 0.5, 3, prior_of(earlier)) for _ in range(2))
    assert one.model.to_bytes() == other.model.to_bytes() and one.prior == other.prior


def test_what_is_inherited_grows_less_certain_with_each_release(earlier: Synthesis) -> None:
    """Where nothing is measured anew: the error of a marginal is at least that of the release before."""
    made = release(rows_of(4000, 2), 0.05, 3, prior_of(earlier))
    before = {known.columns: known.error for known in prior_of(earlier).marginals}
    assert made.prior is not None
    drawn = 1 / 4000
    joint = [known for known in made.prior.known if len(known.columns) > 1]
    assert joint and all(known.error > 0.1 * before[known.columns] + drawn for known in joint)


def test_measurements_of_one_prior_add_up_by_precision() -> None:
    twice = [Measured(("a", "b"), Fraction(8), n, np.zeros(24, np.int64)) for n in (1, 2)]
    inherited = Known(("b", "c"), 20, 0.5)
    [measured, taken_over] = known_of(twice, 100.0, [inherited])
    assert (measured.columns, measured.cells, taken_over) == (("a", "b"), 24, inherited)
    assert measured.error == pytest.approx(24 * 4 / 100**2)


def test_counts_of_some_custodians_only_are_nothing_that_is_known() -> None:
    assert known_of([Measured(("a", "b"), Fraction(8), 1, np.zeros(24, np.int64), rows=10)], 100.0) == ()


def test_raking_keeps_dependences_and_takes_the_columns() -> None:
    """A model and the rows that it is of answer alike; odds ratios stay."""
    codes = rows_of(20_000, 9)[:, :2]
    sizes = {"a": 6, "b": 4}
    domain = DOMAIN.subset(sizes)
    counts = marginal(codes, domain, ("a", "b")).astype(float)
    model = fit(sizes, [Measurement(("a", "b"), counts, 1.0)], iterations=500)
    wanted = {"a": np.array([6.0, 5, 4, 3, 2, 1]), "b": np.array([1.0, 2, 3, 4])}
    wanted = {name: 20_000 * of / of.sum() for name, of in wanted.items()}
    for prior in (Release(("a", "b"), model, ()), PublicTable(("a", "b"), codes, sizes)):
        [shares] = prior.raked(wanted).shares([("a", "b")])
        table = shares.reshape(6, 4)
        assert np.allclose(table.sum(1), wanted["a"] / 20_000, atol=2e-3)
        assert np.allclose(table.sum(0), wanted["b"] / 20_000, atol=2e-3)
        odds = np.log(table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0]))
        old = counts.reshape(6, 4)
        assert odds == pytest.approx(np.log(old[0, 0] * old[1, 1] / (old[0, 1] * old[1, 0])), abs=0.05)


def test_a_verdict_travels_and_one_that_is_none_is_refused() -> None:
    verdict = Verdict(3, 0.5, 0.1, False, (Known(("a", "b"), 24, 0.25),))
    assert Verdict.from_json(verdict.to_json()) == verdict
    for change in (
        {"tested": -1},
        {"p_value": 2.0},
        {"drift": float("inf")},
        {"is_dropped": True},
        {"known": [[["a", "a"], 24, 0.25]]},
        {"known": [[["a", "b"], 1 << 40, 0.25]]},
        {"known": [[["a", "b"], 24, float("nan")]]},
        {"more": 1},
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            Verdict.from_json({**verdict.to_json(), **change})
