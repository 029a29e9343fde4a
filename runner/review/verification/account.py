"""What run.json's account states beside its events, recomputed from the study that was agreed and the
measurements.

    cap          rho, and the epsilon and delta at which it was solved: of the study's plan
    each event   its rho and its samplers' statistical distance, by the formulas of the mechanisms
    sums         rho_spent and beta, of the events
    first count  the noisy number of rows: the mean of the sums of the first batch, by their precision
    clients      where custodians are charged side by side: `events` are those of the one that is charged most

An owner's own model, sums of cohorts and trainings have distances that their events do not tell: of these
beta is held against the plan's bound alone, and that is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mpc_protocols.functionality import Event, StudyFacts
from mpc_protocols.mechanisms import gumbel
from mpc_protocols.mechanisms.bounds import RowBound
from mpc_protocols.mechanisms.measurement import plan_distances, plan_marginals, plan_total
from mpc_protocols.process.canonical_json import canonical
from runner.results.release import clients_of
from runner.review.verification.trainings import are_whole

if TYPE_CHECKING:
    from runner.study import Study
    from synth.plan import Plan
    from synth.synthesis import Measured

ROUNDING = 1e-9
COUNTED = ("measure", "total")
"""The first release of these fixes the bound on the rows, and is charged all its cells."""
NO_CAP = 1 << 62


@dataclass(frozen=True)
class Account:
    """privacy: run.json's. measurements, noisy_total: of measurements.json. plan: of the study; None where
    files beside the study decide it and the auditor has not named them. in_rounds: whether contributors came
    in rounds, of which each has a first count. is_trained: whether owners have counted and trained by
    themselves, with samplers and bounds of their own.
    """

    study: Study
    plan: Plan | None
    privacy: Mapping[str, Any]
    measurements: Sequence[Measured]
    noisy_total: float
    in_rounds: bool
    is_trained: bool = False

    @property
    def side_by_side(self) -> bool:
        """Whether custodians are charged side by side."""
        return any("charged" in event for event in self.every)

    @property
    def every(self) -> Sequence[Mapping[str, Any]]:
        """Every event."""
        found: Sequence[Mapping[str, Any]] = self.privacy.get("all_events", self.privacy["events"])
        return found

    @property
    def is_told(self) -> bool:
        """Whether the distance of every event follows from what it tells."""
        known = {"select", "distances", *COUNTED}
        return (
            not self.side_by_side
            and not self.is_trained
            and all(event["what"] in known for event in self.every)
        )

    def differing(self) -> Iterator[str]:
        """What run.json's account states otherwise than it follows; each as it is called there.

        Raises `KeyError`, `TypeError`, `ValueError`, `ArithmeticError` or a `CosynthError` for an account
        that makes no sense.
        """
        privacy, plan = self.privacy, self.plan
        if plan is not None:
            calibration = plan.budget.calibration
            stated = (privacy["rho"], privacy["calibrated_epsilon"], privacy["delta_for_zcdp"])
            expected = (plan.budget.rho_cap, calibration.epsilon, calibration.delta)
            names = ("rho", "calibrated_epsilon", "delta_for_zcdp")
            yield from (
                name for name, x, y in zip(names, stated, expected, strict=True) if not close(x, float(y))
            )
            if not privacy["beta"] <= self._most_distance:
                yield "beta"
        events = privacy["events"]
        if not close(privacy["rho_spent"], math.fsum(event["rho"] for event in events)):
            yield "rho_spent"
        if privacy["noisy_total"] != self.noisy_total or not self._follows_total():
            yield "noisy_total"
        if not self._are_most_charged() or (self.is_trained and not are_whole(self.study, events)):
            yield "events"
        costs = [self._cost(event, number) for number, event in self._numbered(events)]
        for number, (event, cost) in enumerate(zip(events, costs, strict=True), 1):
            if cost is not None and not close(event["rho"], float(cost.rho)):
                yield f"rho of release {number}"
        least = float(sum((cost.beta for cost in costs if cost is not None), Fraction(0)))
        exact = self.is_told and not self.in_rounds
        if not (close(privacy["beta"], least) if exact else privacy["beta"] >= least * (1 - ROUNDING)):
            yield "beta"

    def row_bound(self) -> int | None:
        """The bound on the rows that the first count gives, without a cap; None where nothing was counted."""
        first = self._first_count()
        return None if first is None else first.rows

    def _numbered(self, events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
        """Each event, and whether it is the first count of the run."""
        counted = False
        for event in events:
            yield event["what"] in COUNTED and not counted, event
            counted |= event["what"] in COUNTED

    @property
    def _facts(self) -> StudyFacts:
        privacy, domain = self.study.privacy, self.study.domain
        facts = StudyFacts(domain.sizes, privacy.adjacency, privacy.unit.rows, NO_CAP, b"")
        return facts.with_levels([level for m in self.measurements for level in m.levels])

    def _cost(self, event: Mapping[str, Any], first: bool) -> Event | None:
        """The event as the mechanisms charge it; None of a kind, or of a claim, that they do not know."""
        what = event["what"]
        if event.get("claim") == "none" or self.side_by_side or self.is_trained:
            return None
        if what == "select":
            epsilon, candidates = Fraction(event["epsilon"]), int(event["candidates"])
            return Event(what, epsilon**2 / 8, candidates * gumbel.BETA)
        if what == "total":
            return plan_total(self._facts, Fraction(event["sigma2"]), 1, first).event
        if what not in ("measure", "distances"):
            return None
        cliques = [tuple(clique) for clique in event["cliques"]]
        if what == "distances":
            return plan_distances(
                self._facts, cliques, [0] * len(cliques), Fraction(event["sigma2"]), 1
            ).event
        return plan_marginals(self._facts, cliques, _variances(event), 1, first).event

    def _first_count(self) -> RowBound | None:
        first = next((event for event in self.every if event["what"] in COUNTED), None)
        if first is None or self.side_by_side or self.in_rounds or self.is_trained:
            return None
        if first["what"] == "total":
            return RowBound.from_totals([round(self.noisy_total)], [1], [Fraction(first["sigma2"])], NO_CAP)
        batch = self.measurements[: len(first["cliques"])]
        sums = [int(m.values.sum()) for m in batch]
        return RowBound.from_totals(sums, [len(m.values) for m in batch], _variances(first), NO_CAP)

    def _follows_total(self) -> bool:
        first = self._first_count()
        return first is None or float(first.estimate) == self.noisy_total

    def _are_most_charged(self) -> bool:
        """Whether `events` are those that any record can have been charged."""
        privacy = self.privacy
        if not self.side_by_side:
            return "all_events" not in privacy and "clients" not in privacy
        names = [party.name for party in self.study.numbered]
        by_client: dict[int, list[Mapping[str, Any]]] = {}
        for form in privacy["all_events"]:
            event = {key: value for key, value in form.items() if key != "of"}
            clients = clients_of(Event(str(form["what"]), Fraction(0), Fraction(0), event))
            if form["of"] != [names[client] for client in clients]:
                return False
            for client in clients:
                by_client.setdefault(client, []).append(event)
        spent = {client: math.fsum(event["rho"] for event in own) for client, own in by_client.items()}
        told = {of["name"]: of["rho_spent"] for of in privacy["clients"]}
        if told.keys() != {names[client] for client in spent} or not all(
            close(told[names[client]], rho) for client, rho in spent.items()
        ):
            return False
        distances = {of["name"]: of["beta"] for of in privacy["clients"]}
        if not all(0 <= beta <= self._most_distance for beta in distances.values()):
            return False
        most = max(spent.values(), default=0.0)
        return any(
            close(spent[client], most)
            and close(distances[names[client]], privacy["beta"])
            and canonical(list(own)) == canonical(privacy["events"])
            for client, own in by_client.items()
        )

    @property
    def _most_distance(self) -> float:
        """What the plan bounds beta by."""
        return math.inf if self.plan is None else float(self.plan.budget.beta_cap) * (1 + ROUNDING)


def close(stated: object, expected: float) -> bool:
    """Whether a number is another one but for rounding in its last digits."""
    return (
        isinstance(stated, int | float)
        and not isinstance(stated, bool)
        and math.isclose(stated, expected, rel_tol=ROUNDING, abs_tol=0.0)
    )


def _variances(event: Mapping[str, Any]) -> list[Fraction]:
    noise = event["sigma2"]
    texts = [noise] * len(event["cliques"]) if isinstance(noise, str) else noise
    return [Fraction(text) for text in texts]
