"""VertiGAN's plan: how much noise each owner's critic needs, and what all of it costs
(`docs/design/vertigan.md`).

One person is in every owner's table, so the steps of all critics add up. `sampling = "own"`: every owner
draws each batch by itself and tells nobody, so these are independent Poisson samples and their curve is that
of steps x owners (`synth.budget.sampled_gaussian`); it does not become a rho, and only add-remove is covered.
`sampling = "buckets"`: a public hash of the row alone puts it in one of b buckets, and step t looks at bucket
t mod b, so that a row is in E = ceil(steps / b) steps of each critic: rho = E owners / (2 sigma^2), replace
four times that, without any amplification.

The noise is in units of what one row counts. Sums are rounded to multiples of clip 2^-14: all p numbers of a
gradient may round another way, so that the integers move by at most 2^14 + sqrt(p), and the noise is that
much larger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Unpack

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Event
from mpc_protocols.mechanisms.gaussian import MAX_SIGMA2
from synth.algorithm import Promise
from synth.budget.accounting import Budget, epsilon_of_curves, rho_of
from synth.budget.charges import Charges, significant
from synth.budget.sampled_gaussian import MIN_SIGMA, ORDERS, TRAIN, SampledGaussian
from synth.domain import Domain
from synth.plan import Plan
from synth.research.vertigan import critic, net
from synth.research.vertigan.coins import LOCAL_DISTANCE, RATE_BITS
from synth.research.vertigan.config import BUCKETS, MAX_ONE_HOT, OWN
from synth.workload import Workload

if TYPE_CHECKING:
    from synth.research.vertigan.config import VertiGanConfig

COUNT_SHARE: Final = Fraction(1, 100)
"""Of the study's rho, for the noisy numbers of rows."""
SCALE_BITS: Final = 14
"""Sums of gradients are released in units of clip / 2^14."""
_GRID: Final = 128
_SEARCHED: Final = (*range(2, 33), *range(40, 129, 8), *range(160, 513, 32))
"""Orders by which the noise is found; what is printed and charged is the best of all."""


@dataclass(frozen=True)
class VertiGanPlan(Plan):
    """sigma2: of the numbers of rows. noise2: of the critics' gradients, in units of what one row counts.
    rate: as drawn.

    owners: of each column; before they are known two owners of half the columns each are presumed.
    """

    config: VertiGanConfig
    noise2: Fraction
    rate: Fraction
    owners: tuple[tuple[str, str], ...] = ()

    @property
    def steps(self) -> int:
        """Of one critic."""
        return self.config.rounds * self.config.critic_steps

    @property
    def owner_names(self) -> tuple[str, ...]:
        """In the order of their first columns."""
        return tuple(dict.fromkeys(name for _, name in self.owners))

    def columns_of(self, owner: str) -> tuple[str, ...]:
        """In the domain's order."""
        return tuple(column for column, name in self.owners if name == owner)

    def cells_of(self, owner: str) -> int:
        """One-hot cells of its columns."""
        return sum(self.domain.sizes[column] for column in self.columns_of(owner))

    def branch_size(self, owner: str) -> int:
        """Numbers of trunk and branch."""
        return net.size(net.TRUNK) + net.size(net.branch(self.cells_of(owner)))

    @property
    def buckets(self) -> int:
        """b."""
        return max(1, round(1 / self.rate))

    def integer_noise(self, owner: str) -> Fraction:
        """sigma^2 of the integers that an owner's critic adds, in units of clip / 2^14."""
        return self.noise2 * _movement(critic.parameters(self.cells_of(owner))) ** 2

    def knowing(self, owners: Mapping[str, str]) -> VertiGanPlan:
        """See `synth.plan.Plan`; here the noise follows from how many owners there are. Raises
        `StudyInvalid`."""
        found = replace(self, owners=tuple(owners.items()))
        return _calibrated(found, [found.cells_of(name) for name in found.owner_names])

    def events(self) -> tuple[Event, ...]:
        """See `synth.algorithm.TrainedPlan`."""
        counted = Event(
            "total", self.charges.counting(self.sigma2), LOCAL_DISTANCE, {"sigma2": str(self.sigma2)}
        )
        curve, names = self.budget.curve, list(self.owner_names)
        beta = self.budget.beta_cap - len(names) * LOCAL_DISTANCE
        detail: dict[str, object] = {"owners": names, "sampling": self.config.sampling}
        if curve is not None:
            trained = Event(TRAIN, Fraction(0), beta, {**detail, **curve.facts()})
        else:
            exposures = _exposures(self)
            rho = _bucket_rho(self.charges, exposures * len(names), self.noise2)
            trained = Event(TRAIN, rho, beta, {**detail, "noise2": str(self.noise2), "exposures": exposures})
        return (*(replace(counted, detail={**counted.detail, "owner": name}) for name in names), trained)


def plan(
    domain: Domain, workload: Workload, config: VertiGanConfig, **promise: Unpack[Promise]
) -> VertiGanPlan:
    """Raises `StudyInvalid`: units of several rows, replace with own batches, more noise than there are
    samplers for."""
    charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
    if charges.unit_rows != 1:
        raise StudyInvalid(
            f"[privacy] unit may have {charges.unit_rows} rows, and vertigan protects single ones: a critic clips each by itself."
        )
    if config.sampling == OWN and charges.adjacency != "add-remove":
        raise StudyInvalid(
            f'[vertigan] sampling = "{OWN}" is charged for adjacency = "add-remove" only; use that, or sampling = "{BUCKETS}".'
        )
    rate = Fraction(math.floor(Fraction(config.rate) * (1 << RATE_BITS)), 1 << RATE_BITS)
    if rate == 0:
        raise StudyInvalid(f"[vertigan] rate = {config.rate:g} is less than 2^-{RATE_BITS}; raise it.")
    half = -(-sum(domain.sizes.values()) // 2)
    epsilon, delta = promise["epsilon"], promise["delta"]
    nothing = Budget(epsilon, delta, Fraction(0), Fraction(0))
    draft = VertiGanPlan(
        domain,
        workload,
        config,
        charges,
        nothing,
        Fraction(1),
        Fraction(1),
        (0, 0),
        {},
        (),
        Fraction(1),
        rate,
    )
    return _calibrated(draft, [half, half])


def _calibrated(plan: VertiGanPlan, cells: list[int]) -> VertiGanPlan:
    """The plan with the noise that owners of so many one-hot cells need."""
    if max(cells) > MAX_ONE_HOT:
        raise StudyInvalid(
            f"An owner's columns have {max(cells):,} values together, and a critic looks at {MAX_ONE_HOT:,} at most; give "
            "columns fewer bins or leave some out."
        )
    promise, sizes = plan.budget, [critic.parameters(count) for count in cells]
    draws = len(cells) + plan.steps * sum(sizes)
    budget = Budget.of(promise.epsilon, promise.delta, draws * LOCAL_DISTANCE)
    for_counts = min(budget.rho_cap, rho_of(promise.epsilon, promise.delta)) * COUNT_SHARE
    sigma2 = plan.charges.total_sigma2(for_counts / len(cells))
    counted = len(cells) * plan.charges.counting(sigma2)
    if plan.config.sampling == BUCKETS:
        exposures = _exposures(plan) * len(cells)
        noise2 = significant(
            _bucket_rho(plan.charges, exposures, Fraction(1)) / (budget.rho_cap - counted), 40, up=True
        )
    else:
        noise2 = _own_noise(plan, budget, counted, len(cells))
        curve = SampledGaussian(noise2, plan.rate, plan.steps * len(cells))
        budget = replace(budget, rho_cap=counted, curve=curve)
    if noise2 * _movement(max(sizes)) ** 2 > MAX_SIGMA2:
        raise StudyInvalid(
            f"[privacy] epsilon = {promise.epsilon:g} is too little for {plan.steps} steps of {len(cells)} critics with "
            f'sampling = "{plan.config.sampling}": the noise would be {float(noise2) ** 0.5:.3g} times what one row counts, and '
            "63 is the most; lower rounds, critic_steps or rate."
        )
    return replace(plan, budget=budget, sigma2=sigma2, noise2=noise2)


def _own_noise(plan: VertiGanPlan, budget: Budget, counted: Fraction, owners: int) -> Fraction:
    """The least sigma^2, sigma a multiple of 1/128, with which curve and counts keep the promise."""
    room = budget.calibration

    def keeps(step: int) -> bool:
        curve = SampledGaussian(Fraction(step, _GRID) ** 2, plan.rate, plan.steps * owners)
        return epsilon_of_curves(counted, [curve], room.delta, _SEARCHED) <= room.epsilon

    low, high = int(MIN_SIGMA * _GRID), 1 << 14
    if not keeps(high):
        return Fraction(MAX_SIGMA2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle + 1, high)
    return Fraction(low, _GRID) ** 2


def _exposures(plan: VertiGanPlan) -> int:
    """In how many steps of one critic a row is."""
    return -(-plan.steps // plan.buckets)


def _bucket_rho(charges: Charges, exposures: int, noise2: Fraction) -> Fraction:
    """One row moves each sum it is in by what one row counts; replaced, by twice that at most."""
    return exposures * charges.cells_moved**2 / (2 * noise2)


def _movement(numbers: int) -> Fraction:
    """How far one row moves the rounded sums of so many numbers, in L2: 2^14 and the root of their number,
    rounded up."""
    return (1 << SCALE_BITS) + Fraction(math.isqrt(numbers << 2 * SCALE_BITS) + 1, 1 << SCALE_BITS)


assert set(_SEARCHED) <= set(ORDERS)
