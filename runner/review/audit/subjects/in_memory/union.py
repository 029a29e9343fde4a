"""Alignments in memory: two owners, the parties that compute, every method of the registry, with randomness
that can be repeated.

As `arena` for backends: the protocol code is that of a deployment, keys and coins are derived from names, so
that a run can be repeated bit for bit on other identifiers, or with all drawn anew that one party lacks.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from mpc_protocols.in_memory.memory_wire import Frame, MemoryNetwork
from mpc_protocols.in_memory.presumed import AllowAll
from mpc_protocols.psu.align import align
from mpc_protocols.psu.dh2 import owner
from mpc_protocols.psu.functionality import Alignment, AlignmentSpec, Context, Member, Security
from mpc_protocols.psu.groups.ristretto import Ristretto255
from mpc_protocols.psu.identifiers.normalise import Identifiers
from mpc_protocols.psu.method import METHODS, AlignmentMethod
from mpc_protocols.wire import Wire
from runner.review.audit.subjects.ends import noting
from runner.review.audit.subjects.in_memory.arena import PATIENCE_S, SESSION, Coins, drawing, ordered_view
from runner.review.audit.subjects.in_memory.bent_wire import Bend, bent

OWNERS, COMPUTING = 2, 3
TRAPS = 8
"""Of dh2's lists, whose 1024 would cost two seconds a run; they make deviating riskier, and tell nothing."""
MEMBERS = tuple(
    Member(name, bytes([number]) * 32, number) for number, name in enumerate(("north", "south", "east"))
)


@dataclass(frozen=True)
class Aligned:
    """What a run left. results: of each party. frames: every message."""

    results: tuple[Alignment, ...]
    frames: tuple[Frame, ...]

    def view(self, party: int) -> list[Frame]:
        """What a party received, in an order that does not depend on the scheduling of threads."""
        return ordered_view(self.frames, party)


def identifiers(numbers: Sequence[int]) -> list[bytes]:
    """Canonical identifiers of invented people."""
    return [b"\x00person %d" % number for number in numbers]


def methods() -> list[AlignmentMethod]:
    """Those that two owners and a third party can run."""
    names = [member.name for member in MEMBERS]
    return [method for method in METHODS if method.misfit(names[:OWNERS], names) is None]


def run_alignment(
    method: AlignmentMethod,
    lists: Sequence[Sequence[bytes]],
    coins: Coins | None,
    bend: Bend | None = None,
    session: bytes = SESSION,
    ends: dict[int, Any] | None = None,
    security: Security = "semi-honest",
    malicious: bool = False,
) -> Aligned:
    """Align the lists of two owners, or of all three parties. Raises what the first party to fail raised.

    coins: None for the system's. ends: as `Arena.run`. security, malicious: as in `AlignmentSpec`."""
    spec = AlignmentSpec(method.name, security, "replace", min_size=0, max_size=1 << 16, malicious=malicious)
    owners = len(lists)
    context = Context(bytes(32), MEMBERS[:owners], MEMBERS[OWNERS] if method.helper else None, MEMBERS)
    frames: list[Frame] = []
    lock = threading.Lock()

    def tap(frame: Frame) -> None:
        with lock:
            frames.append(frame)

    network = MemoryNetwork(COMPUTING, COMPUTING, session_id=session, tap=tap, patience_s=PATIENCE_S)
    if coins is not None:
        replace(coins, label=f"{coins.label} {method.name}").give_keys(network)

    def body(plain: Wire) -> Alignment:
        wire = bent(plain, bend)
        own: Identifiers | int | None = None
        if wire.me < owners:
            entries = lists[wire.me]
            own = (
                Identifiers(list(entries), np.arange(len(entries)), ("text",)) if method.psu else len(entries)
            )
        return align(wire, own, spec, context, AllowAll(), Ristretto255(threads=1))

    with drawing(coins, COMPUTING), mock.patch.object(owner, "align", partial(owner.align, traps=TRAPS)):
        results = network.run([noting(body, ends)] * COMPUTING)
    return Aligned(tuple(results), tuple(frames))
