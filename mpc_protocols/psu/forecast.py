"""What an alignment will cost each party, whatever the method: for `plan`, before anything runs.

Exact where the method's cost is (`cost`, `dh2_cost`, `merge3_cost`, tests): payload bytes sent by each party, rounds,
exponentiations. Seconds are of one core of the machine that the constants were measured on, and rough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mpc_protocols.psu import florist, helper
from mpc_protocols.psu.dh2 import cost as dh2_cost
from mpc_protocols.psu.dummies import list_noise, overlap_noise
from mpc_protocols.psu.functionality import AlignmentSpec, Context
from mpc_protocols.psu.merge3.cost import merge3
from mpc_protocols.psu.merge3.keys import false_merges
from mpc_protocols.psu.row_order import COUNT_BYTES

HASH_S = 1e-6
"""Seconds per identifier: hashing, sorting, recognising."""
WORD_S = 1e-8
"""Seconds of a computing party of `merge3` per byte that it sends: computing it and moving it."""


@dataclass(frozen=True)
class Forecast:
    """By wire number: bytes sent, seconds of one core. false_merges: probability that two identifiers become one."""

    sent: Mapping[int, int]
    seconds: Mapping[int, float]
    rounds: int
    exponentiations: Mapping[int, int] = field(default_factory=dict)
    false_merges: float = 0.0


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
    """sizes: expected identifiers of each owner. union: rows of the common table, by default as if no identifier were common
    (the most). columns: key columns. Raises `StudyInvalid` if these parties cannot run the method."""
    context.check(spec)
    numbers = [owner.number for owner in context.owners]
    if spec.method == "row-order":
        sent = {number: COUNT_BYTES * (3 - (number < 3)) for number in numbers}
        return Forecast(sent, dict.fromkeys(numbers, 0.0), 2)
    lengths = list_lengths(spec, sizes)
    union = sum(lengths) if union is None else union
    if spec.method == "merge3":
        tally = merge3(context, lengths, union, columns)
        local = dict(zip(numbers, lengths, strict=True))
        seconds = {
            number: HASH_S * local.get(number, 0) + (WORD_S * tally.sent[number] if number < 3 else 0.0)
            for number in range(len(tally.sent))
        }
        return Forecast(
            dict(enumerate(tally.sent)),
            seconds,
            tally.rounds,
            {},
            float(false_merges(sum(lengths), len(lengths))),
        )
    if spec.method == "helper":
        cost = helper.cost(lengths[0], lengths[1])
        numbers.append(context.helper.number if context.helper else -1)
    else:
        first, second = lengths
        pool = 0 if spec.adjacency == "replace" else 2 * overlap_noise(spec).c
        cost = (
            florist.cost(first, second, union)
            if spec.method == "florist"
            else dh2_cost.cost(first, second, union, proofs=spec.security == "proofs", pool=pool)
        )
    return Forecast(
        {number: cost.sent[i] for i, number in enumerate(numbers)},
        {
            number: cost.seconds(i) + HASH_S * (lengths[i] if i < 2 else sum(lengths))
            for i, number in enumerate(numbers)
        },
        cost.rounds,
        {number: cost.powers[i] for i, number in enumerate(numbers)},
    )
