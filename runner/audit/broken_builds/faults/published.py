"""Faults of published schemes, and of published tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from mpc_protocols.mechanisms.randomised_response import GRID, Response, certified
from runner.audit.broken_builds.faults.mutation import Mutation, Patch, replaced
from runner.audit.subjects import arena
from synth.algorithms.vertimrf.encoders import sketches
from synth.mrf import Model


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
    return replaced("synth.algorithms.vertimrf.algorithm.encoder_of", lambda _: sketches.Sketches)


@contextmanager
def _copied_rows() -> Iterator[None]:
    """The model keeps the rows that it was made of, and hands them out."""
    plain, kept = arena.counter, list[Any]()

    def counter(rows: Any, sizes: Any) -> Any:
        kept.append(rows)
        return plain(rows, sizes)

    def sample(self: Any, rows: int, *given: Any, **named: Any) -> Any:
        return kept[-1][:rows]

    with mock.patch.object(arena, "counter", counter), mock.patch.object(Model, "sample", sample):
        yield


MUTATIONS = (
    Mutation("B1", "sketches whose owners hash by keys of their own", ("B.sketches",), _owners_own_keys),
    Mutation("B2", "half the cost of a randomised response, as printed", ("B.responses",), _half_response),
    Mutation("B3", "sketches in place of randomised responses", ("B.transcripts",), _sketches_everywhere),
    Mutation("M34", "synthetic rows that are copies of real ones", ("I.distance",), _copied_rows),
)
