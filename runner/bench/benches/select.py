"""A whole selection step of the oracle: answers, agreement, noise, scores, argmax, opening (`docs/design/mechanisms.md` 1-2).

Everything an AIM round asks for is in the time: the model's answers on their way, the noise made within the step, the step's
public bytes. The candidates are as far from their answers as real ones and none of their cells is free: every cell needs a sign.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mpc_protocols.backend import AllowAll
from mpc_protocols.errors import CosynthError
from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.public.begun import BegunPrepare, BegunSelect
from mpc_protocols.public.steps import MAX_BYTES, parse
from mpc_protocols.replicated.oracle import ReplicatedOracle, computing_party
from mpc_protocols.wire import Wire
from runner.bench.inputs import counts, vector
from runner.bench.parameters import BITS, CANDIDATES, CELLS, Params
from runner.bench.registry import Kernel, Task

_EPSILON = Fraction(1, 10)


class Select(Kernel):
    """One of `candidates`, of equally many cells; `bits` of a difference follow from the public bound on the rows."""

    name, purpose, counts = "select", "one selection step of the oracle, noise and opening included", "cells"
    parameters = (CELLS, CANDIDATES, BITS.of(17))

    def problem(self, params: Params) -> str | None:
        if int(params["candidates"]) > int(params["cells"]):
            return f"{params['candidates']} candidates need at least as many cells, got {params['cells']}"
        return (
            None
            if 4 <= int(params["bits"]) <= 28
            else f"the rows' bound has 4 to 28 bits, got {params['bits']}"
        )

    def prepare(self, wire: Wire, params: Params) -> Task:
        candidates = int(params["candidates"])
        sizes = _sizes(params)
        facts = StudyFacts(sizes, "add-remove", 1, _rows(params), wire.session_id)
        cliques: list[Clique] = [(name,) for name in sizes]

        def local(asked: Any) -> Any:
            return [_part(params, int(clique[0]), wire.me) for clique in asked]

        weights, penalties = [Fraction(1)] * candidates, [Fraction(0)] * candidates
        if wire.me == facts.leader:
            oracle = ReplicatedOracle(wire, facts, local, AllowAll(), ahead=False)
            handles = oracle.prepare(cliques)
            answers = [_answer(params, int(name)) for name in sizes]
            return Task(
                lambda: oracle.select(handles, answers, weights, penalties, _EPSILON), _in_range(candidates)
            )
        party = computing_party(wire, facts, local, AllowAll(), None, ahead=False)
        begun = party.state.begin(parse(wire.receive_up_to(facts.leader, MAX_BYTES)))
        assert isinstance(begun, BegunPrepare)
        party.prepare(begun)

        def follow() -> list[int]:
            begun = party.state.begin(parse(wire.receive_up_to(facts.leader, MAX_BYTES)))
            assert isinstance(begun, BegunSelect)
            return party.select(begun, None)

        return Task(follow, _in_range(candidates))

    def floor(self, params: Params) -> Task:
        rng = np.random.default_rng(1)
        tables = [_table(params, int(name)) for name in _sizes(params)]
        answers = [_answer(params, int(name)) for name in _sizes(params)]

        def run() -> int:
            scores = [
                float(np.abs(table - answer).sum()) for table, answer in zip(tables, answers, strict=True)
            ]
            return int(np.argmax(np.array(scores) + rng.gumbel(size=len(scores)) * 2 / float(_EPSILON)))

        return Task(run)

    def peer(self, params: Params) -> Params:
        return {"cells": 1024, "candidates": min(int(params["candidates"]), 64), "bits": params["bits"]}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        """Scores and argmax, without noise."""
        secure, candidates = mpc.SecInt(32), int(params["candidates"])
        each = int(params["cells"]) // candidates
        half = int(params["bits"]) - 1
        x = mpc.input(secure.array(vector(each * candidates, half, 1).astype(object)), senders=0)
        c = vector(each * candidates, half, 2).astype(object)
        mpc.run(mpc.gather(x))

        def run() -> Any:
            scores = mpc.np_sum(mpc.np_absolute(x - c).reshape(candidates, each), axis=1)
            return mpc.run(mpc.output(mpc.np_argmax(scores)))

        return Task(run)


def _in_range(candidates: int) -> Any:
    def check(positions: list[int]) -> None:
        [position] = positions
        if not 0 <= position < candidates:
            raise CosynthError(
                "The benchmark select chose no candidate; its figures mean nothing, please report it."
            )

    return check


def _sizes(params: Params) -> dict[str, int]:
    cells, candidates = int(params["cells"]), int(params["candidates"])
    return {str(q): (q + 1) * cells // candidates - q * cells // candidates for q in range(candidates)}


def _rows(params: Params) -> int:
    """The public bound that makes differences of `bits` bits."""
    return int((1 << int(params["bits"]) - 1) - 1)


def _part(params: Params, candidate: int, party: int) -> Any:
    """One custodian's counts: nine tenths of what the bound allows, over the three."""
    return counts(_sizes(params)[str(candidate)], 3 * _rows(params) // 10, 3 * candidate + party)


def _table(params: Params, candidate: int) -> Any:
    return sum(_part(params, candidate, party) for party in range(3))


def _answer(params: Params, candidate: int) -> Any:
    """A flat table of the same number of rows, at least 1 in every cell as far as the bound allows."""
    size = _sizes(params)[str(candidate)]
    return np.full(size, max(3 * (3 * _rows(params) // 10), min(size, _rows(params))) / size)


BENCH = Select()
