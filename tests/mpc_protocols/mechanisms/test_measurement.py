"""What a measurement is charged, under both adjacencies and several rows per unit."""

from __future__ import annotations

from fractions import Fraction

import pytest

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Adjacency, StudyFacts
from mpc_protocols.mechanisms.gaussian import sampler
from mpc_protocols.mechanisms.measurement import plan_marginals, plan_total

F = Fraction
SIGMA2 = F(50)


def facts(adjacency: Adjacency = "add-remove", unit_rows: int = 1) -> StudyFacts:
    return StudyFacts({"a": 2, "b": 30}, adjacency, unit_rows, 10**6, b"s")


@pytest.mark.parametrize(
    ("adjacency", "unit_rows", "rho", "affected"),
    [
        ("add-remove", 1, F(1, 2) / SIGMA2, (1, 1)),
        ("replace", 1, 1 / SIGMA2, (2, 2)),
        ("add-remove", 3, F(9, 2) / SIGMA2, (2, 3)),  # no more cells than the marginal has
        ("replace", 3, 9 / SIGMA2, (2, 6)),
    ],
)
def test_marginals(adjacency: Adjacency, unit_rows: int, rho: Fraction, affected: tuple[int, int]) -> None:
    cliques = [("a",), ("a", "b")]
    plan = plan_marginals(facts(adjacency, unit_rows), cliques, [SIGMA2] * len(cliques), 1000, first=False)
    tv = sampler(SIGMA2).tv
    assert plan.event.what == "measure" and plan.event.rho == 2 * rho
    assert plan.event.beta == sum(affected) * tv
    assert plan.event.detail == {"cliques": [["a"], ["a", "b"]], "sigma2": "50/1"}
    assert set(plan.samplers) == {sampler(SIGMA2)} and plan.digest == sampler(SIGMA2).digest


def test_first_batch_is_charged_for_the_row_bound() -> None:
    plan = plan_marginals(facts(), [("a",), ("a", "b")], [SIGMA2] * 2, 1000, first=True)
    assert plan.event.beta == (2 + 2 + 60) * sampler(SIGMA2).tv + F(3, 10**18)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_total(adjacency: Adjacency) -> None:
    tv = sampler(SIGMA2).tv
    later, first = (plan_total(facts(adjacency, 3), SIGMA2, 1000, first=f) for f in (False, True))
    assert later.event.what == "total" and later.event.rho == first.event.rho == F(9, 2) / SIGMA2
    assert later.event.beta == tv and first.event.beta == 2 * tv + F(3, 10**18)
    assert later.event.detail == {"sigma2": "50/1"}


def test_noise_that_a_cell_cannot_hold_is_refused() -> None:
    with pytest.raises(StudyInvalid, match="do not fit a cell"):
        plan_marginals(facts(), [("a",)], [SIGMA2], 2**31 - 10, first=False)
    with pytest.raises(StudyInvalid, match="noise variance"):
        plan_total(facts(), F(1, 1000), 1000, first=False)
