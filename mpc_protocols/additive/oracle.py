"""The marginal oracle of two parties and a dealer: `engine.oracle` over `additive.engine`.

    leader -> the others, contributors                  steps (`engine.oracle`)
    dealer, contributors -> parties 0 and 1             seed; masked counts (`marginals`)
    dealer -> party 0                                   correlations (`dealer`)
    party 0 -> dealer                                   what has been opened (`link`)

Who learns what, threat model and assumption: `engine.step`, `additive.engine`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.additive.engine import AdditiveEngine
from mpc_protocols.additive.marginals import send_counts
from mpc_protocols.additive.vertical.plan import check_owners
from mpc_protocols.engine import oracle
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.oracle import LeadingOracle, check_leads
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import Guard, LocalCounts, Observe, StudyFacts
from mpc_protocols.partition import VerticalData
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.wire import Wire

Data = LocalCounts | VerticalData | None


def computing_party(
    wire: Wire,
    facts: StudyFacts,
    data: Data,
    guard: Guard,
    observe: Observe | None = None,
    ahead: bool = True,
    history: History = NO_HISTORY,
) -> ComputingParty[Bits, Any]:
    """Party 0, 1 or the dealer. Arguments and errors as for `AdditiveOracle`."""
    return ComputingParty(AdditiveEngine(wire, facts, data), facts, guard, observe, ahead, history)


class AdditiveOracle(LeadingOracle):
    """The oracle at the leader. Use it as a context manager, or call `close` when the synthesizer is done."""

    def __init__(
        self,
        wire: Wire,
        facts: StudyFacts,
        data: Data,
        guard: Guard,
        observe: Observe | None = None,
        ahead: bool = True,
        history: History = NO_HISTORY,
    ) -> None:
        """data: the leader's own, None if it only computes; where columns are split, `VerticalData` at all three. ahead: whether
        noise is made ahead, as at the others.

        Waits for the others. Raises `StudyInvalid` (facts, parties, owners, CrypTen is not installed), `DataRefused` (rows that
        do not fit).
        """
        check_leads(wire, facts)
        super().__init__(computing_party(wire, facts, data, guard, observe, ahead, history))


def follow(
    wire: Wire,
    facts: StudyFacts,
    data: Data,
    guard: Guard,
    observe: Observe | None = None,
    history: History = NO_HISTORY,
) -> list[NDArray[np.int64]]:
    """Every other computing party, the dealer included: `engine.oracle.follow`. data: as for `AdditiveOracle`. Blocks."""
    return oracle.follow(computing_party(wire, facts, data, guard, observe, history=history))


def contribute(wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> None:
    """A custodian that does not compute: send its masked counts when asked (`engine.oracle.contribute`). Blocks.

    Raises `StudyInvalid` for split columns, which only computing parties may own.
    """
    if isinstance(data, VerticalData):
        check_owners(data.partition)
        raise StudyInvalid(f"Party {wire.me} neither computes nor owns columns; leave it out of the study.")
    oracle.contribute(wire, facts, partial(send_counts, wire, facts, data))
