"""The plan of VertiMRF with encoded columns: how the budget is split over the owners and over what they send.

    own models    half of rho, in equal parts for the owners: one person is at all of them, so their costs add up
    encodings     the other half, in equal parts for the columns

Adjacency is "replace" and the number of rows public: aligned rows say who is in the data. How many owners
there are is known when they meet; beta is bounded for the most there can be. Standard library only at import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Unpack

from mpc_protocols.functionality import Event
from synth.algorithm import OWN_MODEL, Promise
from synth.algorithms.privmrf.config import PrivMrfConfig
from synth.algorithms.privmrf.plan import PrivMrfPlan, questions, within
from synth.algorithms.vertimrf.config import VertiMrfConfig
from synth.budget.accounting import Budget
from synth.budget.charges import Charges
from synth.domain import Domain
from synth.plan import Plan, calibrate, check_sizes
from synth.research.vertimrf.bins import encoded_sizes
from synth.workload import Workload

RESPONSES: Final = "responses"
"""What the event is called of an owner's columns as randomised responses."""
OWN_SHARE = Fraction(1, 2)
MODEL_SHARE = 1 / 4
"""Of max_model_mb, for each owner's own structure, as with marginals on shares; less with more than four
owners."""
PLANNED_OWNERS = 8
"""beta is bounded for so many; no study has more."""
PRESUMED_OWNERS = 2
"""Until they have met."""


@dataclass(frozen=True)
class EncodedPlan(Plan):
    """owners: of each column; empty until they are known. own_beta: of one owner's own model, at most."""

    config: VertiMrfConfig
    owners: tuple[tuple[str, str], ...] = ()
    own_beta: Fraction = Fraction(0)

    def knowing(self, owners: Mapping[str, str]) -> EncodedPlan:
        """See `synth.plan.Plan`."""
        known = replace(self, owners=tuple(owners.items()))
        return replace(known, sigma2=min(known.own_plan(columns).sigma2 for columns in known.split))

    @property
    def split(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each owner, in the domain's order; owners in the order of their first columns."""
        found: dict[str, list[str]] = {}
        of = dict(self.owners)
        for column in self.domain.names:
            found.setdefault(of[column], []).append(column)
        return tuple(map(tuple, found.values()))

    @property
    def encoding_rho(self) -> Fraction:
        """For all encodings together."""
        return (1 - OWN_SHARE) * self.budget.rho_cap

    def own_plan(self, columns: Sequence[str]) -> PrivMrfPlan:
        """PrivMRF's, for the owner of these columns."""
        owners = len(self.split) if self.owners else PRESUMED_OWNERS
        config = _own_config(self.config, owners)
        domain = self.domain.subset(columns)
        budget = Budget(
            self.budget.epsilon, self.budget.delta, OWN_SHARE * self.budget.rho_cap / owners, self.own_beta
        )
        return within(
            budget,
            domain,
            Workload(domain, (domain.names[:1],)),
            config,
            self.charges,
            questions(domain, config),
        )

    def own_events(self) -> tuple[Event, ...]:
        """What the owners' own models cost: their whole budgets, whatever they spend of them."""
        plans = [self.own_plan(columns) for columns in self.split]
        return tuple(
            Event(OWN_MODEL, own.budget.rho_cap, own.budget.beta_cap, {"columns": list(own.domain.names)})
            for own in plans
        )

    def completed(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `synth.algorithm.Algorithm`: of responses, how many values each has; of an owner's own model,
        its budget."""
        if event["what"] == RESPONSES:
            sizes = encoded_sizes(self.domain.sizes)
            return {**event, "values": [sizes[column] for column in event["columns"]]}
        if event["what"] == OWN_MODEL:
            return {**event, "budget": float(self.own_plan(event["columns"]).budget.rho_cap)}
        return event


def encoded_plan(
    domain: Domain, workload: Workload, config: VertiMrfConfig, **promise: Unpack[Promise]
) -> EncodedPlan:
    """Fix the budget. Raises `StudyInvalid`: a column that no model can hold, (epsilon, delta) out of range."""
    charges = Charges(promise["adjacency"], promise.get("unit_rows", 1))
    check_sizes(domain, workload, config)
    owners = min(PLANNED_OWNERS, max(1, len(domain)))
    asked = questions(domain, _own_config(config, PRESUMED_OWNERS))  # no owner may ask for more

    def widest(rho: Fraction) -> Fraction:
        return asked.widest(charges, OWN_SHARE * rho / owners)

    def distance(sigma2: Fraction) -> Fraction:
        return owners * asked.distance(charges, sigma2)

    budget = calibrate(
        promise["epsilon"], promise["delta"], widest, distance, f"models of {len(domain)} columns"
    )
    found = EncodedPlan(
        domain=domain,
        workload=workload,
        config=config,
        charges=charges,
        budget=budget,
        sigma2=asked.widest(charges, OWN_SHARE * budget.rho_cap / PRESUMED_OWNERS),
        epsilon=Fraction(1),
        rounds=(0, 0),
        candidates={},
        oversized=(),
        own_beta=budget.beta_cap / owners,
    )
    return found


def _own_config(config: VertiMrfConfig, owners: int) -> PrivMrfConfig:
    """Of an owner's own model."""
    share = min(MODEL_SHARE, 1 / owners)
    return PrivMrfConfig(
        max_model_mb=share * config.max_model_mb,
        synthetic_rows=config.synthetic_rows,
        max_columns=config.max_columns,
    )
