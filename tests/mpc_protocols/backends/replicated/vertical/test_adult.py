"""Counts before noise on a real table: Adult split 8 & 7 columns, each owner holding a random nine tenths of
the people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, follow
from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.vertical.partition import OwnRows, VerticalData
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.backends.replicated.vertical.owners import partition, shared_marginals
from tests.worlds.tables import SMALL

TABLE = Path(__file__).parents[6] / "shared" / "data" / "adult-vfl.csv"


def histogram(
    codes: Mapping[str, NDArray[np.uint8]], sizes: Mapping[str, int], clique: Clique
) -> NDArray[np.int64]:
    """Counted in the clear, by another routine than the product's."""
    shape = [sizes[name] for name in clique]
    cells = np.ravel_multi_index([codes[name].astype(np.int64) for name in clique], shape)
    return np.bincount(cells, minlength=int(np.prod(shape)))


@dataclass(frozen=True)
class Adult:
    """Adult at two owners. sizes, owner_of: by column. rows: of the common table. common: codes of the people
    both hold."""

    sizes: dict[str, int]
    owner_of: dict[str, int]
    tables: dict[int, OwnRows]
    rows: int
    common: dict[str, NDArray[np.uint8]]

    @property
    def cliques(self) -> list[list[Clique]]:
        """All pairs of columns, and some triples."""
        triples: list[Clique] = [*combinations(self.sizes, 3)]
        return [[*combinations(self.sizes, 2)], triples[::60]]


def adult(owners: tuple[int, int] = (0, 1)) -> Adult:
    """Columns 8 & 7 at these parties; each holds another random nine tenths of the people."""
    with TABLE.open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, np.uint8, delimiter=",", unpack=True)
    codes = dict(zip(names, table, strict=True))
    sizes = {name: int(column.max()) + 1 for name, column in codes.items()}
    people, rng = len(table[0]), np.random.default_rng(20260101)
    held = [rng.permutation(people)[: people * 9 // 10] for _ in range(2)]
    union, both = np.union1d(held[0], held[1]), np.intersect1d(held[0], held[1])
    place = np.empty(people, np.int64)
    place[union] = rng.permutation(len(union))
    owner_of = {name: owners[number >= 8] for number, name in enumerate(names)}
    tables = {
        owner: OwnRows(place[own], {name: codes[name][own] for name in names if owner_of[name] == owner})
        for owner, own in zip(owners, held, strict=True)
    }
    return Adult(sizes, owner_of, tables, len(union), {name: column[both] for name, column in codes.items()})


@pytest.mark.skipif(not TABLE.exists(), reason=f"{TABLE.name} is not beside the project")
def test_shares_open_to_the_counts_of_the_people_in_common() -> None:
    """All pairs of columns and some triples; the people that one owner lacks count nowhere."""
    of = adult()
    split = partition(of.sizes, of.owner_of, "intersection", of.rows)
    marginals, rows, _ = shared_marginals(of.sizes, split, of.tables, of.cliques)
    assert rows == [len(next(iter(of.common.values())))] * 2
    cliques = [clique for batch in of.cliques for clique in batch]
    for clique, marginal in zip(cliques, marginals, strict=True):
        np.testing.assert_array_equal(marginal, histogram(of.common, of.sizes, clique))


@pytest.mark.skipif(not TABLE.exists(), reason=f"{TABLE.name} is not beside the project")
def test_distances_of_all_pairs_equal_the_clear_ones() -> None:
    """From independent columns, without noise: what the dependency graph of PrivMRF and VertiMRF is bought
    from."""
    of = adult()
    split = partition(of.sizes, of.owner_of, "intersection", of.rows)
    facts = StudyFacts(of.sizes, "add-remove", 1, 1 << 16, bytes(32))
    pairs = of.cliques[0]
    people = len(next(iter(of.common.values())))
    columns = {name: histogram(of.common, of.sizes, (name,)) for name in of.sizes}
    answers = [np.rint(np.outer(columns[a], columns[b]).ravel() / people) for a, b in pairs]
    network = MemoryNetwork(3, 3, session_id=facts.session)

    def job(wire: Wire) -> tuple[list[int], int, int]:
        data = VerticalData(split, of.tables.get(wire.me))
        if wire.me != facts.leader:
            follow(wire, facts, data, Recorder())
            return [], 0, 0
        with ReplicatedOracle(wire, facts, data, Recorder()) as oracle:
            handles = oracle.prepare(pairs)
            oracle.measure(oracle.prepare([(name,) for name in of.sizes]), SMALL)
            before = wire.traffic()
            values = oracle.distances(handles, answers, SMALL)
            after = wire.traffic()
        return values.tolist(), after.rounds - before.rounds, after.bytes_sent - before.bytes_sent

    values, rounds, sent = network.run([job] * 3)[facts.leader]
    clear = [
        int(np.abs(histogram(of.common, of.sizes, pair) - own).sum())
        for pair, own in zip(pairs, answers, strict=True)
    ]
    assert values == clear
    assert rounds <= 22 and sent <= 150_000, (rounds, sent)
