"""What a dry run counts is what a run sends, to the byte, the message and the round: on blank arrays as on
real ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.pair.backend import BACKEND
from mpc_protocols.backends.pair.blank import blank_transfers
from mpc_protocols.backends.pair.circuits import kept_cells, sign
from mpc_protocols.backends.pair.circuits.conversion import lift, weighted_sum
from mpc_protocols.backends.pair.circuits.gmw import and_bits, string_sums
from mpc_protocols.backends.pair.circuits.kept_cells import KeptCells
from mpc_protocols.backends.pair.circuits.l1_distance import l1_sums
from mpc_protocols.backends.pair.circuits.sign import signs
from mpc_protocols.backends.pair.circuits.zero_test import zero_cells
from mpc_protocols.backends.pair.link import Link
from mpc_protocols.backends.pair.oracle import ROLES, contribute
from mpc_protocols.backends.pair.transfers import random_ot, transfer_pool
from mpc_protocols.backends.pair.transfers.random_ot import Transfers
from mpc_protocols.backends.pair.transfers.transfer_pool import Demand
from mpc_protocols.backends.pair.vertical.contingency import Column, TableShape, of_paths, of_vectors
from mpc_protocols.engine.blank import blank
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.functionality import Clique, LocalCounts, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll, DryRun, PresumedRun
from mpc_protocols.vertical.partition import VerticalData, ideal_counts
from mpc_protocols.wire import Wire
from tests.mpc_protocols.backends.replicated.vertical.owners import partition, random_owners
from tests.worlds import serving, tables
from tests.worlds.questions import total_and_work
from tests.worlds.tables import CONTRIBUTORS, PARTS, counter, facts
from tests.worlds.words import random_words


def protocols(transfers: Transfers, words: Callable[..., NDArray[Any]]) -> None:
    """Every protocol of the engine, in sizes that take several pieces. words: of a shape."""
    transfers.reserve(Demand(bits=(3, 1), shorts=(2, 0), rows=(0, 2)))
    transfers.foresee(Demand(bits=(700, 90), shorts=(40, 2000), rows=(30, 0)))
    transfers.hasten(Demand(bits=(5, 80), rows=(7, 0)))
    and_bits(transfers, words(3, 5), words(3, 5))
    and_bits(transfers, words(9), words(9))
    string_sums(transfers, words(4, 3), words(4, 70, 3))
    transfers.link.combine(words(6), np.bitwise_xor)
    for adder in ("ripple", "tree"):
        signs(transfers, words(130).astype(np.uint32), 18, adder)
        signs(transfers, words(100).astype(np.uint32), 18, adder)
        l1_sums(transfers, words(250).astype(np.uint32), np.array([250]), 12, adder)
        lift(transfers, words(170).astype(np.uint16), np.uint32, adder)
    zero_cells(transfers, words(5, 2), 100)
    weighted_sum(transfers, words(5, 2), [1, 2, 3, 4, 5], 100, np.uint64)
    for owner in (0, 1):
        shape = TableShape(owner, 90, 5, 3, np.uint16)
        if transfers.link.me == owner:
            of_paths(transfers, shape, np.zeros(90, np.intp))
        else:
            of_vectors(transfers, shape, [Column(np.zeros(90, np.intp), 3)])
    string_sums(transfers, words(3, 6000), words(3, 2, 6000))


@pytest.mark.parametrize("ahead", [0, 100])
def test_blank_protocols_send_what_protocols_send(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign, "CHUNK", 128)
    monkeypatch.setattr(random_ot, "BATCH", 40)
    monkeypatch.setattr(transfer_pool, "AHEAD_BITS", ahead)
    monkeypatch.setattr(transfer_pool, "AHEAD_ROWS", ahead // 10)

    def counters(
        start: Callable[[Link], Transfers], words: Callable[..., NDArray[Any]]
    ) -> list[tuple[Any, ...]]:
        network = MemoryNetwork(2, 2)
        network.run([lambda wire: protocols(start(Link(wire)), words)] * 2)
        return [dataclasses.astuple(network.traffic(party)) for party in range(2)]

    real = counters(Transfers.start, random_words)
    assert counters(blank_transfers, lambda *shape: blank(shape, np.uint64)) == real


SIZES = {"a": 9, "b": 11, "c": 30}
CLIQUES = [("a", "b"), ("b", "c"), ("a", "c")]
WHOLE = StudyFacts(SIZES, "add-remove", 1, 100_000, b"s" * 32)


def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
    return [np.arange(WHOLE.cells(clique)) // 8 for clique in cliques]


def every_step(oracle: MarginalOracle) -> None:
    handles = oracle.prepare(CLIQUES)
    oracle.measure(handles[:1], Fraction(100))
    answers = [np.full(WHOLE.cells(clique), 7.0) for clique in CLIQUES]
    answers[1][:100] = 0
    for _ in range(2):
        oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1))
    oracle.select(handles, answers, [Fraction(1)] * 3, [Fraction(0)] * 3, Fraction(1), 2)
    oracle.measure(handles, [Fraction(4), Fraction(4), Fraction(9)])
    oracle.distances(handles, answers, Fraction(100))
    oracle.total(Fraction(100))


@pytest.mark.parametrize("latency_bytes", [1, 1 << 30])
def test_a_dry_run_takes_the_forms_of_the_run(latency_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a round is worth."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: latency_bytes)
    network = MemoryNetwork(4, 2, session_id=WHOLE.session)

    def party(wire: Wire) -> None:
        if wire.me == 1:
            with ROLES.lead(wire, WHOLE, counts, AllowAll()) as oracle:
                every_step(oracle)
        elif wire.me == 0:
            ROLES.follow(wire, WHOLE, counts, AllowAll())
        else:
            contribute(wire, WHOLE, counts)

    network.run([party] * 4)
    dry = BACKEND.dry_run(PresumedRun(WHOLE, lambda cliques: [4 * of for of in counts(cliques)], 2, 2))
    every_step(dry)
    dry.close()
    serving.check_traffic(network, dry)


def test_a_dry_run_foresees_what_is_kept_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is asked for in pieces: as much as a run's parties take by their own count, and masks are that large."""
    monkeypatch.setattr(kept_cells, "PIECE", 256)
    made: list[KeptCells] = []
    begin = KeptCells.__init__

    def noted(self: KeptCells, transfers: Transfers) -> None:
        begin(self, transfers)
        made.append(self)

    monkeypatch.setattr(KeptCells, "__init__", noted)
    network = MemoryNetwork(2, 2, session_id=WHOLE.session)

    def party(wire: Wire) -> None:
        if wire.me == 1:
            with ROLES.lead(wire, WHOLE, counts, AllowAll()) as oracle:
                every_step(oracle)
        else:
            ROLES.follow(wire, WHOLE, counts, AllowAll())

    network.run([party] * 2)
    taken = max(of.most_bytes for of in made)
    kept = [of._own.nbytes + of._others.nbytes for of in made]
    assert 0 < max(kept) < taken < max(kept) + 256 * kept_cells.ASKING_BYTES * 32
    dry = BACKEND.dry_run(PresumedRun(WHOLE, lambda cliques: [2 * of for of in counts(cliques)], 2, 0))
    assert isinstance(dry, DryRun) and dry.beside_bytes == 0
    every_step(dry)
    assert dry.beside_bytes == taken
    dry.close()


@pytest.mark.parametrize("split", [False, True])
def test_a_dry_run_counts_what_the_run_sends(split: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At tiny noise both give the same answers, so the same messages."""
    monkeypatch.setattr("mpc_protocols.engine.step.latency_bytes_of", lambda delay_us: LATENCY_BYTES)
    of, data = facts(), [*map(counter, (PARTS[0], PARTS[1], CONTRIBUTORS[0]))]
    presumed: LocalCounts = counter(np.concatenate([PARTS[0], PARTS[1], CONTRIBUTORS[0]]))
    common, brought, parties = None, [*data], 3
    if split:
        common = partition(tables.SIZES, {"a": 0, "b": 1, "c": 1, "d": 0}, "union", 400)
        owned = random_owners(tables.SIZES, common, (0.9, 0.9), np.random.default_rng())
        presumed = ideal_counts(common, owned, tables.SIZES)
        brought, parties = [VerticalData(common, owned[owner]) for owner in (0, 1)], 2  # type: ignore[misc]
    network = MemoryNetwork(parties, 2, session_id=of.session)

    def party(wire: Wire) -> object:
        if wire.me == 1:
            with ROLES.lead(wire, of, brought[1], AllowAll()) as oracle:
                return total_and_work(oracle)
        if wire.me == 0:
            return ROLES.follow(wire, of, brought[0], AllowAll())
        return contribute(wire, of, brought[2])  # type: ignore[func-returns-value]

    found = network.run([party] * parties)[1]
    dry = BACKEND.dry_run(PresumedRun(of, presumed, 2, parties - 2, common))
    assert total_and_work(dry) == found
    dry.close()
    serving.check_traffic(network, dry)
    assert dry.shared_cells > 60 and dry.seconds > 0 and len(dry.marks) == 4
