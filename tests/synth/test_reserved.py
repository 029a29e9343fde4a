"""Marginals that are measured whatever is selected: of every algorithm that takes them, within the same
budget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mpc_protocols.functionality import unobserved
from synth.algorithm import ALGORITHMS, Algorithm
from synth.budget.accounting import Accountant
from synth.budget.reserved import NOTHING_RESERVED, Reserved
from synth.workload import Workload
from tests.synth.oracles import chain, codes_domain, ideal

RESERVING = [algorithm.name for algorithm in ALGORITHMS if algorithm.reserves]
FIFTH = Reserved((("a", "e"), ("b", "c", "d")), Fraction(1, 5))


def plan_of(name: str, domain: Any, epsilon: float, **more: Any) -> tuple[Algorithm[Any, Any], Any]:
    algorithm: Algorithm[Any, Any] = ALGORITHMS[name]
    workload = Workload.from_spec({"degree": 2}, domain)
    promise: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6, "adjacency": "add-remove"}
    plan = algorithm.plan(domain, workload, algorithm.config(), **promise, **more)
    return algorithm, plan.knowing(dict.fromkeys(domain.names, "first"))


def test_these_algorithms_take_them() -> None:
    assert set(RESERVING) == {"aim", "mosaic", "mst", "mwem", "privmrf", "vertimrf"}


@pytest.mark.parametrize("name", RESERVING)
@pytest.mark.parametrize(("rows", "epsilon"), [(20_000, 1.0), (60, 0.5)])
def test_they_are_measured_for_their_share_and_all_together_stays_within_the_cap(
    name: str, rows: int, epsilon: float
) -> None:
    """60 rows: most algorithms fall back to single columns; then too."""
    domain, codes = chain(rows, np.random.default_rng(3))
    algorithm, plan = plan_of(name, domain, epsilon, reserved=FIFTH)
    guard = Accountant(plan.budget)
    got = algorithm.run(ideal(codes, domain, guard), plan, unobserved)
    sigma2 = FIFTH.sigma2(plan.charges, plan.budget.rho_cap)
    of_them = [m for m in got.measurements if m.clique in FIFTH.cliques and m.sigma2 == sigma2]
    assert [m.clique for m in of_them] == list(FIFTH.cliques)
    paid = 2 * plan.charges.measuring(sigma2)
    cap = plan.budget.rho_cap
    assert Fraction(19, 100) * cap < paid <= Fraction(1, 5) * cap
    assert Fraction(85, 100) * cap < guard.rho <= cap  # the accountant refuses more, and more of beta


@pytest.mark.parametrize("name", RESERVING)
def test_what_is_left_is_planned_as_a_budget_of_its_own_size(name: str) -> None:
    domain, _ = chain(100, np.random.default_rng(3))
    plain, less = plan_of(name, domain, 1.0)[1], plan_of(name, domain, 1.0, reserved=FIFTH)[1]
    assert less.own_rho == Fraction(4, 5) * less.budget.rho_cap and plain.own_rho == plain.budget.rho_cap
    assert float(less.sigma2 / plain.sigma2) == pytest.approx(5 / 4, rel=1e-3)


def test_nothing_reserved_changes_nothing() -> None:
    assert NOTHING_RESERVED.rest(Fraction(3)) == 3
    widest, distance = Fraction.__abs__, Fraction.__neg__
    charges: Any = None
    assert NOTHING_RESERVED.beside(charges, widest, distance) == (widest, distance)


def test_a_model_that_cannot_hold_them_is_refused_before_anything_is_spent_on_them() -> None:
    from mpc_protocols.errors import StudyInvalid

    domain = codes_domain(a=200, b=200, c=3)
    algorithm: Algorithm[Any, Any] = ALGORITHMS["mosaic"]
    promise: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove"}
    promise["reserved"] = Reserved((("a", "b"),), Fraction(1, 5))
    plan = algorithm.plan(
        domain, Workload.from_spec({"degree": 1}, domain), algorithm.config(max_model_mb=0.1), **promise
    )
    guard = Accountant(plan.budget)
    codes = np.zeros((50, 3), np.int64)
    with pytest.raises(StudyInvalid, match="max_model_mb"):
        algorithm.run(ideal(codes, domain, guard), plan, unobserved)
    assert guard.rho < Fraction(4, 5) * plan.budget.rho_cap
