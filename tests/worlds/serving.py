"""A run of a backend's roles in memory: one party leads, the other computing ones follow, the rest
contribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.in_memory.bent_wire import Bend, bent
from runner.review.conformance.guards import Recorder
from tests.worlds.tables import facts


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
) -> list[Any]:
    """What the body returns at the leader, and what was opened to each other computing party. data: of each
    party."""
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

    return network.run([party] * len(data))[:computing]
