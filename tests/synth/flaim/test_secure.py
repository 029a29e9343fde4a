"""FLAIM's rounds over the three-party engine, in one process: three custodians that compute, four that come
by."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpc_protocols.backends.replicated.cohorts import ReplicatedCohorts, answer, follow
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.wire import Wire
from synth.algorithms.flaim.accounts import ClientAccounts
from synth.algorithms.flaim.client import Client
from synth.algorithms.flaim.opened import Opened
from synth.algorithms.flaim.server import Arrivals, Federated, Server
from tests.synth.flaim.world import SESSION, counter, planned, table

PARTIES, LEADER = 7, 1


def test_rounds_run_over_shares_and_every_party_accounts_for_every_client() -> None:
    plan = planned(epsilon=50.0, rounds=2, group=3)
    tables = [table(300, number) for number in range(PARTIES)]
    accounts = [ClientAccounts(plan, range(PARTIES)) for _ in range(3)]
    charged = dict.fromkeys(range(PARTIES), plan.budget.rho_cap * 0)
    rounds = [Arrivals((0, 3, 4)), Arrivals((0, 1, 2, 5, 6), left=(6,))]

    def party(wire: Wire) -> Any:
        client = Client(plan, counter(tables[wire.me]), SESSION)
        if wire.me == LEADER:
            cohorts = ReplicatedCohorts(wire, client, range(PARTIES), accounts[LEADER])
            server = Server(plan, cohorts, SESSION)
            found: Any = server.run(rounds), server.opened
            cohorts.close()
        elif wire.me < 3:
            found = follow(wire, client, range(PARTIES), accounts[wire.me], LEADER)
        else:
            answer(wire, client, LEADER, own := ClientAccounts(plan, [wire.me]))
            assert own.most == client.charged
            found = None
        charged[wire.me] = client.charged
        return found

    results = MemoryNetwork(PARTIES, 3, session_id=SESSION).run([party] * PARTIES)
    found, told = results[LEADER]
    assert isinstance(found, Federated)
    for follower in (0, 2):  # what a follower finds in the answers is what the leader releases
        own = Opened.of(plan, results[follower])
        assert own.selections == told.selections == [q for chosen in found.chosen for q in chosen]
        for mine, theirs in zip(own.measurements, told.measurements, strict=True):
            assert (mine.clique, mine.round, mine.rows) == (theirs.clique, theirs.round, theirs.rows)
            assert np.array_equal(mine.values, theirs.values)
    everybody = np.concatenate(tables)
    [real] = counter(everybody)([("a", "b")])
    model = found.model.marginal(("a", "b")) / found.model.total
    assert (
        np.abs(model - real / len(everybody)).sum() < 0.15
    )  # noise of less than a row; the tables are fixed
    for account in accounts:
        for number in range(PARTIES):
            assert 0 < charged[number] == account.accounts[number].rho <= plan.budget.rho_cap
