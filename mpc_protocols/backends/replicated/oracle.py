"""The marginal oracle on replicated shares: `engine.oracle` over `replicated.engine`.

    leader -> followers, contributors           steps (`engine.oracle`)
    contributor -> two computing parties        seed; masked counts (`engine.contribution`)

Who learns what, threat model and assumption: `engine.step`, `replicated.engine`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from mpc_protocols.backends.bundles.collected import CollectedCounts
from mpc_protocols.backends.replicated.engine import ReplicatedEngine
from mpc_protocols.backends.replicated.sharing.boolean import BitShare
from mpc_protocols.backends.replicated.sharing.ring import RingShare
from mpc_protocols.backends.replicated.vertical.contributor import VerticalContributor
from mpc_protocols.engine import oracle
from mpc_protocols.engine.inputs.contribution import send_contribution
from mpc_protocols.engine.oracle import Contribute, LeadingOracle, check_leads
from mpc_protocols.engine.step import ComputingParty
from mpc_protocols.functionality import Guard, LocalCounts, Observe, StudyFacts
from mpc_protocols.public.history import NO_HISTORY, History
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire


def computing_party(
    wire: Wire,
    facts: StudyFacts,
    counts: LocalCounts | CollectedCounts | VerticalData | None,
    guard: Guard,
    observe: Observe | None = None,
    ahead: bool = True,
    history: History = NO_HISTORY,
) -> ComputingParty[BitShare, RingShare]:
    """P0, P1 or P2. Arguments and errors as for `ReplicatedOracle`."""
    return ComputingParty(ReplicatedEngine(wire, facts, counts), facts, guard, observe, ahead, history)


class ReplicatedOracle(LeadingOracle):
    """The oracle at the leader. Use it as a context manager, or call `close` when the synthesizer is done."""

    def __init__(
        self,
        wire: Wire,
        facts: StudyFacts,
        counts: LocalCounts | CollectedCounts | VerticalData | None,
        guard: Guard,
        observe: Observe | None = None,
        ahead: bool = True,
        history: History = NO_HISTORY,
    ) -> None:
        """counts: the leader's own data, None if it only computes; where columns are split, `VerticalData` at
        everybody. ahead: whether noise is made ahead, as at the followers.

        Waits for the followers, to learn how far away they are (`engine.latency`). Raises `StudyInvalid`
        (facts, parties), `DataRefused` (vertical rows that do not fit).
        """
        check_leads(wire, facts)
        super().__init__(computing_party(wire, facts, counts, guard, observe, ahead, history))


def follow(
    wire: Wire,
    facts: StudyFacts,
    counts: LocalCounts | CollectedCounts | VerticalData | None,
    guard: Guard,
    observe: Observe | None = None,
    history: History = NO_HISTORY,
) -> list[NDArray[np.int64]]:
    """The two others that compute: `engine.oracle.follow`. counts: this party's own data, as for
    `ReplicatedOracle`. Blocks."""
    return oracle.follow(computing_party(wire, facts, counts, guard, observe, history=history))


def contribute(wire: Wire, facts: StudyFacts, counts: LocalCounts | VerticalData) -> None:
    """A custodian that does not compute: send its masked counts or columns when asked
    (`engine.oracle.contribute`). Blocks."""
    oracle.contribute(wire, facts, _sender(wire, facts, counts))


def _sender(wire: Wire, facts: StudyFacts, counts: LocalCounts | VerticalData) -> Contribute:
    """How a contributor shares marginals; as with the parties that compute, vertical data loads what it
    needs."""
    if isinstance(counts, VerticalData):
        return VerticalContributor(wire, facts, counts).send
    return partial(send_contribution, wire, facts, counts)
