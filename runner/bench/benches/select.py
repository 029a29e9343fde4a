"""A whole selection step of the oracle: answers, agreement, noise, scores, argmax, opening
(`docs/design/mechanisms.md` 1-2).

Everything an AIM round asks for is in the time: the model's answers on their way, the noise made within the
step, the step's public bytes. The candidates are as far from their answers as real ones and none of their
cells is free: every cell needs a sign.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import StudyFacts
from mpc_protocols.in_memory.presumed import PresumedRun
from mpc_protocols.public.begun import BegunSelect
from mpc_protocols.public.steps import MAX_BYTES, parse
from mpc_protocols.wire import Wire
from runner.bench.by_backend import EngineKernel, backend_of, facts_of, shared
from runner.bench.parameters import BACKEND, BITS, CANDIDATES, CELLS, PARTIES, PROOFS, Params
from runner.bench.registry import Predicted, Task
from runner.bench.tables import candidates
from runner.bench.tables.inputs import vector

_EPSILON = Fraction(1, 10)


class Select(EngineKernel):
    """One of `candidates`, of equally many cells; `bits` of a difference follow from the public bound on the
    rows."""

    name, purpose, counts = "select", "one selection step of the oracle, noise and opening included", "cells"
    parameters = (CELLS, CANDIDATES, BITS.of(17), BACKEND, PARTIES, PROOFS)

    def refusal(self, params: Params) -> str | None:
        return candidates.problem(params)

    def prepare(self, wire: Wire, params: Params) -> Task:
        sizes, count = candidates.sizes_of(params), int(params["candidates"])
        facts = facts_of(wire, sizes, "add-remove", candidates.rows_of(params), params)
        here = shared(
            wire, facts, candidates.own_counts(params, wire.me), [(name,) for name in sizes], params
        )
        if here is None:
            return Task(lambda: None)
        party, oracle, handles = here
        if oracle is not None:
            answers = candidates.answers(params)
            weights, penalties = [Fraction(1)] * count, [Fraction(0)] * count
            return Task(
                lambda: oracle.select(handles, answers, weights, penalties, _EPSILON), _in_range(count)
            )

        def follow() -> list[int]:
            begun = party.state.begin(parse(wire.receive_up_to(facts.leader, MAX_BYTES)))
            assert isinstance(begun, BegunSelect)
            return party.select(begun, None)

        return Task(follow, _in_range(count))

    def predicted(self, params: Params) -> Predicted | None:
        """Of a selection that is not a run's first, between parties that are near."""
        return self.predicted_apart(params, 0)

    def predicted_apart(self, params: Params, delay_us: int) -> Predicted | None:
        """The same between parties that are so far apart, one way in microseconds."""
        if params[PROOFS.name]:
            return None
        sizes, count, parties = candidates.sizes_of(params), int(params["candidates"]), int(params["parties"])
        backend, computing = backend_of(params), self.computing(params)
        by_name = dict(zip(sizes, candidates.tables(params), strict=True))
        facts = StudyFacts(
            sizes, "add-remove", 1, candidates.rows_of(params), bytes(32), backend.leader(computing)
        )
        oracle = backend.dry_run(
            PresumedRun(
                facts,
                lambda cliques: [by_name[name] for (name,) in cliques],
                computing,
                parties - computing,
                delay_us=delay_us,
            )
        )
        handles = oracle.prepare([(name,) for name in sizes])
        sent: list[tuple[int, ...]] = []
        rounds: list[int] = []
        # noise of another scale first: none of it is left for the next, and none is made ahead, as in
        # `party_of`
        for epsilon in (2 * _EPSILON, _EPSILON):
            oracle.select(
                handles, candidates.answers(params), [Fraction(1)] * count, [Fraction(0)] * count, epsilon
            )
            sent.append(tuple(oracle.sent))
            rounds.append(oracle.rounds)
        return Predicted(rounds[1] - rounds[0], tuple(after - own for own, after in zip(*sent, strict=True)))

    def floor(self, params: Params) -> Task:
        rng = np.random.default_rng(1)
        pairs = list(zip(candidates.tables(params), candidates.answers(params), strict=True))

        def run() -> int:
            scores = [float(np.abs(table - answer).sum()) for table, answer in pairs]
            return int(np.argmax(np.array(scores) + rng.gumbel(size=len(scores)) * 2 / float(_EPSILON)))

        return Task(run)

    def small(self, params: Params) -> Params:
        return {"cells": 1024, "candidates": min(int(params["candidates"]), 64), "bits": params["bits"]}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        """Scores and argmax, without noise."""
        secure, count = mpc.SecInt(32), int(params["candidates"])
        each = int(params["cells"]) // count
        half = int(params["bits"]) - 1
        x = mpc.input(secure.array(vector(each * count, half, 1).astype(object)), senders=0)
        c = vector(each * count, half, 2).astype(object)
        mpc.run(mpc.gather(x))

        def run() -> Any:
            scores = mpc.np_sum(mpc.np_absolute(x - c).reshape(count, each), axis=1)
            return mpc.run(mpc.output(mpc.np_argmax(scores)))

        return Task(run)


def _in_range(count: int) -> Any:
    def check(positions: list[int]) -> None:
        [position] = positions
        if not 0 <= position < count:
            raise CosynthError(
                "The benchmark select chose no candidate; its figures mean nothing, please report it."
            )

    return check


BENCH = Select()
