"""Marginals over two owners' columns: every column of one with every column of the other (`vertical.source`,
`docs/design/vertical.md`).

Measured as in a vertical run once the alignment is there: the owners put their records in order and input them, the computing
parties multiply, and hold shares of all counts in the end. The ring in which counts are summed is the planner's choice, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.functionality import Clique, StudyFacts
from mpc_protocols.partition import OwnRows, Partition, VerticalData, ideal_counts
from mpc_protocols.replicated.sharing.ring import concatenate, open_ring
from mpc_protocols.replicated.vertical.contributor import VerticalContributor
from mpc_protocols.replicated.vertical.records import CodedRows
from mpc_protocols.replicated.vertical.source import VerticalMarginals
from mpc_protocols.wire import Wire
from runner.bench.inputs import expect, trio_of
from runner.bench.parameters import ROWS, Parameter, Params
from runner.bench.registry import Kernel, Task

VALUES = Parameter("values", "one-hot columns of each owner", (200,), 1, 2000)
ROLE = Parameter(
    "role",
    "what the two owners do besides: compute, or contribute to three others",
    ("compute",),
    choices=("compute", "contribute"),
)
_OF_A_COLUMN = 20
"""Values of a column."""


class Contingency(Kernel):
    """All pairs of two owners' columns of twenty values: `values` times `values` counts. Each owner holds 9 rows in 10."""

    name, purpose, counts = (
        "contingency",
        "tables over the columns of two owners, from their records to shares of counts",
        "rows",
    )
    parameters = (ROWS.of(45_000), VALUES, ROLE)

    def amount(self, params: Params) -> float:
        return float(params["rows"])

    def processes(self, params: Params) -> int:
        return 3 if params["role"] == "compute" else 5

    def prepare(self, wire: Wire, params: Params) -> Task:
        owners = _owners(params)
        columns = {f"{owner}.{place}": owner for owner in owners for place in range(len(_sizes(params)))}
        partition = Partition(owners, columns, "intersection", {}, int(params["rows"]))
        sizes = dict(zip(columns, 2 * _sizes(params), strict=True))
        facts = StudyFacts(sizes, "replace", 1, int(params["rows"]), wire.session_id)
        cliques: list[Clique] = [(a, b) for a in partition.of(owners[0]) for b in partition.of(owners[1])]
        data = VerticalData(partition, _own(params, wire.me) if wire.me in owners else None)
        if wire.me >= wire.computing:
            return Task(lambda: VerticalContributor(wire, facts, data).send(cliques, ()))
        trio = trio_of(wire)

        def run() -> VerticalMarginals:
            marginals = VerticalMarginals(trio, facts, data)
            marginals.share(cliques, (), bytes(32))
            return marginals

        def check(marginals: VerticalMarginals) -> None:
            opened = open_ring(trio, concatenate([marginals.shared(clique) for clique in cliques]))
            if wire.me == 0:
                wanted = ideal_counts(partition, {owner: _own(params, owner) for owner in owners}, sizes)(
                    cliques
                )
                expect(self.name, opened, np.concatenate(wanted).astype(np.uint32))

        return Task(run, check)

    def floor(self, params: Params) -> Task:
        a, b = (_one_hot(params, owner).astype(np.float64) for owner in _owners(params))
        return Task(lambda: a.T @ b)

    def peer(self, params: Params) -> Params:
        return {"rows": 500, "values": 20, "role": "compute"}

    def mpyc(self, mpc: Any, params: Params) -> Task:
        """A product of two secret matrices; sharing them is in the time here too."""
        secure = mpc.SecInt(32)
        own = [_one_hot(params, owner).astype(np.int64).astype(object) for owner in _owners(params)]

        def run() -> Any:
            a, b = (mpc.input(secure.array(matrix), senders=owner) for owner, matrix in enumerate(own))
            table = a.T @ b
            mpc.run(mpc.gather(table))
            return table

        def check(table: Any) -> None:
            found = np.asarray(mpc.run(mpc.output(table))).astype(np.int64)
            expect("contingency (MPyC)", found, (own[0].T @ own[1]).astype(np.int64))

        return Task(run, check)


def _owners(params: Params) -> tuple[int, int]:
    """Their wire numbers."""
    return (0, 1) if params["role"] == "compute" else (3, 4)


def _sizes(params: Params) -> list[int]:
    """Of each owner's columns."""
    values = int(params["values"])
    return [min(_OF_A_COLUMN, values - first) for first in range(0, values, _OF_A_COLUMN)]


def _own(params: Params, owner: int) -> OwnRows:
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


def _one_hot(params: Params, owner: int) -> NDArray[Any]:
    """The same side by side, shape (rows, values); zeros where the owner lacks the row."""
    own = _own(params, owner)
    sizes = dict(zip(own.codes, _sizes(params), strict=True))
    return CodedRows(own, sizes).one_hot(0, int(params["rows"]), [(name,) for name in sizes], np.uint16)


BENCH = Contingency()
