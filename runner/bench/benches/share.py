"""The input: all custodians' counts become shares (`docs/design/engine.md` 2.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpc_protocols.backends.replicated.marginals import SharedMarginals
from mpc_protocols.backends.replicated.scores.dealer import DEALERS
from mpc_protocols.backends.replicated.sharing.ring import concatenate, open_ring
from mpc_protocols.engine.inputs.contribution import send_contribution
from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.public.state import PublicState
from mpc_protocols.wire import Wire
from runner.bench.parameters import CELLS, PARTIES, Params
from runner.bench.registry import Kernel, Task
from runner.bench.tables.inputs import counts, expect, trio_of

_ROWS = 10_000
_CLIQUES = 16


class Share(Kernel):
    """`cells` in sixteen marginals, of each of the parties."""

    name, purpose, counts = "share", "the counts of all custodians become shares", "cells"
    parameters = (CELLS, PARTIES)

    def problem(self, params: Params) -> str | None:
        return (
            None if int(params["parties"]) >= 3 else f"three parties hold the shares, got {params['parties']}"
        )

    def prepare(self, wire: Wire, params: Params) -> Task:
        parties = int(params["parties"])
        sizes = _sizes(int(params["cells"]))
        facts = StudyFacts(sizes, "add-remove", 1, parties * _ROWS, wire.session_id)
        cliques: list[Clique] = [(name,) for name in sizes]
        own = [counts(size, _ROWS, wire.me) for size in sizes.values()]
        if wire.me >= wire.computing:
            return Task(lambda: send_contribution(wire, facts, lambda _: own, cliques, ()))
        trio = trio_of(wire)

        def check(marginals: Any) -> None:
            state = PublicState(facts, DEALERS)
            handles = state.begin_prepare(cliques).handles
            opened = open_ring(trio, concatenate([marginals.marginal(state, handle) for handle in handles]))
            wanted = np.concatenate(
                [sum(counts(size, _ROWS, party) for party in range(parties)) for size in sizes.values()]
            )
            expect(self.name, opened, wanted.astype(np.uint32))

        def run() -> SharedMarginals:
            marginals = SharedMarginals(trio, facts, lambda _: own)
            marginals.share(cliques, (), bytes(32))
            return marginals

        return Task(run, check)

    def floor(self, params: Params) -> Task:
        cells = [np.ones(int(params["cells"]), np.uint32) for _ in range(int(params["parties"]))]
        return Task(lambda: sum(cells))


def _sizes(cells: int) -> dict[str, int]:
    pieces = min(_CLIQUES, cells)
    return {str(q): (q + 1) * cells // pieces - q * cells // pieces for q in range(pieces)}


BENCH = Share()
