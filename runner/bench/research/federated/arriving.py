"""DistAIM as its paper schedules it: AIM's rounds while clients arrive, mended
(`synth.algorithms.aim.arriving`).

A client shares all its counts when it arrives; round t selects and measures on the rows of those who are
there so far.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import MarginalOracle, StudyFacts, unobserved
from runner.bench.research.federated.collected import ROWS
from runner.bench.research.federated.world import Outcome, World
from synth.algorithms.aim.arriving import AimWhileArriving
from synth.algorithms.aim.config import AimConfig
from synth.budget.accounting import Accountant, rho_of


def run(world: World, again: bool = False, wait: int = 1) -> Outcome:
    """again: the one-way marginals are measured once more at the end. wait: rounds of arrivals before the
    first measurement."""
    table, rounds = world.table, len(world.arrivals) - wait + 1
    algorithm, config = AimWhileArriving(rounds, again), AimConfig(rounds=rounds)
    plan = algorithm.plan(
        table.domain, table.workload, config, epsilon=world.epsilon, delta=world.delta, adjacency="add-remove"
    )
    guard = Accountant(plan.budget)

    def oracles() -> Iterator[MarginalOracle]:
        here: list[int] = []
        for number, there in enumerate(world.newcomers, 1):
            here += there
            if number >= wait:
                facts = StudyFacts(table.domain.sizes, "add-remove", 1, ROWS, world.rng.bytes(32))
                yield IdealOracle(facts, world.counter(world.union(here)), guard, world.rng.bytes)

    found = algorithm.run_on(oracles(), plan, unobserved)
    return Outcome(found.model, found.rows, guard.rho / rho_of(world.epsilon, world.delta))
