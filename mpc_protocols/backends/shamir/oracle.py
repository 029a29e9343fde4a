"""The marginal oracle on Shamir shares: `engine.oracle` over `shamir.engine`.

    leader -> the others, contributors         steps (`engine.oracle`)
    custodians that are no holders -> holders  seeds; masked counts (`engine.inputs.held_marginals`)
    owners of columns -> evaluators            seeds; dealt columns (`vertical.dealer`)

Who learns what, threat model and assumption: `engine.step`, `shamir.engine`.
"""

from __future__ import annotations

from functools import partial

from mpc_protocols.backends.shamir.circuits.gates import split_of
from mpc_protocols.backends.shamir.engine import ShamirEngine
from mpc_protocols.backends.shamir.vertical.source import VerticalContributor
from mpc_protocols.engine import oracle
from mpc_protocols.engine.oracle import Contribute, Roles
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.vertical.partition import VerticalData
from mpc_protocols.wire import Wire

ROLES = Roles(ShamirEngine)
"""One of the holders leads."""


def contribute(wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> None:
    """A custodian that does not compute: send its masked counts or columns when asked
    (`engine.oracle.contribute`). Blocks."""
    oracle.contribute(wire, facts, _sender(wire, facts, data))


def _sender(wire: Wire, facts: StudyFacts, data: LocalCounts | VerticalData) -> Contribute:
    """How a contributor shares marginals; vertical data loads what it needs."""
    if isinstance(data, VerticalData):
        return VerticalContributor(wire, facts, data).send
    return partial(split_of(wire).send, wire, facts, data)
