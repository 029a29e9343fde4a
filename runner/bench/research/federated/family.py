"""The FLAIM family on a simulated world, by `synth.algorithms.flaim` and the functionality in the clear."""

from __future__ import annotations

from dataclasses import replace

from mpc_protocols.backends.ideal.cohorts import IdealCohorts
from mpc_protocols.errors import StudyInvalid
from runner.bench.research.federated.world import Outcome, World
from synth.algorithms.flaim.accounts import ClientAccounts
from synth.algorithms.flaim.client import Client
from synth.algorithms.flaim.config import FlaimConfig
from synth.algorithms.flaim.plan import plan
from synth.algorithms.flaim.server import Arrivals, Server


def run(world: World, config: FlaimConfig) -> Outcome:
    """Raises `StudyInvalid` if nobody was asked for anything: too few arrived."""
    table, rng = world.table, world.rng
    config = replace(config, rounds=len(world.arrivals))
    promise = plan(
        table.domain, table.workload, config, epsilon=world.epsilon, delta=world.delta, adjacency="add-remove"
    )
    session = rng.bytes(32)
    clients = {
        k: Client(promise, world.counter(rows), session, rng.bytes) for k, rows in enumerate(world.rows)
    }
    accounts = ClientAccounts(promise, clients)
    server = Server(promise, IdealCohorts(clients, accounts, session, rng.bytes), session)
    found = server.run([Arrivals(there) for there in world.arrivals])
    if found is None:
        raise StudyInvalid("No round had enough clients for a group: raise the chance, or lower group.")
    share = accounts.most / promise.budget.rho_cap if promise.variant.private else None
    return Outcome(found.model, found.rows, share)
