"""The marginal oracle between two parties: `engine.oracle` over `pair.engine`.

    leader -> the other, contributors          steps (`engine.oracle`)
    contributor -> both                        seed; masked counts (`engine.inputs.held_marginals`)

Who learns what, threat model and assumptions: `engine.step`, `pair.engine`.
"""

from __future__ import annotations

from functools import partial

from mpc_protocols.backends.pair.engine import PairEngine
from mpc_protocols.backends.pair.marginals import SPLIT
from mpc_protocols.engine import oracle
from mpc_protocols.engine.oracle import Roles
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire

ROLES = Roles(PairEngine)
"""Either of the two leads."""


def contribute(wire: Wire, facts: StudyFacts, counts: LocalCounts | VerticalData) -> None:
    """A custodian that does not compute: send its masked counts when asked (`engine.oracle.contribute`).
    Blocks.

    Raises `StudyInvalid` (`horizontal_counts`).
    """
    oracle.contribute(wire, facts, partial(SPLIT.send, wire, facts, horizontal_counts(counts)))


def horizontal_counts(counts: LocalCounts | VerticalData) -> LocalCounts:
    """A contributor's counts. Raises `StudyInvalid` for split columns, which only the two computing parties
    may own."""
    if isinstance(counts, VerticalData):
        raise StudyInvalid(
            "The two-party engine joins the columns of its two computing parties and of nobody else; "
            'choose backend = "replicated" or let the two owners compute.'
        )
    return counts
