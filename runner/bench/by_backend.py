"""Benchmarks that every backend runs, through its own engine (`mpc_protocols.engine.interface`): `--backend`,
`--parties`.

A backend over the engine interface names its computing party (`backend.OracleParts`); a benchmark drives that
party's engine, or its steps as the leader's oracle does. Which of `--parties` compute is the backend's
affair, as in a study that does not say it: the first ones; the others contribute. So one more backend needs
no code here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from mpc_protocols.backend import BACKENDS, Backend, EngineBackend, OracleParts
from mpc_protocols.engine.oracle import LeadingOracle
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.functionality import Clique, Handle, LocalCounts, StudyFacts
from mpc_protocols.in_memory.presumed import AllowAll
from mpc_protocols.public.begun import BegunPrepare
from mpc_protocols.public.steps import MAX_BYTES, EndStep, parse
from mpc_protocols.registry import not_installed
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire
from runner.bench.parameters import BACKEND, PARTIES, PROOFS, PROVED, Params
from runner.bench.registry import Kernel
from runner.bench.running.processes import party_names


def backend_of(params: Params) -> Backend:
    """The backend of a point."""
    return BACKENDS[str(params[BACKEND.name])]


def computing_of(params: Params) -> int:
    """How many of a point's parties compute."""
    return sum(backend_of(params).roles([None] * int(params[PARTIES.name])))


def misfit(backend: Backend, parties: int, computing: int) -> str | None:
    """Why the backend is not here, or cannot be with these parties, without a full stop."""
    if lack := not_installed(backend):
        return f'backend = "{backend.name}" {lack}'
    problem = backend.misfit(party_names(parties, computing)[:computing])
    return problem and f"a study of {parties} parties {problem}"


class EngineKernel(Kernel):
    """A kernel over any backend's engine; its parameters hold `BACKEND`, and `PARTIES` unless it says who
    takes part."""

    def computing(self, params: Params) -> int:
        return computing_of(params)

    def problem(self, params: Params) -> str | None:
        backend = backend_of(params)
        if why := misfit(backend, self.processes(params), self.computing(params)):
            return why
        if not isinstance(backend, EngineBackend) or backend.parts().party is None:
            return f'backend = "{backend.name}" shows no engine that a benchmark could drive; run end-to-end with it'
        if params.get(PROOFS.name) and PROVED not in backend.securities:
            return f'the parties of backend = "{backend.name}" prove nothing'
        return self.refusal(params)

    def refusal(self, params: Params) -> str | None:
        """What else is wrong with values that do not go together; None if they do."""
        return None

    def peer(self, params: Params) -> Params | None:
        """MPyC shares among three parties at least: with two, each would know everything."""
        computing = self.computing(params)
        return None if computing < 3 else {**self.small(params), PARTIES.name: computing}

    @abstractmethod
    def small(self, params: Params) -> Params:
        """Parameters at which MPyC's secure arrays do the same work in about a second."""


def parts_of(params: Params) -> OracleParts:
    """The parts of a point's backend."""
    backend = backend_of(params)
    if params.get(PROOFS.name):
        backend = backend.secured(PROVED)
    assert isinstance(backend, EngineBackend)  # `EngineKernel.problem`
    return backend.parts()


def party_of(
    wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData | None, params: Params
) -> ComputingParty[Any, Any]:
    """This computing party over its backend's engine; it makes no noise ahead, and its guard allows
    everything."""
    party = parts_of(params).party
    assert party is not None
    found: ComputingParty[Any, Any] = party(wire, facts, data, AllowAll(), None, ahead=False)
    return found


def prove(engine: Any, params: Params) -> None:
    """What a party that proves its products does before anything is opened; nothing at others."""
    if params.get(PROOFS.name):
        engine.gates.verify()


def facts_of(wire: Wire, sizes: dict[str, int], adjacency: Any, rows: int, params: Params) -> StudyFacts:
    """Public facts of an invented study."""
    return StudyFacts(sizes, adjacency, 1, rows, wire.session_id, backend_of(params).leader(wire.computing))


def shared(
    wire: Wire, facts: StudyFacts, counts: LocalCounts, cliques: Sequence[Clique], params: Params
) -> tuple[ComputingParty[Any, Any], LeadingOracle | None, list[Handle]] | None:
    """Everybody's counts become shares, in one step. This computing party, the oracle where it leads, and
    handles there.

    None at a contributor, which is done.
    """
    if wire.me >= wire.computing:
        parts_of(params).contribute(wire, facts, counts)
        return None
    party = party_of(wire, facts, counts, params)
    if not party.leads:
        begun = party.state.begin(parse(wire.receive_up_to(facts.leader, MAX_BYTES)))
        assert isinstance(begun, BegunPrepare)
        party.prepare(begun)
        return party, None, list(begun.handles)
    oracle = LeadingOracle(party)
    handles = oracle.prepare(cliques)
    for contributor in wire.contributors:
        wire.send(contributor, EndStep().to_bytes())
    return party, oracle, handles
