"""What a run began from, in plain words: how that fared, and what it means for who is in both."""
# ruff: noqa: RUF001 - typographic apostrophes are meant

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from runner.report.number_format import bound, plain, whole
from synth.budget.accounting import epsilon_beside


def prior_text(facts: Mapping[str, Any]) -> tuple[str, str] | None:
    """(what the table has of it, what it means for privacy); None of a run that began from nothing. facts:
    run.json."""
    told = facts.get("prior")
    if not isinstance(told, Mapping):
        return None
    return _use(told), _cost(told, facts["privacy"])


def _use(told: Mapping[str, Any]) -> str:
    of = f"the release of {told['study']}" if "release" in told else "a public table"
    of += f", of about {whole(told['rows'])} rows"
    if told["dropped"]:
        return (
            f"This run began from {of}, and dropped it: what was measured afresh lies nearer to independent columns than to what "
            "that table says. Nothing of it is in this one."
        )
    tests = (
        "No marginal that it knows was measured afresh, so nothing here tells whether it still holds."
        if not told["tested"]
        else f"Of what it knows, {told['tested']} marginals were measured afresh: were nothing changed, they would be as far "
        f"from it with p = {plain(told['p_value'], 2)}, and the log odds of a cell have moved by about {plain(told['drift'], 2)}."
    )
    return (
        f"This table rests on {of}, besides this run’s own counts: {told['inherited']} marginals of it, brought to the "
        f"single columns of now, have entered the fit, each as surely as the fresh counts let it. {tests} A relation that has "
        "changed and was not measured again is as it was. Intervals rest on this run’s own counts alone."
    )


def _cost(told: Mapping[str, Any], privacy: Mapping[str, Any]) -> str:
    if "release" not in told:
        return "The public table that this run began from has cost nobody here anything."
    beta = Fraction(told.get("beta_together", 0))
    epsilon = bound(epsilon_beside(Fraction(told["rho_together"]), privacy["delta"], beta))
    if told["people"] == "disjoint":
        return (
            "The study states that nobody in this run was in the earlier release that it began from: then a person has spent "
            f"what that release or this one has cost, whichever is more (ε = {epsilon}). Nothing checks that; for who is in both "
            "the costs add up."
        )
    return (
        "Who is in this run and in the earlier releases that it began from has spent what all of them have cost: together "
        f"ε = {epsilon} at δ = {bound(privacy['delta'])}, if they protect the same unit."
    )
