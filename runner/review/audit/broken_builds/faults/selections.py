"""Faults of selections: of their scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.mechanisms.selection import SelectionPlan
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch, replaced


def _hot_selection() -> Patch:
    """Scores count twice as much as is charged for."""

    def doubled(made: SelectionPlan) -> SelectionPlan:
        weights, biases = ([2 * each for each in numbers] for numbers in (made.weights, made.biases))
        return replace(made, weights=tuple(weights), biases=tuple(biases))

    return replaced(
        "mpc_protocols.public.state.plan_selection",
        lambda plain: lambda *given, **named: doubled(plain(*given, **named)),
    )


def _opened_scores() -> Patch:
    plain = ComputingParty.select

    def select(self: Any, begun: Any, rounded: Any) -> list[int]:
        engine, keys = self.engine, self.engine.keys

        def opened(*given: Any) -> Any:
            made = keys(*given)
            engine.reveal(made)
            return made

        with mock.patch.object(engine, "keys", opened):
            return plain(self, begun, rounded)

    return mock.patch.object(ComputingParty, "select", select)


def _short_signs() -> Patch:
    return replaced(
        "mpc_protocols.public.rounded_answers.sign_bits", lambda plain: lambda bound: plain(bound) - 1
    )


MUTATIONS = (
    Mutation("M8", "scores that count twice as much as is charged", ("M.choices",), _hot_selection),
    Mutation("M10", "scores opened before the arg max", ("V.opened",), _opened_scores),
    Mutation("M15", "a sign one bit too short", ("S.values",), _short_signs),
)
