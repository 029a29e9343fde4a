"""What a selection is made of: sum |x - c| of every candidate, x secret, c public, by a backend's engine
(`l1_sums`).

Measured as in any selection of a run but the first that compares a cell: what a backend keeps of x for later
selections (in `replicated`, shared bits) is made in the preparation, once. The answers c are there before,
those of the first group of cells.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.interface import L1Sums
from mpc_protocols.public.begun import BegunSelect
from mpc_protocols.public.rounded_answers import AnnouncedAnswers, RoundedAnswers
from mpc_protocols.public.steps import MAX_BYTES, parse
from mpc_protocols.wire import Wire
from runner.bench.by_backend import EngineKernel, facts_of, prove, shared
from runner.bench.parameters import BACKEND, BITS, CANDIDATES, CELLS, PARTIES, PROOFS, Params
from runner.bench.registry import Task
from runner.bench.tables import candidates
from runner.bench.tables.inputs import expect, vector


class Scores(EngineKernel):
    """L1 distances of all candidates; differences of `bits` bits, the sign included; sums modulo 2^32."""

    name, purpose, counts = "scores", "sum |x - c| of all candidates of a selection, x secret", "cells"
    parameters = (CELLS, BITS, CANDIDATES, BACKEND, PARTIES, PROOFS)

    def refusal(self, params: Params) -> str | None:
        if wrong := candidates.problem(params):
            return wrong
        largest, rows = max(candidates.sizes_of(params).values()), candidates.rows_of(params)
        return (
            None
            if largest <= rows * 9 // 10
            else f"candidates of {largest} cells have answers above 0 for more than that many rows only, and --bits "
            f"{params['bits']} has {rows}"
        )

    def prepare(self, wire: Wire, params: Params) -> Task:
        sizes, count = candidates.sizes_of(params), int(params["candidates"])
        facts = facts_of(wire, sizes, "add-remove", candidates.rows_of(params), params)
        here = shared(
            wire, facts, candidates.own_counts(params, wire.me), [(name,) for name in sizes], params
        )
        if here is None:
            return Task(lambda: None)
        party, oracle, handles = here
        rounded: RoundedAnswers | None = None
        if oracle is not None:
            weights, penalties = [Fraction(1)] * count, [Fraction(0)] * count
            begun, rounded = party.state.begin_select(
                handles, candidates.answers(params), weights, penalties, Fraction(1, 10)
            )
            for peer in range(wire.computing):
                if peer != wire.me:
                    wire.send(peer, begun.step.to_bytes())
        else:
            parsed = party.state.begin(parse(wire.receive_up_to(facts.leader, MAX_BYTES)))
            assert isinstance(parsed, BegunSelect)
            begun = parsed
        sums: L1Sums[Any]

        def before() -> None:
            nonlocal sums
            sums = party.engine.l1_sums(party.state, begun.answers, begun.answers.planes, np.uint32, rounded)
            sums.exchange()

        def check(found: Any) -> None:
            opened = party.engine.reveal(found) % (1 << 32)
            if rounded is not None:
                expect(self.name, opened, _plain(candidates.tables(params), begun.answers, rounded))

        def run() -> Any:
            found = sums.compute()
            prove(party.engine, params)
            return found

        before()
        run()
        return Task(run, check, before)

    def floor(self, params: Params) -> Task:
        pairs = list(zip(candidates.tables(params), candidates.answers(params), strict=True))
        return Task(lambda: [float(np.abs(table - answer).sum()) for table, answer in pairs])

    def small(self, params: Params) -> Params:
        return {"cells": 1000, "bits": min(int(params["bits"]), 32), "candidates": 1}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        secure = mpc.SecInt(32)
        x, c = (np.abs(vector(int(params["cells"]), int(params["bits"]), seed)) for seed in (1, 2))
        secret, public = mpc.input(secure.array(x.astype(object)), senders=0), c.astype(object)
        mpc.run(mpc.gather(secret))

        def run() -> Any:
            total = mpc.np_sum(mpc.np_absolute(secret - public))
            mpc.run(mpc.gather(total))
            return total

        def check(total: Any) -> None:
            wanted = np.abs(x - c).sum()
            expect("scores (MPyC)", np.asarray([mpc.run(mpc.output(total))], np.int64), np.array([wanted]))

        return Task(run, check)


def _plain(
    tables: list[NDArray[Any]], announced: AnnouncedAnswers, rounded: RoundedAnswers
) -> NDArray[np.int64]:
    """The same sums in the clear."""
    sums = np.zeros(len(tables), np.int64)
    for layout, answers in zip(announced.groups, rounded, strict=True):
        for q, cells, public in zip(
            layout.owners, layout.ranges, layout.by_range(answers.cells), strict=True
        ):
            sums[q] += np.abs(tables[q][cells.start : cells.stop] - public.astype(np.int64)).sum()
    return sums


BENCH = Scores()
