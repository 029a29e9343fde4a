"""Marginals over two owners' columns: every column of one with every column of the other
(`docs/design/vertical.md`).

Measured as in a vertical run once the alignment is there, through a backend's engine: the owners input their
records in the order of the common table, and the computing parties hold shares of all counts in the end. How
is the backend's affair.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.in_memory.presumed import PresumedRun
from mpc_protocols.public.begun import BegunPrepare
from mpc_protocols.public.steps import EndStep, PrepareStep, Step
from mpc_protocols.vertical.partition import OwnRows, Partition, VerticalData, ideal_counts
from mpc_protocols.wire import Wire
from runner.bench.by_backend import EngineKernel, backend_of, facts_of, parts_of, party_of
from runner.bench.parameters import BACKEND, ROWS, Parameter, Params
from runner.bench.registry import Task
from runner.bench.running.repeat import JobWire
from runner.bench.tables.inputs import expect
from runner.study.declared.table import listed

VALUES = Parameter("values", "one-hot columns of each owner", (200,), 1, 2000)
ROLE = Parameter(
    "role",
    "what the two owners do besides: compute, or contribute to others, who do",
    ("compute",),
    choices=("compute", "contribute"),
)
COMPUTING = Parameter("computing", "parties that compute; 0: as few as the backend takes", (0,), 0, 64)
_OF_A_COLUMN = 20
"""Values of a column."""


class Contingency(EngineKernel):
    """All pairs of two owners' columns of twenty values: `values` times `values` counts. Each owner holds 9
    rows in 10."""

    name, purpose, counts = (
        "contingency",
        "tables over the columns of two owners, from their records to shares of counts",
        "rows",
    )
    parameters = (ROWS.of(45_000), VALUES, ROLE, COMPUTING, BACKEND)

    def amount(self, params: Params) -> float:
        return float(params["rows"])

    def processes(self, params: Params) -> int:
        return self.computing(params) + (0 if params["role"] == "compute" else 2)

    def computing(self, params: Params) -> int:
        return int(params["computing"]) or max(2, backend_of(params).computing[0])

    def refusal(self, params: Params) -> str | None:
        backend, computing = backend_of(params), self.computing(params)
        partition, sizes = _partition(params, computing), _all_sizes(params, computing)
        if "vertical" not in backend.partitions:
            return f'backend = "{backend.name}" runs with partition = {listed(backend.partitions)} only'
        facts = StudyFacts(sizes, "replace", 1, int(params["rows"]), bytes(32), backend.leader(computing))
        try:
            backend.dry_run(
                PresumedRun(facts, lambda _: [], computing, self.processes(params) - computing, partition)
            )
        except StudyInvalid as error:
            return error.sentence.rstrip(".")
        return None

    def prepare(self, wire: Wire, params: Params) -> Task:
        partition, sizes = _partition(params, wire.computing), _all_sizes(params, wire.computing)
        owners, rows = partition.owners, int(params["rows"])
        cliques: list[Clique] = [(a, b) for a in partition.of(owners[0]) for b in partition.of(owners[1])]
        data = VerticalData(partition, _own_rows(params, wire.me) if wire.me in owners else None)
        runs = itertools.count()
        place: Wire
        facts: StudyFacts
        party: ComputingParty[Any, Any]

        def before() -> None:
            """A session of its own for each repetition."""
            nonlocal place, facts, party
            place = _Told(wire, next(runs), (PrepareStep(tuple(cliques)), EndStep()))
            facts = facts_of(place, sizes, "replace", rows, params)
            if wire.me < wire.computing:
                party = party_of(place, facts, data, params)

        if wire.me >= wire.computing:
            return Task(lambda: parts_of(params).contribute(place, facts, data), before=before)

        def run() -> BegunPrepare:
            begun = party.state.begin_prepare(cliques)
            party.engine.share(begun.fresh, begun.levels, begun.inputs)
            return begun

        def check(begun: BegunPrepare) -> None:
            opened = party.engine.reveal(party.engine.marginals(party.state, begun.handles))
            if wire.me == 0:
                tables = {owner: _own_rows(params, owner) for owner in owners}
                wanted = ideal_counts(partition, tables, sizes)(cliques)
                expect(self.name, opened, np.concatenate(wanted))

        return Task(run, check, before)

    def floor(self, params: Params) -> Task:
        a, b = (_one_hot(params, owner).astype(np.float64) for owner in (0, 1))
        return Task(lambda: a.T @ b)

    def small(self, params: Params) -> Params:
        return {"rows": 500, "values": 20, "role": "compute", "computing": 0}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        """A product of two secret matrices; sharing them is in the time here too."""
        secure = mpc.SecInt(32)
        own = [_one_hot(params, owner).astype(np.int64).astype(object) for owner in (0, 1)]

        def run() -> Any:
            a, b = (mpc.input(secure.array(matrix), senders=owner) for owner, matrix in enumerate(own))
            table = a.T @ b
            mpc.run(mpc.gather(table))
            return table

        def check(table: Any) -> None:
            found = np.asarray(mpc.run(mpc.output(table))).astype(np.int64)
            expect("contingency (MPyC)", found, (own[0].T @ own[1]).astype(np.int64))

        return Task(run, check)


class _Told(JobWire):
    """The wire of one repetition; an owner that contributes has been told already, by these steps, what is
    asked of it."""

    def __init__(self, wire: Wire, number: int, steps: Sequence[Step]) -> None:
        super().__init__(wire, number)
        self._steps = iter(steps)

    def receive_up_to(self, peer: int, limit: int) -> memoryview:
        if self.me < self.computing:
            return super().receive_up_to(peer, limit)
        return memoryview(next(self._steps).to_bytes())


def _partition(params: Params, computing: int) -> Partition:
    """Two owners: the first who compute, or the first who do not."""
    owners = (0, 1) if params["role"] == "compute" else (computing, computing + 1)
    columns = {f"{owner}.{place}": owner for owner in owners for place in range(len(_sizes(params)))}
    return Partition(owners, columns, "intersection", {}, int(params["rows"]))


def _all_sizes(params: Params, computing: int) -> dict[str, int]:
    """Of both owners' columns."""
    return dict(zip(_partition(params, computing).columns, 2 * _sizes(params), strict=True))


def _sizes(params: Params) -> list[int]:
    """Of each owner's columns."""
    values = int(params["values"])
    return [min(_OF_A_COLUMN, values - first) for first in range(0, values, _OF_A_COLUMN)]


def _own_rows(params: Params, owner: int) -> OwnRows:
    """An owner's records."""
    rows = int(params["rows"])
    rng = np.random.default_rng([7, owner, rows])
    held = rng.permutation(rows)[: rows - rows // 10]
    return OwnRows(
        held,
        {
            f"{owner}.{place}": rng.integers(0, size, len(held), np.uint8)
            for place, size in enumerate(_sizes(params))
        },
    )


def _one_hot(params: Params, owner: int) -> NDArray[np.uint16]:
    """The same side by side, shape (rows, values); zeros where the owner lacks the row."""
    own, first = _own_rows(params, owner), 0
    block = np.zeros((int(params["rows"]), int(params["values"])), np.uint16)
    for codes, size in zip(own.codes.values(), _sizes(params), strict=True):
        block[own.rows, first + codes.astype(np.int64)] = 1
        first += size
    return block


BENCH = Contingency()
