"""What an alignment will cost each party, whatever the method: for `plan`, before anything runs.

Exact where the method's cost is (`cost`, `dh2.cost`, `merge3.counted`, tests): payload bytes sent by each party,
rounds, exponentiations. Seconds are of one core of the machine that the constants were measured on, and
rough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mpc_protocols.psu.dummies import list_noise, overlap_noise
from mpc_protocols.psu.functionality import AlignmentSpec, Context
from mpc_protocols.psu.method import METHODS

HASH_S = 1e-6
"""Seconds per identifier: hashing, sorting, recognising."""
WORD_S = 1e-8
"""Seconds of a computing party of `merge3` per byte that it sends: computing it and moving it."""


@dataclass(frozen=True)
class Forecast:
    """By wire number: bytes sent, seconds of one core. false_merges: probability that two identifiers become
    one. beside_bytes: memory of a computing party beside its lists. proofs: batches that the computing
    parties prove."""

    sent: Mapping[int, int]
    seconds: Mapping[int, float]
    rounds: int
    exponentiations: Mapping[int, int] = field(default_factory=dict)
    false_merges: float = 0.0
    beside_bytes: int = 0
    proofs: int = 0


def list_lengths(spec: AlignmentSpec, sizes: Sequence[int]) -> list[int]:
    """The lengths of the owners' lists for so many identifiers, dummies included; noise at its mean."""
    if spec.adjacency == "replace":
        return list(sizes)
    pairs = 4 * overlap_noise(spec, len(sizes)).c
    padded = spec.pad_to or [size + list_noise(spec).c for size in sizes]
    return [size + pairs for size in padded]


def forecast(
    spec: AlignmentSpec, context: Context, sizes: Sequence[int], union: int | None = None, columns: int = 1
) -> Forecast:
    """sizes: expected identifiers of each owner. union: rows of the common table, by default as if no
    identifier were common (the most). columns: key columns. Raises `StudyInvalid` if these parties cannot run
    the method."""
    context.check(spec)
    method = METHODS[spec.method]
    lengths = list_lengths(spec, sizes) if method.psu else list(sizes)
    return method.forecast(spec, context, lengths, sum(lengths) if union is None else union, columns)
