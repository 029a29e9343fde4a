"""A leader that asks for a marginal outside the plan is refused for that alone: no custodian looks at its
counts first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mpc_protocols.backends.replicated.proved.oracle import contribute
from mpc_protocols.functionality import Clique, InputRule, Level
from mpc_protocols.in_memory.memory_wire import MemoryNetwork
from parties.data.counting.counters import Counters
from synth.domain import Codes, Domain
from tests.mpc_protocols.backends.replicated.proof.cheating import outcomes
from tests.mpc_protocols.backends.replicated.proved.test_engine import party
from tests.worlds.tables import SIZES, facts

PLAN = [("a", "b"), ("b", "c"), ("a", "c"), ("d",)]
ANYTHING = replace(facts(row_cap=60_000), inputs=InputRule(10_000))
"""The facts as a leader has them that asks what it likes."""
OF = replace(ANYTHING, counted=frozenset(map(frozenset, PLAN)))
HALVES = Level("half of a", "a", (0, 0, 1))
LEADER, CONTRIBUTOR = 1, 3


class Custodian:
    """Equal rows, counted as a custodian counts a table; and which marginals were asked of it."""

    def __init__(self, rows: int) -> None:
        self.asked: list[Clique] = []
        self._counters = Counters(Domain(tuple(SIZES), tuple(map(Codes, SIZES.values()))), PLAN)
        self._counters.add({name: np.zeros(rows, np.int64) for name in SIZES})

    def __call__(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        self.asked += cliques
        return self._counters.counts(cliques)


@pytest.mark.parametrize("clique", [("a", "b", "c"), (HALVES.name, "c", "b")])
@pytest.mark.parametrize("curious", [0, CONTRIBUTOR])
def test_whether_a_run_stops_does_not_depend_on_one_record(clique: Clique, curious: int) -> None:
    """4096 rows are kept as they are, of one more unions of cliques are counted, which have more marginals."""

    def said(rows: int) -> list[Any]:
        own = [Custodian(rows if wire == curious else 7) for wire in range(4)]

        def body(wire: Any) -> Any:
            if wire.me == CONTRIBUTOR:
                return contribute(wire, OF, own[CONTRIBUTOR])
            of = ANYTHING if wire.me == LEADER else OF
            return party(wire, lambda oracle: oracle.prepare([clique], [HALVES]), of, counts=own[wire.me])

        network = MemoryNetwork(4, 3, session_id=OF.session)
        found = outcomes(body, network=network)
        # the leader's own counts are its own affair
        assert not any(of.asked for number, of in enumerate(own) if number != LEADER)
        return found

    found = said(4096)
    assert found == said(4097)
    for honest in {0, 2, CONTRIBUTOR}:
        assert found[honest].startswith("The leading party asked"), found
