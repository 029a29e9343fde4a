"""A vertical study on the engine with proofs: columns a, b and c, d of two owners, a third party that only
computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.backends.replicated.proved.engine import ProvedEngine
from mpc_protocols.backends.replicated.proved.gates import ProvedGates
from mpc_protocols.backends.replicated.proved.oracle import contribute
from mpc_protocols.backends.replicated.proved.vertical.contributor import ProvedVerticalContributor
from mpc_protocols.backends.replicated.proved.vertical.source import ProvedVerticalMarginals
from mpc_protocols.backends.replicated.sharing.ring import concatenate, open_ring
from mpc_protocols.backends.replicated.sharing.trio import Trio
from mpc_protocols.engine import oracle as oracles
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.functionality import Clique, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData, ideal_counts
from mpc_protocols.wire import Traffic
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.proof.cheating import Alter, outcomes
from tests.mpc_protocols.backends.replicated.vertical.owners import Population, partition, random_owners
from tests.worlds.tables import SIZES, facts


@dataclass(frozen=True)
class World:
    """Who owns which columns, and what."""

    split: Partition
    tables: Mapping[int, OwnRows]

    @property
    def facts(self) -> StudyFacts:
        return facts()

    @property
    def parties(self) -> int:
        return max(3, max(self.split.owners) + 1)

    def ideal(self, body: Callable[[MarginalOracle], Any]) -> Any:
        """Answers in the clear."""
        counts = ideal_counts(self.split, self.tables, SIZES)
        return body(IdealOracle(self.facts, counts, Recorder()))

    def party(
        self,
        wire: Any,
        body: Callable[[Any], Any],
        ahead: bool = True,
        tables: Mapping[int, OwnRows] | None = None,
    ) -> Any:
        """One party's part; P1 leads."""
        own = VerticalData(self.split, (tables or self.tables).get(wire.me))
        if wire.me >= 3:
            contribute(wire, self.facts, own)
            return None
        party = ComputingParty(ProvedEngine(wire, self.facts, own), self.facts, Recorder(), None, ahead)
        if wire.me == self.facts.leader:
            with oracles.LeadingOracle(party) as oracle:
                return body(oracle)
        return [values.tolist() for values in oracles.follow(party)]

    def run(
        self,
        body: Callable[[Any], Any],
        cheat: int | None = None,
        alter: Alter | None = None,
        ahead: bool = True,
        tables: Mapping[int, OwnRows] | None = None,
        traffic: list[Traffic] | None = None,
    ) -> list[Any]:
        """What each party ends with: the leader with the answers, followers with what was measured, or a
        sentence."""
        network = MemoryNetwork(self.parties, 3, session_id=self.facts.session)
        found = outcomes(lambda wire: self.party(wire, body, ahead, tables), cheat, alter, network=network)
        if traffic is not None:
            traffic += map(network.traffic, range(self.parties))
        return found

    def share(
        self, batches: Sequence[Sequence[Clique]], cheat: int | None = None, alter: Alter | None = None
    ) -> list[Any]:
        """The vertical phase alone: what each computing party opens of all cells in the end, or a sentence."""

        def party(wire: Any) -> Any:
            own = VerticalData(self.split, self.tables.get(wire.me))
            if wire.me >= 3:
                contributor = ProvedVerticalContributor(wire, self.facts, own)
                for batch in batches:
                    contributor.send(batch, ())
                return None
            gates = ProvedGates(Trio(wire))
            source = ProvedVerticalMarginals(gates, self.facts, own)
            cells = []
            for number, batch in enumerate(batches):
                source.share(batch, (), bytes([number]))
                cells += [source.shared(clique) for clique in batch]
            return [int(count) for count in open_ring(gates.trio, concatenate(cells))]

        network = MemoryNetwork(self.parties, 3)
        return outcomes(party, cheat, alter, network=network)[:3]

    def counts(self, batches: Sequence[Sequence[Clique]]) -> list[int]:
        """What is to be opened."""
        cliques = [clique for batch in batches for clique in batch]
        return [int(n) for cells in ideal_counts(self.split, self.tables, SIZES)(cliques) for n in cells]


def world(
    owners: tuple[int, int, int, int] = (0, 0, 2, 2), population: Population = "intersection", rows: int = 700
) -> World:
    """Owners of the columns a, b, c, d; each holds nine tenths of the rows."""
    split = partition(SIZES, dict(zip(SIZES, owners, strict=True)), population, rows)
    return World(split, random_owners(SIZES, split, [0.9] * len(split.owners), np.random.default_rng(4)))
