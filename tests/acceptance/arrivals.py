"""Adult in 100 contributors' sealed bundles over replicated shares, and the same arrivals in the clear. Not a
test: figures.

    python -m tests.acceptance.arrivals --runs 12 --methods collect,arriving,waves

Chance 0.1, 10 rounds of arrivals (waves: 12 more for the second wave), epsilon 1, delta 1e-5, expected_rows
45,000, K-means clusters. Bundles are sealed, opened and added up as inboxes do; the three parties are threads
over the in-memory wire. Err is the mean L1 distance of the model's 64 marginals to everybody's; `z` the
difference of the means in standard errors.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from mpc_protocols.backend import BACKENDS, DistributedBackend
from mpc_protocols.backends.bundles.bundle import Header, Letter, content_of, seal_bundle
from mpc_protocols.backends.bundles.collected import CollectedCounts
from mpc_protocols.backends.bundles.layout import Layout, layout_of
from mpc_protocols.backends.bundles.sealing import ReceiverSecret
from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.functionality import MarginalOracle, StudyFacts, unobserved
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from runner.bench.research.federated.runs import Point, Source, scores
from runner.bench.research.federated.world import Outcome, World
from synth.algorithm import ALGORITHMS, Algorithm, WhileArriving
from synth.algorithms.aim.arriving import AimWhileArriving
from synth.algorithms.aim.config import AimConfig
from synth.budget.accounting import Accountant
from synth.plan import Plan
from synth.prior.later_wave import LaterWave, Wave
from synth.synthesis import Synthesis
from tests.acceptance.adult import DATA

ROUNDS, LATER, EXPECTED, ROWS = 10, 12, 45_000, 1 << 22
Ask = Callable[[World, Algorithm[Any, Any], Plan, Sequence[Sequence[int]]], Synthesis]
"""An algorithm with its plan on rounds of newcomers."""


def facts_of(world: World, run: bytes) -> StudyFacts:
    """Of one oracle."""
    return StudyFacts(world.table.domain.sizes, "add-remove", 1, ROWS, run)


def conducted(algorithm: Algorithm[Any, Any], plan: Plan, oracles: Iterator[MarginalOracle]) -> Synthesis:
    """On the oracles of all rounds, or the only one."""
    if isinstance(algorithm, WhileArriving):
        return algorithm.run_on(oracles, plan, unobserved)
    found: Synthesis = algorithm.run(next(oracles), plan, unobserved)
    for _ in oracles:
        raise AssertionError("There is one round.")
    return found


def in_the_clear(
    world: World, algorithm: Algorithm[Any, Any], plan: Plan, rounds: Sequence[Sequence[int]]
) -> Synthesis:
    """By the ideal functionality."""
    guard = Accountant(plan.budget)

    def oracles() -> Iterator[MarginalOracle]:
        here: list[int] = []
        for there in rounds:
            here += there
            yield IdealOracle(
                facts_of(world, secrets.token_bytes(32)), world.counter(world.union(here)), guard
            )

    return conducted(algorithm, plan, oracles())


def over_shares(
    world: World, algorithm: Algorithm[Any, Any], plan: Plan, rounds: Sequence[Sequence[int]]
) -> Synthesis:
    """By three parties, on bundles."""
    facts = [facts_of(world, secrets.token_bytes(32)) for _ in rounds]
    layout = layout_of(facts[0], [*plan.one_way, *plan.candidates])
    sums, agreed = list(_sums(world, layout, rounds)), [secrets.token_bytes(32) for _ in rounds]
    backend = BACKENDS["replicated"]
    assert isinstance(backend, DistributedBackend)

    def party(wire: Wire) -> Synthesis | None:
        guard = Accountant(plan.budget)

        def data(number: int) -> Any:
            return CollectedCounts(layout, sums[number][wire.me], agreed[number])

        def oracles() -> Iterator[MarginalOracle]:
            for number, of in enumerate(facts):
                with backend.lead(wire.fork(f"{number}"), of, data(number), guard, unobserved) as oracle:
                    yield oracle

        if wire.me == facts[0].leader:
            return conducted(algorithm, plan, oracles())
        for number, of in enumerate(facts):
            backend.follow(wire.fork(f"{number}"), of, data(number), guard, unobserved)
        return None

    found = MemoryNetwork(3, patience_s=600.0).run([party] * 3)
    return next(each for each in found if each is not None)


def _sums(
    world: World, layout: Layout, rounds: Sequence[Sequence[int]]
) -> Iterator[list[NDArray[np.uint32]]]:
    """Each party's sum of parts, after each round."""
    receivers, now = [ReceiverSecret.generate() for _ in range(3)], datetime.now(UTC).replace(microsecond=0)
    key, study = Ed25519PrivateKey.generate(), secrets.token_bytes(32)
    digest = hashlib.sha256(key.public_key().public_bytes_raw()).digest()
    names, sums = ("north", "south", "west"), [np.zeros(layout.cells, np.uint32) for _ in range(3)]
    for there in rounds:
        for client in there:
            places = client % 3, (client + 1) % 3
            header = Header(
                study,
                layout.hash,
                layout.cells,
                f"c{client}",
                digest,
                secrets.token_bytes(32),
                (names[places[0]], names[places[1]]),
                now,
                now + timedelta(days=90),
            )
            counts = np.concatenate(world.counter(world.rows[client])(layout.cliques))
            bundle = seal_bundle(header, counts, [receivers[place].public for place in places], key.sign)
            letters: tuple[Letter, Letter] = ("a", "b")
            for letter, place in zip(letters, places, strict=True):
                sums[place] += content_of(header, letter, bundle.opened(letter, receivers[place]))
        yield [each.copy() for each in sums]


def planned(world: World, algorithm: Algorithm[Any, Any]) -> Plan:
    """As for bundles: of what can win on the rows that are expected."""
    plan: Plan = algorithm.plan(
        world.table.domain,
        world.table.workload,
        AimConfig(rounds=ROUNDS),
        epsilon=world.epsilon,
        delta=world.delta,
        adjacency="add-remove",
    )
    likely = set(plan.likely(EXPECTED))
    return replace(plan, candidates={q: n for q, n in plan.candidates.items() if q in likely})


def collect(world: World, ask: Ask) -> Synthesis:
    """AIM on all who came."""
    algorithm = ALGORITHMS["aim"]
    return ask(world, algorithm, planned(world, algorithm), [world.arrived])


def arriving(world: World, ask: Ask) -> Synthesis:
    """AIM while they came."""
    algorithm = AimWhileArriving(ROUNDS, False)
    return ask(world, algorithm, planned(world, algorithm), world.newcomers)


def waves(world: World, ask: Ask) -> Synthesis:
    """AIM on who came in the first rounds, and a later wave of the others."""
    early = sorted({k for there in world.arrivals[:ROUNDS] for k in there})
    late = [k for k in world.arrived if k not in early]
    algorithm = ALGORITHMS["aim"]
    first = ask(world, algorithm, planned(world, algorithm), [early])
    known = [(m.clique, m.values.tolist(), m.sigma2) for m in first.measurements]
    later = LaterWave(algorithm, Wave.of(known, first.noisy_total))
    return ask(world, later, planned(world, later), [late])


METHODS: dict[str, tuple[Callable[[World, Ask], Synthesis], int]] = {
    "collect": (collect, ROUNDS),
    "arriving": (arriving, ROUNDS),
    "waves": (waves, ROUNDS + LATER),
}


def main() -> None:
    """Print a line for each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--split", default="cluster")
    options = parser.parse_args()
    source = Source(DATA)
    for name in options.methods.split(","):
        method, rounds = METHODS[name]
        point = Point("adult", options.split, 100, 0.1, rounds, 1.0, 1e-5, 3)
        errors: dict[str, list[float]] = {"ideal": [], "replicated": []}
        cpu = dict.fromkeys(errors, 0.0)
        for seed in range(options.runs):
            world = source.world(point, seed)
            assert world is not None
            for way, ask in (("ideal", in_the_clear), ("replicated", over_shares)):
                began = process_time()
                found = method(world, ask)
                cpu[way] += process_time() - began
                outcome = Outcome(found.model, found.rows, Fraction(1))
                errors[way].append(scores(outcome, world, False)["err"])
        means = {way: statistics.fmean(of) for way, of in errors.items()}
        apart = [a - b for a, b in zip(errors["ideal"], errors["replicated"], strict=True)]
        z = statistics.fmean(apart) / (statistics.stdev(apart) / len(apart) ** 0.5) if len(apart) > 1 else 0.0
        figures = {way: round(mean, 4) for way, mean in means.items()}
        print(json.dumps({"method": name, **figures, "z": round(z, 2), "cpu_s": cpu, "runs": options.runs}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
