"""The job of `test_what_travels`: one fixed sequence of questions to the oracle, on tables chosen by name,
everything tapped.

The questions are chosen so that nothing that is sent may depend on the data: no marginal is measured before
the selection, so its integers are sized by the study's cap alone, and what is measured is not what was
selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine import step
from mpc_protocols.engine.latency import LATENCY_BYTES
from mpc_protocols.functionality import Clique, LocalCounts, StudyFacts
from mpc_protocols.in_memory.presumed import AllowAll

if TYPE_CHECKING:
    from parties.session import SessionWire

SIZES = {"a": 40, "b": 30, "c": 5}
CLIQUES: list[Clique] = [("a", "b"), ("a", "c"), ("c", "b"), ("b",)]
MAX_ROWS = 1 << 20
KINDS = ("zeros", "max", "random", "other")


def table(kind: str, party: int) -> NDArray[np.int64]:
    """A custodian's joint counts over all three columns."""
    cells = np.zeros([*SIZES.values()], np.int64)
    if kind == "max":
        cells[-1, -1, -1] = MAX_ROWS
    elif kind != "zeros":
        rng = np.random.default_rng([KINDS.index(kind), party])
        # marginals of hundreds to thousands: counts that do not occur by chance
        cells += rng.integers(0, MAX_ROWS // cells.size, cells.shape)
    return cells


def counts_of(joint: NDArray[np.int64]) -> LocalCounts:
    """Its marginals."""
    order = list(SIZES)

    def counts(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        found = []
        for clique in cliques:
            kept = [name for name in order if name in clique]
            summed = joint.sum(axis=tuple(i for i, name in enumerate(order) if name not in clique))
            found.append(
                np.ascontiguousarray(summed.transpose([kept.index(name) for name in clique])).reshape(-1)
            )
        return found

    return counts


def ask(wire: SessionWire, kind: str) -> list[tuple[str, int, str, int, bytes]]:
    """Take part in a run; what this party's tap saw of it: (direction, peer, stream, number, payload)."""
    from mpc_protocols.backends.replicated.oracle import ReplicatedOracle, contribute, follow
    from tests import trio

    trio.TAPPED.clear()
    facts = StudyFacts(SIZES, "add-remove", 1, 4 * MAX_ROWS, wire.session_id)
    counts = counts_of(table(kind, wire.me))
    # which form of a protocol is taken, and so its sizes, follows from how far apart the parties are, too
    with mock.patch.object(step, "latency_bytes_of", lambda delay_us: LATENCY_BYTES):
        if wire.me == 1:
            with ReplicatedOracle(wire, facts, counts, AllowAll()) as oracle:
                handles = oracle.prepare(CLIQUES)
                rng = np.random.default_rng(0)  # public answers, a third of them zero
                answers = [
                    rng.integers(0, 999, facts.cells(clique)) * (rng.random(facts.cells(clique)) < 0.7)
                    for clique in CLIQUES
                ]
                weights = [Fraction(weight) for weight in (1, 2, 1, 3)]
                oracle.select(
                    handles,
                    [answer.astype(np.float64) for answer in answers],
                    weights,
                    [Fraction(0)] * 4,
                    Fraction(1, 2),
                )
                oracle.measure(handles[1:3], Fraction(10_000))
                oracle.total(Fraction(400))
        elif wire.me < wire.computing:
            follow(wire, facts, counts, AllowAll())
        else:
            contribute(wire, facts, counts)
    return trio.TAPPED[:]
