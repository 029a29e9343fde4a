"""Faults in the check of contributors' counts."""

from __future__ import annotations

from unittest import mock

from mpc_protocols.engine.inputs.check import conditions
from mpc_protocols.engine.step import ComputingParty
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch


def _verdict_ignored() -> Patch:
    """What is found out about contributors has no consequence."""
    return mock.patch.object(ComputingParty, "_judge", lambda party, contributors: None)


def _marginals_apart() -> Patch:
    """A contributor's marginals are not compared with each other."""
    return mock.patch.object(conditions, "links", lambda register, agreed, fresh: [])


MUTATIONS = (
    Mutation("M35", "impossible counts of a contributor taken all the same", ("N.inputs",), _verdict_ignored),
    Mutation("M36", "a contributor's marginals that disagree", ("N.inputs",), _marginals_apart),
)
