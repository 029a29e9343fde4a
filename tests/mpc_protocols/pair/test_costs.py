"""The cost functions are the wire's counters, to the byte, the message and the round."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mpc_protocols.engine.bitslice import words_for
from mpc_protocols.memory_wire import MemoryNetwork
from mpc_protocols.pair import l1_distance, random_ot
from mpc_protocols.pair.contingency import Column, TableShape, of_paths, of_vectors
from mpc_protocols.pair.conversion import lift, weighted_sum
from mpc_protocols.pair.costs import PairCosts
from mpc_protocols.pair.gmw import and_bits, and_known, open_bits, string_sums
from mpc_protocols.pair.l1_distance import absolute_sums
from mpc_protocols.pair.link import Link
from mpc_protocols.pair.random_ot import Demand, Transfers
from mpc_protocols.pair.sign import signs
from mpc_protocols.pair.zero_test import zero_cells
from mpc_protocols.replicated.costs import Tally
from mpc_protocols.wire import Wire
from tests.mpc_protocols.pair.pair_run import random_words


def run(transfers: Transfers) -> None:
    words = random_words
    transfers.reserve(Demand(bits=(3, 1), rows=(0, 2)))
    and_bits(transfers, words(3, 5), words(3, 5))
    and_known(transfers, words(7))
    and_bits(transfers, words(9), words(9))
    string_sums(transfers, words(4, 3), words(4, 70, 3))
    open_bits(transfers.link, words(6))
    for adder in ("ripple", "tree"):
        signs(transfers, words(130).astype(np.uint32), 18, adder)
        absolute_sums(transfers, words(250).astype(np.uint32), np.array([250]), 12, adder)
        lift(transfers, words(70).astype(np.uint16), np.uint32, adder)
    zero_cells(transfers, words(5, 2), 100)
    weighted_sum(transfers, words(5, 2), [1, 2, 3, 4, 5], 100, np.uint64)
    for owner in (0, 1):
        shape = TableShape(owner, 90, 5, 3, np.uint16)
        if transfers.link.me == owner:
            of_paths(transfers, shape, np.zeros(90, np.intp))
        else:
            of_vectors(transfers, shape, [Column(np.zeros(90, np.intp), 3)])
    string_sums(transfers, words(3, 6000), words(3, 2, 6000))


def predicted() -> Tally:
    tally = Tally.of(2)
    costs = PairCosts(tally)
    costs.start()
    costs.reserve(Demand(bits=(3, 1), rows=(0, 2)))
    costs.and_words(15)
    costs.and_known(7)
    costs.and_words(9)
    costs.string_sums(4, 70, 3)
    costs.opening(48)
    for adder in ("ripple", "tree"):
        costs.carry(17, words_for(130), adder)
        costs.absolute_sums(250, 12, adder)
        costs.lift(70, 2, 4, adder)
    costs.zero_cells(5, 100)
    costs.weighted_sum(5, 100, 8)
    for owner in (0, 1):
        costs.table(TableShape(owner, 90, 5, 3, np.uint16))
    costs.string_sums(3, 2, 6000)
    return tally


@pytest.mark.parametrize("ahead", [0, 100])
def test_costs_are_the_counters(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(l1_distance, "CHUNK", 128)
    monkeypatch.setattr(random_ot, "BATCH", 40)
    for module in ("random_ot", "costs"):
        monkeypatch.setattr(f"mpc_protocols.pair.{module}.BATCH", 40)
        monkeypatch.setattr(f"mpc_protocols.pair.{module}.AHEAD_BITS", ahead)
        monkeypatch.setattr(f"mpc_protocols.pair.{module}.AHEAD_ROWS", ahead // 10)
    network = MemoryNetwork(2, 2)

    def party(wire: Wire) -> None:
        run(Transfers.start(Link(wire)))

    network.run([party] * 2)
    tally = predicted()
    traffic = [dataclasses.astuple(network.traffic(i)) for i in range(2)]
    assert [of[0] for of in traffic] == tally.sent
    assert [of[2] for of in traffic] == tally.messages
    assert max(of[3] for of in traffic) == tally.rounds
