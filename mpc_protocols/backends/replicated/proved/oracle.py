"""The marginal oracle with proofs: `engine.oracle` over `proved.engine`. Who learns what and threat model:
there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mpc_protocols.backend import OracleParts
from mpc_protocols.backends.replicated.proved.engine import ProvedEngine
from mpc_protocols.backends.replicated.proved.inputs import send_copies
from mpc_protocols.backends.replicated.proved.vertical.contributor import ProvedVerticalContributor
from mpc_protocols.engine import oracle
from mpc_protocols.functionality import LocalCounts, StudyFacts
from mpc_protocols.wire import Wire

if TYPE_CHECKING:
    from mpc_protocols.vertical.partition import VerticalData


def contribute(wire: Wire, facts: StudyFacts, counts: LocalCounts | VerticalData) -> None:
    """A custodian that does not compute: send its counts, or its columns, in copies when asked. Blocks.
    Raises `DataRefused`."""
    if callable(counts):
        oracle.contribute(wire, facts, partial(send_copies, wire, facts, counts))
        return
    oracle.contribute(wire, facts, ProvedVerticalContributor(wire, facts, counts).send)


def parts() -> OracleParts:
    """Leader, followers and contributors."""
    return OracleParts.of(oracle.Roles(ProvedEngine), contribute)
