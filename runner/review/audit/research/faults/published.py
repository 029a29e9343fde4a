"""Faults of published schemes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

from mpc_protocols.mechanisms.randomised_response import GRID, Response, certified
from runner.review.audit.broken_builds.faults.mutation import Mutation, Patch
from synth.research.vertimrf import sketches
from synth.research.vertimrf.responses_encoding import ResponsesEncoding


def _owners_own_keys() -> Patch:
    """Sketches of different owners do not merge, and no row spans them: not what was published."""
    plain = sketches.Sketches.encode

    def encode(self: sketches.Sketches, codes: Mapping[str, Any], key: bytes) -> bytes:
        return plain(self, codes, key + next(iter(codes)).encode())

    return mock.patch.object(sketches.Sketches, "encode", encode)


def _half_response() -> Patch:
    """The cost of randomised response as it is printed."""
    return mock.patch.object(Response, "rho", property(lambda self: certified(self, GRID) / 2))


def _sketches_everywhere() -> Patch:
    return mock.patch.object(ResponsesEncoding, "encoder", lambda self, plan: sketches.Sketches(plan))


MUTATIONS = (
    Mutation("B1", "sketches whose owners hash by keys of their own", ("B.sketches",), _owners_own_keys),
    Mutation("B2", "half the cost of a randomised response, as printed", ("B.responses",), _half_response),
    Mutation("B3", "sketches in place of randomised responses", ("B.transcripts",), _sketches_everywhere),
)
