"""A training of two owners in memory, with everything that each of them receives noted: the code is that of a
deployment.

Rows are invented, and so are the coins if they are given: they exist in an audit and in tests alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.prg import KeyStream
from mpc_protocols.functionality import unobserved
from mpc_protocols.in_memory.memory_wire import run_parties
from mpc_protocols.research.split_learning.exchange import Exchange
from mpc_protocols.research.split_learning.schedule import Schedule
from synth.algorithm import ALGORITHMS
from synth.domain import Domain
from synth.training import Half, Lists, Outside, OwnTable, Training
from synth.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mpc_protocols.wire import Traffic, Wire
    from synth.config import AlgorithmConfig

SESSION = hashlib.sha256(b"cosynth training").digest()
LABEL = "label"


@dataclass(frozen=True)
class People:
    """Everybody that somebody holds, in the order of the common table. codes: (u, columns); labels: (u,);
    has_...: (u,).

    label: the column that is predicted; codes are those of all others, in the domain's order.
    """

    domain: Domain
    codes: NDArray[np.int64]
    labels: NDArray[np.int64]
    has_features: NDArray[np.bool_]
    has_label: NDArray[np.bool_]
    label: str = LABEL

    @classmethod
    def invented(
        cls, count: int, seed: int, alpha: float = 0.3, beta: float = 0.3, columns: int = 8
    ) -> People:
        """People whose label depends on their columns, a quarter of it 1; alpha, beta: who lacks features, a
        label."""
        rng = np.random.default_rng(seed)
        sizes = {f"c{place}": 3 + place % 5 for place in range(columns)}
        codes = np.stack([rng.integers(0, size, count) for size in sizes.values()], axis=1)
        score = ((codes / (np.array(list(sizes.values())) - 1) - 0.5) * np.linspace(2, 0.5, columns)).sum(
            axis=1
        )
        labels = (rng.random(count) < 1 / (1 + np.exp(1.8 - 2.5 * score))).astype(np.int64)
        kind = rng.choice(3, count, p=(alpha, beta, 1 - alpha - beta))
        domain = Domain.from_spec({"columns": {**sizes, LABEL: 2}})
        return cls(domain, codes, labels, kind != 0, kind != 1)


@dataclass
class Noted:
    """A link that notes what is received."""

    link: Exchange
    received: list[NDArray[np.float32]] = field(default_factory=list)

    def send(self, tensor: NDArray[np.float32]) -> None:
        """Send."""
        self.link.send(tensor)

    def receive(self, rows: int) -> NDArray[np.float32]:
        """Receive and note."""
        self.received.append(self.link.receive(rows))
        return self.received[-1]


@dataclass(frozen=True)
class Rehearsed:
    """halves: (passive, active). gradients, embeddings: what each received, a tensor a step. batches: the
    rows of each step; held_out: rows that were not trained on, whose embeddings come last."""

    halves: tuple[Half, Half]
    gradients: list[NDArray[np.float32]]
    embeddings: list[NDArray[np.float32]]
    batches: list[NDArray[np.int64]]
    held_out: NDArray[np.int64]
    traffic: tuple[Traffic, Traffic]

    def last_epoch(self, epochs: int) -> slice:
        """Its steps."""
        steps = len(self.batches) // epochs
        return slice(len(self.batches) - steps, len(self.batches))


@dataclass(frozen=True)
class Part:
    """What an owner has in the end. noted: what it received; schedule: the common one."""

    half: Half
    noted: Noted
    schedule: Schedule


def owner_part(
    wire: Wire,
    people: People,
    training: Training[Any, Any],
    config: AlgorithmConfig,
    seed: str,
    **promise: Any,
) -> Part:
    """One owner's part of a training whose coins the seed determines: party 0 is the passive owner, 1 the
    active one."""
    plan = training.plan(
        people.domain,
        Workload(people.domain, tuple((name,) for name in people.domain.names)),
        config,
        **{"epsilon": 1.0, "delta": 1e-6, "adjacency": "replace", **promise},
    )
    shape, union = training.described(config, people.domain, ()), len(people.labels)
    coins = coins_of(f"{seed} {wire.me}")
    link = Exchange(wire.fork("train"), 1 - wire.me, str(1 - wire.me), int(shape["cut"]))
    schedule = Schedule(union, SESSION, link.common_seed(coins), int(shape["batch"]), int(shape["held_out"]))
    noted, keys = Noted(link), KeyStream(coins(16))

    def draw(row: int, count: int) -> NDArray[np.uint64]:
        drawn: NDArray[np.uint64] = keys.draw(count, np.uint64, row)
        return drawn

    outside = Outside(noted, schedule, coins, draw, unobserved, SESSION.hex())
    rows = np.flatnonzero(people.has_label if wire.me else people.has_features)
    if wire.me:
        lists = Lists(len(rows), int(people.has_features.sum()))
        half = training.active(plan, OwnTable(union, rows, people.labels[rows, None]), lists, outside)
        return Part(half, noted, schedule)
    domain = people.domain.subset(tuple(name for name in people.domain.names if name != people.label))
    invented = None
    if training.own_model(plan, domain) is not None:  # like real rows column by column, and none of them
        rng, lacking = np.random.default_rng(3), union - len(rows)
        invented = np.stack([rng.permutation(column[:lacking]) for column in people.codes.T], axis=1)
    own = OwnTable(union, rows, people.codes[rows])
    return Part(training.passive(plan, domain, own, invented, outside), noted, schedule)


def rehearse(
    people: People, training: Training[Any, Any], config: AlgorithmConfig, seed: str, **promise: Any
) -> Rehearsed:
    """Train in memory. Deterministic given the seed."""

    def part(wire: Wire) -> tuple[Part, Traffic]:
        return owner_part(wire, people, training, config, seed, **promise), wire.traffic()

    (first, sent), (second, received) = run_parties([part, part], 2)
    epochs = int(training.described(config, people.domain, ())["epochs"])
    batches = [rows for number in range(epochs) for rows in first.schedule.epoch(number)]
    return Rehearsed(
        (first.half, second.half),
        first.noted.received,
        second.noted.received,
        batches,
        first.schedule.held_out,
        (sent, received),
    )


def trainings() -> Iterator[Training[Any, Any]]:
    """All algorithms that train."""
    yield from (algorithm for algorithm in ALGORITHMS if isinstance(algorithm, Training))


def coins_of(label: str) -> Callable[[int], bytes]:
    """Coins that a label determines."""
    stream = KeyStream(hashlib.sha256(label.encode()).digest()[:16]).reader(0)

    def draw(count: int) -> bytes:
        out = np.empty(count, np.uint8)
        stream.fill(out)
        return out.tobytes()

    return draw
