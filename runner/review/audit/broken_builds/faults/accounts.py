"""Faults of what releases are charged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest import mock

from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.mechanisms.measurement import MeasurePlan
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch, replaced
from synth.budget import accounting


def _half_charge() -> Patch:
    """A measurement is charged as if its sensitivity were smaller by sqrt(2)."""

    def halved(made: MeasurePlan) -> MeasurePlan:
        return replace(made, event=replace(made.event, rho=made.event.rho / 2))

    return replaced(
        "mpc_protocols.public.state.plan_marginals",
        lambda plain: lambda *given, **named: halved(plain(*given, **named)),
    )


def _uncharged() -> Patch:
    """Every second release is opened without an event."""
    plain = ComputingParty._authorise

    def authorise(self: Any, events: Any, exchange: Any = None) -> None:
        self.audited = getattr(self, "audited", 0) + 1
        plain(self, events if self.audited % 2 else [], exchange)

    return mock.patch.object(ComputingParty, "_authorise", authorise)


@contextmanager
def _loose_conversion() -> Iterator[None]:
    """Conversions that are remembered are made anew, before and after."""
    plain = accounting._penalty
    remembered = (accounting._rho_of, accounting._epsilon_of)
    with mock.patch.object(
        accounting, "_penalty", lambda a, log_delta: plain(a, log_delta * Decimal("0.98"))
    ):
        for each in remembered:
            each.cache_clear()
        yield
    for each in remembered:
        each.cache_clear()


MUTATIONS = (
    Mutation("M2", "a charge as if the sensitivity were smaller by sqrt(2)", ("A.events",), _half_charge),
    Mutation("M24", "releases without an event", ("A.events",), _uncharged),
    Mutation("M33", "a conversion that is loose the wrong way", ("A.conversion",), _loose_conversion),
)
