"""The marginal oracle on Shamir shares: `engine.oracle` over `shamir.engine`.

    leader -> the others, contributors         steps (`engine.oracle`)
    custodians that are no holders -> holders  seeds; masked counts (`marginals`)
    owners of columns -> evaluators            seeds; dealt columns (`vertical.dealer`)

Who learns what, threat model and assumption: `engine.step`, `shamir.engine`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.engine import oracle
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.oracle import Contribute, LeadingOracle, check_leads
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.functionality import Guard, LocalCounts, Observe, StudyFacts
from mpc_protocols.partition import VerticalData
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.shamir.engine import ShamirEngine
from mpc_protocols.shamir.marginals import send_counts
from mpc_protocols.shamir.sharing.numbers import Addends
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
) -> ComputingParty[Bits, Addends]:
    """One of the computing parties. Arguments and errors as for `ShamirOracle`."""
    return ComputingParty(ShamirEngine(wire, facts, data), facts, guard, observe, ahead, history)


class ShamirOracle(LeadingOracle):
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
        """data: the leader's own counts, None if it only computes; where columns are split, `VerticalData` at everybody. ahead:
        whether noise is made ahead, as at the others.

        Waits for the others. Raises `StudyInvalid` (facts, parties), `DataRefused` (vertical rows that do not fit).
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
    """Every other computing party: `engine.oracle.follow`. data: its own, as for `ShamirOracle`. Blocks."""
    return oracle.follow(computing_party(wire, facts, data, guard, observe, history=history))


def contribute(wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> None:
    """A custodian that does not compute: send its masked counts or columns when asked (`engine.oracle.contribute`). Blocks."""
    oracle.contribute(wire, facts, _sender(wire, facts, data))


def _sender(wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> Contribute:
    """How a contributor shares marginals; vertical data loads what it needs."""
    if isinstance(data, VerticalData):
        from mpc_protocols.shamir.vertical.source import VerticalContributor

        return VerticalContributor(wire, facts, data).send
    return partial(send_counts, wire, facts, data)
