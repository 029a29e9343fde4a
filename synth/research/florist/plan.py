"""FLORIST's plan: what is released about the model, with which noise, and what is charged beside it
(`docs/design/florist.md` 5).

The study's (epsilon, delta) covers what everybody sees: the noisy rate of the label (rho 0.001, unless the
study states the rate) and, with `evaluation = "oracle"`, the marginal of label and score, which takes the
rest. Beside it, and on record with the owner that it concerns alone: the responses (`label`, pure DP of
parameter x, so x^2 / 2 in zCDP), or that there is no claim (`train`); and the passive owner's model of its
own columns (`features_epsilon`). Standard library only at import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack

from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Event
from synth.algorithm import Promise
from synth.algorithms.mst.algorithm import ALGORITHM
from synth.algorithms.mst.config import MstConfig
from synth.budget.charges import Charges, cell_distance
from synth.domain import Domain
from synth.plan import TOTAL_DISTANCE, Plan, calibrate
from synth.research.florist.calibrate import BINS, MODEL, flip_numerator
from synth.research.florist.config import ORACLE, exact
from synth.training import Evaluation
from synth.workload import Workload

if TYPE_CHECKING:
    from synth.algorithm import Algorithm
    from synth.research.florist.config import FloristConfig

RATE_RHO = Fraction(1, 1000)
"""Of the noisy count of labels 1."""


@dataclass(frozen=True)
class FloristPlan(Plan):
    """sigma2: of the evaluation. rate_sigma2: of the noisy count of labels 1; None if the study states their
    rate."""

    config: FloristConfig
    rate_sigma2: Fraction | None = None

    @property
    def rate_event(self) -> Event | None:
        """The release of the noisy count."""
        if self.rate_sigma2 is None:
            return None
        sigma2 = self.rate_sigma2
        return Event(
            "label-rate",
            self.charges.measuring(sigma2),
            self.charges.distance(sigma2),
            {"sigma2": f"{sigma2.numerator}/{sigma2.denominator}"},
        )

    @property
    def evaluation(self) -> Evaluation | None:
        """The marginal of label and bin of the score, of the people that both owners hold."""
        label = self.config.label
        if self.config.evaluation != ORACLE or label is None:
            return None
        score, held = f"{label} predicted", f"{label} held"
        return Evaluation({label: 2, score: BINS, held: 1}, (label, score), held, self.sigma2)

    def own_events(self, active: bool) -> Sequence[Event]:
        """See `synth.training`."""
        x = self.config.label_epsilon
        if x is None:
            what = "labels" if active else "features"
            return (Event("train", Fraction(0), Fraction(0), {"claim": "none", "of": what}),)
        if not active:
            return (Event("train", Fraction(0), Fraction(0), {"claim": "none", "of": "features"}),)
        detail = {"epsilon": float(x), "flip": f"{flip_numerator(exact(x))}/2^64"}
        return (Event("label", exact(x) ** 2 / 2, Fraction(0), detail),)

    def own_model(self, domain: Domain) -> tuple[Algorithm[Any, Any], Plan] | None:
        """MST of the passive owner's own columns, at features_epsilon and the study's delta."""
        if self.config.features != MODEL:
            return None
        workload = Workload(domain, tuple((name,) for name in domain.names))
        made = ALGORITHM.plan(
            domain,
            workload,
            MstConfig(),
            epsilon=self.config.features_epsilon,
            delta=self.budget.delta,
            adjacency=self.charges.adjacency,
            unit_rows=self.charges.unit_rows,
        )
        return ALGORITHM, made

    def beside(self, columns: Sequence[str]) -> tuple[Fraction, Fraction]:
        """See `synth.plan.Plan`."""
        active = self.config.label in columns
        own = self.own_events(active)
        rho, beta = sum((event.rho for event in own), Fraction(0)), Fraction(0)
        if not active and columns:
            made = self.own_model(self.domain.subset(columns))
            if made is not None:
                rho, beta = rho + made[1].budget.rho_cap, made[1].budget.beta_cap
        return rho, beta


def plan(
    domain: Domain, workload: Workload, config: FloristConfig, **promise: Unpack[Promise]
) -> FloristPlan:
    """Raises `StudyInvalid`: too small an epsilon for the noisy count of labels."""
    charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
    rate = Fraction(0) if config.label_rate is not None else RATE_RHO
    rate_sigma2 = None if config.label_rate is not None else charges.sigma2(RATE_RHO)
    asks = config.evaluation == ORACLE

    def noise(rho: Fraction) -> Fraction:
        if asks and rho <= rate:
            raise StudyInvalid(
                f"[privacy] epsilon = {promise['epsilon']:g} leaves nothing for the evaluation beside the noisy count of labels; "
                'raise it, state [florist] label_rate, or set evaluation = "own".'
            )
        return charges.sigma2(rho - rate if asks else RATE_RHO)

    def distance(sigma2: Fraction) -> Fraction:
        counted = Fraction(0) if rate_sigma2 is None else charges.distance(rate_sigma2)
        if not asks:
            return counted
        return counted + charges.distance(sigma2) + 2 * BINS * cell_distance(sigma2) + TOTAL_DISTANCE

    budget = calibrate(promise["epsilon"], promise["delta"], noise, distance, "the evaluation of a model")
    if rate_sigma2 is not None and budget.rho_cap < charges.measuring(rate_sigma2):
        raise StudyInvalid(
            f"[privacy] epsilon = {promise['epsilon']:g} is too little for the noisy count of labels; raise it, or state "
            "[florist] label_rate."
        )
    return FloristPlan(
        domain=domain,
        workload=workload,
        config=config,
        charges=charges,
        budget=budget,
        sigma2=noise(budget.rho_cap),
        epsilon=Fraction(1),
        rounds=(0, 0),
        candidates={},
        oversized=(),
        rate_sigma2=rate_sigma2,
    )
