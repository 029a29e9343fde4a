"""Tables on which the suite of algorithms runs one, on the ideal functionality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import Adjacency, Guard, MarginalOracle, Observe, StudyFacts, unobserved
from mpc_protocols.public.history import NO_HISTORY, History
from runner.review.audit.subjects.in_memory.arena import counter
from runner.review.conformance.algorithm.watched import Watched
from synth.algorithm import Algorithm, WhileArriving
from synth.budget.accounting import Accountant
from synth.config import AlgorithmConfig
from synth.domain import Codes, Domain
from synth.plan import Plan
from synth.synthesis import Synthesis
from synth.workload import Workload

EPSILON, DELTA, ROW_CAP = 2.0, 1e-6, 1 << 20


@dataclass(frozen=True)
class World:
    """A table. codes: int64, a column for each of the domain. epsilon: of its study."""

    name: str
    domain: Domain
    workload: Workload
    codes: NDArray[np.int64] = field(repr=False)
    epsilon: float = EPSILON

    def __str__(self) -> str:
        return self.name


def world(name: str, sizes: Mapping[str, int], degree: int, rows: int) -> World:
    """Each column is the one before it, redrawn in a fifth of the rows; the same rows in every run."""
    rng = np.random.default_rng(7)
    columns: list[NDArray[np.int64]] = []
    for size in sizes.values():
        drawn = rng.integers(0, size, rows)
        columns.append(np.where(rng.random(rows) < 0.2, drawn, columns[-1] % size) if columns else drawn)
    domain = Domain(tuple(sizes), tuple(Codes(size) for size in sizes.values()))
    workload = Workload.from_spec({"degree": degree}, domain)
    return World(name, domain, workload, np.stack(columns, axis=1).astype(np.int64))


USUAL = {"a": 4, "b": 3, "c": 5, "only": 1}
WORLDS = (
    world("20,000 rows, a column with one value", USUAL, 2, 20_000),
    world("no row", USUAL, 2, 0),
    world("one row", USUAL, 2, 1),
    world("one column", {"a": 5}, 1, 1000),
    world("columns of one value each", {"a": 1, "b": 1}, 2, 50),
    world("a column of 300 values", {"a": 300, "b": 2}, 2, 5000),
)


def dependent() -> World:
    """2,000 rows of six columns, each of which tells another but for 4 % of the rows. At `SMALL_EPSILON` a
    typical question has noise of 0.4 of the rows (`noise_share`), above the limit of every algorithm; pairs
    are 1.4 of them from independent (L1)."""
    rng, rows, values = np.random.default_rng(9), 2000, 4
    first = rng.integers(0, values, rows)
    drawn = [rng.integers(0, values, rows) for _ in range(6)]
    codes = [np.where(rng.random(rows) < 0.03, other, (first + k) % values) for k, other in enumerate(drawn)]
    domain = Domain(tuple("abcdef"), (Codes(values),) * 6)
    workload = Workload.from_spec({"degree": 2}, domain)
    table = np.stack(codes, axis=1).astype(np.int64)
    return World("columns that tell one another, much noise", domain, workload, table, SMALL_EPSILON)


def independent() -> World:
    """As many rows of the same columns, which tell nothing of one another: what is bought shows noise."""
    on, rng = dependent(), np.random.default_rng(10)
    codes = np.stack([rng.permutation(codes) for codes in on.codes.T], axis=1)
    return replace(on, name="columns that tell nothing, much noise", codes=codes)


SMALL_EPSILON = 0.3


def other_rows(on: World) -> World:
    """The same columns with rows that have nothing in common with the table's: more of them, and independent
    ones."""
    rng, rows = np.random.default_rng(8), 3 * len(on.codes) + 1000
    codes = [rng.integers(0, size, rows) for size in on.domain.sizes.values()]
    return replace(on, codes=np.stack(codes, axis=1).astype(np.int64))


def tables_of(algorithm: Algorithm[Any, Any], plan: Plan, on: World) -> list[World]:
    """What the oracles of a run are about: the table; in each round of arrivals, as much of it as is there."""
    if not isinstance(algorithm, WhileArriving):
        return [on]
    rounds = plan.rounds[1]
    return [replace(on, codes=on.codes[: len(on.codes) * (turn + 1) // rounds]) for turn in range(rounds)]


def conducted(
    algorithm: Algorithm[Any, Any],
    plan: Plan,
    oracles: Sequence[MarginalOracle],
    observe: Observe = unobserved,
) -> Synthesis:
    """A run on its oracle, or on those of its rounds. Raises what the algorithm raises."""
    if isinstance(algorithm, WhileArriving):
        return algorithm.run_on(iter(oracles), plan, observe)
    [oracle] = oracles
    synthesis: Synthesis = algorithm.run(oracle, plan, observe)
    return synthesis


@dataclass
class Ran:
    """What a run left. observed: phase, event and fields of every observation."""

    synthesis: Synthesis
    oracle: Watched
    accountant: Accountant
    observed: list[tuple[Any, Any, dict[str, Any]]]


def plan_of(
    algorithm: Algorithm[Any, Any],
    config: AlgorithmConfig,
    on: World,
    adjacency: Adjacency = "add-remove",
    unit_rows: int = 1,
    epsilon: float | None = None,
) -> Plan:
    """The plan of a study of this table. epsilon: by default the table's."""
    plan: Plan = algorithm.plan(
        on.domain,
        on.workload,
        config,
        epsilon=on.epsilon if epsilon is None else epsilon,
        delta=DELTA,
        adjacency=adjacency,
        unit_rows=unit_rows,
    )
    return plan


def oracle_of(plan: Plan, on: World, guard: Guard, history: History = NO_HISTORY) -> IdealOracle:
    """The ideal functionality on this table, with the same noise each time: a run repeats itself as long as
    it asks the same."""
    facts = StudyFacts(on.domain.sizes, plan.charges.adjacency, plan.charges.unit_rows, ROW_CAP, bytes(32))
    noise = np.random.default_rng(571).bytes
    return IdealOracle(facts, counter(on.codes, on.domain.sizes), guard, noise, history=history)


def run_algorithm(
    algorithm: Algorithm[Any, Any], plan: Plan, on: World, wild: np.random.Generator | None = None
) -> Ran:
    """One run, whose guard keeps the plan's budget. Raises what the algorithm raises."""
    accountant = Accountant(plan.budget)
    oracle = Watched(oracle_of(plan, on, accountant), wild)
    told: list[tuple[Any, Any, dict[str, Any]]] = []
    synthesis = algorithm.run(
        oracle, plan, lambda phase, event, **fields: told.append((phase, event, fields))
    )
    return Ran(synthesis, oracle, accountant, told)
