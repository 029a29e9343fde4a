"""What a record is charged: exactly rho of a plan's shares, and by no mechanism more."""

from __future__ import annotations

from fractions import Fraction

import pytest

from mpc_protocols.errors import StudyInvalid
from synth.algorithms.flaim.config import EVERY_ROUND, FlaimConfig
from synth.algorithms.flaim.plan import participations, shares
from synth.algorithms.flaim.variants import VARIANTS
from tests.synth.flaim.world import DOMAIN, planned

ROUNDS = 10


@pytest.mark.parametrize("often", [1, 3, EVERY_ROUND])
@pytest.mark.parametrize("name", VARIANTS)
def test_a_record_that_is_in_everything_is_charged_exactly_rho(name: str, often: int | str) -> None:
    variant = VARIANTS[name]
    config = FlaimConfig(variant=name, rounds=ROUNDS, participations=often)
    rho = Fraction(20787, 1_000_000)
    for columns in (1, 3, 14):
        of = shares(rho, config, variant, columns)
        assert of.most == rho
        assert min(of.size, of.registration, of.choice) >= 0 < of.release


@pytest.mark.parametrize(
    ("name", "often", "releases"),
    [
        ("naive", 1, 1 + 14),
        ("naive", 3, 3 + 14),
        ("oracle", 3, 3 + 14),
        ("private", 1, 1 * (1 + 14)),
        ("private", 3, 3 * (1 + 14)),
        ("private", EVERY_ROUND, ROUNDS * (1 + 14)),
        ("random", 3, 3 + 14),
        ("light", 1, 1),
        ("light", 3, 1),
        ("bayes", 3, 14),
    ],
)
def test_noisy_sums_that_hold_a_record(name: str, often: int | str, releases: int) -> None:
    config = FlaimConfig(variant=name, rounds=ROUNDS, participations=often)
    assert shares(Fraction(1), config, VARIANTS[name], 14).releases == releases


def test_the_share_of_each_charge() -> None:
    config = FlaimConfig(variant="light", rounds=ROUNDS)
    of = shares(Fraction(1), config, VARIANTS["light"], 14)
    assert (of.registration, of.size) == (Fraction(3, 10), Fraction(1, 20))
    assert (of.choice, of.release) == (Fraction("0.065"), Fraction("0.585"))
    of = shares(Fraction(1), FlaimConfig(variant="private", participations=3), VARIANTS["private"], 14)
    assert (of.choice, of.release) == (Fraction("0.095") / 3, Fraction("0.855") / 45)


@pytest.mark.parametrize("often", [1, 3, EVERY_ROUND])
@pytest.mark.parametrize("name", [name for name, of in VARIANTS.items() if not of.union])
def test_mechanisms_cost_their_shares_and_never_more(name: str, often: int | str) -> None:
    """Noise is rounded up and epsilon down: what is lost is below a millionth, unless a choice has the most
    it may have."""
    plan = planned(name, participations=often)
    of, charges = plan.shares, plan.charges
    assert of.most == plan.budget.rho_cap
    costs = [(charges.measuring(plan.sigma2), of.release)]
    if of.choices:
        costs.append((charges.selecting(plan.epsilon), of.choice))
    if of.size:
        costs.append((charges.counting(plan.size_sigma2), of.size))
    if of.registration:
        costs.append((len(DOMAIN) * charges.measuring(plan.registration_sigma2), of.registration))
    for cost, share in costs:
        assert share * (1 - Fraction(1, 10**6)) <= cost <= share


def test_one_shot_spends_rho_on_columns_and_pairs_and_most_on_what_is_wide() -> None:
    plan = planned("one-shot")
    noises = plan.noises
    assert list(noises) == [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]
    spent = sum(map(plan.charges.measuring, noises.values()))
    assert plan.budget.rho_cap * (1 - Fraction(1, 10**6)) <= spent <= plan.budget.rho_cap
    assert plan.sigma2 == max(noises.values())
    # sigma^2 goes with (w n)^(-2/3): pairs have twice the weight of columns
    ratio = float(noises[("a",)] / noises[("a", "b")])
    assert ratio == pytest.approx((2 * 6 / 2) ** (2 / 3), rel=1e-9)


def test_participations_are_those_of_the_rounds_at_most() -> None:
    config = FlaimConfig(rounds=4, participations=9)
    assert participations(config, VARIANTS["naive"]) == 4
    assert participations(config, VARIANTS["light"]) == 1
    with pytest.raises(StudyInvalid, match="participations"):
        FlaimConfig(participations=0)
    with pytest.raises(StudyInvalid, match="variant"):
        FlaimConfig(variant="best")


def test_only_the_oracle_is_not_private_and_who_offers_what() -> None:
    assert [name for name, of in VARIANTS.items() if not of.private] == ["oracle"]
    assert ("a",) in planned("naive").candidates
    assert ("a",) not in planned("private").candidates
    assert ("a", "b") in planned("light").candidates
