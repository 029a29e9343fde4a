"""The marginal oracle of two parties and a dealer: `engine.oracle` over `additive.engine`.

    leader -> the others, contributors                  steps (`engine.oracle`)
    dealer, contributors -> parties 0 and 1             seed; masked counts (`engine.inputs.held_marginals`)
    dealer -> party 0                                   correlations (`dealer`)
    party 0 -> dealer                                   what has been opened (`link`)

Who learns what, threat model and assumption: `engine.step`, `additive.engine`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mpc_protocols.backends.additive.engine import AdditiveEngine
from mpc_protocols.backends.additive.link import SPLIT
from mpc_protocols.backends.additive.vertical.plan import check_owners
from mpc_protocols.engine import oracle
from mpc_protocols.engine.bitwise.bits import Bits
from mpc_protocols.engine.oracle import Roles
from mpc_protocols.errors import StudyInvalid
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire

ROLES: Roles[Bits, Any] = Roles(AdditiveEngine)
"""Party 0 or 1 leads; the dealer follows as every other does."""


def contribute(wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> None:
    """A custodian that does not compute: send its masked counts when asked (`engine.oracle.contribute`).
    Blocks.

    Raises `StudyInvalid` for split columns, which only computing parties may own.
    """
    if isinstance(data, VerticalData):
        check_owners(data.partition)
        raise StudyInvalid(f"Party {wire.me} neither computes nor owns columns; leave it out of the study.")
    oracle.contribute(wire, facts, partial(SPLIT.send, wire, facts, data))
