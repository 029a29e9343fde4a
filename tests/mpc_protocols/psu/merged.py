"""Runs of `merge3` in memory: any owners among eight parties of which three compute, for the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.psu.align import align
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member
from mpc_protocols.psu.identifiers.normalise import Identifiers
from mpc_protocols.wire import Traffic, Wire
from runner.review.conformance.guards import Recorder
from tests.mpc_protocols.psu.owners import spec_of

NAMES = ("north", "south", "east", "west", "hill", "lake", "wood", "moor", "fen", "dale", "peak")
MEMBERS = tuple(Member(name, bytes([i]) * 32, i) for i, name in enumerate(NAMES))


@dataclass
class Merged:
    """What a run left: results, traffic and guards by wire number."""

    results: list[Alignment]
    traffic: list[Traffic]
    ledgers: list[Recorder]
    frames: list[Frame]


def context_of(owners: Sequence[int]) -> Context:
    """The owners' numbers in the study's order; 0, 1 and 2 compute."""
    return Context(bytes(range(32)), tuple(MEMBERS[i] for i in owners), None, MEMBERS[:3])


def identifiers(entries: Sequence[bytes], kind: str = "text") -> Identifiers:
    """Canonical identifiers of one key column."""
    return Identifiers(list(entries), np.arange(len(entries)), (kind,))


def body_of(
    spec: AlignmentSpec,
    context: Context,
    lists: Sequence[Sequence[bytes] | Identifiers],
    ledgers: Sequence[Recorder],
) -> Callable[[Wire], Alignment]:
    """An honest party's part."""

    def body(wire: Wire) -> Alignment:
        side = context.side(wire.me)
        own = None if side is None else lists[side]
        return align(
            wire,
            own if own is None or isinstance(own, Identifiers) else identifiers(own),
            spec,
            context,
            ledgers[wire.me],
        )

    return body


def merge_lists(
    lists: Sequence[Sequence[bytes] | Identifiers],
    owners: Sequence[int],
    *,
    tapped: bool = False,
    bodies: dict[int, Callable[[Wire], Any]] | None = None,
    network: MemoryNetwork | None = None,
    **changes: Any,
) -> Merged:
    """One run. owners: wire numbers, one per list; contributors must be 3, 4, .. without a gap. bodies:
    dishonest parties."""
    spec, context = spec_of("merge3", **changes), context_of(owners)
    parties = max(3, *(number + 1 for number in owners))
    frames: list[Frame] = []
    network = network or MemoryNetwork(parties, tap=frames.append if tapped else None)
    ledgers = [Recorder() for _ in range(parties)]
    honest = body_of(spec, context, lists, ledgers)
    results = network.run([(bodies or {}).get(i, honest) for i in range(parties)])
    return Merged(results, [network.traffic(i) for i in range(parties)], ledgers, frames)
