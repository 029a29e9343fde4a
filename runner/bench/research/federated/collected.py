"""AIM, or one shot without selections, on the union of all who came; with everybody's one-way marginals from
before if wished.

`docs/design/flaim.md` 5. Registration takes a share of rho on the sum over all clients, whether they come or
not; the union's model is then raked to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import StudyFacts, unobserved
from mpc_protocols.mechanisms.gaussian import sample, sampler
from runner.bench.research.federated.world import Outcome, World
from synth.algorithm import ALGORITHMS, Algorithm
from synth.algorithms.aim.config import AimConfig
from synth.algorithms.flaim.config import FlaimConfig
from synth.budget.accounting import Accountant, epsilon_of, rho_of
from synth.budget.charges import Charges
from synth.config import AlgorithmConfig
from synth.mrf import Measurement, fit
from synth.mrf.raking import rake
from synth.prior.later_wave import LaterWave, Wave
from synth.run import FINAL_ITERATIONS
from synth.synthesis import Synthesis

REGISTRATION: Final = Fraction(3, 20)
ROWS = 1 << 22
_CHARGES = Charges("add-remove", 1)


def aim(
    world: World, rounds: int | str, register: bool = False, clients: Sequence[int] | None = None
) -> Outcome:
    """AIM on the union of the clients that arrived, or of these. register: everybody's one-way marginals were
    asked before."""
    algorithm, config = ALGORITHMS["aim"], AimConfig(rounds=rounds)
    if not register:
        return on_union(world, algorithm, config, clients)
    rho = rho_of(world.epsilon, world.delta)
    epsilon = epsilon_of(rho * (1 - REGISTRATION), world.delta) * (1 - 2**-40)
    found = on_union(replace(world, epsilon=epsilon), algorithm, config, clients)
    assert found.model is not None and found.rho_share is not None
    model = rake(found.model, registration(world, REGISTRATION * rho))
    left = rho_of(epsilon, world.delta) / rho
    return Outcome(model, round(model.total), found.rho_share * left + REGISTRATION)


def waves(world: World, rounds: int | str, first: int = 10) -> Outcome:
    """AIM on who came in the first so many rounds, then a second wave of those who came later
    (`synth.prior.later_wave`)."""
    early = {k for there in world.arrivals[:first] for k in there}
    late = [k for k in world.arrived if k not in early]
    algorithm, config = ALGORITHMS["aim"], AimConfig(rounds=rounds)
    found, spent = _on_union(world, algorithm, config, sorted(early))
    if late:
        measured = [(m.clique, m.values.tolist(), m.sigma2) for m in found.measurements]
        later = LaterWave(algorithm, Wave.of(measured, found.noisy_total))
        found, again = _on_union(world, later, config, late)
        spent = max(spent, again)
    return Outcome(found.model, found.rows, spent)


def on_union(
    world: World,
    algorithm: Algorithm[Any, Any],
    config: AlgorithmConfig,
    clients: Sequence[int] | None = None,
) -> Outcome:
    """An algorithm on the rows of all clients that arrived, or of these, together."""
    found, spent = _on_union(world, algorithm, config, clients)
    return Outcome(found.model, found.rows, spent)


def _on_union(
    world: World,
    algorithm: Algorithm[Any, Any],
    config: AlgorithmConfig,
    clients: Sequence[int] | None = None,
) -> tuple[Synthesis, Fraction]:
    """What it makes, and the share of rho that it charged."""
    table = world.table
    plan = algorithm.plan(
        table.domain, table.workload, config, epsilon=world.epsilon, delta=world.delta, adjacency="add-remove"
    )
    guard = Accountant(plan.budget)
    union = world.union(world.arrived if clients is None else clients)
    facts = StudyFacts(table.domain.sizes, "add-remove", 1, ROWS, world.rng.bytes(32))
    oracle = IdealOracle(facts, world.counter(union), guard, world.rng.bytes)
    found = algorithm.run(oracle, plan, unobserved)
    return found, guard.rho / rho_of(world.epsilon, world.delta)


def registration(world: World, rho: Fraction) -> list[Measurement]:
    """Everybody's one-way marginals for so much of the budget."""
    columns = [(name,) for name in world.table.domain.names]
    sigma2 = _CHARGES.sigma2(rho / len(columns))
    counts = world.counter(world.table.codes)(columns)
    return [
        Measurement(q, (of + _noise(world, sigma2, len(of))).astype(np.float64), float(sigma2))
        for q, of in zip(columns, counts, strict=True)
    ]


def independent(world: World) -> Outcome:
    """Every column of everybody by itself, with the whole budget: what all else is to be compared with."""
    rho = rho_of(world.epsilon, world.delta)
    model = fit(world.table.domain.sizes, registration(world, rho), iterations=FINAL_ITERATIONS)
    return Outcome(model, round(model.total), Fraction(1))


def one_shot(world: World) -> Outcome:
    """All one- and two-way marginals of the closure of the union, once, and a model of those that are worth
    it."""
    return on_union(world, ALGORITHMS["flaim"], FlaimConfig(variant="one-shot"))


def _noise(world: World, sigma2: Fraction, cells: int) -> NDArray[np.int64]:
    return sample(sampler(sigma2), cells, world.rng.bytes)
