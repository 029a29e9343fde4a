"""A run of a backend's roles in memory: one party leads, the other computing ones follow, the rest
contribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.ideal.oracle import IdealOracle
from mpc_protocols.errors import BudgetRefused, CosynthError
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.in_memory.presumed import DryRun
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.in_memory.arena import apart
from runner.review.audit.subjects.in_memory.bent_wire import Bend, bent
from runner.review.conformance.guards import Recorder
from tests.worlds.questions import work
from tests.worlds.tables import counter, facts

Codes = NDArray[np.int64]


def serve(
    roles: Any,
    contribute: Callable[..., Any],
    computing: int,
    body: Callable[[Any], Any],
    data: Sequence[LocalCounts | VerticalData | None],
    of: StudyFacts | None = None,
    guards: Sequence[Recorder] | None = None,
    tap: Callable[[Frame], None] | None = None,
    bend: Bend | None = None,
    delay_us: int = 0,
) -> list[Any]:
    """What the body returns at the leader, and what was opened to each other computing party. data: of each
    party. delay_us: how far `apart` they are."""
    of = of or facts()
    guards = guards or [Recorder() for _ in range(computing)]
    network = MemoryNetwork(len(data), computing, tap=tap, session_id=of.session)

    def party(plain: Wire) -> Any:
        wire = bent(plain, bend)
        mine = data[wire.me]
        if wire.me == of.leader:
            with roles.lead(wire, of, mine, guards[wire.me]) as oracle:
                return body(oracle)
        if wire.me < computing:
            return roles.follow(wire, of, mine, guards[wire.me])
        assert mine is not None
        return contribute(wire, of, mine)

    with apart(delay_us):
        return network.run([party] * len(data))[:computing]


def answered_as_ideal(
    served: Callable[..., Any], parts: Sequence[Codes], computing: int, dealers: int, *more: Any
) -> None:
    """Without noise a backend answers all questions as `ideal` does on everybody's rows, with the same
    transcript, and asks each guard the same. served: a test's own `serve`; more: of it, after the data."""
    ideal_guard, guards = Recorder(), [Recorder() for _ in range(computing)]
    ideal = IdealOracle(facts(), counter(np.concatenate(parts)), ideal_guard, dealers=dealers)
    expected = work(ideal)
    answers, transcript = served(
        lambda oracle: (work(oracle), oracle.state.transcript), [*map(counter, parts)], *more, guards=guards
    )
    assert (answers, transcript) == (expected, ideal.state.transcript)
    for guard in guards:
        assert guard.asked == ideal_guard.asked


def refused_by(
    served: Callable[..., Any], refuser: int, parts: Sequence[Codes], computing: int, *more: Any
) -> None:
    """A run whose budget one party refuses ends by that, at the leader too."""
    guards = [Recorder(0 if me == refuser else None) for me in range(computing)]
    with pytest.raises(CosynthError) as failure:
        served(work, [*map(counter, parts)], *more, guards=guards)
    assert isinstance(failure.value, BudgetRefused)


def take_part(roles: Any, wire: Wire, of: StudyFacts, mine: Any) -> list[Any]:
    """A computing party's part in its own process; the leader's answers as text."""
    if wire.me == of.leader:
        with roles.lead(wire, of, mine, Recorder()) as oracle:
            return [repr(work(oracle))]
    roles.follow(wire, of, mine, Recorder())
    return []


def check_traffic(network: MemoryNetwork, dry: DryRun) -> None:
    """A dry run has counted each party's bytes, and the rounds."""
    traffic = [network.traffic(party) for party in range(len(dry.sent))]
    assert [of.bytes_sent for of in traffic] == list(dry.sent)
    assert max(of.rounds for of in traffic) == dry.rounds
