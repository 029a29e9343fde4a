"""AIM, or one shot without selections, on the union of all who came; with everybody's one-way marginals from before if wished.

`docs/design/flaim.md` 5. Registration takes a share of rho on the sum over all clients, whether they come or not; the union's
model is then raked to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, StudyFacts, unobserved
from mpc_protocols.ideal.oracle import IdealOracle
from mpc_protocols.mechanisms.gaussian import sample, sampler
from runner.bench.utility.federated.world import Outcome, World
from synth.algorithms.aim.algorithm import ALGORITHM, AimConfig
from synth.algorithms.flaim.raking import rake
from synth.budget.accounting import Accountant, epsilon_of, rho_of
from synth.budget.charges import Charges, mean_noise
from synth.mrf import Measurement, Model, SizeEstimator, fit
from synth.plan import modelled
from synth.run import FINAL_ITERATIONS, ROUND_ITERATIONS

REGISTRATION: Final = Fraction(3, 20)
_ROWS = 1 << 22
_CHARGES = Charges("add-remove", 1)


def aim(
    world: World, rounds: int | str, register: bool = False, clients: Sequence[int] | None = None
) -> Outcome:
    """AIM on the union of the clients that arrived, or of these. register: everybody's one-way marginals were asked before."""
    rho, share = rho_of(world.epsilon, world.delta), REGISTRATION if register else Fraction(0)
    epsilon = epsilon_of(rho * (1 - share), world.delta) * (1 - 2**-40) if register else world.epsilon
    table = world.table
    plan = ALGORITHM.plan(
        table.domain,
        table.workload,
        AimConfig(rounds=rounds),
        epsilon=epsilon,
        delta=world.delta,
        adjacency="add-remove",
    )
    guard = Accountant(plan.budget)
    union = world.union(world.arrived if clients is None else clients)
    facts = StudyFacts(table.domain.sizes, "add-remove", 1, _ROWS, world.rng.bytes(32))
    oracle = IdealOracle(facts, world.counter(union), guard, world.rng.bytes)
    found = ALGORITHM.run(oracle, plan, unobserved)
    model, rows = found.model, found.rows
    if register:
        columns = registration(world, share * rho)
        model = rake(model, columns)
        rows = round(model.total)
    return Outcome(model, rows, (guard.rho + share * rho) / rho)


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
    """All one- and two-way marginals of the closure once, sigma_q = c (w_q n_q)^(-1/3); which of them the model holds is decided
    afterwards from what was opened."""
    table, rho = world.table, rho_of(world.epsilon, world.delta)
    small: list[Clique] = [q for q in table.workload.closure if len(q) <= 2]
    cells, _ = modelled(table.domain, small, AimConfig().max_model_mb)
    relative = {q: (table.workload.weights[q] * n) ** (-1 / 3) for q, n in cells.items()}
    scale = sum(of**-2 for of in relative.values()) / (2 * float(rho))
    counts = world.counter(world.union(world.arrived))(list(cells))
    measured: dict[Clique, tuple[NDArray[np.float64], Fraction]] = {}
    spent = Fraction(0)
    for clique, of in zip(cells, counts, strict=True):
        sigma2 = _CHARGES.sigma2(1 / (2 * Fraction(scale * (1 + 2**-30)) * Fraction(relative[clique]) ** 2))
        noisy = (of + _noise(world, sigma2, len(of))).astype(np.float64)
        measured[clique] = (noisy, sigma2)
        spent += _CHARGES.measuring(sigma2)
    model = _structured(world, measured)
    return Outcome(model, round(model.total), spent / rho)


def _structured(world: World, measured: dict[Clique, tuple[NDArray[np.float64], Fraction]]) -> Model:
    """Add the measured pair that the model gets most wrong, for as long as one is wrong by more than its noise and fits."""
    table, limit = world.table, AimConfig().max_model_mb
    held: list[Clique] = [q for q in measured if len(q) == 1]
    pairs: list[Clique] = [q for q in measured if len(q) == 2]

    def fitted(model: Model | None, iterations: int) -> Model:
        given = [Measurement(q, measured[q][0], float(measured[q][1])) for q in held]
        return fit(table.domain.sizes, given, warm_start=model, iterations=iterations)

    model = fitted(None, ROUND_ITERATIONS)
    while True:
        size = SizeEstimator(table.domain.sizes, held)
        fits = [q for q in pairs if q not in held and ((mb := size.with_clique(q)) <= limit or mb == size.mb)]
        gains = {
            q: table.workload.weights[q]
            * (
                float(np.abs(measured[q][0] - answer).sum())
                - float(mean_noise(measured[q][1])) * len(measured[q][0])
            )
            for q, answer in zip(fits, model.marginals(fits), strict=True)
        }
        best = max(gains, key=gains.__getitem__, default=None)
        if best is None or gains[best] <= 0:
            return fitted(model, FINAL_ITERATIONS)
        held.append(best)
        model = fitted(model, ROUND_ITERATIONS // 4)


def _noise(world: World, sigma2: Fraction, cells: int) -> NDArray[np.int64]:
    return sample(sampler(sigma2), cells, world.rng.bytes)
