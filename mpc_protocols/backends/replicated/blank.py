"""How long things take on replicated shares, for a dry run; its code is the run's, with blank keys
(`engine.blank`)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from mpc_protocols.backends.replicated.engine import ReplicatedEngine
from mpc_protocols.backends.replicated.gates import picks_form
from mpc_protocols.backends.replicated.oracle import contribute
from mpc_protocols.backends.replicated.scores.tournament import WIDTH, tournament
from mpc_protocols.backends.replicated.vertical.planner import schedule_of
from mpc_protocols.engine.oracle import Roles
from mpc_protocols.in_memory.engine_dry_run import BlankParts, Inputs, Seconds, Shown, shown_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpc_protocols.backends.replicated.gates import TrioGates
    from mpc_protocols.backends.replicated.vertical.plan import Plan
    from mpc_protocols.mechanisms.selection import SelectionPlan
    from mpc_protocols.vertical.schedule import Schedule

SIGN_S, NOISE_S = 60e-9, 0.8e-6
"""CPU seconds of a party per compared cell and per noisy cell, while others run on the same machine."""
PRODUCT_S = 1e-9
"""The same per product of two numbers in a table over two owners' columns."""


def blank_parts() -> BlankParts:
    """For a dry run."""
    roles: Roles[Any, Any] = Roles(ReplicatedEngine)
    seconds = Seconds(sign=SIGN_S, noise=NOISE_S)
    return BlankParts(roles, contribute, seconds, _TableSeconds(), opened=selection_openings)


def selection_openings(gates: TrioGates, plan: SelectionPlan, picked: Sequence[int]) -> list[Shown]:
    """What a selection opens in the form of `gates.pick_several`."""
    if plan.picks == 1:
        return []
    families, element = plan.families, plan.ring_bits // 8
    form = picks_form(
        plan.picks, len(plan.contenders), list(map(len, families)), element, gates.latency_bytes
    )
    if form == "at once":
        return shown_at_once(gates, plan, picked)
    lists = [plan.candidates(picked[:number]) for number in range(len(picked))]
    opened: list[Shown] = []
    if form == "families":
        family = {member: number for number, members in enumerate(families) for member in members}
        width = max(map(len, families))
        for pick, left in zip(picked, map(plan.families_of, lists), strict=True):
            number = family[pick]
            opened.append(width * list(left).index(number) + families[number].index(pick))
        return opened
    for pick, left in zip(picked, lists, strict=True):
        place = left.index(pick)
        if levels := tournament(len(left), element, gates.latency_bytes).levels:
            opened += divmod(place, WIDTH**levels)
        elif len(left) > 1:
            opened.append(place)
    return opened


class _TableSeconds:
    """Of tables over owners' columns, those that earlier requests left aside."""

    def __init__(self) -> None:
        self._schedule: Schedule[Plan] | None = None

    def __call__(self, inputs: Inputs) -> float:
        if inputs.split is None:
            return 0.0
        if self._schedule is None:
            self._schedule = schedule_of(inputs.split, inputs.facts, 3)
        self._schedule.declare(inputs.levels)
        plan = self._schedule.next(inputs.cliques).plan
        if plan is None:
            return 0.0
        groups = plan.groups(by_permutation=False)
        return PRODUCT_S * sum(plan.partition.rows * prod(plan.shape(group)) for group in groups)
