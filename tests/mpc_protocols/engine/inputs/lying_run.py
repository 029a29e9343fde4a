"""Runs of any backend in memory in which contributors send what they like instead of their counts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backend import DistributedBackend
from mpc_protocols.engine.inputs import contribution
from mpc_protocols.functionality import Clique, InputRule, MarginalOracle, StudyFacts
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.wire import Wire
from runner.review.conformance.guards import Recorder
from tests.worlds.tables import counter, facts

Lie = Callable[[Clique, NDArray[np.uint32]], NDArray[np.uint32]]
"""From a clique and its true cells to what is sent."""
ROWS = 120


@dataclass
class Run:
    """What a run came to. left_out: contributors, as each computing party says, with how many cells were
    shared before."""

    answer: Any = None
    network: MemoryNetwork | None = None
    left_out: dict[int, list[int]] = field(default_factory=dict)


def run(
    backend: DistributedBackend,
    computing: int,
    tables: Sequence[NDArray[np.int64]],
    body: Callable[[MarginalOracle], Any],
    lies: Mapping[int, Lie],
    rule: InputRule | None,
    of: StudyFacts | None = None,
    histories: Sequence[History] | None = None,
) -> Run:
    """`body` at the leader, with tables[i] at party i. lies: of contributors, by number. histories: of the
    computing parties.

    Raises what a party raised first.
    """
    leader = backend.leader(computing)
    of = replace(of or facts(), leader=leader, inputs=rule)
    found = Run(network=MemoryNetwork(len(tables), computing, session_id=of.session))
    found.left_out = {party: [] for party in range(computing)}
    honest = contribution.local_cells

    def sent(of: Any, counts: Any, cliques: Any, levels: Any) -> Any:
        cells = honest(of, counts, cliques, levels)
        named = re.match(r"party-(\d+)", threading.current_thread().name)
        lie = lies.get(int(named[1])) if named else None
        return cells if lie is None else [lie(*pair) for pair in zip(cliques, cells, strict=True)]

    def party(wire: Wire) -> Any:
        counts, guard = counter(tables[wire.me]), Recorder()
        history = histories[wire.me] if histories and wire.me < computing else NO_HISTORY

        def observe(phase: str, event: str, **fields: Any) -> None:
            if event == "left_out":
                found.left_out[wire.me].append(fields["contributor"])

        if wire.me == leader:
            with backend.lead(wire, of, counts, guard, observe, history) as oracle:
                found.answer = body(oracle)
        elif wire.me < computing:
            backend.follow(wire, of, counts, guard, observe, history)
        else:
            backend.contribute(wire, of, counts)

    assert found.network is not None
    with mock.patch.object(contribution, "local_cells", sent):
        found.network.run([party] * len(tables))
    return found
