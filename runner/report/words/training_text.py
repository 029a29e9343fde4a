"""What a report says of a run whose owners trained: how, what it cannot have learned, what it cost, who
learned what.

Every sentence is chosen by the run's own facts (`docs/design/vertigan.md`); of other runs it says nothing.
"""
# ruff: noqa: RUF001 - typographic apostrophes are meant

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mpc_protocols.functionality import Event
from runner.report.number_format import listed, plain, typeset, whole
from synth.algorithm import ALGORITHMS, TrainedAlgorithm
from synth.budget.accounting import epsilon_beside
from synth.budget.sampled_gaussian import ORDERS, TRAIN, curve_of


@dataclass(frozen=True)
class Training:
    """Sentences for the template. limits comes before everything else; learned holds (role, what it learned,
    what not)."""

    how: str
    limits: str
    threat: tuple[str, ...]
    cost: str
    curved: bool
    learned: tuple[tuple[str, str, str], ...]


def training(facts: Mapping[str, Any]) -> Training | None:
    """What run.json allows to be said; None of a run that asked an oracle."""
    algorithm = ALGORITHMS.get(facts["algorithm"])
    if not isinstance(algorithm, TrainedAlgorithm):
        return None
    return Training(
        typeset(algorithm.how),
        typeset(algorithm.limits),
        tuple(map(typeset, algorithm.threat)),
        _cost(facts["privacy"]),
        any("rate" in event for event in facts["privacy"]["events"]),
        _learned(facts),
    )


def _cost(privacy: Mapping[str, Any]) -> str:
    (event,) = [event for event in privacy["events"] if event["what"] == TRAIN]
    noise, owners = plain(float(Fraction(event["noise2"])) ** 0.5), listed(event["owners"])
    curve = curve_of(Event(TRAIN, Fraction(0), Fraction(0), event))
    if curve is None:
        return (
            f"The training is one event: a row is in {whole(event['exposures'])} steps of each critic ({owners}), and each adds "
            f"noise of {noise} times what one row counts."
        )
    spent = epsilon_beside(
        Fraction(privacy["rho_spent"]), Fraction(privacy["delta"]), Fraction(privacy["beta"]), [curve]
    )
    return (
        f"The training comes on top, and has a curve instead of a ρ: {whole(curve.steps)} steps of the critics of {owners} "
        f"together, each over a sample that takes a row with probability {plain(float(curve.rate))}, unseen by anybody else, "
        f"with noise of {noise} times what one row counts. Its Rényi divergences add to those of ρ at each order from "
        f"{ORDERS[0]} to {ORDERS[-1]}; together that comes to ε = {plain(spent, 4)} at δ = {plain(privacy['delta'])}. The "
        "bar and the sums below are of the rest."
    )


def _learned(facts: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """In the clear nothing was hidden, which the report says elsewhere."""
    released = "The synthetic table, its model, how many rows each owner has, noisily, and this report"
    return (
        (
            "The server",
            f"{released}; besides these, in every round each owner’s gradient, computed from its noisy critic, which ε and δ "
            "cover.",
            "Any record, any critic’s noise, which records a step looked at.",
        ),
        (
            "Each owner",
            f"{released}; besides these, the trunk of the generator and its own branch, as they grow.",
            "Another owner’s records, critic, noise or gradients.",
        ),
        ("Recipients of the results", f"{released}.", "Everything else."),
        (
            "Somebody watching the network",
            "Who talked to whom, how much and when. Sizes follow from the study; how long an owner takes, from its rows too.",
            "Any content, where connections are encrypted.",
        ),
    )
