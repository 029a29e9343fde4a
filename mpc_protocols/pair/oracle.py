"""The marginal oracle between two parties: `engine.oracle` over `pair.engine`.

    leader -> the other, contributors          steps (`engine.oracle`)
    contributor -> both                        seed; masked counts (`engine.contribution`)

Who learns what, threat model and assumptions: `engine.step`, `pair.engine`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine import oracle
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.inputs.contribution import send_contribution
from mpc_protocols.engine.oracle import LeadingOracle, check_leads
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Guard, LocalCounts, Observe, StudyFacts
from mpc_protocols.pair.engine import PairEngine
from mpc_protocols.pair.marginals import Counted, CountedMarginals
from mpc_protocols.pair.shares import Shares
from mpc_protocols.partition import VerticalData
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.wire import Wire


def computing_party(
    wire: Wire,
    facts: StudyFacts,
    data: LocalCounts | VerticalData | None,
    guard: Guard,
    observe: Observe | None = None,
    ahead: bool = True,
    history: History = NO_HISTORY,
    counted: Counted = CountedMarginals,
) -> ComputingParty[Bits, Shares]:
    """Party 0 or 1. Arguments and errors as for `PairOracle`."""
    return ComputingParty(PairEngine(wire, facts, data, counted), facts, guard, observe, ahead, history)


class PairOracle(LeadingOracle):
    """The oracle at the leader. Use it as a context manager, or call `close` when the synthesizer is done."""

    def __init__(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: LocalCounts | VerticalData | None,
        guard: Guard,
        observe: Observe | None = None,
        ahead: bool = True,
        history: History = NO_HISTORY,
        counted: Counted = CountedMarginals,
    ) -> None:
        """data: the leader's own, None if it only computes; where columns are split, `VerticalData` at both. ahead: whether noise
        is made ahead, as at the other party. counted: how contributors' counts come in.

        Waits for the other party. Raises `StudyInvalid` (facts, parties), `DataRefused` (vertical rows that do not fit),
        `ProtocolAborted` (an invalid point).
        """
        check_leads(wire, facts)
        super().__init__(computing_party(wire, facts, data, guard, observe, ahead, history, counted))


def follow(
    wire: Wire,
    facts: StudyFacts,
    data: LocalCounts | VerticalData | None,
    guard: Guard,
    observe: Observe | None = None,
    history: History = NO_HISTORY,
    counted: Counted = CountedMarginals,
) -> list[NDArray[np.int64]]:
    """The other computing party: `engine.oracle.follow`. data, counted: as for `PairOracle`. Blocks."""
    return oracle.follow(computing_party(wire, facts, data, guard, observe, history=history, counted=counted))


def contribute(wire: Wire, facts: StudyFacts, counts: LocalCounts | VerticalData) -> None:
    """A custodian that does not compute: send its masked counts when asked (`engine.oracle.contribute`). Blocks.

    Raises `StudyInvalid` (`horizontal_counts`).
    """
    oracle.contribute(wire, facts, partial(send_contribution, wire, facts, horizontal_counts(counts)))


def horizontal_counts(counts: LocalCounts | VerticalData) -> LocalCounts:
    """A contributor's counts. Raises `StudyInvalid` for split columns, which only the two computing parties may own."""
    if isinstance(counts, VerticalData):
        raise StudyInvalid(
            "The two-party engine joins the columns of its two computing parties and of nobody else; "
            'choose backend = "replicated" or let the two owners compute.'
        )
    return counts
